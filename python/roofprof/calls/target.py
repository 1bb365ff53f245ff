"""A user's call as the run loop makes it: csrc/run has the loop, this file the parts of a call that are in Python."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import copy
import inspect
import itertools
import time
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch

from roofprof import _C
from roofprof.models import inductor
from roofprof.models.call_wrappers import own_call, wrapper_places
from roofprof.models.compiled import Compilations, compiled_places, compiled_with_its_hooks, dynamo
from roofprof.models.exported import GraphScopes
from roofprof.models.fake import call_without_data
from roofprof.models.hooks import global_hooks
from roofprof.models.packages import Packages, is_package
from roofprof.models.ranks import is_among_ranks
from roofprof.models.script import Scripts
from roofprof.models.short_calls import called_by_torch
from roofprof.models.token_calls import TokenCalls, models_with_cache
from roofprof.models.tree import ModelTree
from roofprof.render.progress import Progress
from roofprof.state.snapshot import StateSnapshot

# Calls of code that was compiled for its kernels: to compile and warm up, and observed ones.
_MOST_WARM_UPS = 5
_LEAST_KERNEL_RUNS, _MOST_KERNEL_RUNS, _KERNEL_SECONDS = 3, 10, 2.0

# A generator may never end.
MOST_ITEMS = 10_000

_FUTURES = (concurrent.futures.Future, torch._C.Future, asyncio.Future)
_KINDS: list[tuple[tuple[type, ...], str]] = [
    ((types.GeneratorType,), "a generator"),
    ((types.CoroutineType,), "a coroutine"),
    ((types.AsyncGeneratorType,), "an asynchronous generator"),
    (_FUTURES, "a future"),
]


def deferred_kind(value: object) -> str:
    """Return the name of such a value's kind, with its article; "" for any other value."""
    return next((name for kinds, name in _KINDS if issubclass(type(value), kinds)), "")


def finish(value: Any) -> str:
    """Do the work of such a value on this thread. Return a text about what was done, or why nothing was.

    Raises what the work raises.
    """
    kind = type(value)
    if issubclass(kind, types.GeneratorType):
        taken = sum(1 for _ in itertools.islice(value, MOST_ITEMS))
        value.close()
        return "it was consumed in the call" + (f", up to {taken:,} items" if taken == MOST_ITEMS else "")
    if issubclass(kind, (types.CoroutineType, types.AsyncGeneratorType)):
        is_coroutine = issubclass(kind, types.CoroutineType)
        if _loop_runs():
            if is_coroutine:
                value.close()
            return f"an event loop runs on this thread, so that it cannot be awaited here; {_NOT_COUNTED}"
        asyncio.run(value if is_coroutine else _consumed(value))
        return "it was awaited in the call"
    if issubclass(kind, asyncio.Future):
        return f"it is of an event loop, and nobody can await it here; {_NOT_COUNTED}"
    value.wait() if issubclass(kind, torch._C.Future) else value.result()
    return "it was waited for in the call"


_NOT_COUNTED = "its work is not counted: profile it in a `with` block around the code that awaits it"


def _loop_runs() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def _consumed(items: types.AsyncGeneratorType[Any, None]) -> None:
    taken = 0
    async for _ in items:
        taken += 1
        if taken == MOST_ITEMS:
            break
    await items.aclose()


def _placed(tree: ModelTree) -> _C.PlacedModules:
    objects: list[object] = list(tree.objects)
    for package, place in tree.packages:
        objects[place] = package
    return _C.PlacedModules(tree.modules, objects, _forwards(tree.objects[0]))


def _forwards(model: torch.nn.Module | None) -> list[types.CodeType]:
    """Return the code of the model's forward, which identifies a call that began before its hooks were there."""
    given = [vars(model).get("forward"), getattr(type(model), "forward", None)] if model is not None else []
    codes = [getattr(inspect.unwrap(forward), "__code__", None) for forward in given if forward is not None]
    return [code for code in codes if isinstance(code, types.CodeType)]


class Observer:
    """A session, and the parts between it and a model of that tree: hooks, graphs, compiled code, TorchScript."""

    def __init__(self, tree: ModelTree) -> None:
        self.tree = tree
        self.session = _C.ModuleHooks(tree.once(_placed))
        self.model = tree.objects[0]
        for wrapper, module, place in tree.wrappers:
            self.session.add_wrapper(wrapper, module, place)
        self.compilations = Compilations(self.session, tree.once(compiled_with_its_hooks))
        self.scripts = Scripts(tree, self.session)
        self._graphs = GraphScopes(tree, self.session)
        self.packages = Packages(tree, self.session, tree.once(compiled_places))
        self.compilations.calls_packages = self.packages.in_compiled
        self.tokens = TokenCalls(self.session, tree.once(models_with_cache), tree)
        self._call_wrappers = _C.CallWrappers(tree.once(wrapper_places))
        self._short_calls = _C.ShortCalls(tree.once(called_by_torch), self.tokens.modules)

    @contextlib.contextmanager
    def hooked(self) -> Iterator[None]:
        """Report every call of a module in here to the session."""
        if self.session.record_shapes:  # fake tensors may stand for parameters by now
            self.session.tell_reads()
        # Without any such call in the counting pass there is none in the others.
        call_wrappers = self._call_wrappers if self.session.record_shapes or self.session.came_by_call_wrapper else None
        hooks = global_hooks(self.session, self.tokens, call_wrappers, self._short_calls, self.compilations.kept_from)
        # torch would compile code again that calls a package, because it is called through roofprof's function.
        hidden = self.packages.in_compiled and not self.compilations.eager
        packages: contextlib.AbstractContextManager[None] = (
            contextlib.nullcontext() if hidden else self.packages.opened()
        )
        with hooks, self._graphs.opened(), packages:
            yield

    @contextlib.contextmanager
    def recording_shapes(self) -> Iterator[None]:
        """Keep in here the sizes of the modules' inputs and outputs."""
        self.session.record_shapes = True
        try:
            yield
        finally:
            self.session.record_shapes = False


class Target:
    """A call ``model(*args, **kwargs)``, counted and made again. The run loop uses every public method here.

    of_model: it is a call of the model itself; else of the user's code around that. Then the code's own work is
    (outside)'s, and TorchScript is counted as its executor runs it, because the executor differentiates the code that
    it fuses.
    """

    def __init__(
        self,
        observer: Observer,
        model: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        *,
        of_model: bool = True,
        snapshot: StateSnapshot | None = None,
        holds_data: bool = True,
        wants_kernels: bool = False,
    ) -> None:
        self.notes: list[_C.Note] = []
        self.graphs: list[dict[str, Any]] = []  # of compiled code, once its kernels were read
        self.wants_kernels = wants_kernels
        self.on_device = False  # kernels of compiled code run on a GPU
        self.ran_compiled = False
        self.model = model
        self.args = args
        self.kwargs = kwargs
        self.compilations = observer.compilations
        self.session = observer.session
        self._observer = observer
        self.of_model = of_model
        self._snapshot = snapshot  # None: there are no further calls
        self._holds_data = holds_data
        self.progress: Progress | None = None  # shows further calls
        self.defers = False  # a call returns before its work is done, known after the first one

    def counting(self, observed: Callable[[tuple[Any, ...], dict[str, Any]], None]) -> None:
        """Make the counting call, which is the caller's own. Compiled code is counted as it was before compilation."""
        with _C.Uninterrupted(self._around_counting()):
            if self._holds_data:
                observed(self.args, self.kwargs)
            else:
                _, notes = call_without_data(observed, self.model, self.args, self.kwargs)
                self.notes += notes

    @contextlib.contextmanager
    def _around_counting(self) -> Iterator[None]:
        scripts = self._observer.scripts.counted() if self.of_model else contextlib.nullcontext()
        with self._observer.recording_shapes(), self.compilations.as_eager(), scripts:
            yield

    @property
    def why_only_once(self) -> str:
        """Why only one call can be made, as the end of a sentence; "" if more can. Asked again after the first call."""
        return "" if self._snapshot is None else self._snapshot.why_only_once

    @property
    def is_among_ranks(self) -> bool:
        """True if all ranks must make the same number of calls; known after the first one."""
        return is_among_ranks()

    def undoing(self, further: Callable[[], None]) -> int:
        """Undo what further calls change, and say how many tensors could not be put back."""
        assert self._snapshot is not None
        with _C.Uninterrupted(self._around_further(self._snapshot)):
            further()
        return self._snapshot.lost

    @contextlib.contextmanager
    def _around_further(self, snapshot: StateSnapshot) -> Iterator[None]:
        with snapshot.undoing(), self._observer.scripts.undoing(), self.compilations.watched():
            yield

    def prepare(self) -> None:
        """Give the next further call what the first one got."""
        assert self._snapshot is not None
        if self.progress:
            self.progress.next_call()
        self._snapshot.before_call()

    def leave_out_kernels(self, why: str) -> None:
        """Say why no calls are made with code that was compiled for its kernels, where they were requested."""
        if self.wants_kernels:
            self.wants_kernels = False
            self.notes.append(inductor.no_kernels(why))

    def read_kernels(self, observed: Callable[[], int], ran_compiled: bool) -> None:
        """Make further calls with code that was compiled for its kernels, and observe some; the run loop's last ones.

        ``observed`` prepares a call, makes it, keeps what was observed and returns its time in ns. ``ran_compiled``:
        graphs of torch.compile's ran; without any, the same calls tell what kept it from making some.
        """
        self.ran_compiled = ran_compiled
        if not self.wants_kernels or (not ran_compiled and dynamo() is None):
            return
        why_not = inductor.why_not()
        if why_not and not ran_compiled:
            return
        before = copy.copy(self.compilations.amounts)
        try:
            if not why_not:
                with inductor.compiled_for_kernels(self.session, on_device=self.on_device) as again:
                    self._make_kernel_calls(again, observed)
                again.seconds = self.compilations.seconds - before.seconds
                self.graphs = again.facts(self._observer.tree)
                self.ran_compiled = ran_compiled or again.met_compiler
                if self.ran_compiled:
                    self.notes += again.notes()
        except Exception as error:
            why_not = f"a call for them raised {type(error).__name__}: {error}".splitlines()[0]
        finally:  # the note on compilations is about the user's own
            self.compilations.amounts = before
        if why_not and ran_compiled:
            self.graphs = []
            self.notes.append(inductor.no_kernels(why_not))

    def _make_kernel_calls(self, again: inductor.CompiledAgain, observed: Callable[[], int]) -> None:
        """Make pairs of a plain call of the code as it was, and an observed one of that with ranges.

        Kernels of a GPU have their times in the timed calls: one call tells their order.
        """
        for _ in range(_MOST_WARM_UPS):
            compiled = self.compilations.count
            self._plain_call()
            if self.compilations.count == compiled:
                break
        if not again.graphs:
            return
        if self.on_device:
            observed()
            return
        started = time.perf_counter()
        for run in range(_MOST_KERNEL_RUNS):
            if run >= _LEAST_KERNEL_RUNS and time.perf_counter() - started > _KERNEL_SECONDS:
                break
            with again.put_aside():
                plain_ns = self._plain_call()
            again.ratios.append(observed() / plain_ns)

    def _plain_call(self) -> int:
        self.prepare()
        began = time.perf_counter_ns()
        self.finish(self.model(*self.args, **self.kwargs))
        return time.perf_counter_ns() - began

    def call_in_scope(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Call the model in its own row, or the code around it."""
        session = self._observer.session
        model = self.model
        is_module = (isinstance(model, torch.nn.Module) and own_call(type(model)) is None) or is_package(model)
        if self.of_model and not is_module:
            session.enter_method() if self._observer.model else session.enter_model()
        result = self.model(*args, **kwargs)
        kind = deferred_kind(result)
        if kind:
            if self.of_model and is_module:  # whose call has returned
                session.enter_method()
            self._note_deferred(kind, finish(result))
        if self.of_model and (kind or not is_module) and self._observer.model:
            session.leave_method()

    def finish(self, result: Any) -> None:
        """Do what a further call left to be done."""
        if deferred_kind(result):
            finish(result)

    def _note_deferred(self, kind: str, done: str) -> None:
        if not self.defers:
            self.defers = True
            self.notes.append(_C.Note("deferred-work", f"the call returned {kind}: {done}"))

    def hooked(self, body: Callable[[], None]) -> None:
        """Observe ``body``."""
        with _C.Uninterrupted(self._observer.hooked()):
            body()
