"""Copies of a call's arguments: containers anew, what they hold (tensors above all) as it is."""

from __future__ import annotations

import copy
import dataclasses
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch

# What is never a container, however it is built.
_ATOMS = (
    torch.Tensor,
    torch.nn.Module,
    torch.Generator,
    torch.dtype,
    torch.device,
    str,
    bytes,
    int,
    float,
    complex,
    bool,
    type(None),
    type,
    types.ModuleType,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
)


def copy_containers(value: Any) -> Any:
    """The same nest of dicts, lists, tuples, dataclasses and plain objects, made anew around the same leaves.

    A model may then consume or extend what it is given, and the next call still gets what the caller passed.
    """
    return _copy(value, {})


def _copy(value: Any, done: dict[int, Any]) -> Any:
    if isinstance(value, _ATOMS):
        return value
    if id(value) in done:
        return done[id(value)]
    if isinstance(value, tuple):
        items = [_copy(item, done) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if not isinstance(value, (dict, list, set)) and not _has_plain_state(value):
        return value
    try:
        twin = copy.copy(value)
    except Exception:  # an object that cannot be copied is passed on as it is
        return value
    done[id(value)] = twin
    if isinstance(value, dict):
        for key, item in value.items():
            dict.__setitem__(twin, key, _copy(item, done))
    elif isinstance(value, list):
        twin[:] = [_copy(item, done) for item in value]
    # Attributes as well: dataclasses, caches, dict subclasses that mirror their items.
    for key, item in getattr(value, "__dict__", {}).items():
        twin.__dict__[key] = _copy(item, done)
    return twin


def _has_plain_state(value: Any) -> bool:
    """Whether the object is nothing but its ``__dict__``: no state that a copy would share or lose."""
    kind = type(value)
    return (
        hasattr(value, "__dict__")
        and not callable(value)
        and kind.__reduce_ex__ is object.__reduce_ex__
        and kind.__module__ != "builtins"
        and (dataclasses.is_dataclass(value) or "__slots__" not in vars(kind))
    )


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """Every tensor in the nest that :func:`copy_containers` would copy."""
    found: list[torch.Tensor] = []
    _visit(value, found.append, set())
    yield from found


def _visit(value: Any, visit: Callable[[torch.Tensor], None], seen: set[int]) -> None:
    if isinstance(value, torch.Tensor):
        visit(value)
        return
    if isinstance(value, _ATOMS) or id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, dict):
        items = list(value.values())
    elif isinstance(value, (list, tuple, set)):
        items = list(value)
    elif _has_plain_state(value):
        items = list(vars(value).values())
    else:
        return
    for item in items:
        _visit(item, visit, seen)
