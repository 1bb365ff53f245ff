"""Calls of a model, made again and again and timed, with nothing that observes them."""

from __future__ import annotations

import gc
import resource
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from roofprof import _C
from roofprof.calls.target import Observer, Target, deferred_kind
from roofprof.errors import TimingError
from roofprof.latency.batches import Arguments, samples_in
from roofprof.latency.clocks import Clock, clock_for
from roofprof.latency.measured import Latency
from roofprof.latency.plan import Limits, Plan
from roofprof.models.compiled import original
from roofprof.models.location import Location, location_of
from roofprof.models.walk import KnownModel
from roofprof.render.progress import Progress
from roofprof.state.snapshot import StateSnapshot

QUEUED_CALLS = 50  # at most
_FIXED = (
    "ranks may wait for each other in these calls, so all make the same number of them, however long that takes: the "
    "first, {} for warm-up and {} timed ones; give warmup and repeat, the same on all ranks, to change it"
)


@dataclass(frozen=True)
class Subject:
    """The model that is timed, and the device that its user named (None: the model's)."""

    model: Callable[..., Any]
    device: str | None = None


def time_call(subject: Subject, args: tuple[Any, ...], kwargs: dict[str, Any], plan: Plan) -> Latency:
    """Return the latency of ``model(*args, **kwargs)``. The model is left as one plain call leaves it.

    Raises what a call raises, whichever it is, and TimingError, a ValueError, where calls cannot be timed.
    """
    samples, samples_from = samples_in(args, kwargs)  # before a call may take the inputs apart
    if plan.samples is not None:
        samples, samples_from = plan.samples, "as given"
    target, location = repeatable(subject, args, kwargs)
    device = location.device
    clock = clock_for(device)
    with Progress() as progress:
        progress.say("timing: the first call")
        clock.call(lambda *_, **__: first_call(target, location), (args, kwargs))
        limits = plan.limits(among_ranks=target.is_among_ranks)
        progress.expect(limits.warmup + limits.repeat)
        target.progress = progress
        run = _C.Run(target.session, "count", device, location.untimed, "off")
        calls = _Calls(run, target, clock, limits)
        lost = target.undoing(calls.make)
    notes = calls.notes
    if limits.among_ranks:
        notes.append(_C.Note("fixed-calls", _FIXED.format(limits.warmup, limits.repeat)))
    if lost:
        text = f"further calls wrote to {lost} tensors that the first did not: they are not as it left them"
        notes.append(_C.Note("state-not-restored", text))
    return Latency(
        model=KnownModel().tree(subject.model).modules[0]["type"],
        device=device,
        clock=clock.name,
        times_ns=tuple(calls.times),
        wall_times_ns=tuple(calls.walls),
        warmup=calls.warmup + 1,
        samples=samples,
        samples_from=samples_from,
        tokens=plan.tokens,
        user_ns=round(calls.user * 1e9),
        system_ns=round(calls.system * 1e9),
        processors=_C.usable_processors(),
        gc_collections=calls.collections,
        queued_calls=calls.queued_calls,
        queued_ns=calls.queued_ns,
        environment=_C.environment_of(device),
        notes=tuple(notes),
    )


def repeatable(subject: Subject, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Target, Location]:
    """Return a call that can be made again and undone, before it was ever made, and the location of its work."""
    state_roots = original(subject.model)
    location = location_of(state_roots, args, kwargs, subject.device)
    if location.untimed:
        raise TimingError(f"this call cannot be timed: {location.untimed.removeprefix('not timed: ')}")
    target = Target(
        Observer(KnownModel().tree(subject.model)),  # of which compilations are asked, and TorchScript's attributes
        subject.model,
        args,
        kwargs,
        snapshot=StateSnapshot(state_roots, args, kwargs),
    )
    _require_further_calls(target, "; give it a list, for example")  # before the first, it is an iterator
    return target, location


def first_call(target: Target, location: Location) -> None:
    """Make the call that further ones repeat. Raises TimingError where there can be none.

    Where tensors without data are within reach, it is observed: what computed on them has no times.
    """
    if location.otherwise:
        run = _C.Run(target.session, "count", *location[:2], "off", otherwise=location.otherwise)
        run.count(target)
        if run.untimed:
            raise TimingError(f"this call cannot be timed: {run.untimed.removeprefix('not timed: ')}")
    else:
        result = target.model(*target.args, **target.kwargs)
        target.defers = bool(deferred_kind(result))
        target.finish(result)
    _require_further_calls(target)
    if target.defers:
        model, finish = target.model, target.finish
        target.model = lambda *args, **kwargs: finish(model(*args, **kwargs))


def _require_further_calls(target: Target, advice: str = "") -> None:
    if target.why_only_once:
        raise TimingError(f"this call cannot be timed: {target.why_only_once}{advice}")


class _Calls:
    """The further calls, and their measurements. An exception of a call comes through."""

    def __init__(self, run: _C.Run, target: Target, clock: Clock, limits: Limits) -> None:
        self.times: list[int] = []
        self.walls: list[int] = []
        self.warmup = 0
        self.user = self.system = 0.0
        self.collections = 0
        self.queued_calls = self.queued_ns = 0
        self.notes: list[_C.Note] = []
        self._latest = 0, 0, 0.0, 0.0, 0  # of the latest call: latency, wall time, user and system time, collections
        self._run = run
        self._target = target
        self._clock = clock
        self._limits = limits
        self._arguments: Arguments = (target.args, target.kwargs)

    def make(self) -> None:
        """Warm up, and time, as the run loop (csrc/run/run_loop.h) decides."""
        limits = self._limits
        self.warmup, busy = self._run.time(
            self._target, self, time.perf_counter, limits.warmup, limits.repeat, limits.seconds
        )
        if busy and self._clock.name == "perf_counter":
            self.notes.append(busy)
        if limits.seconds is not None and len(self.times) < limits.repeat:
            self.notes.append(
                _C.Note(
                    "timing-stopped",
                    f"{limits.seconds:g} seconds were over after {self.warmup + 1} calls for warm-up and "
                    f"{len(self.times)} of {limits.repeat} timed ones: seconds= (--seconds) gives it more time",
                )
            )
        self._queue()

    def bare(self) -> int:
        """Make one call, and return its wall time in ns."""
        collections = _collections()
        before = resource.getrusage(resource.RUSAGE_SELF)
        latency, wall = self._clock.call(self._target.model, self._arguments)
        after = resource.getrusage(resource.RUSAGE_SELF)
        user, system = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
        self._latest = latency, wall, user, system, _collections() - collections
        return wall

    def keep(self) -> None:
        """Add the latest call to those that are timed."""
        latency, wall, user, system, collections = self._latest
        self.times.append(latency)
        self.walls.append(wall)
        self.user += user
        self.system += system
        self.collections += collections

    def _queue(self) -> None:
        made = self._limits.repeat if self._limits.among_ranks else len(self.times)
        planned = min(made, QUEUED_CALLS)
        total = self._clock.queued(self._prepared(planned), self._target.model)
        if total is not None:
            self.queued_calls, self.queued_ns = planned, total

    def _prepared(self, count: int) -> Iterator[Arguments]:
        for _ in range(count):
            self._target.prepare()
            yield self._arguments


def _collections() -> int:
    return sum(int(generation["collections"]) for generation in gc.get_stats())
