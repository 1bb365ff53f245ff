"""Which module each op lands in, whatever the model takes, returns and does to itself."""

from __future__ import annotations

import contextlib
import copy
import threading
from collections import OrderedDict, namedtuple
from dataclasses import dataclass, field, fields
from typing import Any

import pytest
import torch
from given_roofs import profiler
from torch import nn

import roofprof

# Linear(8, 4) on 2 rows
MACS = 2 * 8 * 4


def macs(report: roofprof.Report) -> dict[str, int]:
    """Each row's own MACs."""
    return {row.path: row.self_macs for row in report.rows if row.self_macs}


def calls(report: roofprof.Report) -> dict[str, int | None]:
    return {row.path: row.calls for row in report.rows}


def x(columns: int = 8) -> torch.Tensor:
    return torch.ones(2, columns)


def linear() -> nn.Linear:
    return nn.Linear(8, 4, bias=False)


class Model(nn.Module):
    """A model made of the children and the forward that a test gives it."""

    def __init__(self, forward, **children):
        super().__init__()
        for name, child in children.items():
            setattr(self, name, child)
        self._forward = forward

    def forward(self, *args, **kwargs):
        return self._forward(self, *args, **kwargs)


# ---- inputs and outputs


@dataclass
class Batch:
    image: torch.Tensor
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class FrozenBatch:
    image: torch.Tensor
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SlotsBatch:
    image: torch.Tensor
    extra: dict[str, Any] = field(default_factory=dict)


class ModelOutput(OrderedDict):
    """Fields that are items as well, and a class that forbids to take any away."""

    def __init__(self, **items):
        super().__init__(**items)
        for name, item in items.items():
            object.__setattr__(self, name, item)

    def __setitem__(self, name, item):
        super().__setitem__(name, item)
        object.__setattr__(self, name, item)

    def __delitem__(self, name):
        raise TypeError("fields stay")

    def clear(self):
        raise TypeError("fields stay")


Pair = namedtuple("Pair", "image extra")  # noqa: PYI024


class PlainObject:
    def __init__(self, image, extra):
        self.image = image
        self.extra = extra


EXTRA = {"boxes": [torch.ones(3), {"deep": (torch.zeros(2, 2), None, "name", 7)}], "id": None}
HOLDERS = {
    "dict": lambda image, extra: {"image": image, "extra": extra},
    "nested list": lambda image, extra: [[[image]], extra],
    "dataclass": Batch,
    "frozen dataclass": FrozenBatch,
    "dataclass with slots": SlotsBatch,
    "namedtuple": Pair,
    "ModelOutput": lambda image, extra: ModelOutput(image=image, extra=extra),
    "plain object": PlainObject,
}


def image_of(holder: Any) -> torch.Tensor:
    if isinstance(holder, list):
        return holder[0][0][0]
    return holder["image"] if isinstance(holder, dict) else holder.image


@pytest.mark.parametrize("keyword", [False, True], ids=["positional", "keyword"])
@pytest.mark.parametrize("holder", HOLDERS)
def test_any_container_goes_in_and_out(holder, keyword):
    def forward(self, batch, scale=None, mode="sum", *, flags=()):
        assert scale is None
        assert mode == "mean"
        assert flags == (1, 2)
        return make(self.fc(image_of(batch)), EXTRA)

    make = HOLDERS[holder]
    model = Model(forward, fc=linear())
    batch = make(x(), EXTRA)
    if keyword:
        reports = [
            roofprof.count(model, batch=batch, mode="mean", flags=(1, 2)),
            profiler(model).run(batch=batch, mode="mean", flags=(1, 2)),
        ]
    else:
        reports = [
            roofprof.count(model, batch, None, "mean", flags=(1, 2)),
            profiler(model).run(batch, None, "mean", flags=(1, 2)),
        ]
    for report in reports:
        assert macs(report) == {"fc": MACS}
        assert report.total.macs == MACS
        assert report.coverage.notes == []


@pytest.mark.parametrize("output", [None, "text", 3, 2.5, [], {}, (), Ellipsis], ids=repr)
def test_outputs_that_hold_no_tensor(output):
    model = Model(lambda self, value: self.fc(value) is not None and output, fc=linear())
    report = profiler(model).run(x())
    assert report.row("").output_shapes == []
    assert macs(report) == {"fc": MACS}


def test_no_arguments_at_all():
    model = Model(lambda self: self.fc(torch.ones(2, 8)), fc=linear())
    assert macs(profiler(model).run()) == {"fc": MACS}


@pytest.mark.parametrize("name", ["model", "args", "kwargs", "warmup", "ceilings", "session"])
def test_keyword_named_like_one_of_ours(name):
    model = Model(lambda net, **given: net.fc(given[name]), fc=linear())
    assert roofprof.count(model, **{name: x()}).total.macs == MACS
    assert profiler(model).run(**{name: x()}).total.macs == MACS


def test_keyword_called_self():
    # torch's own Module.__call__ has a `self`, a function need not.
    weight = torch.ones(8, 4)
    assert roofprof.count(lambda **given: given["self"] @ weight, self=x()).total.macs == MACS
    assert profiler(lambda **given: given["self"] @ weight).run(self=x()).total.macs == MACS


def test_profile_takes_a_keyword_called_model(monkeypatch):
    monkeypatch.setattr(roofprof.ceilings, "for_device", lambda *_: roofprof._C.Ceilings())
    net = Model(lambda self, model: self.fc(model), fc=linear())
    assert roofprof.profile(net, model=x()).total.macs == MACS


def test_shapes_of_what_goes_in_and_out():
    model = Model(lambda self, batch, *, mask: {"a": [self.fc(batch["x"])], "mask": mask}, fc=linear())
    row = roofprof.count(model, {"x": x(), "meta": "text"}, mask=torch.ones(5)).row("")
    assert row.input_shapes == [[2, 8], [5]]
    assert row.output_shapes == [[2, 4], [5]]
    assert row.output_bytes == (2 * 4 + 5) * 4


# ---- who ran


def test_module_called_twice():
    model = Model(lambda self, value: self.fc(value) + self.fc(value), fc=linear())
    report = roofprof.count(model, x())
    assert calls(report) == {"": 1, "fc": 2}
    assert macs(report) == {"fc": 2 * MACS}


def test_one_module_under_two_parents():
    shared = linear()
    left = Model(lambda self, value: self.inner(value), inner=shared)
    right = Model(lambda self, value: self.inner(value) + self.inner(value), inner=shared)
    model = Model(lambda self, value: self.left(value) + self.right(value), left=left, right=right)
    report = roofprof.count(model, x())
    assert calls(report) == {"": 1, "left": 1, "left.inner": 1, "right": 1, "right.inner": 2}
    assert macs(report) == {"left.inner": MACS, "right.inner": 2 * MACS}
    assert report.total.params == 32
    assert [report.row(path).params for path in ("", "left", "right", "left.inner")] == [32] * 4


def test_one_module_under_two_parents_deeper_down_and_through_containers():
    shared = linear()
    left = Model(lambda self, value: self.layers[0](value), layers=nn.ModuleList([shared]))
    right = Model(lambda self, value: self.layers["a"](value), layers=nn.ModuleDict({"a": shared}))
    model = Model(lambda self, value: self.right(value) + self.left(value), left=left, right=right)
    assert macs(roofprof.count(model, x())) == {"left.layers.0": MACS, "right.layers.a": MACS}


def test_shared_module_called_by_neither_parent_gets_its_first_name():
    shared = linear()
    left = Model(lambda self, value: value, inner=shared)
    right = Model(lambda self, value: value, inner=shared)
    model = Model(lambda self, value: self.left.inner(self.right(value)), left=left, right=right)
    assert macs(roofprof.count(model, x())) == {"left.inner": MACS}


def test_same_module_twice_in_a_sequential():
    fc = nn.Linear(8, 8, bias=False)
    report = roofprof.count(nn.Sequential(fc, nn.ReLU(), fc), x())
    assert calls(report) == {"": 1, "0": 2, "1": 1}
    assert report.row("0").macs == 2 * 2 * 8 * 8
    assert report.total.params == 64


def test_other_method_of_a_child_falls_to_the_caller():
    class Child(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(8, 4))

        def forward(self, value):
            return value

        def project(self, value):
            return value @ self.weight

    report = roofprof.count(Model(lambda self, value: self.child.project(value), child=Child()), x())
    assert macs(report) == {"": MACS}
    assert report.coverage.uncalled_modules == ["child"]


def test_forward_called_directly_falls_to_the_caller():
    report = roofprof.count(Model(lambda self, value: self.fc.forward(value), fc=linear()), x())
    assert macs(report) == {"": MACS}
    assert calls(report) == {"": 1, "fc": 0}
    assert report.coverage.uncalled_modules == ["fc"]


def test_recursion():
    def forward(self, value, depth):
        return self.fc(value) if depth == 0 else self(value, depth - 1)

    report = profiler(Model(forward, fc=linear())).run(x(), 4)
    assert calls(report) == {"": 5, "fc": 1}
    assert macs(report) == {"fc": MACS}
    assert report.total.time == pytest.approx(report.row("").time)


def test_containers_have_no_calls_and_are_never_uncalled():
    class Container(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([linear(), nn.ReLU()])
            self.heads = nn.ModuleDict({"a": nn.Linear(4, 2), "unused": nn.Linear(4, 2)})
            self.weights = nn.ParameterList([nn.Parameter(torch.ones(4))])

        def forward(self, value):
            return self.heads["a"](self.layers[1](self.layers[0](value))) * self.weights[0][:2]

    report = profiler(Container()).run(x())
    assert report.coverage.uncalled_modules == ["heads.unused"]
    assert {path: number for path, number in calls(report).items() if path in {"layers", "heads", "weights"}} == {
        "layers": 0,
        "heads": 0,
        "weights": 0,
    }
    assert report.row("layers").macs == MACS
    assert report.row("layers").self_macs == 0
    assert report.row("layers").time == pytest.approx(report.row("layers.0").time + report.row("layers.1").time)


def test_modules_that_never_run_are_listed():
    model = Model(lambda self, value: self.fc(value), fc=linear(), spare=nn.Sequential(nn.Linear(3, 3)))
    report = roofprof.count(model, x())
    assert report.coverage.uncalled_modules == ["spare", "spare.0"]
    assert report.row("spare").macs == 0
    assert report.row("spare").calls == 0


def test_deep_nesting():
    model = linear()
    for _ in range(40):
        model = nn.Sequential(model)
    report = roofprof.count(model, x())
    path = ".".join("0" for _ in range(40))
    assert macs(report) == {path: MACS}
    assert report.row(path).depth == 40
    assert all(row.macs == MACS and row.calls == 1 for row in report.rows)


# ---- modules that come and go


def test_module_added_inside_forward():
    def forward(self, value):
        if not hasattr(self, "late"):
            self.late = nn.Linear(4, 4, bias=False)
        return self.late(self.fc(value))

    report = profiler(Model(forward, fc=linear())).run(x())
    assert macs(report) == {"fc": MACS, "": 2 * 4 * 4}
    assert any("late" in note and "no rows" in note for note in report.coverage.notes)


def test_module_replaced_inside_every_forward():
    def forward(self, value):
        self.fc = linear()
        return self.fc(value)

    model = Model(forward, fc=linear())
    before = model.fc
    report = profiler(model).run(x())
    assert macs(report) == {"": MACS}
    assert model.fc is not before
    assert report.coverage.uncalled_modules == ["fc"]
    # A second run knows the module that stands there by then, until it is replaced as well.
    assert macs(profiler(model).run(x())) == {"": MACS}


def test_lazy_modules():
    model = nn.Sequential(nn.LazyLinear(4), nn.ReLU())
    report = roofprof.count(model, x())
    assert report.row("0").macs == MACS
    assert report.row("0").params == 8 * 4 + 4
    assert report.row("0").param_bytes == 4 * (8 * 4 + 4)
    assert report.row("0").type == "Linear"
    assert report.total.params == 8 * 4 + 4


def test_tied_weights():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(10, 8)
            self.head = nn.Linear(8, 10, bias=False)
            self.head.weight = self.embed.weight

        def forward(self, ids):
            return self.head(self.embed(ids))

    report = roofprof.count(Tied(), torch.tensor([[1, 2, 3]]))
    assert [report.row(path).params for path in ("", "embed", "head")] == [80, 80, 80]
    assert report.total.param_bytes == 320
    assert macs(report) == {"head": 3 * 8 * 10}


def test_parametrized_weight():
    class Scale(nn.Module):
        def forward(self, weight):
            return weight * 2

    fc = linear()
    torch.nn.utils.parametrize.register_parametrization(fc, "weight", Scale())
    report = roofprof.count(nn.Sequential(fc), x())
    assert macs(report) == {"0": MACS}
    assert report.row("0.parametrizations.weight.0").flops == 8 * 4
    assert report.row("0.parametrizations.weight.0").calls == 1
    assert report.total.params == 32
    assert report.coverage.uncalled_modules == []


def test_functional_call():
    model = nn.Sequential(linear(), nn.ReLU())
    weights = {"0.weight": torch.zeros(4, 8)}
    report = roofprof.count(lambda value: torch.func.functional_call(model, weights, (value,)), x())
    assert report.total.macs == MACS
    prof = profiler(model)
    with prof:
        torch.func.functional_call(model, weights, (x(),))
    assert macs(prof.report()) == {"0": MACS}


def test_copies_of_the_model_are_not_the_model():
    prof = profiler(model := nn.Sequential(linear()))
    with prof:
        copy.deepcopy(model)(x())
    assert macs(prof.report()) == {"(outside)": MACS}
    assert prof.report().coverage.uncalled_modules == ["", "0"]


# ---- threads, hooks, exceptions


def test_threads_inside_forward():
    def forward(self, value):
        results = [None, None, None]

        def work(index):
            results[index] = self.branches[index](value)

        threads = [threading.Thread(target=work, args=(index,)) for index in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return self.head(sum(results))

    model = Model(forward, branches=nn.ModuleList(nn.Sequential(linear()) for _ in range(3)), head=nn.Linear(4, 4))
    report = profiler(model).run(x())
    assert macs(report) == {"branches.0.0": MACS, "branches.1.0": MACS, "branches.2.0": MACS, "head": 32}
    assert [report.row(f"branches.{index}").calls for index in range(3)] == [1, 1, 1]
    assert report.total.macs == 3 * MACS + 32


def test_threads_that_share_one_module():
    def forward(self, value):
        threads = [threading.Thread(target=self.fc, args=(value,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return value

    report = profiler(Model(forward, fc=linear())).run(x())
    assert report.row("fc").calls == 4
    assert report.row("fc").macs == 4 * MACS
    assert report.row("fc").time > 0


def test_a_thread_of_someone_else_is_not_counted():
    stop = threading.Event()
    other = linear()

    def work():
        while not stop.is_set():
            other(x())

    thread = threading.Thread(target=work)
    thread.start()
    try:
        reports = [roofprof.count(nn.Sequential(linear()), x()) for _ in range(20)]
    finally:
        stop.set()
        thread.join()
    assert all(macs(report) == {"0": MACS} for report in reports)


def test_ops_in_the_user_s_hooks():
    model = nn.Sequential(linear(), nn.ReLU())
    model[0].register_forward_pre_hook(lambda _, args: (args[0] + 1,))  # 16 FLOPs
    model[1].register_forward_hook(lambda _, __, output: output @ torch.ones(4, 3))
    report = roofprof.count(model, x())
    assert report.row("0").flops == 2 * MACS + 16
    # torch runs global hooks before a module's own: what those do after forward belongs to the caller.
    assert macs(report) == {"0": MACS, "": 2 * 4 * 3}


def test_ops_in_a_hook_of_the_model_itself_are_not_lost():
    model = nn.Sequential(linear())
    model.register_forward_hook(lambda _, __, output: output @ torch.ones(4, 3))
    report = profiler(model).run(x())
    assert report.total.macs == MACS + 2 * 4 * 3
    assert macs(report) == {"0": MACS, "(outside)": 2 * 4 * 3}


def test_exception_that_the_parent_catches():
    def fail(self, value):
        self.inner(value)
        raise ValueError("caught above")

    def forward(self, value):
        with contextlib.suppress(ValueError):
            self.bad(value)
        return self.good(value @ torch.ones(8, 8))

    model = Model(forward, bad=Model(fail, inner=linear()), good=linear())
    report = profiler(model).run(x())
    assert macs(report) == {"bad.inner": MACS, "": 2 * 8 * 8, "good": MACS}


def test_pre_hook_that_raises():
    def refuse(*_):
        raise KeyError("not today")

    def forward(self, value):
        with contextlib.suppress(KeyError):
            self.fc(value)
        return value @ torch.ones(8, 8)

    model = Model(forward, fc=linear())
    model.fc.register_forward_pre_hook(refuse)
    report = profiler(model).run(x())
    assert macs(report) == {"": 2 * 8 * 8}


# ---- what is no module


def test_plain_function():
    def double(value, *, by):
        return value @ by

    report = profiler(double).run(x(), by=torch.ones(8, 3))
    assert report.model == "double"
    assert [row.path for row in report.rows] == [""]
    assert macs(report) == {"": 2 * 8 * 3}
    assert report.row("").calls == 1


def test_function_that_uses_a_module_has_one_row():
    net = nn.Sequential(linear())
    report = roofprof.count(lambda value: net(value) + 1, x())
    assert [row.path for row in report.rows] == [""]
    assert report.total.macs == MACS


def test_block_without_a_model():
    prof = profiler(None)
    with prof:
        linear()(x())
    report = prof.report()
    assert macs(report) == {"(outside)": MACS}
    assert report.coverage.uncalled_modules == []
    with pytest.raises(TypeError, match="no model to run"):
        prof.run(x())


def test_block_tells_the_model_from_what_is_around_it():
    model = nn.Sequential(linear())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    prof = profiler(model)
    with prof:
        for _ in range(2):
            (model(x()) @ torch.ones(4, 3)).sum().backward()
            optimizer.step()
            prof.step()
    report = prof.report()
    assert report.row("0").calls == 2
    forward = {tuple(group.keys): group.macs for group in report.group("phase", "module") if group.macs}
    assert forward["forward", "0"] == 2 * MACS
    assert forward["forward", "(outside)"] == 2 * 2 * 4 * 3
    assert forward["backward", "0"] == 2 * MACS  # the weight's gradient; the input needs none
    assert report.row("(optimizer)").flops > 0
    assert report.by_phase()["optimizer"].flops == report.row("(optimizer)").flops


def test_model_that_optimizes_itself():
    """An optimizer's step in a forward, as in test-time adaptation, is still told apart."""
    model = Model(lambda self, value: (self.fc(value).sum().backward(), self.optimizer.step()), fc=linear())
    model.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    report = profiler(model).run(x())
    assert report.by_phase()["backward"].macs == MACS
    assert report.row("(optimizer)").flops > 0


def test_transformer_layer_keeps_its_fast_path():
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval()
    with torch.no_grad():
        report = roofprof.count(nn.Sequential(layer), torch.ones(1, 5, 16))
    assert "aten::_transformer_encoder_layer_fwd" in report.by_operator()
    assert report.row("0").macs == report.total.macs > 0


def test_every_field_is_still_there_after_a_dataclass_went_through():
    batch = SlotsBatch(x(), {"list": [1, 2]})
    before = {item.name: getattr(batch, item.name) for item in fields(batch)}
    profiler(Model(lambda self, given: self.fc(given.image), fc=linear())).run(batch)
    assert all(getattr(batch, name) is value for name, value in before.items())
