"""The profiler's methods that time calls."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from roofprof.latency.measured import Latency
from roofprof.latency.plan import Batches, Plan
from roofprof.latency.sweep import LatencySweep
from roofprof.latency.sweeping import time_batches
from roofprof.latency.timing import Subject, time_call
from roofprof.models.compiled import original

_Method = TypeVar("_Method", bound=Callable[..., Any])


def _without_collisions(method: _Method) -> _Method:
    """Refuse an option that the model's forward has as well, unless its own was given by position."""
    parameters = inspect.signature(method).parameters.values()
    options = [one.name for one in parameters if one.kind is one.KEYWORD_ONLY]

    @functools.wraps(method)
    def checked(self: TimesCalls, /, *args: Any, **kwargs: Any) -> Any:
        if not callable(kwargs.get("inputs")):  # which makes all that the model gets
            refuse_collisions(self._timed().model, args, kwargs, options, f"{method.__name__}()")
        return method(self, *args, **kwargs)

    return checked  # type: ignore[return-value]  # it has the method's signature


def refuse_collisions(
    model: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], options: Sequence[str], taker: str
) -> None:
    """Raise TypeError for a keyword that is an option of `taker` and a parameter of the model that has no value yet."""
    forward = getattr(original(model), "forward", model)
    try:
        signature = inspect.signature(forward)
        given = {*signature.bind_partial(*args).arguments, *(getattr(forward, "keywords", None) or ())}
    except (TypeError, ValueError):  # it tells no signature, or raises itself when it gets these
        return
    named = (
        one.name for one in signature.parameters.values() if one.kind in {one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY}
    )
    for name in named:
        if name in kwargs and name in options and name not in given:
            raise TypeError(
                f"{name}= is an option of {taker} and an argument of the model: give the model's by position, or "
                f"profile functools.partial(model, {name}=...)"
            )


class TimesCalls:
    """Times calls of a model again and again, with nothing that observes them."""

    def _timed(self) -> Subject:
        raise NotImplementedError

    @_without_collisions
    def time(
        self,
        /,
        *args: Any,
        warmup: int | None = None,
        repeat: int | None = None,
        seconds: float | None = 30.0,
        samples: int | None = None,
        tokens: int | None = None,
        **kwargs: Any,
    ) -> Latency:
        """Time ``model(*args, **kwargs)`` again and again: its latency and throughput.

        warmup, repeat: calls that are not timed, and that are; None: 50 and 200. seconds: no call begins later than
        that, and a fifth of it is for the warm-up; None: no limit. Ranks of one program, which may wait for each other
        in the calls, all make the same number: None is 5 and 20, and no seconds end them. samples: in one call; None:
        the leading dimension of the inputs, where they agree. tokens: in one call. The model is left as ONE plain call
        leaves it. Raises whatever a call raises.
        """
        plan = Plan(warmup, repeat, seconds, samples, tokens)
        return time_call(self._timed(), args, kwargs, plan)

    @_without_collisions
    def time_sweep(
        self,
        /,
        *args: Any,
        batches: str | Sequence[int] = "auto",
        inputs: Callable[[int], Any] | None = None,
        warmup: int | None = None,
        repeat: int | None = None,
        seconds: float | None = 120.0,
        tokens: int | None = None,
        **kwargs: Any,
    ) -> LatencySweep:
        """Time calls at several batch sizes, and find the knee of throughput.

        batches: sizes; "auto": 1, 2, 4, ... until throughput rises no more, or memory or the time ends. The inputs are
        the given ones, repeated or cut along their leading dimension; or what ``inputs`` makes of a batch size: one
        value, a tuple, or a tuple and a dict of keywords. seconds: for all together. tokens: of the given call.
        Ranks of one program measure all of the given sizes, and "auto" is refused.
        """
        plan = Plan(warmup, repeat, seconds, None, tokens)
        if inputs is not None and (args or kwargs):
            raise TypeError("give either the inputs of one call or inputs=, which makes them, not both")
        return time_batches(self._timed(), (args, kwargs), Batches(batches), inputs, plan)
