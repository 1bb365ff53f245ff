"""Models that leave something behind: in themselves, in their inputs, in the process."""

from __future__ import annotations

import collections
import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from sameness import generators, seed
from torch import nn


class Trained(nn.Module):
    """Batch norm, dropout, and draws from every generator."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.drop = nn.Dropout(0.5)

    def forward(self, image):
        noise = random.random() + np.random.rand()  # noqa: NPY002
        return self.drop(self.norm(self.conv(image))) * noise


class Counts(nn.Module):
    """Plain attributes of every kind."""

    def __init__(self):
        super().__init__()
        self.calls = 0
        self.flag = False
        self.history = []
        self.by_name = {"deep": {"list": [0]}}
        self.names = {"a"}
        self.window = collections.deque(maxlen=3)
        self.counter = collections.Counter()
        self.table = collections.defaultdict(list)
        self.order = collections.OrderedDict(a=1, b=2, c=3)
        self.weight = nn.Parameter(torch.ones(3))

    def forward(self, value):
        self.calls += 1
        self.flag = not self.flag
        self.history.append(value.sum().item())
        self.by_name["deep"]["list"].append(self.calls)
        self.by_name[f"call {self.calls}"] = self.calls
        self.names.add(f"call {self.calls}")
        self.window.append(self.calls)
        self.counter["calls"] += 1
        self.table["calls"].append(self.calls)
        self.order.move_to_end("a" if self.calls % 2 else "b")
        setattr(self, f"new_{self.calls}", self.calls)
        return value * self.weight


@dataclass
class Cache:
    keys: list[torch.Tensor] = field(default_factory=list)
    length: int = 0


class Caches(nn.Module):
    """A cache that grows and one that is written in place, as attributes."""

    def __init__(self):
        super().__init__()
        self.grown = torch.zeros(0, 3)
        self.static = torch.zeros(8, 3)
        self.place = 0
        self.cache = Cache()

    def forward(self, value):
        self.grown = torch.cat([self.grown, value])
        self.static[self.place] = value[0]
        self.place = (self.place + 1) % 8
        self.cache.keys.append(value + 1)
        self.cache.length += 1
        return self.static.sum()


class Buffers(nn.Module):
    """Buffers written, replaced, added; written in a way that torch does not see."""

    def __init__(self):
        super().__init__()
        self.register_buffer("written", torch.zeros(3))
        self.register_buffer("replaced", torch.zeros(3))
        self.register_buffer("unseen", torch.zeros(3))
        self.register_buffer("empty", None)

    def forward(self, value):
        self.written += value[0]
        self.replaced = self.replaced + 1
        self.unseen.data.add_(1)
        if self.empty is None:
            self.empty = torch.zeros(3)
        self.empty += 1
        return value + self.written


class Weights(nn.Module):
    """Parameters that move while the model runs, as a momentum encoder's do."""

    def __init__(self):
        super().__init__()
        self.online = nn.Parameter(torch.ones(3))
        self.in_place = nn.Parameter(torch.zeros(3))
        self.by_data = nn.Parameter(torch.zeros(3), requires_grad=False)
        self.data_replaced = nn.Parameter(torch.zeros(3))
        self.replaced = nn.Parameter(torch.zeros(3))
        self.frozen = nn.Parameter(torch.zeros(3))

    def forward(self, value):
        with torch.no_grad():
            self.in_place.mul_(0.9).add_(self.online)
        self.by_data.data.mul_(0.9).add_(0.1)
        self.data_replaced.data = self.data_replaced.data * 0.9 + 0.1
        self.replaced = nn.Parameter(self.replaced.detach() + 1)
        self.frozen.requires_grad_(not self.frozen.requires_grad)
        return value * self.online


class Gradients(nn.Module):
    """A model that runs its own backward: gradients made, and added to."""

    def __init__(self):
        super().__init__()
        self.fresh = nn.Parameter(torch.ones(3))
        self.added = nn.Parameter(torch.ones(3))
        self.added.grad = torch.ones(3)

    def forward(self, value):
        (value * self.fresh * self.added).sum().backward()


class Adapts(nn.Module):
    """A model that steps an optimizer of its own."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)
        self.optimizer = torch.optim.Adam(self.parameters(), lr=0.1)

    def forward(self, value):
        self.optimizer.zero_grad()
        self.fc(value).sum().backward()
        self.optimizer.step()


class Flips(nn.Module):
    """Training flags and hooks that change with every call."""

    def __init__(self):
        super().__init__()
        self.child = nn.Sequential(nn.Linear(3, 3))

    def forward(self, value):
        self.child.train(not self.child.training)
        hooks = self.child[0]._forward_hooks
        hooks[len(hooks)] = print_nothing  # register_forward_hook would give it a number of its own in every model
        self.child.append(nn.Identity())
        return self.child(value)


def print_nothing(*_):
    return None


class OwnGenerators(nn.Module):
    def __init__(self):
        super().__init__()
        self.torch = torch.Generator().manual_seed(1)
        self.python = random.Random(2)
        self.numpy = np.random.default_rng(3)

    def forward(self, value, generator):
        drawn = torch.rand(3, generator=self.torch) + torch.rand(3, generator=generator)
        return value * drawn * self.python.random() * self.numpy.random()


class Consumes(nn.Module):
    """Takes apart what it is given."""

    def forward(self, batch, rows, *, more):
        image = batch.pop("image")
        batch["seen"] = batch.get("seen", 0) + 1
        batch["nested"]["list"].append(len(batch))
        del batch["nested"]["other"]
        rows.reverse()
        rows.pop()
        more.items.clear()
        more.count += 1
        return image * 2


@dataclass(frozen=True, slots=True)
class Frozen:
    items: list[int]
    more: dict[str, Any]


class SlotsOnly:
    __slots__ = ("never", "value")

    def __init__(self):
        self.value = 0


class More:
    def __init__(self):
        self.items = [1, 2]
        self.count = 0


class ConsumesFrozen(nn.Module):
    def forward(self, frozen, slots, queue, ordered):
        frozen.items.append(1)
        frozen.more["new"] = [1]
        slots.value += 1
        slots.never = slots.value
        queue.popleft()
        ordered.move_to_end("a")
        ordered["d"] = frozen
        return torch.ones(3) + 1


class WritesInputs(nn.Module):
    def forward(self, value, view, array, index):
        value.add_(1)
        view[0].mul_(2)
        array += 1
        index += 1
        return value.sum()


class InputGradients(nn.Module):
    def forward(self, value):
        (value * 3).sum().backward()


class Autocasts(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def forward(self, value):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return self.fc(value)


class LeavesGradModeOff(nn.Module):
    def forward(self, value):
        torch.set_grad_enabled(not torch.is_grad_enabled())
        return value + 1


def parametrized():
    fc = nn.Linear(3, 3)
    nn.utils.parametrizations.spectral_norm(fc)
    other = nn.Linear(3, 3)
    nn.utils.parametrizations.weight_norm(other)
    return nn.Sequential(fc, other)


def consumed():
    batch = {"image": torch.ones(3), "nested": {"list": [1], "other": None}}
    return (batch, [1, 2, 3]), {"more": More()}


def frozen_inputs():
    ordered = collections.OrderedDict(a=1, b=2)
    return (Frozen([1], {}), SlotsOnly(), collections.deque([1, 2, 3, 4] * 10, maxlen=50), ordered), {}


def written_inputs():
    return (torch.ones(3), torch.ones(6)[2:5], np.zeros(3), torch.zeros(2, dtype=torch.int64)), {}


def value():
    return (torch.full((1, 3), 0.5),), {}


CASES = {
    "batch norm and dropout": (Trained, lambda: ((torch.ones(2, 3, 8, 8),), {})),
    "plain attributes": (Counts, value),
    "caches": (Caches, value),
    "buffers": (Buffers, value),
    "parameters": (Weights, value),
    "gradients": (Gradients, value),
    "own optimizer": (Adapts, value),
    "flags, hooks, children": (Flips, value),
    "own generators": (OwnGenerators, lambda: ((torch.ones(3), torch.Generator().manual_seed(4)), {})),
    "consumed inputs": (Consumes, consumed),
    "consumed frozen inputs": (ConsumesFrozen, frozen_inputs),
    "inputs written in place": (WritesInputs, written_inputs),
    "gradients of inputs": (InputGradients, lambda: ((torch.ones(3, requires_grad=True),), {})),
    "autocast inside": (Autocasts, value),
    "parametrizations": (parametrized, value),
    "lazy": (lambda: nn.Sequential(nn.LazyLinear(4), nn.LazyBatchNorm1d()), lambda: ((torch.rand(5, 3),), {})),
    "scripted": (lambda: torch.jit.trace(nn.BatchNorm1d(3), torch.rand(4, 3)), lambda: ((torch.rand(5, 3),), {})),
}


def state_after(case: str, call) -> dict[str, Any]:
    """Everything, after ``call(model, args, kwargs)`` of a new model with new inputs."""
    make_model, make_inputs = CASES[case]
    seed()
    model = make_model()
    args, kwargs = make_inputs()
    seed()
    call(model, args, kwargs)
    return {
        "model": model,
        "state_dict": dict(model.state_dict()),
        "inputs": (args, kwargs),
        "generators": generators(),
    }
