"""What is within reach of a call, and how containers are put back."""

from __future__ import annotations

import collections
import enum
import io
import itertools
import random
import threading
from dataclasses import dataclass, field, make_dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import nn

from roofprof.state.state_roots import Contents, tensors_in, used_by


def tensor() -> torch.Tensor:
    return torch.ones(1)


@dataclass
class Plain:
    items: list = field(default_factory=list)
    more: Any = None


Frozen = make_dataclass("Frozen", [("items", list), ("more", Any, None)], frozen=True)
Slotted = make_dataclass("Slotted", [("items", list), ("more", Any, None)], slots=True)


class Guarded:
    """Attributes behind properties and a __setattr__ that refuses."""

    def __init__(self):
        vars(self).update(_items=[])

    def __setattr__(self, name, value):
        raise AssertionError

    @property
    def items(self):
        raise AssertionError


class Point(NamedTuple):
    x: Any
    y: Any


class Colour(enum.Enum):
    RED = 1


# ---- what is found


@pytest.mark.parametrize(
    "hold",
    [
        lambda t: [t],
        lambda t: {"a": {"b": [t]}},
        lambda t: {t: 1},
        lambda t: frozenset({t}),
        lambda t: collections.deque([t]),
        lambda t: collections.UserList([t]),
        lambda t: collections.ChainMap({"a": t}),
        lambda t: Point(1, t),
        lambda t: Frozen([t]),
        lambda t: Slotted([t]),
        lambda t: nn.utils.rnn.PackedSequence(t, torch.ones(1, dtype=torch.int64)),
        lambda t: torch.return_types.max((t, torch.zeros(1))),
        lambda t: partial(print, more=[t]),
    ],
)
def test_tensors_are_found_wherever_they_are(hold):
    wanted = tensor()
    assert any(found is wanted for found in tensors_in(hold(wanted)))


def test_module_attributes_parameters_buffers_and_gradients_are_found():
    model = nn.BatchNorm1d(3)
    model.weight.grad = torch.ones(3)
    model.cache = [tensor()]
    found = {id(each) for each in tensors_in([model])}
    wanted = [*model.parameters(), *model.buffers(), model.weight.grad, *model.cache]
    assert found == {id(each) for each in wanted}


def test_generators_arrays_and_iterators_are_found():
    drawn = [torch.Generator(), random.Random(1), np.random.default_rng(1), np.random.RandomState(1)]
    arrays = [np.zeros(3)]
    once = [iter([1]), iter({}), io.StringIO("a"), (each for each in ()), map(str, []), itertools.count()]
    contents = Contents(drawn, arrays, once, "text", range(3), b"bytes")
    assert contents.generators == drawn
    assert contents.arrays[0] is arrays[0]
    assert contents.iterators == once


def test_what_is_not_looked_into():
    class Worker(threading.Thread):
        def __init__(self):
            super().__init__()
            self.held = tensor()

    held = tensor()
    for value in (Worker(), threading, tensor, Plain, torch.float32, Colour, lambda: held, threading.local()):
        assert tensors_in(value) == []


def test_loops_and_depth():
    loop: list[Any] = [tensor()]
    loop.append({"self": (loop,)})
    assert len(tensors_in(loop)) == 1
    deep: list[Any] = [tensor()]
    for _ in range(5_000):
        deep = [deep]
    assert len(tensors_in(deep)) == 1
    while deep:  # taken apart by hand: the interpreter would recurse
        deep = deep[0] if isinstance(deep[0], list) else []


GLOBAL = nn.Linear(1, 1)


def test_what_a_function_uses():
    local, empty = tensor(), None

    def function():
        return local, GLOBAL.weight

    assert {id(each) for each in used_by(function)} >= {id(local), id(GLOBAL)}
    assert used_by(GLOBAL) == [GLOBAL]
    assert used_by(len) == [len]

    def unfinished():
        return later, empty

    assert used_by(unfinished) == []
    later = 1
    assert sorted(used_by(unfinished), key=str) == [1, None]


# ---- how it is put back


DICTS = [
    dict,
    collections.OrderedDict,
    collections.UserDict,
    collections.Counter,
    partial(collections.defaultdict, list),
]
SEQUENCES = [list, collections.deque, collections.UserList, partial(collections.deque, maxlen=3)]


def changed(make, change):
    """The value after a change and its undoing, beside what it was."""
    value = make()
    contents = Contents(value)
    change(value)
    contents.restore()
    return value


WITH_KEYS = [
    lambda d: d.clear(),
    lambda d: d.update(z=1, a=9),
    lambda d: d["b"].append(3),
    lambda d: d.update(b=[1, 2]),
    lambda d: d.update(a=d.pop("a")),
]
IN_ORDER = [
    lambda v: v.clear(),
    lambda v: v.append(1),
    lambda v: v.reverse(),
    lambda v: v[1].append(2),
    lambda v: v.extend([4, 5]),  # out of a full deque falls something
]


@pytest.mark.parametrize(
    ("make", "changes"),
    [
        *((lambda kind=kind: kind({"a": 1, "b": [1, 2], "c": (1, [2])}), WITH_KEYS) for kind in DICTS),
        *((lambda kind=kind: kind([1, [2], 3]), IN_ORDER) for kind in SEQUENCES),
        (lambda: {1, 2, 3}, [lambda v: (v.add(4), v.discard(1))]),
        (lambda: collections.OrderedDict(a=1, b=2, c=3), [lambda d: d.move_to_end("a")]),
    ],
)
def test_containers(make, changes):
    for change in changes:
        value = changed(make, change)
        assert value == make()
        assert list(value) == list(make())


@pytest.mark.parametrize("kind", [Plain, Frozen, Slotted])
def test_dataclasses(kind):
    def change(value):
        value.items.append(1)
        object.__setattr__(value, "more", "other")

    value = changed(lambda: kind([0], "same"), change)
    assert (value.items, value.more) == ([0], "same")
    value = changed(lambda: kind([0], "same"), lambda v: object.__delattr__(v, "more"))
    assert value.more == "same"


class Base:
    __slots__ = ("__weakref__", "a")


class Derived(Base):
    __slots__ = ("b", "late")

    def __init__(self):
        self.a, self.b = 1, [2]


def test_slots():
    value = changed(Derived, lambda v: (setattr(v, "a", 3), v.b.append(4), setattr(v, "late", 1)))
    assert (value.a, value.b) == (1, [2])
    assert not hasattr(value, "late")


def test_attributes_behind_guards():
    value = changed(Guarded, lambda v: (vars(v)["_items"].append(1), vars(v).update(new=1)))
    assert vars(value) == {"_items": []}


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["dict"].update(a=1),
        lambda d: (setattr(d["ordered"], "note", 1), d["ordered"].update(a=1), d["list"].append(None)),
        lambda d: (d["list"].append([]), d["set"].add(0), d["deque"].append(0)),
        lambda d: d.update(list=[]),
    ],
)
def test_what_was_empty_is_empty_again(change):
    kinds = {"dict": dict, "ordered": collections.OrderedDict, "list": list, "set": set, "deque": collections.deque}
    held = {name: kind() for name, kind in kinds.items()}
    value = changed(lambda: dict(held), change)
    assert all(value[name] is each and not each for name, each in held.items())
    assert vars(held["ordered"]) == {}


def test_the_same_container_in_two_places_stays_one_and_equal_is_not_the_same():
    shared, a = [1], torch.ones(2)
    value = {"a": shared, "b": [shared], "c": a}
    contents = Contents(value)
    value.update(a=[1], c=torch.ones(2))
    shared.append(2)
    contents.restore()
    assert value["a"] is value["b"][0] is shared
    assert value["c"] is a
    assert shared == [1]


def test_unchanged_containers_are_not_touched():
    value = {"a": [1, 2]}
    contents = Contents(value)
    walk = iter(value)
    next(walk)
    contents.restore()
    assert list(walk) == []  # "dictionary changed size during iteration" otherwise
