"""Profiling from Python: one call, a repeated run, or a block of the user's own code."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import torch

from roofprof import _C, ceilings
from roofprof._compiled import Compilations, compiled_with_its_hooks, original, packaged
from roofprof._exported import GraphScopes, runnable
from roofprof._fake import call_without_data
from roofprof._hooks import global_hooks
from roofprof._model_tree import ModelTree
from roofprof._model_walk import changed_facts, model_tree, notes_on
from roofprof._place import Place, place_of
from roofprof._script import Scripts
from roofprof._state import Rewind
from roofprof._timing import Timing
from roofprof.report import Report

if TYPE_CHECKING:
    from typing_extensions import Self


def profile(model: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Report:
    """Count and time one call ``model(*args, **kwargs)``, and hold it against the roofs of this machine.

    The model is called several times and left as one plain call leaves it. Raises whatever the model raises.
    """
    return RooflineProfiler(model).run(*args, **kwargs)


def count(model: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Report:
    """Count MACs, FLOPs and bytes of exactly one call ``model(*args, **kwargs)``; nothing is timed or measured.

    Works on the meta device and on fake tensors as well, where nothing is allocated. A call that torch refuses there,
    since it mixes devices or misses data, is counted with fake tensors on the CPU: that leaves nothing behind, and a
    note says so. Raises RuntimeError where what is done depends on data, as in ``nonzero``.
    """
    profiler = RooflineProfiler(model)
    profiler._begin("count")
    profiler._count_call(args, kwargs)
    return profiler.report()


class RooflineProfiler:
    """Profiles a model, call by call or block by block.

    model: any callable, or a ``torch.export.ExportedProgram``; for a ``torch.nn.Module`` each submodule gets a row.
        None: a block's ops without a model.
    warmup: calls of :meth:`run` that are not timed.
    repeat: timed calls of :meth:`run`; None: at most 10 or 5 seconds.
    device: the device whose kernels and roofs count; None: where the model's parameters or inputs are.
    counters: what :meth:`run` reads from a GPU's hardware counters, in runs of their own. "auto": bytes at DRAM, L2 and
        L1, kernel by kernel; "modules": the same of whole modules, whose kernels may overlap; "flops": as "auto", and
        the FLOPs that were executed, in further runs; "off": nothing. What cannot be had is left out, with a note.
    ceilings: roofs to use, or a file that ``roofprof ceilings`` wrote; None: this machine's own, measured once.
    """

    def __init__(
        self,
        model: Callable[..., Any] | None,
        warmup: int = 3,
        repeat: int | None = None,
        device: str | torch.device | None = None,
        counters: str = "auto",
        ceilings: _C.Ceilings | str | Path | None = None,
    ) -> None:
        model = runnable(model)
        if model is not None and not callable(model):
            raise TypeError(f"model must be callable or None, not a {type(model).__name__}")
        if warmup < 0 or (repeat is not None and repeat < 1):
            raise ValueError(f"warmup must be 0 or more and repeat 1 or more, not warmup={warmup}, repeat={repeat}")
        _C.check_counters(counters)
        self.model = model
        self.warmup = warmup
        self.repeat = repeat
        self._device = None if device is None else str(device)
        self._counters = counters
        self._ceilings = _given(ceilings)
        self._block: contextlib.ExitStack | None = None
        self._forget("run", model_tree(None))  # the model may change until it is profiled

    def _begin(self, scope: str) -> None:
        """Start anew, which an open block and a running call would not survive."""
        if self._session.active:
            raise RuntimeError("this profiler is in use: its block is open, or its run is under way; end that first")
        self._forget(scope, model_tree(self.model))

    def _forget(self, scope: str, tree: ModelTree) -> None:
        self._tree = tree
        self._session = _C.Session(self._tree.modules, list(self._tree.objects))
        for wrapper, module, place in self._tree.wrappers:
            self._session.add_wrapper(wrapper, module, place)
        self._compilations = Compilations(self._session, compiled_with_its_hooks(self._tree))
        self._graphs = GraphScopes(self._tree, self._session)
        self._scripts = Scripts(self._tree, self._session)
        self._scope = scope
        self._counting: _C.Pass | None = None
        self._timed: list[_C.Pass] = []
        self._steps = 0
        self._notes: list[str] = []
        self._partial = False
        self._locate(Place("cpu"), "off")
        self._report: Report | None = None

    def _locate(self, place: Place, counters: str) -> None:
        """What is called runs there."""
        self._place = place
        traced = not place.untimed and self._scope != "count"
        self._runs = _C.DeviceRuns(place.device if traced else "", counters)
        self._timing = Timing(self._compilations, self._scripts, self._runs)

    # ---- one call, repeated

    def run(self, /, *args: Any, **kwargs: Any) -> Report:
        """Profile ``model(*args, **kwargs)``: one call counts, further ones warm up and are timed.

        The model, the random number generators and the caller's containers are left as ONE plain call leaves them.
        Raises whatever the first call raises; :meth:`report` then gives what ran before, marked partial.
        """
        if self.model is None:
            raise TypeError("this profiler has no model to run; give it one, or use it in a `with` block")
        self._begin("run")
        rewind = Rewind(original(self.model), args, kwargs)
        self._count_call(args, kwargs)
        if not self._place.untimed:
            if rewind.consumes_inputs:
                self._notes.append(
                    "timed in the first call alone: further ones would use up an iterator among its inputs"
                )
            else:
                with rewind.undoing(), self._scripts.undoing(), self._compilations.watched():
                    self._repeat_call(args, kwargs, rewind)
                    self._read_counters(args, kwargs, rewind)
            self._notes += self._timing.notes + rewind.notes
            self._timed = self._timing.passes or [self._counted]
        return self.report()

    def _count_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """The counting call: the caller's own. What is compiled is counted as it was before."""
        place = place_of(original(self.model), args, kwargs, self._device)
        self._locate(place, self._counters)
        self._session.record_shapes = True
        try:
            with self._compilations.eager_twin(), self._scripts.counted():
                if self._place.holds_data:
                    self._counting = self._observed_call(args, kwargs)
                else:
                    self._counting, notes = call_without_data(self._observed_call, self.model, args, kwargs)
                    self._notes += notes
                    self._partial = False
        finally:
            self._session.record_shapes = False

    def _observed_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _C.Pass:
        """One observed call. When the model raises, what ran before is kept for :meth:`report`."""
        assert self.model is not None
        with global_hooks(self._session, self._compilations), self._graphs.opened():
            self._runs.start(self._session)
            try:
                self._call_in_scope(args, kwargs)
            except BaseException:
                self._partial = True
                self._counting = self._runs.stop(self._session, raised=True)
                raise
            return self._runs.stop(self._session)

    def _call_in_scope(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        assert self.model is not None
        if not isinstance(self.model, torch.nn.Module):
            self._session.enter_model()
        with packaged(self.model, self._session):
            self.model(*args, **kwargs)

    def _bare_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
        assert self.model is not None
        self._runs.synchronize()
        start = time.perf_counter_ns()
        self.model(*args, **kwargs)
        self._runs.synchronize()
        return time.perf_counter_ns() - start

    def _repeat_call(self, args: tuple[Any, ...], kwargs: dict[str, Any], rewind: Rewind) -> None:
        counted = self._counted

        def bare() -> int:
            rewind.before_call()
            return self._bare_call(args, kwargs)

        def observed() -> _C.Pass:
            rewind.before_call()
            return self._observed_call(args, kwargs)

        try:
            self._timing.repeat(counted, self.warmup, self.repeat, bare, observed)
        except BaseException as error:  # the first call went well, so its counts stand
            self._partial = False
            self._counting = counted
            self._timed = self._timing.passes
            if not isinstance(error, Exception):
                raise
            self._timing.stop(f"raised {type(error).__name__}: {error}")

    def _read_counters(self, args: tuple[Any, ...], kwargs: dict[str, Any], rewind: Rewind) -> None:
        def call() -> None:
            rewind.before_call()
            self._call_in_scope(args, kwargs)

        try:
            with global_hooks(self._session, self._compilations), self._graphs.opened():
                self._runs.count(self._session, self._timing.passes, call)
        except Exception as error:
            self._timing.notes.append(f"no counters: a call under them raised {type(error).__name__}: {error}")

    # ---- a block

    def __enter__(self) -> Self:
        self._begin("block")
        self._locate(place_of(self.model, (), {}, self._device), self._counters)
        with contextlib.ExitStack() as stack:
            self._session.record_shapes = True
            self._session.hide_script_calls()
            stack.enter_context(self._compilations.watched())
            stack.enter_context(global_hooks(self._session, self._compilations))
            stack.enter_context(self._graphs.opened())
            self._runs.start(self._session)
            self._block = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._block is not None
        self._counting = self._runs.stop(self._session, raised=error is not None)
        self._partial = error is not None
        block, self._block = self._block, None
        block.close()

    def step(self) -> None:
        """Mark the end of one step of a training or inference loop inside the block."""
        if self._block is None:
            raise RuntimeError("prof.step() marks the steps of a `with prof:` block; there is none open")
        self._steps += 1

    def report(self) -> Report:
        """The report of the last run or block; of one that raised, what ran before.

        Raises RuntimeError where nothing was profiled yet.
        """
        if self._block is not None:
            raise RuntimeError("the block is still open; ask for the report after it")
        if self._report is None:
            if self._scope == "block" and not self._place.untimed:
                self._timed = [self._counted]  # a block's one pass is counted and timed
            self._report = self._make_report()
        return self._report

    # ---- shared

    @property
    def _counted(self) -> _C.Pass:
        if self._counting is None:
            raise RuntimeError("nothing was profiled yet: call prof.run(...) or use `with prof:` first")
        return self._counting

    def _make_report(self) -> Report:
        tree_now = model_tree(self.model)
        notes = [*self._notes, *self._scripts.notes, *notes_on(self._tree, tree_now)]
        notes += self._compilations.note(timed=self._scope == "block")
        if self._place.untimed and self._scope != "count":
            notes.append(self._place.untimed)
        roofs, notes_on_roofs = self._roofs(self._place.device) if self._timed else (_C.Ceilings(), [])
        notes += [f"roofs: {note}" for note in notes_on_roofs]
        info = {
            "model": "" if self.model is None else tree_now.modules[0]["type"],
            "device": self._place.device,
            "scope": self._scope,
            "partial": self._partial,
            "notes": notes,
            "bare_ns": self._timing.bare_ns,
            "warmup": self._timing.warmed_up,
            "steps": self._steps,
            "ceilings": roofs,
            "environment": _C.environment_of(self._place.device),
        }
        for place, facts in changed_facts(self._tree, tree_now).items():
            self._session.update(place, facts)
        return Report(_C.make_report(self._session, self._counted, self._timed, self._runs, info))

    def _roofs(self, device: str) -> tuple[_C.Ceilings, list[str]]:
        if self._ceilings is not None:
            return self._ceilings, []
        try:
            return ceilings.for_device_with_notes(device)
        except ValueError as error:  # a device that torch cannot use
            return _C.Ceilings(), [str(error)]


def _given(roofs: _C.Ceilings | str | Path | None) -> _C.Ceilings | None:
    return ceilings.load(roofs) if isinstance(roofs, (str, Path)) else roofs
