"""The clocks that time a call: the host's clock on a CPU; on a GPU device events, and the host's clock as well."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import torch

from roofprof.latency.batches import Arguments

Model = Callable[..., Any]


class Clock(Protocol):
    """Times calls. The time of a call includes dropping its result."""

    name: str

    def call(self, model: Model, arguments: Arguments) -> tuple[int, int]:
        """Make one call; return its nanoseconds by this clock, and by the host's up to the end of all work."""

    def queued(self, calls: Iterable[Arguments], model: Model) -> int | None:
        """Make all calls without waiting between them; return their nanoseconds together, None if they cannot queue."""


class HostClock:
    """perf_counter: a call on a CPU returns when its work is done."""

    name = "perf_counter"

    def call(self, model: Model, arguments: Arguments) -> tuple[int, int]:
        """Return a call's nanoseconds by this clock, twice: it is the only one."""
        args, kwargs = arguments
        begin = time.perf_counter_ns()
        model(*args, **kwargs)
        wall = time.perf_counter_ns() - begin
        return wall, wall

    def queued(self, calls: Iterable[Arguments], model: Model) -> int | None:  # noqa: ARG002
        """Return None: calls of the CPU do not queue."""
        return None


class EventClock:
    """Events on the device's current stream, around what a call puts there; the device stands still before them."""

    name = "device events"

    def __init__(self, device: str) -> None:
        self._device = torch.device(device)

    def call(self, model: Model, arguments: Arguments) -> tuple[int, int]:
        """Return a call's nanoseconds by the stream's events, and by the CPU's clock."""
        args, kwargs = arguments
        stream = torch.cuda.current_stream(self._device)
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        torch.cuda.synchronize(self._device)
        began = time.perf_counter_ns()
        begin.record(stream)
        model(*args, **kwargs)
        end.record(stream)
        torch.cuda.synchronize(self._device)
        wall = time.perf_counter_ns() - began
        return round(begin.elapsed_time(end) * 1e6), wall  # milliseconds

    def queued(self, calls: Iterable[Arguments], model: Model) -> int | None:
        """Return the nanoseconds of all calls together, which queue on the device."""
        torch.cuda.synchronize(self._device)
        began = time.perf_counter_ns()
        for args, kwargs in calls:
            model(*args, **kwargs)
        torch.cuda.synchronize(self._device)
        return time.perf_counter_ns() - began


def clock_for(device: str) -> Clock:
    """Return the clock for calls on that device."""
    return HostClock() if device == "cpu" else EventClock(device)
