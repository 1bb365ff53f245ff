"""Global hooks: the model itself gets no hooks, so its modules' fast paths stay on."""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ClassVar

import torch
from torch._library import custom_ops
from torch.nn.modules import module as nn_module
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils.hooks import RemovableHandle

from roofprof import _C
from roofprof.models.short_calls import calls_are_torchs_own
from roofprof.models.token_calls import TokenCalls
from roofprof.state.shared_change import SharedChange


def _start_for(call: _C.OwnCall, thread: threading.Thread, start: Callable[[threading.Thread], None]) -> None:
    run, given = thread.run, vars(thread).get("run")

    def put_back() -> None:
        if given is None:
            vars(thread).pop("run", None)
        else:
            vars(thread)["run"] = given

    def run_for() -> None:
        put_back()
        works_for = _C.WorksFor(call)
        try:
            run()
        finally:
            del works_for  # on this thread, however long an error is kept

    vars(thread)["run"] = run_for
    try:
        start(thread)
    except BaseException:
        put_back()
        raise


_pool = threading.local()  # .starts: this thread submits to a pool, which may start a worker for all that is to come


def _work_for(call: _C.OwnCall, function: Callable[..., Any]) -> Callable[..., Any]:
    def work(*args: Any, **kwargs: Any) -> Any:
        works_for = _C.WorksFor(call)
        try:
            return function(*args, **kwargs)
        finally:
            del works_for

    return work


def _with_place(register: Callable[..., Any]) -> Callable[..., Any]:
    """Return a future's method that takes a callback, whose work will belong to where it was given.

    Else that depends on whether the future is complete by then: its callbacks run on the thread that completes it.
    """

    @functools.wraps(register)
    def method(future: Any, callback: Callable[..., Any]) -> Any:
        place = _C.place_for_later()
        if place is None:
            return register(future, callback)

        def run(*args: Any) -> Any:
            runs_at_place = _C.RunsAtPlace(place)
            try:
                return callback(*args)
            finally:
                del runs_at_place  # on this thread, however long an error is kept

        return register(future, run)

    return method


_TAKE_CALLBACKS = ((torch._C.Future, "then"), (torch._C.Future, "add_done_callback"), (Future, "add_done_callback"))


@SharedChange
@contextlib.contextmanager
def callbacks_are_known() -> Iterator[None]:
    """Attribute in here the callbacks of futures, torch's and Python's, to where an observed thread gave them."""
    changed = [(kind, name, vars(kind)[name]) for kind, name in _TAKE_CALLBACKS]
    ours = [_with_place(original) for _, _, original in changed]
    for (kind, name, _), method in zip(changed, ours, strict=True):
        setattr(kind, name, method)
    try:
        yield
    finally:
        for (kind, name, original), method in zip(changed, ours, strict=True):
            if vars(kind)[name] is method:
                setattr(kind, name, original)


@SharedChange
@contextlib.contextmanager
def starts_are_known() -> Iterator[None]:
    """Attribute in here, to an observed thread's call, threads that it starts and work that it submits to a pool."""
    original, submitted = threading.Thread.start, ThreadPoolExecutor.submit

    def start(thread: threading.Thread) -> None:
        call = None if getattr(_pool, "starts", False) else _C.own_call()
        if call is None:
            original(thread)
        else:
            _start_for(call, thread, original)

    def submit(pool: ThreadPoolExecutor, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        call = _C.own_call()
        _pool.starts = True
        try:
            return submitted(pool, function if call is None else _work_for(call, function), *args, **kwargs)
        finally:
            _pool.starts = False

    try:
        threading.Thread.start = start  # type: ignore[method-assign,assignment]
        ThreadPoolExecutor.submit = submit  # type: ignore[method-assign,assignment]
        yield
    finally:
        if threading.Thread.start is start:
            threading.Thread.start = original  # type: ignore[method-assign]
        if ThreadPoolExecutor.submit is submit:
            ThreadPoolExecutor.submit = submitted  # type: ignore[method-assign]


class ModuleHooks:
    """Hooks around every call of a module: from :meth:`register` to :meth:`remove`, except where they are suspended.

    also_before: a further one before the call.
    """

    registered: ClassVar[list[ModuleHooks]] = []

    def __init__(
        self, enter: Callable[..., Any], leave: Callable[..., Any], also_before: Callable[..., Any] | None = None
    ) -> None:
        self.enter, self.leave = enter, leave
        self._also_before = also_before
        self._handles: list[RemovableHandle] = []
        self._tables: list[tuple[dict[int, Any], int]] = []
        self._suspended: list[list[tuple[dict[int, Any], int, Any]]] = []

    def register(self) -> None:
        """Put the hooks where torch looks for them."""
        self.registered.append(self)
        for hook in filter(None, (self.enter, self._also_before)):
            before = nn_module.register_module_forward_pre_hook(hook)
            self._handles.append(before)
            self._tables.append((nn_module._global_forward_pre_hooks, before.id))
        after = nn_module.register_module_forward_hook(self.leave, with_kwargs=True, always_call=True)
        self._handles.append(after)
        self._tables += [
            (nn_module._global_forward_hooks, after.id),
            (nn_module._global_forward_hooks_with_kwargs, after.id),
            (nn_module._global_forward_hooks_always_called, after.id),
        ]

    def suspend(self, *, traced: bool = False) -> None:  # noqa: ARG002
        """Take the hooks off, until as many resume(). ``traced``: torch traces the code that runs meanwhile."""
        self._suspended.append([(table, key, table.pop(key)) for table, key in self._tables if key in table])

    def resume(self) -> None:
        """Put the hooks back that the last suspend() took off."""
        entries = self._suspended.pop()
        for table, key, entry in entries if self in self.registered else []:
            table[key] = entry

    def remove(self) -> None:
        """Remove the hooks and leave nothing behind, as torch's own handles would."""
        if self in self.registered:
            self.registered.remove(self)
        for handle in self._handles:
            handle.remove()
        for table, key in self._tables:
            table.pop(key, None)


class _HooksAndWrappers(ModuleHooks):
    """These hooks, the wrappers by which calls come that torch does not announce, and short calls where torch would."""

    def __init__(
        self,
        session: _C.ModuleHooks,
        tokens: TokenCalls,
        call_wrappers: _C.CallWrappers | None,
        short_calls: _C.ShortCalls,
    ) -> None:
        super().__init__(session.enter_hook, session.leave_hook, tokens.hook if tokens else None)
        self._session = session
        self._call_wrappers = call_wrappers
        self._short_calls = short_calls

    def register(self) -> None:
        super().register()
        self._open_wrappers()

    def suspend(self, *, traced: bool = False) -> None:
        super().suspend(traced=traced)
        if self._call_wrappers is not None:
            self._call_wrappers.hold()
            if traced:
                self._call_wrappers.close()

    def resume(self) -> None:
        if self._call_wrappers is not None:
            self._call_wrappers.release()
        if self in self.registered:
            self._open_wrappers()
        super().resume()

    def remove(self) -> None:
        self._short_calls.close()
        if self._call_wrappers is not None:
            self._call_wrappers.close()
        super().remove()

    def _open_wrappers(self) -> None:
        if self._call_wrappers is not None:
            self._call_wrappers.open(self._session)
        if calls_are_torchs_own():
            *before, after = (handle.id for handle in self._handles)
            self._short_calls.open(self._session, before, after)


def _observed_closure(session: _C.ModuleHooks, argument: Any) -> Any:
    """Return a step's closure, counted as work outside of the step; other arguments unchanged."""
    if not (inspect.isroutine(argument) or isinstance(argument, functools.partial)):
        return argument

    def closure(*args: Any, **kwargs: Any) -> Any:
        session.enter_closure(closure)
        try:
            return argument(*args, **kwargs)
        finally:
            session.leave_closure(closure)

    return closure


@contextlib.contextmanager
def global_hooks(
    session: _C.ModuleHooks,
    tokens: TokenCalls,
    call_wrappers: _C.CallWrappers | None,
    short_calls: _C.ShortCalls,
    kept_from_compiler: Callable[[ModuleHooks], contextlib.AbstractContextManager[None]],
) -> Iterator[None]:
    """Report every call of a module and every step of an optimizer to the session.

    ``call_wrappers``: of the model's classes; None where calls that torch does not announce need not be seen.
    """

    # torch passes to the step the arguments that a pre-hook returns.
    def enter_optimizer(
        optimizer: torch.optim.Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        if not session.enter_optimizer(optimizer):
            return None
        myself, *rest = args
        observed = {name: _observed_closure(session, value) for name, value in kwargs.items()}
        return (myself, *(_observed_closure(session, value) for value in rest)), observed

    def leave_optimizer(optimizer: torch.optim.Optimizer, *_: object) -> None:
        session.leave_optimizer(optimizer)

    modules = _HooksAndWrappers(session, tokens, call_wrappers, short_calls)
    with contextlib.ExitStack() as made:
        made.callback(modules.remove)
        modules.register()
        made.callback(register_optimizer_step_pre_hook(enter_optimizer).remove)
        made.callback(register_optimizer_step_post_hook(leave_optimizer).remove)
        made.enter_context(unwarned())
        made.enter_context(through_the_dispatcher())
        made.enter_context(_room_for_deep_models())
        made.enter_context(starts_are_known())
        made.enter_context(callbacks_are_known())
        made.enter_context(kept_from_compiler(modules))
        yield


@SharedChange
@contextlib.contextmanager
def through_the_dispatcher() -> Iterator[None]:
    """Send Python's custom ops through the dispatcher; since 2.15 torch calls them without it, unobserved."""
    if not hasattr(torch._ops.OpOverload, "_enable_pyobj_dispatch"):
        yield
        return
    overload: Any
    shortcuts = [  # more than a hundred in torch itself
        (overload, dispatcher, overload._op)
        for reference in custom_ops.OPDEFS.valuerefs()
        if (definition := reference()) is not None
        and (dispatcher := (overload := definition._opoverload)._pyobj_dispatcher) is not None
    ]
    try:
        for overload, _, _ in shortcuts:  # as _enable_pyobj_dispatch(enabled=False) does
            overload._pyobj_dispatcher = None
            overload._op = overload._cpp_dispatch_handle
        yield
    finally:
        for overload, dispatcher, call in shortcuts:
            overload._pyobj_dispatcher = dispatcher
            overload._op = call


# The most frames of roofprof and of torch's hooks, apart from those that each call of a module has.
_FRAMES = 200


@SharedChange
@contextlib.contextmanager
def _room_for_deep_models() -> Iterator[None]:
    """Raise Python's limit on nested calls by what hooks add: torch calls a module with hooks in one more frame.

    Without hooks each module has four.
    """
    before = sys.getrecursionlimit()
    raised = before + before // 4 + _FRAMES
    try:
        sys.setrecursionlimit(raised)
        yield
    finally:
        if sys.getrecursionlimit() == raised:  # else the user's code set another one
            sys.setrecursionlimit(before)


@contextlib.contextmanager
def unwarned() -> Iterator[None]:
    """Hide torch's warning that a compiled module calls global hooks twice: roofprof's hooks allow for that."""
    before = list(warnings.filters)
    added: list[object] = []
    try:
        warnings.filterwarnings("ignore", r"Using `torch\.compile\(module\)` when there are global hooks", UserWarning)
        added += [entry for entry in warnings.filters if entry not in before]
        yield
    finally:
        for entry in added:
            with contextlib.suppress(ValueError):  # the user's code has replaced the filters
                warnings.filters.remove(entry)  # type: ignore[attr-defined]
