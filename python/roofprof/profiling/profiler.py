"""Profiling from Python: one call, a repeated run, or a block of the user's own code."""

from __future__ import annotations

import atexit
import contextlib
import inspect
import sys
import threading
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import torch

from roofprof import _C
from roofprof.calls.target import Observer, Target
from roofprof.errors import Error
from roofprof.latency.measured import Latency
from roofprof.latency.plan import Plan
from roofprof.latency.times_calls import TimesCalls
from roofprof.latency.timing import Subject, time_call
from roofprof.models.compiled import original
from roofprof.models.exported import runnable
from roofprof.models.inductor import no_kernels
from roofprof.models.location import Location, location_of
from roofprof.models.tree import ModelTree, changed_facts, notes_on, notes_on_deferred
from roofprof.models.walk import KnownModel, model_tree
from roofprof.profiling.op_costs import unused_costs
from roofprof.render.progress import Progress
from roofprof.report.report import Report
from roofprof.roofs import ceilings
from roofprof.roofs.network.cache import with_network
from roofprof.state.snapshot import StateSnapshot
from roofprof.state.state_roots import used_by

if TYPE_CHECKING:
    from typing_extensions import Self

_Method = TypeVar("_Method", bound=Callable[..., Any])
_uninterrupted: Callable[[_Method], _Method] = _C.uninterrupted


def profile(model: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Report:
    """Count and time one call ``model(*args, **kwargs)``, and hold it against the roofs of this machine.

    The model is called several times and left as one plain call leaves it. All arguments are the model's: options are
    those of ``RooflineProfiler(model, repeat=3).run(...)``. Raises whatever the model raises.
    """
    try:
        return RooflineProfiler(model).run(*args, **kwargs)
    except TypeError as error:
        _note_options(error, kwargs, RooflineProfiler, "profile", "RooflineProfiler(model, {}=...).run(...)")
        raise


def _note_options(
    error: TypeError, kwargs: dict[str, Any], taken_by: Callable[..., Any], short_form: str, long_form: str
) -> None:
    """Add a note to the error of a model that refuses a profiler's keyword: it says where the option belongs."""
    if not hasattr(error, "add_note"):  # Python 3.10
        return
    refused = next((name for name in kwargs if f"keyword argument '{name}'" in str(error)), None)
    went = f"{refused} went to the model, as all arguments of roofprof.{short_form} do"
    if refused in list(inspect.signature(taken_by).parameters)[1:]:
        error.add_note(f"{went}; for the profiler's option, write roofprof.{long_form.format(refused)}")
    elif refused in inspect.signature(Report.table).parameters:
        error.add_note(f"{went}; for an option of the table, write report.table({refused}=...)")


def count(model: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Report:
    """Count MACs, FLOPs and bytes of exactly one call ``model(*args, **kwargs)``; nothing is timed or measured.

    Works on the meta device and on fake tensors as well, where nothing is allocated. A call that torch refuses there,
    since it mixes devices or misses data, is counted with fake tensors on the CPU: that leaves nothing behind, and a
    note says so. Raises RuntimeError where the work depends on data, as in ``nonzero``.
    """
    try:
        return RooflineProfiler(model).count(*args, **kwargs)
    except TypeError as error:
        _note_options(error, kwargs, RooflineProfiler, "count", "RooflineProfiler(model, {}=...).count(...)")
        raise


def count_program(program: torch.export.ExportedProgram, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Return the JSON of the program's counts, for the package that is compiled from it."""
    return count(program, *args, **kwargs).to_json()


def time(model: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Latency:
    """Return the latency of one call ``model(*args, **kwargs)``, and the throughput: 200 calls after 50 for warm-up.

    Nothing observes the calls, and the model is left as one plain call leaves it. All arguments are the model's:
    options are those of ``RooflineProfiler(model).time(..., repeat=50)``. Raises whatever the model raises.
    """
    try:
        return time_call(Subject(RooflineProfiler(model)._model_to_call()), args, kwargs, Plan())
    except TypeError as error:
        _note_options(error, kwargs, RooflineProfiler.time, "time", "RooflineProfiler(model).time(..., {}=...)")
        raise


class _Around(threading.local):
    """The open blocks of this thread that make way for another profile: see :meth:`RooflineProfiler._turn`."""

    def __init__(self) -> None:
        self.make_way: list[Callable[[RooflineProfiler], AbstractContextManager[None]]] = []  # outer before inner


def _end_open_blocks() -> None:
    for profiler in list(RooflineProfiler._open):
        with contextlib.suppress(Exception):
            profiler._end_block(raised=True)


atexit.register(_end_open_blocks)  # while there is all that this needs

_NOT_COMPILED = (
    "nothing that ran was compiled by torch.compile, and packages do not tell theirs; profile torch.compile(model)"
)
_ONE_CALL = "blocks and counts make no further calls, which tell them; use run or run_step with repeat above 0"
_COUNTED_BY_MODULE = 'counters="modules" reads the bytes of a compiled region as one; leave it out'


class RooflineProfiler(TimesCalls):
    """Profiles a model, call by call or block by block.

    model: any callable, or a ``torch.export.ExportedProgram``; for a ``torch.nn.Module`` each submodule gets a row.
        None: a block's ops without a model.
    warmup: calls of :meth:`run` that are not timed; None: 3, or as many as begin in 2.5 seconds.
    repeat: timed calls of :meth:`run`; None: at most 10 or 5 seconds; 0: one call is counted, and nothing is timed.
        Ranks of one program, which may wait for each other in the calls, all make the same number: None is 3 and 5.
    device: the device whose kernels and roofs count; None: where the model's parameters or inputs are.
    counters: what :meth:`run` reads from a GPU's hardware counters, in runs of their own. "auto": bytes at DRAM, L2 and
        L1, kernel by kernel; "modules": the same of whole modules, whose kernels may overlap; "flops": as "auto", and
        the FLOPs that were executed, in further runs; "off": nothing. Missing counters are left out, with a note.
    ceilings: roofs to use, or a file that ``roofprof ceilings`` wrote; None: those that the environment variable
        ROOFPROF_CEILINGS names (a file, or "off" for none), else this machine's own, measured once.
    threads: the threads whose calls of the model a block or :meth:`run_step` has. "own": its own thread and the threads
        that it starts, others being left out with a note; "all": all threads.
    keep_events: keep when each op, module call and kernel of the run that the rows come from began and ended, at most a
        million of each, for :meth:`Report.to_chrome_trace` and :meth:`Report.to_speedscope`.
    compiled_kernels: of a :meth:`run`, compile compiled code once more, which may take a minute, and tell the time, the
        ops and the modules of each of its kernels: they are ``report.kernels``, and modules inside compiled code get
        their time.
    """

    _around = _Around()
    _open: ClassVar[weakref.WeakSet[RooflineProfiler]] = weakref.WeakSet()  # those whose block is open
    # Each is called with any profiler of the process that begins, before it does.
    _watchers: ClassVar[list[Callable[[RooflineProfiler], None]]] = []

    def __init__(  # noqa: PLR0913 (its options)
        self,
        model: Callable[..., Any] | None,
        *,
        warmup: int | None = None,
        repeat: int | None = None,
        device: str | torch.device | None = None,
        counters: str = "auto",
        ceilings: _C.Ceilings | str | Path | None = None,
        keep_events: bool = False,
        threads: str = "own",
        compiled_kernels: bool = False,
    ) -> None:
        model = runnable(model)
        if model is not None and not callable(model):
            raise TypeError(f"model must be callable or None, and this is of type {type(model).__name__}")
        for name, value in (("warmup", warmup), ("repeat", repeat)):
            if value is not None and not isinstance(value, int):
                raise TypeError(f"{name} must be a whole number, not {value!r}")
        for name, value in (("keep_events", keep_events), ("compiled_kernels", compiled_kernels)):
            if not isinstance(value, bool):
                raise TypeError(f"{name} must be True or False, not {value!r}")
        if (warmup or 0) < 0 or (repeat is not None and repeat < 0):
            raise Error(f"warmup and repeat must be 0 or more, not warmup={warmup}, repeat={repeat}")
        _C.check_counters(counters)
        if threads not in {"own", "all"}:
            raise Error(f"threads must be 'own' or 'all', not {threads!r}")
        self.model = model
        self.warmup = warmup
        self.repeat = repeat
        self._device = _checked_device(device)
        self._counters = counters
        self._keep_events = keep_events
        self._compiled_kernels = compiled_kernels
        self._all_threads = threads == "all"
        self._ceilings = _given(ceilings)
        self._block: contextlib.ExitStack | None = None
        self._known = KnownModel()
        self._forget("run", model_tree(None))  # the model may change until it is profiled

    def _begin(self, mode: str) -> None:
        """Start again. Raises RuntimeError during an open block or a running call, which would lose their data."""
        for watcher in self._watchers[:]:
            watcher(self)
        if self._observer.session.active:
            raise RuntimeError("this profiler is in use: its block is open, or its run is under way; end that first")
        self._forget(mode, self._known.tree(self.model))

    def _forget(self, mode: str, tree: ModelTree) -> None:
        self._tree = tree
        self._observer = Observer(tree)
        self._mode = mode
        self._notes: list[_C.Note] = []
        self._graphs: list[dict[str, Any]] = []
        self._locate(Location("cpu"), "off")
        self._report: Report | None = None

    def _locate(self, location: Location, counters: str) -> None:
        """Set the device on which the model's work runs."""
        self._location = location
        self._run = _C.Run(
            self._observer.session,
            self._mode,
            location.device,
            location.untimed,
            counters,
            self._keep_events,
            location.holds_data,
            location.otherwise,
            self._all_threads,
        )

    # ---- one call, repeated

    def run(self, /, *args: Any, **kwargs: Any) -> Report:
        """Profile ``model(*args, **kwargs)``: one call counts, further ones warm up and are timed.

        The model, the random number generators and the caller's containers are left as ONE plain call leaves them.
        Raises whatever the first call raises; :meth:`report` then gives the part before it, marked partial.
        """
        model = self._model_to_call()
        return self._called(model, args, kwargs, original(model), timed=True)

    def count(self, /, *args: Any, **kwargs: Any) -> Report:
        """Count exactly one call ``model(*args, **kwargs)``, as :func:`roofprof.count` does; nothing is timed."""
        model = self._model_to_call()
        return self._called(model, args, kwargs, original(model), timed=False)

    def run_step(self, step: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Report:
        """Profile ``step(*args, **kwargs)``, which calls the model, as :meth:`run` does a call of the model.

        Forward, loss, backward and the optimizer, for example. It is called several times, one step after the other;
        then the model, and what else the step names or gets, is left as ONE step leaves it.
        """
        if not callable(step):
            raise TypeError(f"step must be a callable that calls the model, and this is of type {type(step).__name__}")
        return self._called(step, args, kwargs, (original(self.model), *used_by(step)), timed=True)

    def _model_to_call(self) -> Callable[..., Any]:
        if self.model is None:
            raise TypeError("this profiler has no model to run; give it one, or use it in a `with` block")
        return self.model

    def _called(
        self,
        call: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        state_roots: object,
        *,
        timed: bool,
    ) -> Report:
        """Count one call, and time further ones if they are requested."""
        timed = timed and self.repeat != 0
        self._begin("run" if timed else "count")
        if call is not self.model:
            self._observer.session.hide_script_calls()
        snapshot = StateSnapshot(state_roots, args, kwargs) if timed else None
        warmup = _C.WARM_UP_CALLS if self.warmup is None else self.warmup
        with self._turn(), Progress(warmup + 2 * self.repeat if self.repeat else None) as progress:
            target = self._count_call(call, args, kwargs, state_roots, snapshot)
            if timed:
                target.progress = progress
                self._run.repeat(target, _C.RunLimits(self.warmup, self.repeat))
                self._graphs = target.graphs
                if target.wants_kernels and not target.ran_compiled:
                    target.notes.append(no_kernels(_NOT_COMPILED))
                self._notes += [note for note in target.notes if note not in self._notes]
        return self.report()

    def _count_call(
        self,
        call: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        state_roots: object,
        snapshot: StateSnapshot | None,
    ) -> Target:
        """Make the first call, and return the target of further ones.

        ``state_roots``: what the call reaches apart from its arguments.
        """
        self._locate(location_of(state_roots, args, kwargs, self._device), self._counters)
        on_device = self._location.device not in {"cpu", "meta"}
        by_module = on_device and self._counters == "modules"
        target = Target(
            self._observer,
            call,
            args,
            kwargs,
            of_model=call is self.model,
            snapshot=snapshot,
            holds_data=self._location.is_sure,
            wants_kernels=self._compiled_kernels and self._location.device != "meta" and not by_module,
        )
        target.on_device = on_device
        self._run.count(target)
        if self._compiled_kernels and by_module:
            target.notes.append(no_kernels(_COUNTED_BY_MODULE))
        self._notes += target.notes
        return target

    def _timed(self) -> Subject:
        """Return the subject of :meth:`time` and :meth:`time_sweep`, which nothing observes."""
        if self._observer.session.active:
            raise RuntimeError("this profiler's block is open, which would slow down what is timed: end it first")
        return Subject(self._model_to_call(), self._device)

    # ---- a block

    # Handlers of signals wait while a block begins or ends. What else may raise at any step (another thread by
    # PyThreadState_SetAsyncExc, a tracer) finds the block known before it is begun, and ends it.

    @_uninterrupted
    def __enter__(self) -> Self:
        if sys.is_finalizing():  # in the __del__ of what lived as long as the interpreter: nobody asks for a report
            return self
        self._begin("block")
        self._locate(self._known.location(self._device), self._counters)
        self._block = block = contextlib.ExitStack()
        try:
            self._open.add(self)
            block.enter_context(self._turn())
            self._observer.session.record_shapes = True
            self._observer.session.hide_script_calls()
            block.enter_context(self._observer.compilations.watched())
            block.enter_context(self._observer.hooked())
            self._run.start_block()
            return self  # noqa: TRY300 (a tracer may raise here, too)
        except BaseException:
            self._end_block(raised=True)
            raise

    @_uninterrupted
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self._end_block(raised=error is not None)
        finally:
            self._end_block(raised=True)  # where something interrupted it

    @_uninterrupted
    def __del__(self) -> None:
        """Close a block that nobody can end any more: it would stay open on its thread."""
        if getattr(self, "_block", None) is not None:
            self._end_block(raised=True)

    def _end_block(self, *, raised: bool) -> None:
        """End the block, unless it has ended: at the interpreter's end that is before those who hold it."""
        if self._block is None:
            return
        with self._block:
            self._run.stop_block(raised=raised)
        self._open.discard(self)
        self._block = None

    def step(self) -> None:
        """Mark the end of one step of a training or inference loop inside the block."""
        if self._block is None:
            raise RuntimeError("prof.step() marks the steps of a `with prof:` block; there is none open")
        self._run.step()

    def report(self) -> Report:
        """Return the report of the last run or block; after an exception, of the part before it.

        Raises RuntimeError where nothing was profiled yet.
        """
        if self._block is not None and self._observer.session.active:
            raise RuntimeError("the block is still open; ask for the report after it")
        if not self._run.counted and self._observer.session.is_of_parent:
            raise RuntimeError("this process was forked inside of what was profiled, and the report is its parent's")
        if not self._run.counted:
            raise RuntimeError(
                "nothing was profiled yet: call prof.run(...) or use `with prof:` first (roofprof docs guide-training)"
            )
        if self._report is None:
            self._report = self._make_report()
        return self._report

    # ---- shared

    def _turn(self) -> AbstractContextManager[None]:
        """Make other observers of this thread wait while this profiler observes, since two cannot at once."""
        make_way = self._around.make_way
        return make_way[-1](self) if make_way else contextlib.nullcontext()

    def _make_report(self) -> Report:
        tree_now = self._known.tree(self.model)
        observer = self._observer
        notes = [*self._notes, *observer.scripts.notes, *notes_on(self._tree, tree_now)]
        is_noted = any(note.code == "deferred-work" for note in self._notes)  # of the model itself
        notes += notes_on_deferred(self._tree, observer.session.deferred - ({0} if is_noted else set()))
        notes += observer.compilations.note(timed=self._mode == "block")
        notes += unused_costs()
        if self._compiled_kernels and self._mode != "run":
            notes.append(no_kernels(_ONE_CALL))
        roofs, notes_on_roofs = self._roofs(self._run.device) if self._run.timed else (_C.Ceilings(), [])
        for place, facts in changed_facts(self._tree, tree_now).items():
            observer.session.update(place, facts)
        facts_of_ours = {
            "model": "" if self.model is None else tree_now.modules[0]["type"],
            "notes": notes,
            "graphs": self._graphs,
            "token_calls": observer.tokens.counted(),
            "packages": observer.packages.counted(count_program),
            "ceilings": roofs,
            "notes_on_roofs": notes_on_roofs,
        }
        return Report(self._run.report(facts_of_ours))

    def _note(self, note: _C.Note) -> None:
        """Put the note into the report, once."""
        if note not in self._notes:
            self._notes.append(note)

    def _roofs(self, device: str) -> tuple[_C.Ceilings, list[str]]:
        if self._ceilings is not None:
            given, notes = self._ceilings
            return with_network(given, notes, device) if given and not given.network else self._ceilings
        try:
            roofs, notes = ceilings.for_device_with_notes(device)
            return with_network(roofs, notes, device)
        except ValueError as error:  # a device that torch cannot use
            return _C.Ceilings(), [str(error)]


def _given(roofs: _C.Ceilings | str | Path | None) -> tuple[_C.Ceilings, list[str]] | None:
    """Return the given roofs with their notes; None where this machine's own roofs are requested."""
    if roofs is None:
        return ceilings.given_with_notes()
    if isinstance(roofs, (str, Path)):
        return ceilings.load_with_notes(roofs)
    if not isinstance(roofs, _C.Ceilings):
        raise TypeError(f"ceilings must be roofprof.Ceilings, a file of them or None, not {roofs!r}")
    return roofs, []


def _checked_device(device: str | torch.device | None) -> str | None:
    """Return the device's name as torch writes it."""
    try:
        return None if device is None else str(torch.device(device))
    except (RuntimeError, TypeError):
        raise Error(f"device must be one of torch's, such as 'cpu' or 'cuda:0', not {device!r}") from None
