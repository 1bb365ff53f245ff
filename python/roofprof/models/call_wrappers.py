"""Finds the functions of a model's classes whose calls torch's ``__call__`` does not announce to hooks."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import torch

from roofprof import _C
from roofprof.models.tree import ModelTree


def wrapper_places(tree: ModelTree) -> list[tuple[type, str, bool]]:
    """Return the class, the name, and whether it is the forward, for each such function of the tree's modules.

    TorchScript has no such function. What a class has in place of one (a partial, a descriptor) is left alone.
    """
    kinds = {type(module): None for module in tree.objects if module is not None}
    found: dict[tuple[type, str], bool] = {}
    for kind in kinds:
        if not issubclass(kind, torch.nn.Module) or issubclass(kind, torch.jit.ScriptModule):
            continue
        owner = defining_class(kind, "forward")
        forward = None
        if owner is not None and owner is not torch.nn.Module and isinstance(vars(owner)["forward"], FunctionType):
            forward = vars(owner)["forward"]
            found[owner, "forward"] = True
        owner = own_call(kind)
        if owner is not None and isinstance(vars(owner)["__call__"], FunctionType):
            found[owner, "__call__"] = vars(owner)["__call__"] == forward
    return [(owner, name, is_forward) for (owner, name), is_forward in found.items()]


def own_call(kind: type) -> type | None:
    """Return the class that defines how modules of this kind are called; None where torch does."""
    owner = defining_class(kind, "__call__")
    return None if owner is None or owner.__module__.partition(".")[0] == "torch" else owner


def defining_class(kind: type, name: str) -> type | None:
    """Return which of the class and its bases has an attribute of that name in effect."""
    return next((base for base in kind.__mro__ if name in vars(base)), None)


# ---- observers with torch's hooks: wrappers call them where torch calls no hooks

_WrapperHooks = tuple[Callable[..., None] | None, Callable[..., None], bool]
_wrapper_hooks: list[_WrapperHooks] = []  # before, after, and whether `after` is called after a call that raised


@contextlib.contextmanager
def hooks_at_wrappers(
    before: Callable[..., None] | None, after: Callable[..., None], *, always_call: bool
) -> Iterator[None]:
    """Call ``before(module, args)`` and ``after(module, args, kwargs, output)`` around calls of a profiled model's
    modules that torch's hooks do not see.
    """
    one = (before, after, always_call)
    _wrapper_hooks.append(one)
    _C.set_wrapper_caller(_call_with_hooks)
    try:
        yield
    finally:
        _wrapper_hooks.remove(one)
        if not _wrapper_hooks:
            _C.set_wrapper_caller(None)


def _call_with_hooks(forward: Callable[..., Any], module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
    hooks = list(_wrapper_hooks)
    returned, output = False, None
    try:
        for before, _, _ in hooks:
            if before is not None:
                before(module, args)
        output = forward(module, *args, **kwargs)
        returned = True
    finally:
        for _, after, always_call in hooks:
            if returned or always_call:
                after(module, args, kwargs, output)
    return output
