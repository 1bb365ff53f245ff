"""What is within reach of a call: the containers that it can change, and the tensors and generators in them."""

from __future__ import annotations

import collections
import concurrent.futures
import contextlib
import functools
import inspect
import multiprocessing.process
import operator
import random
import sys
import threading
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

# Nothing to look into, and most of what containers hold: told apart by type alone.
_PLAIN = frozenset({int, float, complex, bool, str, bytes, type(None), type, torch.dtype, torch.device, torch.Size})

# Classes of the standard library, of torch and of ours look after themselves: to put back half of a thread pool would
# break it.
_OPEN_STDLIB = frozenset({"argparse", "collections", "types"})
_OPEN_TORCH = (torch.nn.Module, torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler)
_CLOSED = (
    threading.Thread,
    concurrent.futures.Executor,
    multiprocessing.process.BaseProcess,
    types.FunctionType,
    types.ModuleType,
    type,
)


class Contents:
    """What some values hold at this moment, at any depth; it can be put back later, into the same containers.

    Followed are dicts, lists, tuples, sets, deques, their subclasses, modules, and the attributes of objects of the
    user's own classes. Nothing of the user's code runs: subclasses may mirror, check or forbid what is set. Without
    `hooks`, the tables of modules' hooks are left out: they are most of what a large model holds.
    """

    def __init__(self, *values: object, hooks: bool = True) -> None:
        self._hooks = hooks
        self.tensors: list[torch.Tensor] = []
        self.arrays: list[Any] = []
        self.generators: list[Any] = []
        self.iterators: list[Any] = []
        self._containers: list[tuple[Any, _Access, list[Any]]] = []
        # Every value seen is held by one of these, so no id is given twice.
        self._values = values
        pending = list(reversed(values))
        seen: set[int] = set()
        while pending:
            value = pending.pop()
            if type(value) in _PLAIN or id(value) in seen:
                continue
            seen.add(id(value))
            pending.extend(reversed(self._look_into(value)))

    def _look_into(self, value: Any) -> list[Any]:
        """Note what the value is, and return what it holds."""
        for kind, access in _CONTAINERS:
            if isinstance(value, kind):
                return [*self._remember(value, access), *self._attributes(value)]
        if isinstance(value, torch.Tensor):
            self.tensors.append(value)
        elif isinstance(value, _generators()):
            self.generators.append(value)
        elif isinstance(value, _arrays()):
            self.arrays.append(value)
        parts = _parts(value)
        if parts is None:
            parts = self._attributes(value) if _is_open(value) else []
            if not parts and isinstance(value, Iterator):
                self.iterators.append(value)
        return parts

    def _remember(self, container: Any, access: _Access) -> list[Any]:
        items = access.read(container)
        self._containers.append((container, access, items))
        return items

    def _attributes(self, value: Any) -> list[Any]:
        found: list[Any] = []
        with contextlib.suppress(AttributeError):
            found.append(object.__getattribute__(value, "__dict__"))
        if not self._hooks and isinstance(value, torch.nn.Module):
            names = self._remember(found.pop(), _NAMED)
            found = [item for name, item in zip(names[::2], names[1::2], strict=True) if name not in _HOOK_TABLES]
        slots = _slots(type(value))
        return [*found, *self._remember(value, _slots_access(slots))] if slots else found

    @contextlib.contextmanager
    def replaced(self, substitutes: dict[int, Any]) -> Iterator[None]:
        """Values whose ids are given have a substitute in all containers, which get everything back at the end."""
        try:
            for container, access, items in self._containers:
                if any(id(item) in substitutes for item in items):
                    access.put(container, [substitutes.get(id(item), item) for item in items])
            yield
        finally:
            self.restore()

    def restore(self) -> None:
        """Put everything back into containers that hold something else now."""
        for container, access, items in self._containers:
            now = access.read(container)
            if len(now) != len(items) or not all(map(operator.is_, now, items)):
                access.put(container, items)


def tensors_in(value: object) -> list[torch.Tensor]:
    """Every tensor within reach of the value."""
    return Contents(value).tensors


def used_by(function: object) -> list[Any]:
    """What a function reaches beside its arguments: what it names, and what the user's functions among that name.

    For anything but a function, that is itself.
    """
    if not isinstance(function, types.FunctionType):
        return [function]
    return [value for each in _functions_of(function) for _, value in _named_by(each)]


def tensors_named_by(function: object) -> list[tuple[str, torch.Tensor]]:
    """The tensors that a function, or one of the user's functions that it names, has under a name of its own."""
    functions = _functions_of(function) if isinstance(function, types.FunctionType) else []
    return [(name, value) for each in functions for name, value in _named_by(each) if isinstance(value, torch.Tensor)]


def _functions_of(function: types.FunctionType) -> list[types.FunctionType]:
    """The function, and the user's functions that it and these name."""
    found: dict[int, types.FunctionType] = {}
    pending = [function]
    while pending:
        current = pending.pop()
        if id(current) in found:
            continue
        found[id(current)] = current
        pending += [v for _, v in _named_by(current) if isinstance(v, types.FunctionType) and not _is_library(v)]
    return list(found.values())


def _named_by(function: types.FunctionType) -> list[tuple[str, Any]]:
    """The values of its closure, and the globals that it names."""
    try:
        names = inspect.getclosurevars(function)
    except ValueError:  # a variable of its closure has no value yet
        return []
    return [*names.nonlocals.items(), *names.globals.items()]


# ---- containers, read and put back without a call to their class's own methods


@dataclass(frozen=True)
class _Access:
    """How to read a container's items as a list, and how to put such a list back."""

    read: Callable[[Any], list[Any]]
    put: Callable[[Any, list[Any]], None]


def _put_list(target: Any, items: list[Any]) -> None:
    list.__setitem__(target, slice(None), items)


def _put_set(target: Any, items: list[Any]) -> None:
    set.clear(target)
    set.update(target, items)


def _put_deque(target: Any, items: list[Any]) -> None:
    collections.deque.clear(target)
    collections.deque.extend(target, items)


def _dict_access(kind: type[dict[Any, Any]]) -> _Access:
    """Keys and values in turn. An OrderedDict keeps its order beside the dict: both must be told."""

    def read(source: Any) -> list[Any]:
        return [part for item in kind.items(source) for part in item]

    def put(target: Any, items: list[Any]) -> None:
        kind.clear(target)
        for key, value in zip(items[::2], items[1::2], strict=True):
            kind.__setitem__(target, key, value)

    return _Access(read, put)


_CONTAINERS: list[tuple[type, _Access]] = [
    (collections.OrderedDict, _dict_access(collections.OrderedDict)),
    (dict, _dict_access(dict)),
    (list, _Access(list.copy, _put_list)),
    (set, _Access(lambda value: list(set.__iter__(value)), _put_set)),
    (collections.deque, _Access(lambda value: list(collections.deque.__iter__(value)), _put_deque)),
]

_NAMED = _dict_access(dict)
_HOOK_TABLES = frozenset(vars(torch.nn.Module())) - {"_parameters", "_buffers", "_modules"}

_Slots = list[types.MemberDescriptorType]
_UNSET = object()


def _slots(kind: type) -> _Slots:
    classes = [base for base in kind.__mro__ if "__slots__" in vars(base)]
    return [slot for base in classes for slot in vars(base).values() if isinstance(slot, types.MemberDescriptorType)]


def _slots_access(slots: _Slots) -> _Access:
    """Straight to the attributes, as a frozen dataclass forbids setattr."""

    def read_one(source: Any, slot: types.MemberDescriptorType) -> Any:
        try:
            return slot.__get__(source)
        except AttributeError:
            return _UNSET

    def put(target: Any, items: list[Any]) -> None:
        for slot, item in zip(slots, items, strict=True):
            if item is not _UNSET:
                slot.__set__(target, item)
            elif read_one(target, slot) is not _UNSET:
                slot.__delete__(target)

    return _Access(lambda source: [read_one(source, slot) for slot in slots], put)


# ---- kinds of values


def _generators() -> tuple[type, ...]:
    numpy = sys.modules.get("numpy.random")
    return (torch.Generator, random.Random, *((numpy.Generator, numpy.RandomState) if numpy else ()))


def _arrays() -> tuple[type, ...]:
    numpy = sys.modules.get("numpy")
    return (numpy.ndarray,) if numpy else ()


def _parts(value: Any) -> list[Any] | None:
    """What is held by a value that cannot be changed itself; None where it is no such holder."""
    if isinstance(value, torch.Tensor):
        return [value.grad] if value.is_leaf else []
    if isinstance(value, (tuple, frozenset)):
        return list(value)
    if isinstance(value, types.MethodType):
        return [value.__self__]
    if isinstance(value, functools.partial):
        return [value.func, value.args, value.keywords]
    if isinstance(value, torch.jit.ScriptModule):  # its own containers are compiled
        return [*value.parameters(), *value.buffers()]
    return None


def _is_open(value: object) -> bool:
    """Whether the value's attributes are the user's own data."""
    if isinstance(value, _OPEN_TORCH):
        return True
    return not isinstance(value, _CLOSED) and not _is_library(type(value))


def _is_library(value: type | types.FunctionType) -> bool:
    package = str(value.__module__).partition(".")[0]
    return package in {"torch", "roofprof"} or (package in sys.stdlib_module_names and package not in _OPEN_STDLIB)
