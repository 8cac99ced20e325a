"""What a user may declare: read from stack config, files, JSON or Python, and checked."""

from gputier.workload.model import Workload

__all__ = ["Workload"]
