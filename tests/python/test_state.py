"""A profile leaves everything as ONE plain call leaves it, bit by bit."""

from __future__ import annotations

import collections
import queue
import random
import sys
import traceback
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch
from given_roofs import profiler, roofs
from torch import nn
from torch.nn.modules import module as nn_module
from torch.optim import optimizer as torch_optimizer

import roofprof

# ---- the same, bit by bit


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


# ---- models that leave something behind


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


def by_block(model, args, kwargs):
    with profiler(model) as prof:
        model(*args, **kwargs)
    return prof.report()


WAYS = {
    "run": lambda model, args, kwargs: profiler(model, warmup=2, repeat=3).run(*args, **kwargs),
    "count": lambda model, args, kwargs: roofprof.count(model, *args, **kwargs),
    "block": by_block,
}


def made(case: str):
    model, inputs = CASES[case]
    seed()
    return model(), *inputs()


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


def once(model, args, kwargs):
    model(*args, **kwargs)


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::torch.jit.TracerWarning")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", CASES)
def test_all_is_as_one_plain_call_leaves_it(case, way):
    def profiled(model, args, kwargs):
        report = WAYS[way](model, args, kwargs)
        assert not any("not as it left them" in note for note in report.coverage.notes)

    assert difference(state_after(case, profiled), state_after(case, once)) is None


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::torch.jit.TracerWarning")
@pytest.mark.parametrize("case", sorted(set(CASES) - {"autocast inside", "consumed inputs"}))
def test_the_comparison_tells_one_call_from_two(case):
    def twice(model, args, kwargs):
        model(*args, **kwargs)
        model(*args, **kwargs)

    assert difference(state_after(case, twice), state_after(case, once))


# ---- identity


def test_objects_that_one_call_keeps_are_the_same_objects():
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4))
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    image = torch.ones(1, 3, 8, 8)
    batch = {"image": image, "list": [image], "tuple": (image, [1])}
    kept = [*model.parameters(), *model.buffers(), *(p.grad for p in model.parameters())]
    inner = [batch["image"], batch["list"], batch["tuple"], batch["tuple"][1]]
    outer = nn.Module()
    outer.net = model
    outer.forward = lambda batch: model(batch["image"])
    profiler(outer).run(batch)
    now = [*model.parameters(), *model.buffers(), *(p.grad for p in model.parameters())]
    assert all(a is b for a, b in zip(kept, now, strict=True))
    after = [batch["image"], batch["list"], batch["tuple"], batch["tuple"][1]]
    assert all(a is b for a, b in zip(inner, after, strict=True))


def test_gradient_that_the_first_call_made_is_the_one_that_stays():
    model = Gradients()
    added, seen = model.added.grad, []
    model.register_forward_hook(lambda *_: seen.append(model.fresh.grad))
    profiler(model).run(torch.ones(3))
    assert model.fresh.grad is seen[0]
    assert model.added.grad is added


def test_buffer_that_the_first_call_put_there_is_the_one_that_stays():
    model, seen = Buffers(), []
    model.register_forward_hook(lambda *_: seen.append((model.replaced, model.empty)))
    profiler(model).run(torch.ones(1, 3))
    assert model.replaced is seen[0][0]
    assert model.empty is seen[0][1]


def test_sentinels_are_handed_over_as_they_are():
    class Sentinel:
        def __init__(self, name):
            self.name = name

    missing = Sentinel("missing")

    def forward(option, *, options):
        assert option is missing
        assert options["a"] is missing
        return torch.ones(3) + 1

    report = profiler(forward).run(missing, options={"a": missing})
    assert report.coverage.notes == []


# ---- hooks, flags, modes


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


def test_the_tables_of_global_hooks_are_those_that_are_used():
    assert len(global_hooks()) >= 6
    with profiler(nn.Linear(2, 2)):
        assert sum(global_hooks()) >= 4


@pytest.mark.parametrize("way", WAYS)
def test_hooks_are_gone_and_the_model_s_own_stay(way):
    model = nn.Sequential(nn.Linear(8, 4))
    calls = []
    handles = [
        model.register_forward_hook(lambda *_: calls.append("after")),
        model[0].register_forward_pre_hook(lambda *_: calls.append("before")),
        model[0].register_full_backward_hook(lambda *_: calls.append("backward")),
    ]
    tables = [dict(vars(module)) for module in model.modules()]
    WAYS[way](model, (torch.ones(2, 8, requires_grad=True),), {})
    assert_nothing_observes()
    assert tables == [dict(vars(module)) for module in model.modules()]
    calls.clear()
    model(torch.ones(2, 8, requires_grad=True)).sum().backward()
    assert calls == ["before", "after", "backward"]
    for handle in handles:
        handle.remove()


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_training_flags_and_requires_grad(way, training):
    model = nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4), nn.Sequential(nn.Dropout())).train(training)
    model[1].train(not training)
    model[0].weight.requires_grad_(False)
    flags = [module.training for module in model.modules()]
    WAYS[way](model, (torch.ones(2, 8),), {})
    assert flags == [module.training for module in model.modules()]
    assert [p.requires_grad for p in model.parameters()] == [False, True, True, True]


def bfloat16():
    return torch.autocast("cpu", dtype=torch.bfloat16)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mode", [torch.no_grad, torch.enable_grad, torch.inference_mode, bfloat16, None])
def test_modes_around_the_profile(way, mode):
    def modes():
        return (
            torch.is_grad_enabled(),
            torch.is_inference_mode_enabled(),
            torch.is_autocast_enabled("cpu"),
            torch.get_autocast_dtype("cpu"),
            torch.get_default_dtype(),
            torch.get_num_threads(),
        )

    outside = modes()
    model, inputs = nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4)), (torch.ones(2, 8),)
    with mode() if mode else torch.set_grad_enabled(True):
        inside = modes()
        report = WAYS[way](model, inputs, {})
        assert modes() == inside
        assert report.total.macs == 64
        if way == "run":
            assert len(report.run_times) == 3, report.coverage.notes
    assert modes() == outside


def test_inference_tensors_written_in_place():
    with torch.inference_mode():
        given = torch.ones(3)
        model = Buffers()
        profiler(model).run(given[None])
        assert model.written.tolist() == [1, 1, 1]
        profiler(lambda value: value.add_(1)).run(given)
        assert given.tolist() == [2, 2, 2]
    profiler(lambda value: value + 1).run(given)
    assert given.tolist() == [2, 2, 2]


def test_grad_mode_that_the_model_leaves_behind():
    with torch.enable_grad():
        LeavesGradModeOff()(torch.ones(3))
        assert not torch.is_grad_enabled()
    with torch.enable_grad():
        profiler(LeavesGradModeOff()).run(torch.ones(3))
        assert not torch.is_grad_enabled()


def test_every_call_draws_the_same_random_numbers():
    drawn = queue.SimpleQueue()  # which is not put back between calls

    def model(value):
        drawn.put((torch.rand(3).tolist(), random.random(), float(np.random.rand())))  # noqa: NPY002
        return value + 1

    report = profiler(model, warmup=1, repeat=2).run(torch.ones(3))
    assert drawn.qsize() == 1 + 1 + 2 * 2
    first = drawn.get()
    assert all(drawn.get() == first for _ in range(drawn.qsize()))
    assert report.coverage.notes == []


def test_measuring_the_roofs_draws_no_random_numbers(monkeypatch, tmp_path):
    monkeypatch.setenv("ROOFPROF_CACHE_DIR", str(tmp_path))
    asked = []

    def measure(device, progress):
        asked.append(device)
        return roofs(), []

    monkeypatch.setattr(roofprof.ceilings, "measure_with_notes", measure)
    model = nn.Linear(8, 4)
    seed()
    model(torch.ones(2, 8))
    expected = generators()
    seed()
    report = roofprof.profile(model, torch.ones(2, 8))
    assert asked == ["cpu"]
    assert report.ceilings.device == "a machine on paper"
    assert difference(generators(), expected) is None


# ---- functions, and state that lies outside the model


def test_function_over_a_module():
    model = nn.BatchNorm1d(3)
    profiler(lambda value: model(value) + 1).run(torch.rand(4, 3))
    assert model.num_batches_tracked == 1
    model = nn.BatchNorm1d(3)
    profiler(model.forward).run(torch.rand(4, 3))
    assert model.num_batches_tracked == 1


GLOBAL_NORM = nn.BatchNorm1d(3)


def test_function_over_a_global_module():
    def function(value):
        return GLOBAL_NORM(value)

    profiler(function).run(torch.rand(4, 3))
    assert GLOBAL_NORM.num_batches_tracked == 1


def test_function_in_wrappers_and_helpers():
    model = nn.BatchNorm1d(3)

    def helper(value):
        return model(value)

    @torch.no_grad()
    def function(value):
        return helper(value)

    profiler(function).run(torch.rand(4, 3))
    assert model.num_batches_tracked == 1


def test_iterators_are_not_used_up():
    batches = iter([torch.ones(2, 8)] * 5)
    model = nn.Linear(8, 4)
    report = profiler(lambda batches: model(next(batches))).run(batches)
    assert len(list(batches)) == 4
    assert report.total.macs == 64
    assert len(report.run_times) == 1
    assert any("first call alone" in note for note in report.coverage.notes)


def test_what_looks_after_itself_is_left_alone():
    from concurrent.futures import ThreadPoolExecutor

    class Pooled(nn.Module):
        def __init__(self):
            super().__init__()
            self.pool = ThreadPoolExecutor(2)
            self.fc = nn.Linear(8, 4)

        def forward(self, value):
            return [future.result() for future in [self.pool.submit(self.fc, value) for _ in range(2)]]

    model = Pooled()
    assert profiler(model).run(torch.ones(2, 8)).total.macs == 128
    assert len(model(torch.ones(2, 8))) == 2
    model.pool.shutdown(wait=True)


def test_a_profiler_in_reach_of_its_own_model():
    model = nn.Linear(8, 4)
    model.profiler = profiler(model)
    report = model.profiler.run(torch.ones(2, 8))
    assert len(report.run_times) == 2
    assert model.profiler.report() is report


def test_large_inputs_are_not_copied():
    class Sizes(torch.utils._python_dispatch.TorchDispatchMode):
        largest = 0

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            result = function(*args, **kwargs or {})
            if function is torch.ops.aten.clone.default:
                self.largest = max(self.largest, result.numel())
            return result

    with Sizes() as sizes:
        profiler(lambda value: value[:2] + 1).run(torch.ones(1000, 1000))
    assert sizes.largest < 1000


def test_large_arrays_and_models_are_not_copied(monkeypatch, tmp_path):
    monkeypatch.setattr(roofprof._state, "_BYTES_KEPT", 100)
    file = np.memmap(tmp_path / "large", np.float32, "w+", shape=(1000,))
    with torch.inference_mode():
        model = nn.Linear(100, 100)
        model.file = file
        copied = []
        monkeypatch.setattr(np.memmap, "copy", lambda *_: copied.append(1), raising=False)
        clone = torch.Tensor.clone
        monkeypatch.setattr(torch.Tensor, "clone", lambda tensor: copied.append(tensor.numel()) or clone(tensor))
        profiler(model).run(torch.ones(2, 100))
    assert copied == []


def test_writes_of_later_calls_to_what_is_too_large_to_keep_are_said(monkeypatch):
    monkeypatch.setattr(roofprof._state, "_BYTES_KEPT", 0)

    class Late(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(3))
            self.calls = 0

        def forward(self, value):
            self.calls += 1
            with torch.no_grad():
                (self.weight if self.calls > 2 else value).add_(0)
            return value * self.weight

    report = profiler(Late()).run(torch.ones(3))
    assert any("wrote to 1 tensors that the first did not" in note for note in report.coverage.notes)


# ---- when the model raises


class Raises(nn.Module):
    """Raises in its k-th call, half way."""

    def __init__(self, at, error):
        super().__init__()
        self.before = nn.Linear(8, 4)
        self.after = nn.Linear(4, 2)
        self.at, self.error = at, error

    def forward(self, value, calls):
        calls.append(None)
        value = self.before(value)
        if sum(1 for _ in calls) == self.at:
            raise self.error
        return self.after(value)


class Calls:
    """Counts calls where nothing is put back."""

    def __init__(self):
        self.count = 0

    def __iter__(self):
        return iter(range(CALLS[self]))

    def append(self, _):
        CALLS[self] += 1


CALLS: collections.Counter = collections.Counter()
ERRORS = [ValueError("half way"), KeyboardInterrupt(), SystemExit(3), StopIteration("odd"), RuntimeError("half way")]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_exception_of_the_first_call_comes_through_as_it_was(error):
    error.__traceback__ = None
    prof = profiler(Raises(1, error))
    with pytest.raises(type(error)) as caught:
        prof.run(torch.ones(2, 8), Calls())
    assert caught.value is error
    assert traceback.extract_tb(error.__traceback__)[-1].name == "forward"
    assert error.__cause__ is None
    assert error.__context__ is None
    report = prof.report()
    assert report.partial
    assert {row.path: row.self_macs for row in report.rows if row.self_macs} == {"before": 64}
    assert report.coverage.uncalled_modules == ["after"]
    assert any("partial" in note for note in report.coverage.notes)
    assert report.total.time is None
    assert "PARTIAL" in str(report)
    assert_nothing_observes()
    calls = Calls()
    calls.append(None)  # the next is its second, and goes well
    assert not prof.run(torch.ones(2, 8), calls).partial


@pytest.mark.parametrize("at", [2, 3, 4, 5], ids=["warm-up", "bare", "timed", "second repeat"])
def test_exception_of_a_further_call_stops_the_repeats(at):
    prof = profiler(Raises(at, ValueError("only later")), warmup=1, repeat=3)
    report = prof.run(torch.ones(2, 8), Calls())
    assert not report.partial
    assert report.total.macs == 64 + 16
    assert any("a further call raised ValueError: only later" in note for note in report.coverage.notes)
    assert_nothing_observes()


@pytest.mark.parametrize("at", [2, 3, 4, 5], ids=["warm-up", "bare", "timed", "second repeat"])
def test_interrupt_of_a_further_call_comes_through(at):
    error = KeyboardInterrupt()
    model = nn.Sequential(nn.BatchNorm1d(8))
    inner = Raises(at, error)
    model.forward = lambda value, calls: inner(nn.Sequential.forward(model, value), calls)
    prof = profiler(model, warmup=1, repeat=3)
    with pytest.raises(KeyboardInterrupt) as caught:
        prof.run(torch.ones(2, 8), Calls())
    assert caught.value is error
    assert model[0].num_batches_tracked == 1
    assert prof.report().total.macs == 64 + 16
    assert not prof.report().partial
    assert_nothing_observes()


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_exception_in_a_block(error):
    error.__traceback__ = None
    model = Raises(2, error)
    prof, calls = profiler(model), Calls()
    with pytest.raises(type(error)) as caught, prof:
        model(torch.ones(2, 8), calls)
        model(torch.ones(2, 8), calls)
    assert caught.value is error
    report = prof.report()
    assert report.partial
    assert report.row("before").macs == 2 * 64
    assert report.row("after").macs == 16
    assert report.total.time > 0
    assert_nothing_observes()


def test_exception_of_a_count():
    error = ValueError("no")
    with pytest.raises(ValueError, match="no") as caught:
        roofprof.count(Raises(1, error), torch.ones(2, 8), Calls())
    assert caught.value is error
    assert_nothing_observes()


def test_wrong_arguments_are_the_model_s_own_error():
    with pytest.raises(TypeError, match="forward"):
        profiler(nn.Linear(8, 4)).run(torch.ones(2, 8), 1, 2)
    with pytest.raises(RuntimeError, match="shapes"):
        profiler(nn.Linear(8, 4)).run(torch.ones(2, 7))
    assert_nothing_observes()


def test_nothing_of_the_run_is_kept_alive():
    import gc
    import weakref

    model, given = nn.Linear(8, 4), torch.ones(2, 8)
    alive = [weakref.ref(model), weakref.ref(given)]
    prof = profiler(model)
    report = prof.run(given)
    del model, given, prof
    gc.collect()
    assert [ref() for ref in alive] == [None, None]
    assert report.total.macs == 64


@pytest.mark.skipif(sys.version_info < (3, 11), reason="notes on exceptions")
def test_no_notes_are_put_on_the_user_s_exception():
    error = ValueError("plain")
    with pytest.raises(ValueError, match="plain"):
        profiler(Raises(1, error)).run(torch.ones(2, 8), Calls())
    assert not hasattr(error, "__notes__")
