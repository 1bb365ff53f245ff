"""Which calls of which module are profiled, while a program runs that knows nothing of it."""

from __future__ import annotations

import os
import re
import sys
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from roofprof._script_run.program import Stop
from roofprof.profiler import RooflineProfiler
from roofprof.report import Report
from roofprof.scopes import Region

if TYPE_CHECKING:
    from typing_extensions import Self

# Without a wish, so many calls warm up. They are profiled one by one, so that a program with fewer has a report.
WARM_UP = 3


@dataclass
class Seen:
    """A module that was called from outside of all others."""

    module: weakref.ref[torch.nn.Module]
    type: str
    has_parameters: bool
    calls: int = 0
    seconds: float = 0.0


class Window:
    """Profiles the module that takes most, or the named one, from one of its calls up to a later one.

    name: of a variable of the program's, of a class, or "Class[2]" for the third object of that class that is called;
    None: the module with parameters and the most time in calls that are inside of no other module's. skip: calls before
    the window; None: up to WARM_UP, or with `whole` none. steps: calls in it; None: all. A step lasts from one call to
    the next. stop: end the program then. whole: where no calls are skipped the window begins with the module's first,
    and begins anew only where another module has taken more time before either was called WARM_UP times. variables:
    the program's; None: those of `__main__`.
    """

    def __init__(
        self,
        name: str | None,
        skip: int | None,
        steps: int | None,
        *,
        stop: bool = False,
        whole: bool = False,
        variables: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = name
        self._skip, self._patient = (WARM_UP, False) if skip is None else (skip, True)
        self._steps = sys.maxsize if steps is None else steps
        self._stop = stop
        self._whole = whole and skip is None
        self._variables = variables
        self._lock = threading.RLock()
        self._inside = threading.local()
        self._original: Callable[..., Any] | None = None
        self._profiler: RooflineProfiler | None = None
        self._thread = 0
        self._left = 0  # steps of the open block
        self._process = os.getpid()
        self.seen: dict[int, Seen] = {}
        self.not_named: Counter[str] = Counter()  # calls by type
        self.model: Seen | None = None
        self.profiled = 0  # steps
        self.met_another = False  # profiler, of the program's own
        self._places: dict[str, list[weakref.ref[torch.nn.Module]]] = {}  # by class, as they were first called
        self._done = False
        self._begin_of_any = RooflineProfiler._begin
        self._enter_of_any, self._exit_of_any = Region.__enter__, Region.__exit__
        self._regions = threading.local()

    def __enter__(self) -> Self:
        """From here on, calls of modules are noticed: by their type, as a hook would be compiled into the model."""
        self._original = torch.nn.Module.__call__
        original = self._original

        def call(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True  # IPython's tracebacks are of the user's code
            if not self._counts(module):
                return original(module, *args, **kwargs)
            return self._outermost(original, module, args, kwargs)

        torch.nn.Module.__call__ = call  # type: ignore[method-assign]

        def begin(profiler: RooflineProfiler, scope: str) -> None:
            if profiler is not self._profiler:
                self.met_another = not self._done or self.met_another
                self.end()  # the program profiles by itself, and profilers do not nest
            self._begin_of_any(profiler, scope)

        RooflineProfiler._begin = begin  # type: ignore[method-assign, assignment]

        def enter(region: Region) -> Region:
            self._open_regions().append(region)
            return self._enter_of_any(region)

        def leave(region: Region, *raised: Any) -> None:
            if region in self._open_regions():  # else it was entered before the window was made
                self._open_regions().remove(region)
            self._exit_of_any(region, *raised)

        Region.__enter__, Region.__exit__ = enter, leave  # type: ignore[method-assign, assignment]
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """The program ended."""
        self.end(error)

    def end(self, error: BaseException | None = None) -> None:
        """Close what is open, and leave nothing behind."""
        with self._lock:
            self._done = True
            if self._original is not None:
                torch.nn.Module.__call__ = self._original  # type: ignore[method-assign]
                RooflineProfiler._begin = self._begin_of_any  # type: ignore[method-assign]
                Region.__enter__, Region.__exit__ = self._enter_of_any, self._exit_of_any  # type: ignore[method-assign]
                self._original = None
            self._close(error)

    def report(self) -> Report | None:
        """Of the window; None where nothing was called in it."""
        return self._profiler.report() if self._profiler is not None and self.profiled else None

    @property
    def calls(self) -> int:
        """Of the profiled module from outside of others, with those before and after the window."""
        profiled = None if self._profiler is None else self._profiler.model
        return sum(seen.calls for seen in self.seen.values() if seen.module() is profiled)

    def others(self) -> list[Seen]:
        """Modules that were called from outside of the profiled one and have parameters, those with most time first."""
        profiled = None if self._profiler is None else self._profiler.model
        others = [seen for seen in self.seen.values() if seen.has_parameters and seen.module() is not profiled]
        return sorted(others, key=lambda seen: -seen.seconds)

    # ---- calls

    def _counts(self, module: torch.nn.Module) -> bool:
        """It is called from outside, or by the name that was given."""
        if self._done or getattr(self._inside, "call", False) or os.getpid() != self._process:
            return False
        if self.name is None or self._is_named(module):
            return True
        self.not_named[type(module).__name__] += 1
        return False

    def _outermost(
        self,
        original: Callable[..., Any],
        module: torch.nn.Module,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        __tracebackhide__ = True
        seen = self._note(module)
        begin = time.perf_counter()
        self._inside.call = True
        try:
            self._begin(seen, module)
            return original(module, *args, **kwargs)
        finally:
            self._inside.call = False
            seen.seconds += time.perf_counter() - begin

    def _note(self, module: torch.nn.Module) -> Seen:
        with self._lock:
            seen = self.seen.get(id(module))
            if seen is None or seen.module() is not module:
                seen = self.seen[id(module)] = Seen(
                    weakref.ref(module), type(module).__name__, next(module.parameters(), None) is not None
                )
            seen.calls += 1
            return seen

    def _begin(self, seen: Seen, module: torch.nn.Module) -> None:
        """A call begins, and with it perhaps the window, a step of it, or what comes after."""
        with self._lock:
            if self._done or (self._is_open and threading.get_ident() != self._thread):
                return
            if self.model is None:
                # Without parameters are losses, and what prepares inputs.
                wanted = [one for one in self.seen.values() if one.has_parameters or self.name is not None]
                most = max(wanted, key=lambda one: one.seconds, default=None)
                if most is not seen or (self._patient and seen.calls <= self._skip):
                    return
                if seen.calls > self._skip:
                    self.model = seen
                goes_on = self._whole and self._profiler is not None and self._profiler.model is module
                if not goes_on:
                    self._open(module)  # anew with each call while it warms up
                    return
            elif self.model is not seen:
                return
            if self._left > 1:
                self._left -= 1
                self._step()
            else:
                self.end()
                if self._stop and threading.current_thread() is threading.main_thread():
                    raise Stop

    # ---- the block

    @property
    def _is_open(self) -> bool:
        return self._profiler is not None and self._left > 0

    def _open(self, module: torch.nn.Module) -> None:
        self._close(None)
        self._profiler = RooflineProfiler(module)
        self._profiler.__enter__()
        for region in self._open_regions():  # what they are around begins now
            self._enter_of_any(region)
        self._thread = threading.get_ident()
        self._left, self.profiled = self._steps, 1

    def _open_regions(self) -> list[Region]:
        """On this thread, the outer before the inner."""
        regions: list[Region] = self._regions.__dict__.setdefault("open", [])
        return regions

    def _step(self) -> None:
        assert self._profiler is not None
        self._profiler.step()
        self.profiled += 1

    def _close(self, error: BaseException | None) -> None:
        if not self._is_open:
            return
        assert self._profiler is not None
        self._left = 0
        if error is None:
            self._profiler.step()
        self._profiler.__exit__(type(error) if error is not None else None, error, None)

    # ---- names

    def _is_named(self, module: torch.nn.Module) -> bool:
        assert self.name is not None
        if found := re.fullmatch(r"(\w+)\[(\d+)\]", self.name):
            return type(module).__name__ == found[1] and self._place(module) == int(found[2])
        return type(module).__name__ == self.name or self._variable(self.name) is module

    def _variable(self, name: str) -> object:
        """What a dotted name is in the program; None where it has none."""
        first, *rest = name.split(".")
        variables = vars(sys.modules["__main__"]) if self._variables is None else self._variables
        value = variables.get(first)
        for part in rest:
            value = getattr(value, part, None)
        return value

    def _place(self, module: torch.nn.Module) -> int:
        """Among the objects of its class that were called, in the order of their first calls."""
        places = self._places.setdefault(type(module).__name__, [])
        for place, known in enumerate(places):
            if known() is module:
                return place
        places.append(weakref.ref(module))
        return len(places) - 1
