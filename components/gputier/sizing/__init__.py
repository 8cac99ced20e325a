"""How much GPU memory a model needs: `size(workload, gpus=n)` answers part by part."""

from gputier.sizing.advice import Room, Saving, room, savings
from gputier.sizing.core import size
from gputier.sizing.records import Part, Sizing

__all__ = ["Part", "Room", "Saving", "Sizing", "room", "savings", "size"]
