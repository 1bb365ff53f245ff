"""TorchScript, module by module: what the eager model has, from every way to make and to call it."""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor

import pytest
import script_models
import torch
import torchvision
from torch import nn

import roofprof

pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore:.*torch.jit.*:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning", "ignore:.*enable_nested_tensor.*:UserWarning"),
]

NO_ROOFS = roofprof.Ceilings()


def rows(report):
    """All that must be equal, by module. Containers are called by nobody."""
    return {
        row.path: (
            row.type,
            row.calls,
            row.params,
            row.macs,
            row.flops,
            row.read_bytes,
            row.write_bytes,
            row.self_flops,
        )
        for row in report.rows
    }


def shapes(report):
    return {row.path: (row.input_shapes, row.output_shapes, row.output_bytes) for row in report.rows}


def scripted(model, *_):
    return torch.jit.script(model)


def traced(model, *inputs):
    return torch.jit.trace(model, inputs, strict=False)


def loaded(model, *inputs):
    file = io.BytesIO()
    torch.jit.save(scripted(model, *inputs), file)
    file.seek(0)
    return torch.jit.load(file)


def loaded_trace(model, *inputs):
    file = io.BytesIO()
    torch.jit.save(traced(model, *inputs), file)
    file.seek(0)
    return torch.jit.load(file)


WAYS = [scripted, traced, loaded, loaded_trace]


def encoder():
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


MODELS = {
    "resnet18": (torchvision.models.resnet18, lambda: torch.rand(1, 3, 64, 64)),
    "transformer": (script_models.Transformer, lambda: torch.randint(50, (2, 10))),
    "torch's encoder": (encoder, lambda: torch.rand(2, 5, 32)),
    "lists": (script_models.Lists, lambda: torch.rand(4, 8)),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", MODELS)
def test_every_module_has_the_eager_model_s_figures(name, way):
    make, make_input = MODELS[name]
    model, x = make().eval(), make_input()
    with torch.no_grad():
        expected = roofprof.count(model, x)
        converted = way(model, x)
        for _ in range(3):  # torch optimises the graph after a while
            found = roofprof.count(converted, x)
            assert rows(found) == rows(expected)
            assert found.coverage.notes == []
            converted(x)


@pytest.mark.parametrize("way", [scripted, loaded])
def test_shapes_are_the_eager_model_s(way):
    model, x = script_models.Transformer().eval(), torch.randint(50, (2, 10))
    assert shapes(roofprof.count(way(model), x)) == shapes(roofprof.count(model, x))


@pytest.mark.parametrize("way", [scripted, loaded])
def test_dicts_and_optional_inputs(way):
    model, batch = script_models.Fusion().eval(), script_models.batch_of()
    mask = torch.zeros(3, 3, dtype=torch.bool)
    converted = way(model)
    for args, kwargs in [((batch,), {}), ((batch, mask), {}), ((batch,), {"mask": mask})]:
        expected = roofprof.count(model, *args, **kwargs)
        found = roofprof.count(converted, *args, **kwargs)
        assert rows(found) == rows(expected)
        assert shapes(found) == shapes(expected)
    # 3 images of 16 x 16: 3 to 8 channels, then 8 to 8 at half the size
    assert found.row("encoder").macs == 3 * (16 * 16 * 3 * 8 * 9 + 8 * 8 * 8 * 8 * 9)
    assert found.row("heads.box").macs == 8 * 8 * 8 * 7


def test_tuples_and_lists():
    model = script_models.Kinds()
    args = (torch.rand(2, 8), torch.rand(2, 8)), [torch.rand(3, 8), torch.rand(5, 8)]
    for kwargs in ({}, {"scale": 2.0}):
        found = roofprof.count(scripted(model), *args, **kwargs)
        assert rows(found) == rows(roofprof.count(model, *args, **kwargs))
        assert found.row("linear").calls == 2
        assert found.row("linear").macs == (3 + 5) * 8 * 8


@pytest.mark.parametrize("times", [0, 1, 5])
def test_loops_methods_functions_and_shared_modules(times):
    model, x = script_models.Calls(), torch.rand(4, 8)
    expected, found = roofprof.count(model, x, times), roofprof.count(scripted(model), x, times)
    assert rows(found) == rows(expected)
    assert found.row("inner").calls == times + 1  # the method `twice` is no call
    assert found.row("inner.linear").calls == times + 3
    assert found.row("holder.0").calls == 1
    assert found.row("holder.0.linear").macs == 4 * 8 * 8
    assert found.row("").self_flops == 4 * 8 * (1 + 1 + 1)  # what `twice` and the function compute beside the layers


def test_forks_belong_to_their_modules():
    model, x = script_models.Forks(), torch.rand(4, 8)
    converted = scripted(model)
    expected = roofprof.count(model, x)
    for _ in range(3):
        assert rows(roofprof.count(converted, x)) == rows(expected)
        converted(x)
    report = roofprof.RooflineProfiler(converted, repeat=3, ceilings=NO_ROOFS).run(x)
    assert rows(report) == rows(expected)
    assert report.row("left.0").time > 0
    assert report.row("join").time > 0
    assert report.coverage.notes == []


# ---- timed runs and blocks, where the interpreter's own call stack tells the module


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", MODELS)
def test_blocks_have_the_same_work_in_every_row(name, way):
    make, make_input = MODELS[name]
    model, x = make().eval(), make_input()
    with torch.no_grad():
        expected = roofprof.count(model, x)
        converted = way(model, x)
        for _ in range(3):
            profiler = roofprof.RooflineProfiler(converted, ceilings=NO_ROOFS)
            with profiler:
                converted(x)
            found = profiler.report()
            for row in expected.rows:
                assert (row.path, found.row(row.path).self_macs) == (row.path, row.self_macs)
            assert found.row("").calls == 1
            assert all(row.calls is None for row in found.rows if row.path not in {"", "(outside)"})
            assert found.coverage.uncalled_modules == []


@pytest.mark.parametrize("name", MODELS)
def test_timed_runs_time_every_module(name):
    make, make_input = MODELS[name]
    model, x = make().eval(), make_input()
    with torch.no_grad():
        report = roofprof.RooflineProfiler(scripted(model), repeat=3, ceilings=NO_ROOFS).run(x)
        assert rows(report) == rows(roofprof.count(model, x))
    for row in report.rows:
        if row.self_macs > 0:
            assert row.self_time > 0, row.path
            assert row.op_time > 0, row.path
    assert sum(row.self_time or 0 for row in report.rows) == pytest.approx(report.total.time, rel=1e-6)
    assert report.coverage.notes == []


def test_scripted_children_of_eager_models():
    model = nn.Sequential(script_models.Calls(), nn.Linear(4, 8), script_models.Calls()).eval()
    x = torch.rand(4, 8)
    expected = roofprof.count(model, x)
    model[0], model[2] = scripted(model[0]), scripted(model[2])
    assert rows(roofprof.count(model, x)) == rows(expected)
    report = roofprof.RooflineProfiler(model, repeat=2, ceilings=NO_ROOFS).run(x)
    assert rows(report) == rows(expected)
    assert report.row("0.inner.linear").op_time > 0
    assert report.row("2.inner.linear").op_time > 0


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
    assert note.startswith("TorchScript differentiated parts of the model as a whole")
    # run() counts the code as it was written, whatever the executor makes of it.
    counted = roofprof.RooflineProfiler(converted, repeat=2, ceilings=NO_ROOFS).run(x)
    assert rows(counted) == rows(roofprof.count(model, x))


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
    seen: list[int]

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
    model, x = torchvision.models.resnet18().eval(), torch.rand(1, 3, 64, 64)
    with torch.no_grad():
        expected = roofprof.count(model, x).total.macs
        report = roofprof.count(torch.jit.freeze(scripted(model)), x)
    assert [row.path for row in report.rows] == [""]
    assert report.total.macs == expected
    (note,) = report.coverage.notes
    assert note.startswith("frozen TorchScript (the model): freezing made one graph of its modules")
    assert "which are not counted as parameters" in note


class Adds(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1


@torch.jit.interface
class Layer(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pass


class Interfaced(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Sequential(nn.Linear(8, 8), Adds())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer.forward(x)


Interfaced.__annotations__ = {"layer": Layer}


def test_calls_through_an_interface():
    model, x = Interfaced(), torch.rand(4, 8)
    report = roofprof.count(scripted(model), x)
    assert report.row("layer.0").macs == 4 * 8 * 8
    assert report.row("layer.0").calls == 1
    assert report.row("layer.1").flops == 4 * 8


def test_several_threads_profile_scripted_models_at_once():
    models = [scripted(script_models.Forks()) for _ in range(8)]
    expected = rows(roofprof.count(script_models.Forks(), torch.rand(4, 8)))

    def profiled(model):
        return rows(roofprof.RooflineProfiler(model, repeat=3, ceilings=NO_ROOFS).run(torch.rand(4, 8)))

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(profiled, models)) == [expected] * 8
