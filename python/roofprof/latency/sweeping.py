"""Calls with larger and larger batches: which, how long, and when it is enough."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from roofprof import _C
from roofprof.calls.target import Target
from roofprof.errors import TimingError
from roofprof.figures import fields
from roofprof.latency.batches import Arguments, ScaledInputs, arguments_of
from roofprof.latency.measured import Latency
from roofprof.latency.plan import Batches, Plan
from roofprof.latency.sweep import FEWEST_CALLS, LatencySweep
from roofprof.latency.timing import Subject, first_call, repeatable, time_call

PARTS_OF_TIME = 8  # a batch of "auto" has one of them, or what its fewest calls need
FOR_WARM_UP = 1.5  # what these need, their warm-up included
RISE = 1.05  # of throughput, from a doubling that is worth a further one
SHARE_OF_MEMORY = 0.8  # that a batch may take of what is available


def time_batches(
    subject: Subject, given: Arguments, batches: Batches, inputs: Callable[[int], Any] | None, plan: Plan
) -> LatencySweep:
    """Time calls with each batch, within ``plan.seconds`` together.

    The model is left as one plain call leaves it: with the given arguments, else with the smallest batch. ``inputs``
    makes the inputs of a batch; without it the given ones are repeated or cut. ``plan.tokens`` counts those of one call
    of the given or smallest batch.
    """
    make: Callable[[int], Arguments]
    if inputs is None:
        make = scaled = ScaledInputs(*given)
        own_batch = scaled.samples
    else:
        own_batch = batches.sizes[0]
        given = arguments_of(inputs(own_batch))
        make = _maker(inputs)
    _check_tokens(plan.tokens, own_batch, batches.sizes)
    target, location = repeatable(subject, *given)
    _refuse_auto_of_ranks(target, batches)  # before the first call, which all ranks would make
    sweeping = _Sweeping(subject, make, batches, plan, own_batch, _Memory(location.device))
    first_call(target, location)
    _refuse_auto_of_ranks(target, batches)
    sweeping.among_ranks = target.is_among_ranks
    # Each batch gets the containers as they were given.
    target.undoing(lambda: sweeping.make(target.prepare))
    return LatencySweep(tuple(sweeping.points), sweeping.ended)


def _refuse_auto_of_ranks(target: Target, batches: Batches) -> None:
    if batches.auto and target.is_among_ranks:
        raise TimingError(
            "batches='auto' ends by each rank's own time and memory, and ranks may wait for each other in the calls: "
            "give a list of batch sizes, the same on all ranks"
        )


def _maker(inputs: Callable[[int], Any]) -> Callable[[int], Arguments]:
    return lambda batch: arguments_of(inputs(batch))


class _Sweeping:
    """Measures one batch after the other."""

    def __init__(
        self,
        subject: Subject,
        make: Callable[[int], Arguments],
        batches: Batches,
        plan: Plan,
        own_batch: int,
        memory: _Memory,
    ) -> None:
        self.points: list[Latency] = []
        self.ended = "all of the batch sizes are measured"
        self.among_ranks = False  # nothing ends it before all are
        self._subject = subject
        self._make = make
        self._batches = batches
        self._plan = plan
        self._own_batch = own_batch
        self._memory = memory
        self._began = time.perf_counter()

    def make(self, prepare: Callable[[], None]) -> None:
        """Measure all batches that time and memory allow."""
        sizes = self._batches.sizes
        for place, batch in enumerate(sizes):
            why = self._why_not(batch)
            if why:
                self.ended = why
                return
            prepare()
            self._memory.before()
            try:
                self.points.append(self._measured(batch, len(sizes) - place))
            except (RuntimeError, MemoryError) as error:
                if self.among_ranks or not self.points or not _out_of_memory(error):
                    raise
                self.ended = f"at the memory's end, with batch {batch}: {str(error).splitlines()[0]}"
                return
            self._memory.after(batch)

    def _why_not(self, batch: int) -> str:
        """Return why the sweep ends before that batch; "" if it goes on."""
        if not self.points or self.among_ranks:
            return ""
        why = _risen_enough(self.points) or self._memory.why_not(batch) if self._batches.auto else ""
        return why or self._time_is_up(batch)

    def _time_left(self) -> float:
        assert self._plan.seconds is not None
        return max(self._plan.seconds - (time.perf_counter() - self._began), 0.0)

    def _needed(self, batch: int) -> float:
        """Return the seconds that the fewest calls may take with that batch; 0 where nothing is known yet."""
        if not self.points:
            return 0.0
        latest = self.points[-1]
        return FEWEST_CALLS * latest.median * batch / (latest.samples or 1)

    def _time_is_up(self, batch: int) -> str:
        """Return why the time left is too short for that batch; "" if it suffices."""
        if self._plan.seconds is None:
            return ""
        left = self._time_left()
        needed = self._needed(batch)
        if needed <= left:
            return ""
        return (
            f"at the time limit: {FEWEST_CALLS} calls with batch {batch} may take {fields['time'].text(needed)}, and "
            f"of {self._plan.seconds:g} seconds {fields['time'].text(left)} are left; seconds= (--seconds) gives more"
        )

    def _measured(self, batch: int, remaining: int) -> Latency:
        """Return one batch's latency. An exception names the batch."""
        seconds = None
        if self._plan.seconds is not None:
            left = self._time_left()
            part = self._plan.seconds / PARTS_OF_TIME if self._batches.auto else left / remaining
            part = max(part, FOR_WARM_UP * self._needed(batch))
            seconds = max(min(part, left), 1e-3)
        tokens = self._plan.tokens
        if tokens is not None:
            tokens = tokens * batch // self._own_batch
        plan = replace(self._plan, seconds=seconds, samples=batch, tokens=tokens)
        try:
            args, kwargs = self._make(batch)
            timed = time_call(self._subject, args, kwargs, plan)
        except Exception as error:
            if hasattr(error, "add_note"):  # Python 3.11
                error.add_note(f"roofprof: that was at batch {batch} of a sweep over batch sizes")
            raise
        if timed.samples_per_second is None:
            raise TimingError(f"throughput is not known: {timed.not_available['samples_per_second']}")
        return timed


def _check_tokens(tokens: int | None, own_batch: int, sizes: list[int]) -> None:
    if tokens is not None and any(tokens * batch % own_batch for batch in sizes):
        raise TimingError(
            f"tokens={tokens} are those of a call with {own_batch} samples, and other batches would not have a whole "
            f"number of them: give a multiple of {own_batch}"
        )


def _risen_enough(points: list[Latency]) -> str:
    """Return why a further doubling is not worth it; "" if it is."""
    rates = [point.samples_per_second or 0.0 for point in points]
    if len(rates) < 3 or max(rates[-2:]) > RISE * max(rates[:-2]):
        return ""
    return "throughput rose by less than 5% over the last two doublings"


def _out_of_memory(error: BaseException) -> bool:
    """Return True for an error of a device, or of the host's allocator, which torch reports as a RuntimeError."""
    return isinstance(error, (torch.OutOfMemoryError, MemoryError)) or "DefaultCPUAllocator" in str(error)


class _Memory:
    """The host memory that batches took: a system that runs out of memory ends the process without asking.

    The figure is an upper bound: the process's highest use so far, less its use when the batch began.
    """

    def __init__(self, device: str) -> None:
        self._watched = device == "cpu"
        self._before = 0
        self._taken = 0
        self._batch = 0

    def before(self) -> None:
        """Note the memory in use as a batch begins."""
        self._before = _resident_bytes()

    def after(self, batch: int) -> None:
        """Note the memory that the batch took, after it is measured."""
        self._taken = max(_highest_resident_bytes() - self._before, 0)
        self._batch = batch

    def why_not(self, batch: int) -> str:
        """Return why the memory is too small for that batch; "" if it suffices, or if that is not known."""
        available = _C.available_memory_bytes()
        if not self._watched or not self._batch or available is None:
            return ""
        needed = self._taken * batch / self._batch
        if needed <= SHARE_OF_MEMORY * available:
            return ""
        return (
            f"at the memory limit: batch {batch} may need {needed / 1e9:.1f} GB, and {available / 1e9:.1f} GB are "
            "available; a list of batch sizes is measured without this check"
        )


def _highest_resident_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _resident_bytes() -> int:
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, IndexError, ValueError):  # then nothing is known to have been taken
        return _highest_resident_bytes()
    return pages * resource.getpagesize()
