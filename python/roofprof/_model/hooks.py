"""Global hooks: the model gets no hooks of its own, so its modules' fast paths stay on."""

from __future__ import annotations

import contextlib
import functools
import inspect
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch._library import custom_ops
from torch.nn.modules import module as nn_module
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from roofprof._model.threads import starts_are_known
from roofprof._state.shared_change import SharedChange

if TYPE_CHECKING:
    from roofprof import _C
    from roofprof._model.token_calls import TokenCalls


class ModuleHooks:
    """The session's hooks around every call of a module, on while this is not suspended."""

    def __init__(self, session: _C.Session, tokens: TokenCalls) -> None:
        self.enter, self.leave = session.enter_hook, session.leave_hook
        self._before = nn_module.register_module_forward_pre_hook(self.enter)
        self._tokens = nn_module.register_module_forward_pre_hook(tokens.hook) if tokens else None
        self._after = nn_module.register_module_forward_hook(self.leave, with_kwargs=True, always_call=True)
        self._tables: list[tuple[dict[int, Any], int]] = [
            (nn_module._global_forward_pre_hooks, self._before.id),
            (nn_module._global_forward_hooks, self._after.id),
            (nn_module._global_forward_hooks_with_kwargs, self._after.id),
            (nn_module._global_forward_hooks_always_called, self._after.id),
        ]
        if self._tokens:
            self._tables.append((nn_module._global_forward_pre_hooks, self._tokens.id))
        self._suspended: list[list[tuple[dict[int, Any], int, Any]]] = []

    def suspend(self) -> None:
        """Take the hooks off, until as many resume()."""
        self._suspended.append([(table, key, table.pop(key)) for table, key in self._tables if key in table])

    def resume(self) -> None:
        """Put the hooks back that the last suspend() took off."""
        for table, key, entry in self._suspended.pop():
            table[key] = entry

    def remove(self) -> None:
        """Remove the hooks and leave nothing behind, as torch's own handles would."""
        for handle in (self._before, self._tokens, self._after):
            if handle:
                handle.remove()
        for table, key in self._tables:
            table.pop(key, None)


def _observed_closure(session: _C.Session, argument: Any) -> Any:
    """A step's closure, counted as work outside of the step; other arguments unchanged."""
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
    session: _C.Session,
    tokens: TokenCalls,
    kept_from_compiler: Callable[[ModuleHooks], contextlib.AbstractContextManager[None]],
) -> Iterator[None]:
    """Reports every call of a module and every step of an optimizer to the session."""

    # What a pre-hook returns are the step's arguments.
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

    modules = ModuleHooks(session, tokens)
    handles = [
        register_optimizer_step_pre_hook(enter_optimizer),
        register_optimizer_step_post_hook(leave_optimizer),
    ]
    try:
        with _unwarned(), _through_the_dispatcher(), starts_are_known(), kept_from_compiler(modules):
            yield
    finally:
        modules.remove()
        for handle in handles:
            handle.remove()


@SharedChange
@contextlib.contextmanager
def _through_the_dispatcher() -> Iterator[None]:
    """Since 2.15 torch calls Python's custom ops on tensors without its dispatcher, where nothing observes them."""
    if not hasattr(torch._ops.OpOverload, "_enable_pyobj_dispatch"):
        yield
        return
    overloads: list[Any] = [definition._opoverload for definition in list(custom_ops.OPDEFS.values())]
    shortcuts = [(each, each._pyobj_dispatcher, each._op) for each in overloads if each._pyobj_dispatcher is not None]
    for overload, *_ in shortcuts:
        overload._enable_pyobj_dispatch(enabled=False)
    try:
        yield
    finally:
        for overload, dispatcher, call in shortcuts:
            overload._pyobj_dispatcher, overload._op = dispatcher, call


@contextlib.contextmanager
def _unwarned() -> Iterator[None]:
    """Without torch's warning that a compiled module calls global hooks twice: ours know."""
    before = list(warnings.filters)
    warnings.filterwarnings("ignore", r"Using `torch\.compile\(module\)` when there are global hooks", UserWarning)
    added = [entry for entry in warnings.filters if entry not in before]
    try:
        yield
    finally:
        for entry in added:
            with contextlib.suppress(ValueError):  # the user's own code set the filters anew
                warnings.filters.remove(entry)  # type: ignore[attr-defined]
