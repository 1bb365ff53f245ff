"""Where the work runs, and whether its time can be taken there."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch._subclasses.fake_tensor import FakeTensor

from roofprof._arguments import Contents, used_by


class Place(NamedTuple):
    """A device, why calls on it cannot be timed, if so, and whether all tensors hold data."""

    device: str
    untimed: str | None
    holds_data: bool = True


def place_of(model: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Place:
    """Off the CPU, where a parameter or an input is; else the CPU."""
    held = [*model.parameters(), *model.buffers()] if isinstance(model, torch.nn.Module) else used_by(model)
    tensors = Contents(held, args, kwargs).tensors
    device = next((str(tensor.device) for tensor in tensors if tensor.device.type != "cpu"), "cpu")
    if any(isinstance(tensor, FakeTensor) for tensor in tensors):
        return Place(device, "not timed: fake tensors hold no data", holds_data=False)
    if device == "meta":
        return Place(device, "not timed: tensors on the meta device hold no data", holds_data=False)
    if device != "cpu":
        return Place(device, f"not timed: kernel times on {device} need a device collector, which this version lacks")
    return Place(device, None)
