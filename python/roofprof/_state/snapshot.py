"""What calls of a model leave changed, kept so that further calls can be undone."""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch

from roofprof import _C
from roofprof._state.reach import Contents, used_by

# Of what no call was seen to write: torch does not tell of all writes, nor numpy of any.
_BYTES_KEPT = _C.BYTES_KEPT


class StateSnapshot:
    """Lets a call be made again and again, and leaves all within reach as its first call left it.

    Made before the first call. What is put back for C++ too, tensors among it, is listed in csrc/run/state_snapshot.h.
    Python adds the model's and the arguments' containers and attributes, numpy's arrays, further random number
    generators, and for a function what it and the functions that it calls name.
    """

    def __init__(self, model: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.lost = 0  # tensors that could not be put back
        self._roots = [*used_by(model), args, kwargs]
        self._inputs = Contents(args, kwargs)
        everything = Contents(*self._roots)
        self._tensors = _C.TensorSnapshot(_known(everything), _known(self._inputs), _BYTES_KEPT)
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
        self._tensors.keep(_known(after))
        arrays = [(array, array.copy()) for array in after.arrays if array.nbytes <= _BYTES_KEPT]
        try:
            yield
        finally:
            after.restore()
            self.lost = self._tensors.restore()
            for array, values in arrays:
                if array.flags.writeable:
                    array[...] = values
            ambient.restore()


def _known(contents: Contents) -> list[torch.Tensor]:
    """The tensors that have their sizes already."""
    return [tensor for tensor in contents.tensors if not torch.nn.parameter.is_lazy(tensor)]


class AmbientState:
    """The random number generators, torch's and others', and the grad mode."""

    def __init__(self, generators: list[Any]) -> None:
        self._torchs = _C.AmbientState()
        self._restore = [_resetter(random.getstate, random.setstate)]
        numpy = sys.modules.get("numpy.random")
        if numpy is not None:
            self._restore.append(_resetter(numpy.get_state, numpy.set_state))
        self._restore += [_generator_resetter(generator) for generator in generators]

    def restore(self) -> None:
        """Set everything back to this state."""
        self._torchs.restore()
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
