"""Values within reach of a call that refuse to be read: none of their code runs, and they are left alone."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from given_roofs import profiler
from torch import nn

import roofprof
from roofprof.state.state_roots import Contents

_CALLED: list[str] = []


def refuse(*_: object, **__: object):
    _CALLED.append("called")
    raise RuntimeError("do not ask")


METHODS = [
    *("__len__", "__iter__", "__getitem__", "__contains__", "__eq__", "__hash__", "__bool__", "__repr__", "__str__"),
    *("items", "keys", "values", "copy", "__reversed__", "__getattr__", "__call__", "__next__", "__array__"),
]
BODY = dict.fromkeys(METHODS, refuse) | {"__class__": property(refuse), "__dict__": property(refuse)}


class Meta(type):
    __getattribute__ = __hash__ = __eq__ = __instancecheck__ = __subclasscheck__ = refuse


def refusing(kind: type, *args: object) -> object:
    """A value of a subclass, every method of which raises."""
    held = type("Refusing", (kind,), BODY)
    if kind is tuple:
        return kind.__new__(held, *args)
    made = kind.__new__(held)
    kind.__init__(made, *args)
    return made


def of_refusing_class() -> object:
    return type.__call__(Meta("Refusing", (), {}))


class RefusingTensor(torch.Tensor):
    """Attributes and functions of torch raise."""

    @classmethod
    def __torch_function__(cls, *_: object, **__: object):
        refuse()

    def __getattribute__(self, name: str):
        refuse()


class RefusingWrapper(torch.Tensor):
    """Operators raise, and so do sizes and device."""

    @staticmethod
    def __new__(cls):
        return torch.Tensor._make_wrapper_subclass(
            cls, (3,), dispatch_sizes_strides_policy="sizes", dispatch_device=True
        )

    @classmethod
    def __torch_dispatch__(cls, *_: object, **__: object):
        refuse()


def stale_view() -> torch.Tensor:
    """Whether it is a leaf cannot be asked: its base was written in place, without grad mode."""
    base = torch.zeros(4, requires_grad=True)
    part, _ = base.split(2)
    with torch.no_grad():
        base.zero_()
    with pytest.raises(RuntimeError):
        _ = part.is_leaf
    return part


def leaked() -> torch.Tensor:
    kept = []
    torch.func.vmap(lambda value: (kept.append(value), value)[1])(torch.ones(3))
    return kept[0]


class Proxy:
    """It says that it is a tensor."""

    __class__ = property(lambda _: torch.Tensor)


class RefusingArray(np.ndarray):
    __setitem__ = __getitem__ = copy = __len__ = __iter__ = __eq__ = __bool__ = refuse
    nbytes = flags = property(refuse)


VALUES = {
    "tuple": lambda: refusing(tuple, (1, [2])),
    "dict": lambda: refusing(dict, {"a": [1]}),
    "list": lambda: refusing(list, [1, [2]]),
    "set": lambda: refusing(set, {1, 2}),
    "object": lambda: refusing(object),
    "class of its own kind": of_refusing_class,
    "tensor": lambda: torch.ones(3).as_subclass(RefusingTensor),
    "wrapper": RefusingWrapper,
    "stale view": stale_view,
    "leaked from vmap": leaked,
    "proxy of a tensor": Proxy,
    "array": lambda: np.ndarray.__new__(RefusingArray, (2,)),
    "system's random numbers": random.SystemRandom,
}


def value_of(name: str) -> object:
    value = VALUES[name]()
    _CALLED.clear()
    return value


@pytest.mark.parametrize("name", VALUES)
def test_nothing_is_requested_and_the_rest_is_found(name):
    value = value_of(name)
    wanted = torch.ones(1)
    contents = Contents([value, wanted, {"deep": value}])
    assert any(found is wanted for found in contents.tensors)
    contents.restore()
    assert _CALLED == []


@pytest.mark.parametrize("name", ["tuple", "dict", "list"])
def test_what_they_hold_is_found_and_put_back_by_the_way_of_their_base(name):
    wanted = torch.ones(1)
    held = {"tuple": (wanted,), "list": [wanted], "dict": {"a": wanted}}[name]
    kind, value = type(held), refusing(type(held), held)
    contents = Contents(value)
    assert [found is wanted for found in contents.tensors] == [True]
    if kind is not tuple:
        kind.clear(value)
        contents.restore()
        assert kind.__len__(value) == 1


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("where", ["attribute", "argument", "output", "closure"])
def test_a_profile_takes_them_as_a_plain_call_does(name, where):
    value = value_of(name)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(8, 4)
            if where == "attribute":
                object.__getattribute__(self, "__dict__")["held"] = value

        def forward(self, x, *_):
            return (self.fc(x), value) if where == "output" else self.fc(x)

    model, x = Model(), torch.ones(2, 8)
    given = (x, value) if where == "argument" else (x,)
    call = (lambda x: (value, model(x))[1]) if where == "closure" else model
    for way in (roofprof.count, lambda call, *args: profiler(call, repeat=1).run(*args)):
        report = way(call, *given)
        assert report.total.macs == 2 * 8 * 4
    # A report has the sizes of inputs and outputs: a class that answers for its sizes is asked, and may refuse.
    assert _CALLED == [] or (name == "wrapper" and where in {"argument", "output"})


def test_parameters_that_refuse_are_left_out_of_sizes():
    model = nn.Linear(8, 4)
    model.register_parameter("odd", nn.Parameter(torch.ones(3)))
    model._parameters["odd"] = torch.ones(3).as_subclass(RefusingTensor)
    _CALLED.clear()
    report = profiler(model, repeat=1).run(torch.ones(2, 8))
    assert report.total.params == 8 * 4 + 4 + 3
    assert _CALLED == []


def test_tensors_inside_of_wrappers_are_put_back():
    """What a wrapper holds is kept by itself: its own operators are not called."""

    class Scaled(torch.Tensor):
        @staticmethod
        def __new__(cls, inner):
            return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

        def __init__(self, inner):
            self.inner = inner

        @classmethod
        def __torch_dispatch__(cls, *_: object, **__: object):
            refuse()

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.scaled = Scaled(torch.zeros(3))

        def forward(self, x):
            self.scaled.inner.add_(1)
            return x + self.scaled.inner

    model = Model()
    report = profiler(model, repeat=2).run(torch.ones(3))
    assert torch.equal(model.scaled.inner, torch.ones(3))
    assert report.coverage.notes == []
