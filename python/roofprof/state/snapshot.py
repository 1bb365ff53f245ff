"""The state that calls of a model change, kept so that further calls can be undone."""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch

from roofprof import _C
from roofprof.state.state_roots import Contents, is_lazy, used_by

# State that no call was seen to write is kept too, up to this size: torch does not report all writes, and numpy none.
_BYTES_KEPT = _C.BYTES_KEPT


class StateSnapshot:
    """Lets a call be made again and again, and leaves all within reach as its first call left it.

    Made before the first call. csrc/run/state_snapshot.h lists the state that is put back for C++ too, tensors among
    it. Python adds the model's and the arguments' containers and attributes, numpy's arrays, further random number
    generators, and for a function the values that it and the functions that it calls name.
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
    def why_only_once(self) -> str:
        """Why no further call may be made, as the end of a sentence; "" if one may. Known after the first call."""
        if self._inputs.iterators:
            return "further ones would use up an iterator among its inputs"
        return self._tensors.why_only_once()

    def before_call(self) -> None:
        """Give a further call the containers and random numbers that the first one got."""
        self._inputs.restore()
        self._ambient.restore()

    @contextlib.contextmanager
    def undoing(self) -> Iterator[None]:
        """Undo at the end every change by calls in here; it begins after the first call."""
        after = Contents(*self._roots)
        ambient = AmbientState(after.generators)
        self._tensors.keep(_known(after))
        arrays = [_array_resetter(array) for array in after.arrays]
        try:
            yield
        finally:
            after.restore()
            self.lost = self._tensors.restore()
            for restore in arrays:
                restore()
            ambient.restore()


def _known(contents: Contents) -> list[torch.Tensor]:
    """Return the tensors that have their sizes already."""
    return [tensor for tensor in contents.tensors if not is_lazy(tensor)]


def _array_resetter(array: Any) -> Callable[[], None]:
    """Return what restores an array of numpy's, whatever its class makes of it; too large a one is not kept."""
    numpy = sys.modules["numpy"]
    plain = numpy.ndarray.view(array, numpy.ndarray)
    values = plain.copy() if plain.nbytes <= _BYTES_KEPT else None

    def restore() -> None:
        if values is not None and plain.flags.writeable:
            plain[...] = values

    return restore


class AmbientState:
    """The random number generators, torch's and others', and the grad mode."""

    def __init__(self, generators: list[Any]) -> None:
        self._torchs = _C.AmbientState()
        self._restore = [_resetter(random.getstate, random.setstate)]
        numpy = sys.modules.get("numpy.random")
        if numpy is not None:
            self._restore.append(_resetter(numpy.get_state, numpy.set_state))
        for generator in generators:
            with contextlib.suppress(Exception):  # one that has no state to be had, such as random.SystemRandom
                self._restore.append(_generator_resetter(generator))

    def restore(self) -> None:
        """Set everything back to this state."""
        self._torchs.restore()
        for restore in self._restore:
            restore()


def _resetter(read: Callable[[], Any], write: Callable[[Any], Any]) -> Callable[[], None]:
    state = read()
    return lambda: write(state)


def _generator_resetter(generator: Any) -> Callable[[], None]:
    """Return what restores a generator, by its base class's methods: a user's subclass may override them."""
    kind = type(generator)
    if issubclass(kind, random.Random):
        return _resetter(lambda: random.Random.getstate(generator), partial(random.Random.setstate, generator))
    if issubclass(kind, torch.Generator):
        return _resetter(lambda: torch.Generator.get_state(generator), partial(torch.Generator.set_state, generator))
    numpy = sys.modules["numpy.random"]
    if issubclass(kind, numpy.RandomState):
        state_of = numpy.RandomState
        return _resetter(lambda: state_of.get_state(generator), partial(state_of.set_state, generator))
    bits = vars(numpy.Generator)["bit_generator"].__get__(generator)
    return _resetter(lambda: bits.state, lambda state: setattr(bits, "state", state))
