"""Where the work runs, and whether its time can be taken there."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch._subclasses.fake_tensor import FakeTensor

from roofprof import _C
from roofprof._state.reach import Contents, used_by


class Location(NamedTuple):
    """A device, why calls on it cannot be timed ("": they can), and whether all tensors hold data."""

    device: str
    untimed: str = ""
    holds_data: bool = True


def location_of(model: object, args: tuple[Any, ...], kwargs: dict[str, Any], wished: str | None = None) -> Location:
    """The wished device; without a wish that of a parameter or an input which is not on the CPU; else the CPU."""
    held = [*model.parameters(), *model.buffers()] if isinstance(model, torch.nn.Module) else used_by(model)
    tensors = Contents(held, args, kwargs).tensors
    found = next((str(tensor.device) for tensor in tensors if tensor.device.type != "cpu"), "cpu")
    device = wished or found
    if any(isinstance(tensor, FakeTensor) for tensor in tensors):
        return Location(device, "not timed: fake tensors hold no data", holds_data=False)
    return Location(device, _C.untimed_on(found) or _C.untimed_on(device), holds_data=found != "meta")
