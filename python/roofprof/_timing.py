"""The further calls of a run: for warm-up, and in pairs of a bare and an observed one, which are timed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from roofprof import _C

if TYPE_CHECKING:
    from roofprof._compiled import Compilations
    from roofprof._script import Scripts

# Without a wish of the caller's, a run is repeated this often or for this many seconds, whichever ends first.
_REPEATS = 10
_SECONDS = 5.0
# Calls that compile are not timed, but a model that compiles in each call is, after so many.
_COMPILING_CALLS = 16
# After so many, TorchScript's executor has made up its mind.
_CALLS_OF_EXECUTOR = 3


class Timing:
    """What was timed so far: the observed calls' passes, and as many bare calls."""

    def __init__(self, compilations: Compilations, scripts: Scripts, runs: _C.DeviceRuns) -> None:
        self.passes: list[_C.Pass] = []
        self.bare_ns: list[int] = []
        self.warmed_up = 0
        self.notes: list[str] = []
        self._compilations = compilations
        self._scripts = scripts
        self._runs = runs

    def repeat(
        self,
        counted: _C.Pass,
        warmup: int,
        repeat: int | None,
        bare: Callable[[], int],
        observed: Callable[[], _C.Pass],
    ) -> None:
        """Timed calls, each after a bare one, until the wished number or the default limits are reached."""
        started = time.perf_counter()
        limited = repeat is None

        def spent() -> float:
            return time.perf_counter() - started - self._compilations.seconds

        for _ in range(warmup):
            if limited and spent() + counted.wall_ns * 1e-9 > _SECONDS / 2:
                break
            bare()
            self.warmed_up += 1
        while len(self.passes) < (repeat or _REPEATS):
            if limited and self.passes and spent() > _SECONDS:
                break
            compilations = self._compilations.count
            bare_ns = bare()
            timed = observed()
            if self._compilations.count > compilations and len(self.passes) + self.warmed_up < _COMPILING_CALLS:
                self.warmed_up += 2  # whatever was wished: its time is the compiler's
                continue
            fault = self._fault_of(timed, counted)
            if fault is not None:
                self.stop(fault)
                break
            self.bare_ns.append(bare_ns)
            self.passes.append(timed)

    def stop(self, reason: str) -> None:
        """Say why there are no more."""
        times = "" if self.passes else "; the times are those of the first call"
        self.notes.append(f"timing stopped after {len(self.passes)} repeats: a further call {reason}{times}")

    def _fault_of(self, timed: _C.Pass, counted: _C.Pass) -> str | None:
        """Why that call and further ones are not to be timed."""
        if self._runs.lost:
            return "found the device lost"
        if not self._is_repeat(timed, counted):
            return "did other work than the first (a cache grew, or an input was consumed)"
        return None

    def _is_repeat(self, timed: _C.Pass, counted: _C.Pass) -> bool:
        """Whether the call did what the others did. Timed calls that did not are forgotten where others will follow."""
        # Compiled code dispatches other ops than the eager twin that was counted, but the same ones each time.
        if not timed.compiled_regions and not self._scripts:
            return _C.same_work(counted, timed)
        if not self.passes or _C.same_work(self.passes[0], timed):
            return True
        # TorchScript's executor does so too, once it has made up its mind.
        if not self._scripts or len(self.passes) >= _CALLS_OF_EXECUTOR:
            return False
        self.warmed_up += 2 * len(self.passes)
        self.passes, self.bare_ns = [], []
        return True
