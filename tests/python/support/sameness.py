"""Whether two states are the same, bit by bit, and how a profile may have been made."""

from __future__ import annotations

import collections
import random
from typing import Any

import numpy as np
import torch
from given_roofs import profiler
from torch import nn
from torch.nn.modules import module as nn_module
from torch.optim import optimizer as torch_optimizer

import roofprof


def difference(a: Any, b: Any, place: str = "", seen: set | None = None) -> str | None:
    """Where the two differ, however deep; None where they do not."""
    seen = set() if seen is None else seen
    if (id(a), id(b)) in seen:
        return None
    seen.add((id(a), id(b)))
    if type(a).__name__ != type(b).__name__:  # parametrizations make a class for each module
        return f"{place}: {type(a).__name__} is not {type(b).__name__}"
    if isinstance(a, torch.Tensor):
        return tensor_difference(a, b, place)
    for pairs in inner_values(a, b, place):
        if len(pairs[0]) != len(pairs[1]):
            return f"{place}: {len(pairs[0])} is not {len(pairs[1])} values"
        for (key, left), (_, right) in zip(*pairs, strict=True):
            found = difference(left, right, f"{place}.{key}", seen)
            if found:
                return found
    return None if plain_value(a) == plain_value(b) else f"{place}: {a} is not {b}"


def plain_value(value: Any) -> Any:
    """What a value without parts is."""
    if isinstance(value, np.ndarray):
        return (value.dtype, value.shape, value.tobytes())
    if isinstance(value, torch.Generator):
        return value.get_state().tolist()
    if isinstance(value, random.Random):
        return value.getstate()
    if isinstance(value, np.random.Generator):
        return str(value.bit_generator.state)
    return value if isinstance(value, (int, float, str, bool)) else None


def tensor_difference(a: torch.Tensor, b: torch.Tensor, place: str) -> str | None:
    for name in ("dtype", "shape", "requires_grad", "is_leaf", "layout"):
        if getattr(a, name) != getattr(b, name):
            return f"{place}.{name}: {getattr(a, name)} is not {getattr(b, name)}"
    if not nn.parameter.is_lazy(a) and a.detach().numpy().tobytes() != b.detach().numpy().tobytes():
        return f"{place}: other values"
    if a.is_leaf and (a.grad is None) != (b.grad is None):
        return f"{place}.grad: {a.grad} is not {b.grad}"
    return tensor_difference(a.grad, b.grad, f"{place}.grad") if a.is_leaf and a.grad is not None else None


def inner_values(a: Any, b: Any, place: str):
    if isinstance(a, dict):
        if not place.endswith("hooks"):  # whose keys are numbers that torch gives out once
            yield list(enumerate(a)), list(enumerate(b))
        yield list(a.items()), list(b.items())
    elif isinstance(a, (list, tuple, collections.deque)):
        yield list(enumerate(a)), list(enumerate(b))
    elif isinstance(a, (set, frozenset)):
        yield [(item, item) for item in sorted(a)], [(item, item) for item in sorted(b)]
    if hasattr(a, "__dict__") and type(a).__module__ != "builtins" and not isinstance(a, type):
        yield list(vars(a).items()), list(vars(b).items())
    for name in getattr(type(a), "__slots__", ()):
        if isinstance(name, str):
            yield [(name, getattr(a, name, "unset"))], [(name, getattr(b, name, "unset"))]


def generators() -> dict[str, Any]:
    return {"torch": torch.get_rng_state(), "python": random.getstate(), "numpy": np.random.get_state()}  # noqa: NPY002


def seed() -> None:
    torch.manual_seed(11)
    random.seed(12)
    np.random.seed(13)  # noqa: NPY002


def by_block(model, args, kwargs):
    with profiler(model) as prof:
        model(*args, **kwargs)
    return prof.report()


WAYS = {
    "run": lambda model, args, kwargs: profiler(model, warmup=2, repeat=3).run(*args, **kwargs),
    "count": lambda model, args, kwargs: roofprof.count(model, *args, **kwargs),
    "block": by_block,
}


def global_hooks() -> list[int]:
    tables = [getattr(nn_module, name) for name in dir(nn_module) if name.startswith("_global_") and "hooks" in name]
    tables += [getattr(torch_optimizer, name) for name in dir(torch_optimizer) if name.startswith("_global_optimizer")]
    return [len(table) for table in tables if isinstance(table, dict)]


def assert_nothing_observes():
    """No hook is left, a new profiler can start, and torch's own profiler sees every op."""
    assert set(global_hooks()) == {0}
    fc = nn.Linear(8, 4)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as prof:
        fc(torch.ones(2, 8))
    assert {"aten::linear", "aten::addmm", "aten::t"} <= {event.key for event in prof.key_averages()}
    assert roofprof.count(fc, torch.ones(2, 8)).total.macs == 64
