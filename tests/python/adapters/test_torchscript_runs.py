"""TorchScript: training, attributes, exceptions, threads; what is left behind, and what is said."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import script_models
import torch
from models import ResNet
from script_models import figures, scripted
from torch import nn

import roofprof

pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore:.*torch.jit.*:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning", "ignore:.*enable_nested_tensor.*:UserWarning"),
]

NO_ROOFS = roofprof.Ceilings()


# ---- training


class Trained(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.second = nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.tanh(self.norm(self.first(x))))


def step(profiler, model, x):
    with profiler:
        model(x).sum().backward()
    return profiler.report()


def phases(report):
    return {tuple(group.keys): group.macs for group in report.group("module", "phase") if group.macs}


def test_a_training_step_has_the_eager_model_s_work_by_module_and_phase():
    model, x = Trained().train(), torch.rand(4, 8)
    expected = phases(step(roofprof.RooflineProfiler(model, ceilings=NO_ROOFS), model, x))
    assert expected["first", "backward"] == 4 * 8 * 16  # of its weight alone: x needs no gradient
    converted = scripted(model)
    assert phases(step(roofprof.RooflineProfiler(converted, ceilings=NO_ROOFS), converted, x)) == expected


def test_what_the_executor_differentiates_as_a_whole_is_said():
    model, x = Trained().train(), torch.rand(4, 8)
    expected = step(roofprof.RooflineProfiler(model, ceilings=NO_ROOFS), model, x)
    converted = scripted(model)
    for _ in range(4):
        converted(x).sum().backward()
    found = step(roofprof.RooflineProfiler(converted, ceilings=NO_ROOFS), converted, x)
    assert found.total.macs == expected.total.macs
    assert found.row("(outside)").macs == 0
    (note,) = found.coverage.notes
    assert str(note).startswith("TorchScript differentiated parts of the model as a whole")
    # run() counts the code as it was written, whatever the executor makes of it.
    counted = roofprof.RooflineProfiler(converted, repeat=2, ceilings=NO_ROOFS).run(x)
    assert figures(counted) == figures(roofprof.count(model, x))


# ---- nothing is left behind, and what cannot be known is said


class Raises(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.linear(x)
        if x.size(0) > 2:
            raise ValueError("too many")
        return x


@pytest.mark.parametrize("way", ["run", "count"])
def test_the_model_s_own_exception_comes_through(way):
    converted = scripted(Raises())
    with pytest.raises(torch.jit.Error, match="too many") as plain:
        converted(torch.rand(4, 8))
    profiler = roofprof.RooflineProfiler(converted, ceilings=NO_ROOFS)
    with pytest.raises(torch.jit.Error, match="too many") as observed:
        profiler.run(torch.rand(4, 8)) if way == "run" else roofprof.count(converted, torch.rand(4, 8))
    assert type(observed.value) is type(plain.value)
    if way == "run":
        assert profiler.report().partial
        assert profiler.report().row("linear").macs == 4 * 8 * 8
    assert roofprof.count(converted, torch.rand(2, 8)).row("linear").macs == 2 * 8 * 8


def test_wrong_arguments_raise_as_without_us():
    converted = scripted(script_models.Lists())
    with pytest.raises(RuntimeError, match="missing value for argument 'x'"):
        roofprof.count(converted)
    with pytest.raises(RuntimeError, match="but instead found type 'int'"):
        roofprof.count(converted, 3)


class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0
        self.seen = []
        self.register_buffer("mean", torch.zeros(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        self.seen.append(self.calls)
        self.mean = self.mean * 0.5 + x.mean(0)
        return torch.dropout(x + self.calls, 0.5, True)


Counts.__annotations__ = {"seen": list[int]}


def test_attributes_and_random_numbers_are_as_one_call_leaves_them():
    def state(call):
        torch.manual_seed(0)
        model, x = scripted(Counts()), torch.ones(4, 8)
        call(model, x)
        return model.calls, model.seen, model.mean.tolist(), torch.rand(3).tolist(), model.__dict__.keys()

    plain = state(lambda model, x: model(x))
    assert plain[:2] == (1, [1])
    assert state(roofprof.count) == plain
    assert state(lambda model, x: roofprof.RooflineProfiler(model, ceilings=NO_ROOFS).run(x)) == plain


def test_frozen_modules_are_one_row_and_say_so():
    model, x = ResNet().eval(), torch.rand(1, 3, 16, 16)
    with torch.no_grad():
        expected = roofprof.count(model, x).total.macs
        report = roofprof.count(torch.jit.freeze(scripted(model)), x)
    assert [row.path for row in report.rows] == [""]
    assert report.total.macs == expected
    (note,) = report.coverage.notes
    assert str(note).startswith("frozen TorchScript (the model): freezing made one graph of its modules")
    assert "which are not counted as parameters" in note


@torch.jit.interface
class Layer(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pass


class Interfaced(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = script_models.Inner()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer.forward(x)


Interfaced.__annotations__ = {"layer": Layer}


def test_calls_through_an_interface():
    model, x = Interfaced(), torch.rand(4, 8)
    report = roofprof.count(scripted(model), x)
    assert report.row("layer").calls == 1
    assert report.row("layer").self_flops == 4 * 8
    assert report.row("layer.linear").macs == 4 * 8 * 8
    assert report.row("layer.linear").calls == 1


def test_several_threads_profile_scripted_models_at_once():
    models = [scripted(script_models.Forks()) for _ in range(8)]
    expected = figures(roofprof.count(script_models.Forks(), torch.rand(4, 8)))

    def profiled(model):
        return figures(roofprof.RooflineProfiler(model, repeat=3, ceilings=NO_ROOFS).run(torch.rand(4, 8)))

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(profiled, models)) == [expected] * 8


# ---- fusion, which on this CPU takes the kernels' own interpreter


class Pointwise(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.act, self.second = nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.sigmoid(self.act(self.first(x)) * 2 + 1) * x)


@pytest.fixture
def fuses_on_cpu():
    could_fuse, needed_llvm = torch._C._jit_can_fuse_on_cpu(), torch._C._jit_get_te_must_use_llvm_cpu()
    torch._C._jit_override_can_fuse_on_cpu(True)
    torch._C._jit_set_te_must_use_llvm_cpu(False)
    yield
    torch._C._jit_override_can_fuse_on_cpu(could_fuse)
    torch._C._jit_set_te_must_use_llvm_cpu(needed_llvm)


@pytest.mark.usefixtures("fuses_on_cpu")
def test_fused_kernels_are_named_and_have_the_time():
    model, x = Pointwise().eval(), torch.rand(4, 8)
    converted = scripted(model)
    with torch.no_grad():
        expected = roofprof.count(model, x)
        for _ in range(4):
            converted(x)
        report = roofprof.RooflineProfiler(converted, repeat=3, ceilings=NO_ROOFS).run(x)
        block = roofprof.RooflineProfiler(converted, ceilings=NO_ROOFS)
        with block:
            converted(x)
    assert figures(report) == figures(expected)
    (note,) = report.coverage.notes
    assert str(note).startswith("TorchScript's executor ran other operators than the code of its modules has (")
    assert "fused_tanh_mul_add_sigmoid_mul in the model)" in note
    times = {tuple(group.keys): group.time for group in report.group("module", "op")}
    assert times["", "fused_tanh_mul_add_sigmoid_mul"] > 0
    assert times["act", "aten::tanh"] is None
    assert times["first", "aten::linear"] > 0
    # In a block nothing else runs: the kernel's work is not known.
    assert block.report().coverage.uncosted == {"fused_tanh_mul_add_sigmoid_mul": 1}
    assert block.report().total.macs == expected.total.macs
