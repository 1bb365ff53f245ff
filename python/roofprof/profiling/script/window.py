"""Profiles some calls of a module while a program runs that does not know of it."""

from __future__ import annotations

import contextlib
import gc
import os
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from roofprof._C import Note
from roofprof.profiling import scopes
from roofprof.profiling.profiler import RooflineProfiler
from roofprof.profiling.scopes import Region
from roofprof.profiling.script.names import Names
from roofprof.profiling.script.outer_calls import outer_calls
from roofprof.profiling.script.program import Stop
from roofprof.profiling.step_window import StepWindow
from roofprof.report.report import Report

if TYPE_CHECKING:
    from typing_extensions import Self

# The number of calls for warm-up where the user gives none. They are profiled one by one, so that a program with fewer
# calls has a report.
WARM_UP = 3
# Calls of another phase end a window early. This number of windows is tried, and the longest is taken.
MOST_TRIES = 3

TRAIN, EVAL = "train", "eval"


def phase_of(module: torch.nn.Module) -> str:
    """Return the phase of a call of the module that begins now: training computes gradients, in training mode."""
    return TRAIN if module.training and torch.is_grad_enabled() else EVAL


_CALLS_OF = {
    TRAIN: "the calls are those of training: in training mode, with gradients",
    EVAL: "the calls are those of evaluation: in eval mode, or without gradients",
}


@dataclass
class Seen:
    """A module that was called from outside of all others."""

    module: weakref.ref[torch.nn.Module]
    type: str
    has_parameters: bool
    calls: int = 0
    seconds: float = 0.0
    calls_of_phase: Counter[str | None] = field(default_factory=Counter)


class Worth(NamedTuple):
    """The order of windows: a warm one is better, then one of training, then a longer one."""

    is_warm: bool
    trains: bool
    steps: int


class Taken:
    """A window that was profiled."""

    def __init__(self, worth: Worth, phase: str | None, window: StepWindow) -> None:
        assert window.profiler is not None
        self.worth = worth
        self.phase = phase
        self.module = weakref.ref(window.profiler.model)
        self.report = window.report  # its first call makes it; then nothing here holds the model any more


class Window:
    """Profiles the module that takes most, or the named one, from one of its calls up to a later one.

    name: of a variable of the program's, of a class, or "Class[2]" for the third object of that class that is called;
    None: the module with parameters and the most time in calls that are inside of no other module's. skip: calls before
    the window; None: up to WARM_UP, or with `whole` none. steps: calls in it; None: all. A step lasts from one call to
    the next. phase: of its calls, TRAIN or EVAL; None: of one phase, TRAIN if the program trains. complete: called once
    there is a report to write, perhaps again with a better one. stop: end the program after the window. whole: calls of
    all phases; where no calls are skipped the window begins with the module's first, and begins again only if another
    module has taken more time before either was called WARM_UP times. variables: the program's; None: those of
    `__main__`.
    """

    def __init__(
        self,
        name: str | None,
        skip: int | None,
        steps: int | None,
        *,
        phase: str | None = None,
        complete: Callable[[], object] = lambda: None,
        stop: bool = False,
        whole: bool = False,
        variables: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = name
        self._skip, self._patient = (WARM_UP, False) if skip is None else (skip, True)
        self._steps = steps
        self.phase = phase
        self._complete = complete
        self._stop = stop
        self._whole = whole
        self._names = Names(variables)
        self._lock = threading.RLock()
        self._local = threading.local()
        self._undo = contextlib.ExitStack()
        self._try = StepWindow()  # the window that is open; else one that never opens
        self._open_phase: str | None = None
        self._thread = 0
        self._warms_up = False
        self._tries: Counter[str | None] = Counter()
        self._best: Taken | None = None
        self._process = os.getpid()
        self.seen: dict[int, Seen] = {}
        self.not_named: Counter[str] = Counter()  # calls by type
        self.model: Seen | None = None
        self.met_another = False  # profiler, of the program's own
        self._done = False

    def __enter__(self) -> Self:
        """Begin to notice calls of modules."""
        self._undo.callback(RooflineProfiler._watchers.remove, self._profiler_begins)
        RooflineProfiler._watchers.append(self._profiler_begins)
        self._undo.callback(scopes.watchers.remove, self)
        scopes.watchers.append(self)
        self._undo.enter_context(outer_calls(self._call_begins, self._call_ends, self._call_missed))
        return self

    def _profiler_begins(self, profiler: RooflineProfiler) -> None:
        if profiler is not self._try.profiler:
            self.met_another = not self._done or self.met_another
            self.end()  # the program profiles by itself, and profilers do not nest

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """End the window with the program."""
        self.end(error)

    def end_of_thread(self, error: BaseException | None) -> None:
        """End the window if it is of the calling thread, whose code has ended. Other threads may still call modules."""
        with self._lock:
            if self._try.is_open and threading.get_ident() == self._thread:
                self.end(error)

    def end(self, error: BaseException | None = None) -> None:
        """Close what is open, and leave nothing behind."""
        with self._lock:
            self._done = True
            self._undo.close()
            if self.is_ours:
                self._close(error)

    @property
    def is_ours(self) -> bool:
        """Return True in the process that began the window: a child has a copy, which it must not use."""
        return os.getpid() == self._process

    def report(self) -> Report | None:
        """Return the best window's report; None where nothing was called in one."""
        return None if self._best is None else self._best.report()

    @property
    def profiled(self) -> int:
        """Return the number of steps in the report."""
        return 0 if self._best is None else self._best.worth.steps

    @property
    def profiled_phase(self) -> str | None:
        """Return the phase of all calls in the report; None where it has calls of any."""
        return None if self._best is None else self._best.phase

    @property
    def calls(self) -> int:
        """Return the number of the profiled module's outer calls, those before and after the window included."""
        return sum(seen.calls for seen in self.seen.values() if self._is_profiled(seen))

    def others(self) -> list[Seen]:
        """Return the other modules with parameters that were called from outside, those with most time first."""
        others = [seen for seen in self.seen.values() if seen.has_parameters and not self._is_profiled(seen)]
        return sorted(others, key=lambda seen: -seen.seconds)

    def _is_profiled(self, seen: Seen) -> bool:
        return self._best is not None and seen.module is self._best.module  # a module has one such reference

    # ---- calls

    def _call_begins(self, module: torch.nn.Module) -> bool:
        if not self._call_is_one(module):
            return False
        with self._lock:
            seen = self._note(module)
            self._begin(seen, module)
        self._local.call = seen, time.perf_counter()
        return not self._done

    def _call_missed(self, module: torch.nn.Module) -> None:
        if self._local.__dict__.get("call") is None and self._call_is_one(module):
            with self._lock:
                self._note(module).calls_of_phase[None if self._whole else phase_of(module)] += 1

    def _call_ends(self, module: torch.nn.Module) -> None:  # noqa: ARG002
        seen, begin = self._local.call
        self._local.call = None
        seen.seconds += time.perf_counter() - begin

    def _call_is_one(self, module: torch.nn.Module) -> bool:
        """Return True for a call of a module that may be profiled: of any, or of those with the given name."""
        if self._done or not self.is_ours:
            return False
        if self.name is not None and not self._names.is_named(module, self.name):
            self.not_named[type(module).__name__] += 1
            return False
        return True

    def _note(self, module: torch.nn.Module) -> Seen:
        seen = self.seen.get(id(module))
        if seen is None or seen.module() is not module:
            seen = self.seen[id(module)] = Seen(
                weakref.ref(module), type(module).__name__, next(module.parameters(), None) is not None
            )
        seen.calls += 1
        return seen

    def _begin(self, seen: Seen, module: torch.nn.Module) -> None:
        """Note that a call begins. It may begin the window or a step of it, or end the window."""
        window = self._try
        if window.is_open and threading.get_ident() != self._thread:
            return
        phase = None if self._whole else phase_of(module)
        seen.calls_of_phase[phase] += 1
        goes_on = window.is_open and window.profiler is not None and window.profiler.model is module
        if goes_on and phase != self._open_phase:
            goes_on = False
            self._end_window()
        if self._done or phase not in self._phases() or not self._is_wanted(seen):
            return
        warms_up = seen.calls_of_phase[phase] <= self._skip
        if warms_up and self._patient:
            return
        if not warms_up:
            self.model = seen
        if not goes_on or self._warms_up:
            self._open(module, phase)
            self._warms_up = warms_up and not self._whole  # if so, it begins anew with the next call
        elif not window.end_step():
            window.begin_step(module)
        else:
            self._end_window()
            if self._done and self._stop and threading.current_thread() is threading.main_thread():
                raise Stop

    def _phases(self) -> set[str | None]:
        """Return the phases that still need a window."""
        requested = {TRAIN, EVAL, None} if self.phase is None else {self.phase}
        return {phase for phase in requested if self._tries[phase] < MOST_TRIES}

    def _is_wanted(self, seen: Seen) -> bool:
        if self.model is not None:
            return self.model is seen
        # Without parameters are losses, and what prepares inputs.
        wanted = [one for one in self.seen.values() if one.has_parameters or self.name is not None]
        return max(wanted, key=lambda one: one.seconds, default=None) is seen

    # ---- the block

    def _open(self, module: torch.nn.Module, phase: str | None) -> None:
        self._close(None, keep=False)
        self._open_phase = phase
        self._thread = threading.get_ident()
        self._try = StepWindow(steps=self._steps)
        self._try.begin_step(module)
        for region in self._open_regions():  # what they are around begins now
            region.open()

    def _close(self, error: BaseException | None, *, keep: bool = True) -> None:
        window, phase = self._try, self._open_phase
        if not window.is_open:
            return
        if error is None and window.in_step:
            window.end_step()
        window.end(error)
        if phase is not None and window.profiler is not None:
            window.profiler._note(Note("window-phase", _CALLS_OF[phase]))
        worth = Worth(not self._warms_up, phase == TRAIN, window.steps)
        if keep and (self._best is None or worth >= self._best.worth):
            self._best = Taken(worth, phase, window)
        self._try = StepWindow()  # the closed one holds a model

    def _end_window(self) -> None:
        """Close a window that has all its steps, or that a call of another phase ends; a better one may follow."""
        window, phase, is_warm = self._try, self._open_phase, not self._warms_up
        self._close(None)
        if not is_warm:
            return
        self._tries[phase] += MOST_TRIES if window.has_all else 1
        if self._tries[phase] < MOST_TRIES:
            return
        if phase != EVAL or self.phase == EVAL or not _may_train():
            self.end()
        self._complete()

    # ---- regions

    def entered(self, region: Region) -> None:
        """Note that a region begins on this thread."""
        self._open_regions().append(region)

    def left(self, region: Region) -> None:
        """Note that a region has ended."""
        if region in self._open_regions():  # else it was entered before the window was made
            self._open_regions().remove(region)

    def _open_regions(self) -> list[Region]:
        """Return the regions that are open on this thread, the outer before the inner."""
        regions: list[Region] = self._local.__dict__.setdefault("regions", [])
        return regions


def _may_train() -> bool:
    """Return True if the program has an optimizer."""
    return any(issubclass(type(each), torch.optim.Optimizer) for each in gc.get_objects())
