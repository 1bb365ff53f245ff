"""The batch of a call: found in its inputs, and made larger or smaller."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree

from roofprof import _C
from roofprof.errors import TimingError
from roofprof.state.state_roots import Contents

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


def arguments_of(value: Any) -> Arguments:
    """Return the model's arguments for the result of a callable that makes inputs.

    A pair of a tuple and a dict is positional arguments and keywords, another tuple is positional arguments, anything
    else is the one argument.
    """
    match value:
        case (tuple() as args, dict() as kwargs):
            return args, kwargs
        case tuple():
            return value, {}
        case _:
            return (value,), {}


def samples_in(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[int | None, str]:
    """Return the number of samples of one call and its source, or None and the reason.

    The number is the leading dimension of the input tensors, if all tensors with dimensions agree in it.
    """
    sizes = sorted({_leading(tensor) for tensor in _inputs(args, kwargs) if tensor.dim()})
    if not sizes:
        return None, "how many samples a call has is not known: no input is a tensor with dimensions" + _SAY
    if len(sizes) > 1:
        listed = ", ".join(map(str, sizes[:4])) + (", ..." if sizes[4:] else "")
        return (
            None,
            f"how many samples a call has is not clear: the inputs' leading dimensions are {listed}; say samples=",
        )
    if sizes[0] == 0:
        return None, "how many samples a call has is not known: the inputs are empty" + _SAY
    return sizes[0], "the leading dimension of the inputs"


class ScaledInputs:
    """Inputs of any batch size, made from those of one: tensors are repeated or cut along their leading dimension.

    Raises TimingError, saying what to do, where it is not clear which dimension is the batch or a tensor cannot be
    reached: then a callable that makes inputs for a batch size is needed.
    """

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        samples, why = samples_in(args, kwargs)
        if samples is None:
            raise TimingError(f"{why.removesuffix(_SAY)}; {_GIVE_INPUTS}")
        self.samples = samples
        self._arguments = (args, kwargs)
        leaves = {id(leaf) for leaf in _pytree.tree_leaves(self._arguments)}
        for tensor in _inputs(args, kwargs):
            if id(tensor) not in leaves:
                raise TimingError(f"a tensor among the inputs is inside of an object, out of reach; {_GIVE_INPUTS}")
            if not _C.holds_its_elements(tensor):
                raise TimingError(f"the memory of a tensor among the inputs is freed; {_GIVE_INPUTS}")
            if tensor.dim() and (tensor.layout != torch.strided or tensor.is_nested or tensor.is_quantized):
                raise TimingError(f"a sparse, nested or quantized input cannot be given another batch; {_GIVE_INPUTS}")

    def __call__(self, batch: int) -> Arguments:
        """Return inputs with that many samples: the given ones, repeated. Containers are new, other values the same."""
        args, kwargs = _pytree.tree_map(lambda value: _scaled(value, batch), self._arguments)
        return args, kwargs


_SAY = "; say samples="
_GIVE_INPUTS = "give inputs=, a callable that makes the inputs for a batch size"


def _inputs(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[torch.Tensor]:
    """Return all tensors among the arguments, however deep, but not their gradients."""
    tensors = Contents(args, kwargs).tensors
    gradients = {id(_C.gradient_of(tensor)) for tensor in tensors}
    return [tensor for tensor in tensors if id(tensor) not in gradients]


def _leading(tensor: torch.Tensor) -> int:
    return int(tensor.size(0))


def _scaled(value: Any, batch: int) -> Any:
    if not isinstance(value, torch.Tensor) or value.dim() == 0:
        return value
    with torch.no_grad():
        places = torch.arange(batch, device=value.device) % value.size(0)
        scaled = value.detach().index_select(0, places)
        if value.dim() == 4 and _is_channels_last(value):
            scaled = scaled.contiguous(memory_format=torch.channels_last)
    return scaled.requires_grad_(value.requires_grad) if value.is_leaf else scaled


def _is_channels_last(value: torch.Tensor) -> bool:
    return value.is_contiguous(memory_format=torch.channels_last) and not value.is_contiguous()
