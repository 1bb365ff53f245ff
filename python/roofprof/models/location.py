"""The device on which a call works, and whether what it works on holds data."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch._subclasses.fake_tensor import FakeTensor

from roofprof import _C
from roofprof.state.state_roots import Contents, tensors_of_modules, used_by


class Location(NamedTuple):
    """A device, why calls on it cannot be timed ("": they can), and whether what is called holds data.

    Parameters may rest on the meta device while the call runs elsewhere (they are loaded for it, or nothing calls
    their module). The ops that ran decide then: `otherwise` is the device and the reason if it was not as guessed.
    """

    device: str
    untimed: str = ""
    holds_data: bool = True
    otherwise: tuple[str, str] | None = None

    @property
    def is_sure(self) -> bool:
        """Return True when all tensors hold data."""
        return self.holds_data and self.otherwise is None


def location_of(model: object, args: tuple[Any, ...], kwargs: dict[str, Any], requested: str | None = None) -> Location:
    """Return the requested device; if none is requested, that of a parameter or an input off the CPU, else the CPU."""
    held = tensors_of_modules(model) if isinstance(model, torch.nn.Module) else used_by(model)
    inputs = Contents(args, kwargs).tensors
    tensors = Contents(held, inputs).tensors
    devices = list(filter(None, map(_device_of, tensors)))
    device = next((name for name in devices if name not in {"cpu", "meta"}), "cpu")
    if any(issubclass(type(tensor), FakeTensor) for tensor in tensors):
        found = next((name for name in devices if name != "cpu"), "cpu")
        return Location(requested or found, "not timed: fake tensors hold no data", holds_data=False)
    with_data = (requested or device, _C.untimed_on(device) or _C.untimed_on(requested or device))
    if "meta" not in devices:
        return Location(*with_data)
    without = (requested or "meta", _C.untimed_on("meta"))
    if set(devices) == {"meta"} or any(_device_of(tensor) == "meta" for tensor in inputs):
        return Location(*without, holds_data=False, otherwise=with_data)
    return Location(*with_data, otherwise=without)


def _device_of(tensor: torch.Tensor) -> str:
    """Return the tensor's device, without the user's code; "" if unknown. A fake tensor gives the imitated device."""
    return str(tensor.device) if issubclass(type(tensor), FakeTensor) else _C.device_of(tensor)
