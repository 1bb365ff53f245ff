"""The values that a call can reach: the containers that it can change, and the tensors and generators in them.

None of the user's code runs here: values are read by the types that Python and torch gave them, never by their own
methods, properties, `__class__` or metaclass, which may raise.
"""

from __future__ import annotations

import collections
import concurrent.futures
import contextlib
import functools
import gc
import inspect
import itertools
import multiprocessing.process
import operator
import random
import sys
import threading
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import torch

from roofprof import _C

T = TypeVar("T")

_attributes = vars(torch.nn.Module)["__dict__"].__get__


def tensors_of_modules(model: torch.nn.Module) -> list[torch.Tensor]:
    """Return the parameters and buffers of a module and all below it, in its tree's order; some may come twice."""
    found: list[torch.Tensor] = []
    pending = [model]
    seen: set[int] = set()
    while pending:
        module = pending.pop()
        if id(module) in seen:
            continue
        seen.add(id(module))
        parameters, buffers, children = own_tables(module)
        found += [*parameters, *buffers]
        pending += reversed([child for _, child in children])
    return found


def own_tables(
    module: torch.nn.Module,
) -> tuple[list[torch.Tensor], list[torch.Tensor], list[tuple[str, torch.nn.Module]]]:
    """Return the module's own parameters, buffers and children; for TorchScript, the tensors of all below it."""
    if issubclass(type(module), torch.jit.ScriptModule):
        return [*module.parameters()], [*module.buffers()], []
    tables = _attributes(module)
    parameters, buffers, children = (tables.get(name, {}) for name in ("_parameters", "_buffers", "_modules"))
    return (
        [each for each in parameters.values() if each is not None],
        [each for each in buffers.values() if each is not None],
        [(name, child) for name, child in children.items() if child is not None],
    )


# These values hold no others, and are most of what containers hold: the type alone decides. (Ids: a metaclass may have
# a hash.)
_PLAIN = frozenset(
    map(id, (int, float, complex, bool, str, bytes, type(None), type, torch.dtype, torch.device, torch.Size))
)

# Objects of the standard library, of torch and of roofprof keep their own state: to restore half of a thread pool would
# break it.
_OPEN_STDLIB = frozenset({"argparse", "collections", "types"})
_OPEN_TORCH = (torch.nn.Module, torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler)
_LAZY = (torch.nn.UninitializedParameter, torch.nn.UninitializedBuffer)
_CLOSED = (
    functools.partial,
    torch.jit.ScriptModule,
    threading.Thread,
    concurrent.futures.Executor,
    multiprocessing.process.BaseProcess,
    types.FunctionType,
    types.ModuleType,
    type,
)


class Contents:
    """The contents of some values at this moment, at any depth; they can be put back later, into the same containers.

    Followed are dicts, lists, tuples, sets, deques, their subclasses, modules, and the attributes of tensors and of
    objects of the user's own classes. Subclasses may mirror, check or forbid what is set: their methods are not called.
    Attributes that cannot be read are left alone. Without `hooks`, the tables of modules' hooks are left out: they are
    most of what a large model holds.
    """

    def __init__(self, *values: object, hooks: bool = True) -> None:
        self._hooks = hooks
        self.tensors: list[torch.Tensor] = []
        self.arrays: list[Any] = []
        self.generators: list[Any] = []
        self.iterators: list[Any] = []
        self._containers: list[tuple[Any, _Access, list[Any]]] = []
        self._empty: list[Any] = []  # further containers, which hold nothing
        # Every value seen is held by one of these, so no id is given twice.
        self._values = values
        self._kinds: dict[int, _Kind] = {}  # by the type's id
        pending = list(reversed(values))
        seen: set[int] = set()
        while pending:
            value = pending.pop()
            if id(type(value)) in _PLAIN or id(value) in seen:
                continue
            seen.add(id(value))
            if id(type(value)) in _OFTEN_EMPTY and not gc.get_referents(value):
                self._empty.append(value)
                continue
            with contextlib.suppress(Exception):
                pending.extend(reversed(self._look_into(value)))

    def _look_into(self, value: Any) -> list[Any]:
        """Record the value by its kind, and return the values that it holds."""
        kind = self._kinds.get(id(type(value)))
        if kind is None:
            kind = self._kinds[id(type(value))] = _Kind(type(value))
        found = self._remember(value, kind.container) if kind.container else []
        if kind.noted_in:
            getattr(self, kind.noted_in).append(value)
        if kind.parts:
            found = kind.parts(value)
        if kind.open:
            found += self._attributes(value, kind)
        if kind.may_iterate and not found:
            self.iterators.append(value)
        return found

    def _remember(self, container: Any, access: _Access) -> list[Any]:
        items = access.read(container)
        self._containers.append((container, access, items))
        return items.copy()

    def _attributes(self, value: Any, kind: _Kind) -> list[Any]:
        found: list[Any] = []
        if kind.namespace:
            found.append(kind.namespace.__get__(value))
        if not self._hooks and issubclass(type(value), torch.nn.Module):
            names = self._remember(found.pop(), _NAMED)
            found = [item for name, item in zip(names[::2], names[1::2], strict=True) if name not in _HOOK_TABLES]
        return [*found, *self._remember(value, kind.slots)] if kind.slots else found

    @contextlib.contextmanager
    def replaced(self, substitutes: dict[int, Any]) -> Iterator[None]:
        """Put substitutes, by the ids of values, into all containers, which get everything back at the end."""
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
        if gc.get_referents(*self._empty):  # asked of all at once
            for container in filter(gc.get_referents, self._empty):
                _make_empty(container)


def is_tensor(value: object) -> bool:
    """Return True when the value is a tensor, whatever class it claims."""
    return issubclass(type(value), torch.Tensor)


def without_torch_function(read: Callable[..., T], *args: Any) -> T:
    """Return ``read(*args)``, which no subclass of torch.Tensor intercepts.

    A `with` of torch's DisableTorchFunctionSubclass does the same, but stays in force where a debugger or a tracer
    raises as the `with` ends.
    """
    return cast("T", torch._C._disabled_torch_function_impl(read, (), args, {}))


def is_lazy(tensor: torch.Tensor) -> bool:
    """Return True when the tensor gets its sizes later."""
    return issubclass(type(tensor), _LAZY)


def tensors_in(value: object) -> list[torch.Tensor]:
    """Return every tensor within reach of the value."""
    return Contents(value).tensors


def used_by(function: object) -> list[Any]:
    """Return the values that a function, and the user's functions among these, name: all they reach but arguments.

    For anything but a function, return a list of the thing itself.
    """
    if type(function) is not types.FunctionType:
        return [function]
    return [value for each in _functions_of(function) for _, value in _named_by(each)]


def tensors_named_by(function: object) -> list[tuple[str, torch.Tensor]]:
    """Return the tensors that a function, or a user's function that it names, names itself, with their names."""
    functions = _functions_of(function) if type(function) is types.FunctionType else []
    return [(name, value) for each in functions for name, value in _named_by(each) if is_tensor(value)]


def _functions_of(function: types.FunctionType) -> list[types.FunctionType]:
    """Return the function, and the user's functions that it and these name."""
    found: dict[int, types.FunctionType] = {}
    pending = [function]
    while pending:
        current = pending.pop()
        if id(current) in found:
            continue
        found[id(current)] = current
        pending += [v for _, v in _named_by(current) if type(v) is types.FunctionType and not _is_library(v.__module__)]
    return list(found.values())


def _named_by(function: types.FunctionType) -> list[tuple[str, Any]]:
    """Return the values of the function's closure, and the globals that it names."""
    try:
        names = inspect.getclosurevars(function)
    except ValueError:  # a variable of its closure has no value yet
        return []
    return [*names.nonlocals.items(), *names.globals.items()]


# ---- containers, read and put back without a call to their class's own methods


@dataclass(frozen=True)
class _Access:
    """The ways to read a container's items as a list, and to put such a list back."""

    read: Callable[[Any], list[Any]]
    put: Callable[[Any, list[Any]], None]


def _access(kind: Any, add: Callable[[Any, list[Any]], None]) -> _Access:
    def put(target: Any, items: list[Any]) -> None:
        kind.clear(target)
        add(target, items)

    return _Access(lambda source: [*kind.__iter__(source)], put)


def _dict_access(kind: type[dict[Any, Any]]) -> _Access:
    """Return the access to keys and values in turn: an OrderedDict has its own order, so ``kind`` must write both."""

    def read(source: Any) -> list[Any]:
        return [*itertools.chain.from_iterable(kind.items(source))]

    def put(target: Any, items: list[Any]) -> None:
        kind.clear(target)
        for key, value in zip(items[::2], items[1::2], strict=True):
            kind.__setitem__(target, key, value)

    return _Access(read, put)


_CONTAINERS: list[tuple[type, _Access]] = [
    (collections.OrderedDict, _dict_access(collections.OrderedDict)),
    (dict, _dict_access(dict)),
    (list, _access(list, list.extend)),
    (set, _access(set, set.update)),
    (collections.deque, _access(collections.deque, collections.deque.extend)),
]

_NAMED = _dict_access(dict)

_HOOK_TABLES = frozenset(vars(torch.nn.Module())) - {"_parameters", "_buffers", "_modules"}

_Slots = list[types.MemberDescriptorType]
_UNSET = object()


def _slots_access(slots: _Slots) -> _Access:
    """Return the access straight to the attributes, as a frozen dataclass forbids setattr."""

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


# Most containers of modules hold nothing, which C tells by these types: no referents, not even a dict of attributes.
_OFTEN_EMPTY = frozenset(map(id, (dict, collections.OrderedDict, list, set)))


def _make_empty(container: Any) -> None:
    """Take everything out of a container of one of these types, its attributes too."""
    kind = _Kind(type(container))
    if kind.container:
        kind.container.put(container, [])
    if kind.namespace:
        dict.clear(kind.namespace.__get__(container))


# ---- kinds of values

_mro_of = type.__dict__["__mro__"].__get__
_namespace_of = type.__dict__["__dict__"].__get__
_module_of = type.__dict__["__module__"].__get__


class _Kind:
    """The treatment of values of a type."""

    def __init__(self, kind: type) -> None:
        namespaces = [_namespace_of(base) for base in _mro_of(kind)]
        self.container = next((access for base, access in _CONTAINERS if issubclass(kind, base)), None)
        self.parts = None if self.container else next((read for base, read in _HOLDERS if issubclass(kind, base)), None)
        noted = {"tensors": (torch.Tensor,), "generators": _generators(), "arrays": _arrays()}
        self.noted_in = next((name for name, bases in noted.items() if issubclass(kind, bases)), "")
        self.open = bool(self.container) or _is_open(kind)
        self.may_iterate = not self.container and not self.parts and any("__next__" in each for each in namespaces)
        found = next((each["__dict__"] for each in namespaces if type(each.get("__dict__")) in _ATTRIBUTES), None)
        self.namespace = found if self.open else None
        slots = [
            slot
            for each in namespaces
            if "__slots__" in each
            for slot in each.values()
            if type(slot) is types.MemberDescriptorType
        ]
        self.slots = _slots_access(slots) if slots and self.open else None


_ATTRIBUTES = (types.GetSetDescriptorType, types.MemberDescriptorType)  # what gives a value's attributes


def _gradient_in(tensor: torch.Tensor) -> list[Any]:
    gradient = _C.gradient_of(tensor)
    return [] if gradient is None else [gradient]


# These types hold values but cannot be changed themselves; each comes with the function that reads them.
_HOLDERS: list[tuple[type, Callable[[Any], list[Any]]]] = [
    (torch.Tensor, _gradient_in),
    (tuple, lambda value: [*tuple.__iter__(value)]),
    (frozenset, lambda value: [*frozenset.__iter__(value)]),
    (types.MethodType, lambda value: [value.__self__]),
    (
        functools.partial,
        lambda value: [_namespace_of(functools.partial)[name].__get__(value) for name in ("func", "args", "keywords")],
    ),
    # Its own containers are compiled.
    (torch.jit.ScriptModule, lambda value: [*value.parameters(), *value.buffers()]),
]


def _generators() -> tuple[type, ...]:
    numpy = sys.modules.get("numpy.random")
    return (torch.Generator, random.Random, *((numpy.Generator, numpy.RandomState) if numpy else ()))


def _arrays() -> tuple[type, ...]:
    numpy = sys.modules.get("numpy")
    return (numpy.ndarray,) if numpy else ()


def _is_open(kind: type) -> bool:
    """Return True when the attributes of such values are the user's own data, or parts of tensors."""
    if issubclass(kind, _CLOSED):
        return False
    return issubclass(kind, (*_OPEN_TORCH, torch.Tensor)) or not _is_library(_module_of(kind))


def _is_library(module: object) -> bool:
    package = module.partition(".")[0] if type(module) is str else ""
    return package in {"torch", "roofprof"} or (package in sys.stdlib_module_names and package not in _OPEN_STDLIB)
