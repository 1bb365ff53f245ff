"""What calls of a model leave changed, kept so that further calls can be undone."""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch

from roofprof._arguments import Contents, used_by

# What no call was seen to write is kept by value as well, until this much is: torch does not tell of writes through
# `tensor.data` or to tensors made in inference mode, nor numpy of any.
_BYTES_KEPT = 1 << 28


class Rewind:
    """Lets a call be made again and again, and leaves all within reach as its first call left it.

    Made before the first call. Within reach are the model's and the arguments' containers, attributes, tensors and
    gradients, the random number generators, and for a function what it and the functions that it calls name.
    """

    def __init__(self, model: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.notes: list[str] = []
        self._roots = [*used_by(model), args, kwargs]
        self._inputs = Contents(args, kwargs)
        everything = Contents(*self._roots)
        self._versions = {id(tensor): _version(tensor) for tensor in everything.tensors}
        self._held = everything.tensors  # so that no other tensor gets the id of one of these
        self._ambient = AmbientState(everything.generators)
        torch.clear_autocast_cache()  # as before each further call, so that all of them cast

    @property
    def consumes_inputs(self) -> bool:
        """Whether an argument is an iterator, which every further call would move on."""
        return bool(self._inputs.iterators)

    def before_call(self) -> None:
        """Give a further call the containers and random numbers that the first one got."""
        self._inputs.restore()
        self._ambient.restore()

    @contextlib.contextmanager
    def undoing(self) -> Iterator[None]:
        """Begins after the first call: what is called in here is undone at the end."""
        after = Contents(*self._roots)
        ambient = AmbientState(after.generators)
        tensors = self._keep(after)
        arrays = [(array, array.copy()) for array in after.arrays if array.nbytes <= _BYTES_KEPT]
        try:
            yield
        finally:
            after.restore()
            for tensor in tensors:
                tensor.restore()
            for array, values in arrays:
                if array.flags.writeable:
                    array[...] = values
            lost = sum(tensor.is_lost for tensor in tensors)
            if lost:
                self.notes.append(
                    f"further calls wrote to {lost} tensors that the first did not: they are not as it left them"
                )
            ambient.restore()

    def _keep(self, after: Contents) -> list[KeptTensor]:
        inputs = {id(tensor) for tensor in self._inputs.tensors}
        spare = _BYTES_KEPT
        kept = []
        for tensor in after.tensors:
            if not _has_values(tensor):
                continue
            version = _version(tensor)
            written = id(tensor) not in self._versions or self._versions[id(tensor)] != version
            size = tensor.numel() * tensor.element_size()
            affordable = size <= spare and (version is None or id(tensor) not in inputs)
            if affordable and not written:
                spare -= size
            kept.append(KeptTensor(tensor, by_value=written or affordable))
        return kept


class KeptTensor:
    """A tensor as it was when this was made."""

    def __init__(self, tensor: torch.Tensor, *, by_value: bool) -> None:
        self.is_lost = False  # written since, but not kept by value
        self._tensor = tensor
        # Stays with the storage when `tensor.data = ...` moves on.
        self._alias = tensor.detach()
        self._values = self._alias.clone() if by_value else None
        self._version = _version(tensor)
        self._grad = tensor.grad if tensor.is_leaf else None
        self._requires_grad = tensor.requires_grad

    def restore(self) -> None:
        """Put back storage, values, gradient and whether there is one to be."""
        tensor = self._tensor
        if not _same_place(tensor, self._alias):
            tensor.data = self._alias
        if self._values is None:
            self.is_lost = _version(tensor) != self._version
        elif _version(tensor) != self._version or not _equal(self._alias, self._values):
            with torch.inference_mode():  # the one mode in which every tensor may be written
                # By .data: the version stays, so that the backward of an earlier call of the user's still runs.
                self._alias.data.copy_(self._values)
        if tensor.is_leaf:
            if tensor.grad is not self._grad:
                tensor.grad = self._grad
            if tensor.requires_grad != self._requires_grad:
                tensor.requires_grad_(self._requires_grad)


class AmbientState:
    """The random number generators, torch's and others', and the grad mode."""

    def __init__(self, generators: list[Any]) -> None:
        self._grad_mode = torch.is_grad_enabled()
        self._restore = [
            _resetter(torch.get_rng_state, torch.set_rng_state),
            _resetter(random.getstate, random.setstate),
        ]
        if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
            self._restore.append(_resetter(torch.cuda.get_rng_state_all, torch.cuda.set_rng_state_all))
        numpy = sys.modules.get("numpy.random")
        if numpy is not None:
            self._restore.append(_resetter(numpy.get_state, numpy.set_state))
        self._restore += [_generator_resetter(generator) for generator in generators]

    def restore(self) -> None:
        """Set everything back to this state."""
        torch.clear_autocast_cache()
        torch.set_grad_enabled(self._grad_mode)
        for restore in self._restore:
            restore()


def _resetter(read: Callable[[], Any], write: Callable[[Any], Any]) -> Callable[[], None]:
    state = read()
    return lambda: write(state)


def _generator_resetter(generator: Any) -> Callable[[], None]:
    if isinstance(generator, random.Random):
        return _resetter(generator.getstate, generator.setstate)
    if hasattr(generator, "bit_generator"):  # numpy.random.Generator
        bits = generator.bit_generator
        return _resetter(lambda: bits.state, lambda state: setattr(bits, "state", state))
    return _resetter(generator.get_state, generator.set_state)


def _version(tensor: torch.Tensor) -> int | None:
    # Tensors made in inference mode do not keep count.
    return None if torch.nn.parameter.is_lazy(tensor) or tensor.is_inference() else tensor._version


def _has_values(tensor: torch.Tensor) -> bool:
    """Whether there are values of the tensor's own that could be written: not so where elements share one place."""
    if torch.nn.parameter.is_lazy(tensor) or tensor.is_meta:
        return False
    return not _is_dense(tensor) or all(tensor.stride(d) or tensor.size(d) <= 1 for d in range(tensor.dim()))


def _is_dense(tensor: torch.Tensor) -> bool:
    return type(tensor) in {torch.Tensor, torch.nn.Parameter} and tensor.layout is torch.strided


def _same_place(a: torch.Tensor, b: torch.Tensor) -> bool:
    if not (_is_dense(a) and _is_dense(b)):
        return True
    return a.data_ptr() == b.data_ptr() and a.size() == b.size() and a.stride() == b.stride()


def _equal(a: torch.Tensor, b: torch.Tensor) -> bool:
    return not _is_dense(a) or torch.equal(a, b)
