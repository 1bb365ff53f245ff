"""Chooses the steps that are profiled while a program runs that knows nothing of roofprof."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from roofprof._C import Note
from roofprof.profiling import scopes
from roofprof.profiling.profiler import RooflineProfiler
from roofprof.profiling.scopes import Region
from roofprof.profiling.script.calls import Names, Seen, counted, named, outer_calls
from roofprof.profiling.script.program import Stop
from roofprof.profiling.script.training import Kind, Training, optimizers, outermost, together
from roofprof.profiling.step_window import StepWindow
from roofprof.report.report import Report
from roofprof.state.state_roots import without_torch_function

if TYPE_CHECKING:
    from typing_extensions import Self


# The number of steps that warm up by default. They are profiled one by one, so that a program with fewer has a report.
WARM_UP = 3
# The number of windows that begin if calls of another phase interrupt them; the longest is taken.
MOST_TRIES = 3

TRAIN, EVAL = "train", "eval"
GRAD = "grad"  # of calls that a backward may follow


def phase_of(module: torch.nn.Module) -> str:
    """Return the phase of a call that begins now: GRAD computes gradients, in training mode."""
    return GRAD if module.training and torch.is_grad_enabled() else EVAL


def kind_of(module: torch.nn.Module, arguments: tuple[Any, ...]) -> Kind:
    """Return the kind of a call that begins now."""
    first = next((each for each in arguments if isinstance(each, torch.Tensor)), None)
    if first is None or first.is_nested:
        return Kind(id(module), module.training, ())
    shape = without_torch_function(vars(torch._C.TensorBase)["shape"].__get__, first)
    return Kind(id(module), module.training, tuple(shape))


_CALLS_OF = {
    TRAIN: "the calls are those of training: a backward followed them",
    GRAD: "the calls are those of evaluation: with gradients, but no backward followed one while they were profiled",
    EVAL: "the calls are those of evaluation: in eval mode, or without gradients",
}


class Worth(NamedTuple):
    """Compares windows: a better one is of training, is warm, or is longer."""

    trains: bool
    is_warm: bool
    steps: int


class Taken:
    """A window that was profiled."""

    def __init__(self, worth: Worth, phase: str | None, window: StepWindow, seen: list[Seen]) -> None:
        self.worth = worth
        self.phase = phase
        self.seen = seen  # of the modules in it, those that were called from outside
        self.report = window.report  # its first call makes it; after that nothing here holds the models


class Window:
    """Profiles the models of a program, or the named one, from one of their steps up to a later one.

    A step of training lasts up to the first call after an update: one step of all optimizers, or a backward if there
    are none. What runs without a backward between an update and that call is in no step. Else a step lasts from one
    call to the next, of the module with parameters that takes most time in calls from outside of all other modules.

    name: of a variable of the program's, of a class, or "Class[2]" for the third object of that class that is called.
    skip: steps before the window; None: up to WARM_UP, or with `whole` none. steps: those in it; None: all.
    phase: TRAIN or EVAL; None: of one phase, TRAIN if the program trains.
    complete: called when there is a report to write, perhaps again with a better one. stop: end the program after the
        window.
    whole: a step lasts from call to call, of all phases. If none are skipped, the window begins with the module's first
        call, and begins again only if another module has taken more time before either was called WARM_UP times.
    variables: the program's; None: those of `__main__`.
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
        self._models: list[torch.nn.Module] = []  # of the open window
        self._calls: list[int] = []  # in the open window of GRAD
        self._thread = 0
        self._warms_up = False
        self._tries: Counter[str | None] = Counter()
        self._best: Taken | None = None
        self._process = os.getpid()
        self.seen: dict[int, Seen] = {}
        self.not_named: Counter[str] = Counter()  # calls by type
        self.model: Seen | None = None
        self.met_another = False  # the program used a profiler itself
        self._done = False
        # The state of the program's training:
        self.training = Training(self._updated)
        self._trainer = 0  # the thread
        self._step = 0  # those that have ended, also before the window
        self._in_gap = False  # no call of the next step has come
        self._is_unseen = False  # no call tells when the next step begins: a call that is of none ends at its return
        self._is_new = False  # the step that ended last has no successor yet
        self._by_backward = False  # steps end with a backward, as no optimizer steps
        self._between: Counter[str] = Counter()  # calls in no step while the window is open, by type

    def __enter__(self) -> Self:
        """Begin to notice calls of modules."""
        self._undo.callback(RooflineProfiler._watchers.remove, self._profiler_begins)
        RooflineProfiler._watchers.append(self._profiler_begins)
        self._undo.callback(scopes.watchers.remove, self)
        scopes.watchers.append(self)
        self._undo.enter_context(outer_calls(self._call_begins, self._call_ends, self._call_missed))
        if not self._whole:
            self._undo.enter_context(self.training.watched(lambda: self.is_ours))
        return self

    def _profiler_begins(self, profiler: RooflineProfiler) -> None:
        if profiler is not self._try.profiler:
            self.met_another = not self._done or self.met_another
            self.end()  # the program profiles by itself, and profilers do not nest

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """End the window with the program."""
        self.end(error)

    def end_of_thread(self, error: BaseException | None) -> None:
        """End the window if it is the calling thread's, whose code has ended. Other threads may still call modules."""
        with self._lock:
            if self._try.is_open and threading.get_ident() == self._thread:
                self.end(error)

    def end(self, error: BaseException | None = None) -> None:
        """Close the open block, and leave nothing behind."""
        with self._lock:
            self._done = True
            self._undo.close()
            if self.is_ours:
                self._close(error)

    @property
    def is_ours(self) -> bool:
        """True in the process that began the window; a forked child has a copy, which must do nothing."""
        return os.getpid() == self._process

    def report(self) -> Report | None:
        """Return the window's report; None if nothing was called in it."""
        return None if self._best is None else self._best.report()

    @property
    def trains(self) -> bool:
        """True if the program was seen to train."""
        return self._trainer != 0

    @property
    def profiled(self) -> int:
        """The number of steps in the report."""
        return 0 if self._best is None else self._best.worth.steps

    @property
    def profiled_phase(self) -> str | None:
        """The phase of all calls in the report; None: they are of any phase."""
        phase = None if self._best is None else self._best.phase
        return EVAL if phase == GRAD else phase

    @property
    def calls(self) -> int:
        """The number of calls of the profiled module from outside of others, also those before and after the window."""
        return sum(seen.calls for seen in self.seen.values() if self._is_profiled(seen))

    def others(self) -> list[Seen]:
        """Return other modules with parameters that were called from outside of the profiled one, most time first."""
        others = [seen for seen in self.seen.values() if seen.has_parameters and not self._is_profiled(seen)]
        return sorted(others, key=lambda seen: -seen.seconds)

    def _is_profiled(self, seen: Seen) -> bool:
        return self._best is not None and any(seen is one for one in self._best.seen)

    # ---- calls

    def _call_begins(self, module: torch.nn.Module, arguments: tuple[Any, ...]) -> bool:
        if not self._call_is_one(module):
            return False
        kind = kind_of(module, arguments)
        with self._lock:
            seen = self._note(module)
            self._begin(seen, module, kind)
        first_node = self.training.next_node if torch.is_grad_enabled() and not self._whole else None
        self._local.call = seen, kind, first_node, time.perf_counter()
        return not self._done

    def _call_missed(self, module: torch.nn.Module) -> None:
        if self._local.__dict__.get("call") is None and self._call_is_one(module):
            with self._lock:
                self._note(module).calls_of_phase[None if self._whole else phase_of(module)] += 1

    def _call_ends(self, module: torch.nn.Module) -> None:  # noqa: ARG002
        seen, kind, first_node, begin = self._local.call
        self._local.call = None
        seen.seconds += time.perf_counter() - begin
        if self._done or self._whole:
            return
        with self._lock:
            if self._local.__dict__.pop("leaves", False):
                self._begin_step()
            is_open = self._try.is_open and threading.get_ident() == self._thread
            in_step = is_open and self._open_phase == TRAIN and not self._warms_up and not self._try.is_between
            if first_node is not None:
                number = self.training.add_call(seen, kind, first_node, in_step=in_step)
                if is_open and self._open_phase == GRAD:
                    self._calls.append(number)

    def _call_is_one(self, module: torch.nn.Module) -> bool:
        """Return whether the call matters: the window is open to calls, and the module has the given name, if any."""
        if self._done or not self.is_ours or torch._C._current_graph_task_id() >= 0:  # a backward computes it again
            return False
        if self.name is not None and not self._names.is_named(module, self.name):
            self.not_named[type(module).__name__] += 1
            return False
        return True

    def _note(self, module: torch.nn.Module) -> Seen:
        seen = self.seen.get(id(module))
        if seen is None or seen.module() is not module:
            seen = self.seen[id(module)] = Seen(weakref.ref(module), type(module).__name__)
        seen.calls += 1
        return seen

    def _begin(self, seen: Seen, module: torch.nn.Module, kind: Kind) -> None:
        """Handle a call that begins: it may begin the window or a step, or end the window."""
        window = self._try
        if window.is_open and threading.get_ident() != self._thread:
            return
        phase = None if self._whole else phase_of(module)
        seen.calls_of_phase[phase] += 1
        if not self._whole:
            if not self._trainer and self.training.any_followed():
                self._training_begins(at_update=False)
            if self._trainer and self.phase != EVAL:
                if self._trainer == threading.get_ident():
                    self._begin_in_training(seen, kind)
                return
            seen.in_step = 0
        self._begin_call(seen, module, phase)

    def _begin_call(self, seen: Seen, module: torch.nn.Module, phase: str | None) -> None:
        """Handle a call where the program does not train so far: a step lasts from call to call."""
        window = self._try
        goes_on = window.is_open and any(module is model for model in self._models)
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
            self._open([module], phase)
            self._warms_up = warms_up and not self._whole  # if so, it begins again with the next call
        elif not window.end_step():
            window.begin_step(module)
        else:
            self._end_window()
            self._stop_here()

    def _stop_here(self) -> None:
        if self._done and self._stop and threading.current_thread() is threading.main_thread():
            raise Stop

    def _phases(self) -> set[str | None]:
        """Return the phases that have no window yet."""
        requested = {GRAD, EVAL, None} if self.phase is None else {GRAD, self.phase}
        if self._trainer:
            requested.remove(GRAD)
        return {phase for phase in requested if self._tries[phase] < MOST_TRIES}

    def _is_wanted(self, seen: Seen) -> bool:
        if self.model is not None:
            return self.model is seen
        # Losses, and modules that prepare inputs, have no parameters.
        wanted = [one for one in self.seen.values() if one.has_parameters or self.name is not None]
        return max(wanted, key=lambda one: one.seconds, default=None) is seen

    # ---- steps of training

    def _updated(self, optimizer: torch.optim.Optimizer) -> None:
        """Handle an update: a step may end with it."""
        if self._done or not self.is_ours:
            return
        with self._lock:
            here = threading.get_ident()
            if (self._try.is_open and here != self._thread) or self._trainer not in {0, here}:
                return
            if self.name is not None and not any(self.training.trains(optimizer, each) for each in self._named()):
                return
            self.training.by_updates = True
            if not self._trainer:
                self._training_begins(at_update=True)
            if self.phase != EVAL and self.training.ends_step(optimizer):
                self._step_ends(at_update=True)

    def _training_begins(self, *, at_update: bool) -> None:
        """Handle the first backward that followed a call, or the first update: a step of training is under way."""
        self._trainer = threading.get_ident()
        if self._try.is_open:
            if self._open_phase == GRAD and self._try.steps == 1 and self.phase != EVAL:
                self._open_phase = TRAIN
            else:
                self._close(None)
        if not at_update and not self.training.has_optimizer():
            self._by_backward = True
            self._step_ends(at_update=False)

    def _begin_in_training(self, seen: Seen, kind: Kind) -> None:
        """Handle a call after training has begun: after an update it may begin the next step."""
        training = self.training
        if not self._in_gap and not training.by_updates and (self._by_backward or training.waits_in_vain()):
            self._by_backward = True
            if training.any_followed():
                self._step_ends(at_update=False)
        if not self._in_gap and not self._is_unseen:
            seen.in_step = self._step
            return
        if seen.in_gap != self._step:
            seen.is_regular = seen.in_gap == self._step - 1 and not training.is_trained(seen)
            seen.in_gap = self._step
        begins = torch.is_grad_enabled() and training.begins_step(seen, kind)
        if not begins and not seen.is_regular:
            self._leave_steps(seen)
            self._local.leaves = self._is_unseen
            return
        self._in_gap = not begins
        seen.in_step = self._step
        self._begin_step()

    def _step_ends(self, *, at_update: bool) -> None:
        self._step += 1
        self._is_new = True
        self._in_gap = self.training.end_step() or not at_update
        self._is_unseen = not self._in_gap
        if self._is_unseen:
            self._begin_step()

    def _leave_steps(self, seen: Seen) -> None:
        """Handle a call between two steps that is of none."""
        window = self._try
        if not window.is_open:
            return
        if self._is_new and window.in_step and window.end_step() and not self._warms_up:
            self._end_window()
            self._stop_here()
            return
        window.leave_steps()
        self._between[seen.type] += 1

    def _begin_step(self) -> None:
        """Begin the next step if it has not begun, and perhaps the window with it; or end the window."""
        window = self._try
        if not self._is_new:
            window.enter_steps()
            return
        if window.is_open and window.in_step and not self._warms_up and window.end_step():
            self._end_window()
            self._stop_here()
            return
        self._is_new = False
        if window.is_open and not self._warms_up and self._has_other_models():
            self._end_window()
        if self._done or self._tries[TRAIN] >= MOST_TRIES or (self._patient and self._step < self._skip):
            return
        if self._try.is_open and not self._warms_up:
            window.enter_steps()
            window.begin_step(None)
            return
        if self._step >= self._skip and not self.training.cycle.is_settled:
            return
        self._open(self._models_of_step(), TRAIN)
        self._warms_up = self._step < self._skip

    def _named(self) -> list[torch.nn.Module]:
        assert self.name is not None
        called = sorted(self.seen.values(), key=lambda seen: (not seen.is_trained, -seen.seconds))
        found: list[object] = [seen.module() for seen in called]
        return [each for each in [*found, self._names.variable(self.name)] if isinstance(each, torch.nn.Module)]

    def _models_of_step(self) -> list[torch.nn.Module]:
        """Return the models that are trained, and the others that the latest steps call."""
        if self.name is not None:
            return self._named()[:1]
        called = [(seen, seen.module()) for seen in self.seen.values() if seen.has_parameters]
        alive = [(seen, module) for seen, module in called if module is not None]
        models = self.training.models([module for seen, module in alive if seen.is_trained])
        beside = [module for seen, module in alive if seen.in_step >= self._step - 1]
        return outermost([*models, *beside])

    def _has_other_models(self) -> bool:
        """Return whether an optimizer has stepped whose models the window does not have."""
        if not self.training.has_new_optimizer() or self.name is not None:
            return False
        known = {id(model) for model in self._models}
        return any(id(model) not in known for model in self._models_of_step())

    # ---- the block

    def _open(self, models: list[torch.nn.Module], phase: str | None) -> None:
        self._close(None, keep=False)
        self._open_phase = phase
        self._models, self._calls = models, []
        self._between.clear()
        self.training.unfollowed.clear()
        self._thread = threading.get_ident()
        self._try = StepWindow(steps=self._steps)
        with contextlib.nullcontext() if self._whole else self.training.deaf():
            self._try.begin_step(together(models, self._names.variables))
        for region in self._open_regions():  # the code inside them begins now
            region.open()

    def _close(self, error: BaseException | None, *, keep: bool = True) -> None:
        window, phase = self._try, self._open_phase
        if not window.is_open:
            return
        if error is None and window.in_step:
            if phase != TRAIN or self._is_new or (not self.training.by_updates and self.training.any_followed()):
                window.end_step()
            else:
                window.in_step = False  # the next step has begun, and no update came
        window.end(error)
        notes, label = self._notes_on(phase)
        for note in notes:
            if window.profiler is not None:
                window.profiler._note(note)
        worth = Worth(label == TRAIN, not self._warms_up, window.steps)
        is_requested = self.phase is None or (self.phase == TRAIN) == (label == TRAIN)
        if keep and is_requested and window.steps and (self._best is None or worth >= self._best.worth):
            parts = {id(part) for model in self._models for part in model.modules()}
            seen = [one for one in self.seen.values() if id(one.module()) in parts]
            self._best = Taken(worth, label, window, seen)
        self._try, self._models = StepWindow(), []  # the closed one holds a model

    def _notes_on(self, phase: str | None) -> tuple[list[Note], str | None]:
        """Return what a reader must know of the open window, and the phase of its calls."""
        if phase is None:
            return [], None
        if phase == GRAD:
            followed = self.training.are_followed(self._calls)
            if any(followed):
                phase = TRAIN if all(followed) else None
        if phase is None:
            return [Note("window-phase", "the calls are of training and of evaluation: a backward followed some")], None
        notes = [Note("window-phase", _CALLS_OF[phase])]
        if self._between:
            ran = counted(self._between.most_common())
            text = (
                f"between the steps ran {ran}, and no backward followed: their work is in the row (between steps), "
                "with what ran up to the next step, and in no step"
            )
            notes.append(Note("between-steps", text))
        if self.training.unfollowed:
            calls = counted(self.training.unfollowed.most_common())
            text = f"no backward followed these calls in the steps, which are in the rows and the means: {calls}"
            notes.append(Note("between-steps", text))
        return notes, phase

    def _end_window(self) -> None:
        """End a window that has all its steps, or that something else interrupts; a better one may follow."""
        window, phase, is_warm = self._try, self._open_phase, not self._warms_up
        self._close(None)
        if not is_warm:
            return
        self._tries[phase] += MOST_TRIES if window.has_all else 1
        if self._tries[phase] < MOST_TRIES:
            return
        if phase in {TRAIN, None} or self.phase == EVAL or (self.phase is None and not optimizers()):
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
        """Return the regions that are open on this thread, outer before inner."""
        regions: list[Region] = self._local.__dict__.setdefault("regions", [])
        return regions


def why_nothing(window: Window, skip: int | None) -> str:
    """Return one sentence that says why a window has no report. ``skip``: as it was requested."""
    return f"nothing was profiled: {_why_unfit(window, skip) if window.seen else _why_unseen(window)}"


def _why_unseen(window: Window) -> str:
    if window.met_another:
        return "roofprof itself is called there, before any module is, and profilers do not nest"
    if window.name:
        called = counted(window.not_named.most_common()) or "none"
        return f"no module that was called is '{window.name}'; called were {called}"
    return (
        "no torch.nn module was called, nor did an optimizer of torch.optim step often; write "
        "`with roofprof.RooflineProfiler(model) as prof:` around some of the code, with None for no model"
    )


def _why_unfit(window: Window, skip: int | None) -> str:
    called = named(list(window.seen.values()))
    if window.phase == EVAL and window.trains:
        return f"with --phase eval, no call of {called} is one of evaluation"
    if window.phase == TRAIN and not window.trains:
        return f"with --phase train, no backward followed a call of {called}"
    if not any(one.has_parameters for one in window.seen.values()):
        return f"no module with parameters was called, but {called}; --model chooses one"
    if skip is not None:
        return f"with --skip {skip} too few calls are left of {called}"
    return f"no step was seen from its begin to its end; called were {called}"
