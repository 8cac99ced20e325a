"""What a user may declare: read from stack config, files, JSON or Python, and checked."""

from gputier.workload.declare import Declaration
from gputier.workload.meaning import digest
from gputier.workload.model import (
    Architecture,
    Budget,
    CapacityChoice,
    Cpu,
    Defaults,
    Discount,
    Disk,
    Gpu,
    Image,
    Model,
    Network,
    Scale,
    ScheduleEntry,
    Training,
    Workload,
)
from gputier.workload.read import (
    find_stacks,
    read_config_json,
    read_file,
    read_stack,
    read_text,
    resolve,
)
from gputier.workload.schedule import hours_per_month

__all__ = [
    "Architecture",
    "Budget",
    "CapacityChoice",
    "Cpu",
    "Declaration",
    "Defaults",
    "Discount",
    "Disk",
    "Gpu",
    "Image",
    "Model",
    "Network",
    "Scale",
    "ScheduleEntry",
    "Training",
    "Workload",
    "digest",
    "find_stacks",
    "hours_per_month",
    "read_config_json",
    "read_file",
    "read_stack",
    "read_text",
    "resolve",
]
