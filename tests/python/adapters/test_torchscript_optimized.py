"""TorchScript that was optimised for inference: most of its work is in operators that no dispatcher sees."""

from __future__ import annotations

import pytest
import torch
from models import ResNet, vision
from script_models import scripted
from torch import nn

import roofprof

pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore:.*torch.jit.*:DeprecationWarning"),
    pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="this torch has no oneDNN"),
]

NO_ROOFS = roofprof.Ceilings()
CONVOLUTION = "prim::mkldnn_convolution"


def optimized(model, *, by=scripted):
    return torch.jit.optimize_for_inference(by(model.eval()))


def not_counted(report):
    return dict(report.coverage.uncosted) | dict(report.coverage.unobserved)


class Layers(nn.Module):
    """A convolution of 3 x 3, depthwise of 3 x 3 and 1 x 1, with what oneDNN runs between them."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.depthwise = nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.point = nn.Conv2d(8, 16, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = nn.functional.hardswish(self.first(x))
        x = nn.functional.hardsigmoid(self.depthwise(x)) * 2.0
        return nn.functional.hardtanh(self.point(x))


def test_each_operator_costs_what_the_one_that_it_replaces_does():
    model, x = Layers(), torch.rand(2, 3, 10, 10)
    expected, found = roofprof.count(model.eval(), x), roofprof.count(optimized(model), x)
    positions = 2 * 10 * 10
    assert expected.total.macs == positions * (8 * 27 + 8 * 9 + 16 * 8)
    assert (found.total.macs, found.total.flops) == (expected.total.macs, expected.total.flops)
    operators = found.by_operator()
    assert operators[CONVOLUTION].calls == 3
    assert operators[CONVOLUTION].macs == expected.total.macs
    assert operators[CONVOLUTION].bytes == expected.by_operator()["aten::conv2d"].bytes
    assert not_counted(found) == {}


@pytest.mark.parametrize("make", [torch.jit.freeze, torch.jit.optimize_for_inference])
@pytest.mark.parametrize("use", ["run", "block"])
def test_a_model_outlives_what_it_was_frozen_from(make, use):
    """Its code names functions of the scripted model, and torch reads them where it tells of modules."""
    model, x = ResNet().eval(), torch.rand(1, 3, 16, 16)
    macs = roofprof.count(model, x).total.macs
    model = make(scripted(model))
    prof = roofprof.RooflineProfiler(model, ceilings=NO_ROOFS, repeat=3, warmup=3)
    if use == "run":
        assert prof.run(x).total.macs == macs
        return
    for _ in range(4):
        with prof:
            model(x)
    assert prof.report().row("").calls == 1


# MACs as torchvision publishes them.
@pytest.mark.integration
@pytest.mark.parametrize(("name", "macs"), [("resnet18", 1.814e9), ("mobilenet_v3_small", 0.057e9)])
def test_models_have_their_published_macs(name, macs):
    model, x = vision(name)().eval(), torch.rand(1, 3, 224, 224)
    expected = roofprof.count(model, x).total.macs
    assert expected == pytest.approx(macs, abs=0.5e6)
    found = roofprof.count(optimized(model), x)
    assert found.total.macs == expected
    assert not_counted(found) == {}


def test_timed_runs_know_the_work_and_the_row_s_time():
    model, x = optimized(Layers()), torch.rand(2, 3, 10, 10)
    report = roofprof.RooflineProfiler(model, warmup=1, repeat=2, ceilings=NO_ROOFS).run(x)
    assert report.total.macs == roofprof.count(model, x).total.macs
    assert report.total.time > 0
    assert report.by_operator()[CONVOLUTION].time is None  # the clock does not see its calls
    assert not_counted(report) == {}


def test_a_block_names_what_it_cannot_see():
    model, x = optimized(Layers()), torch.rand(2, 3, 10, 10)
    profiler = roofprof.RooflineProfiler(model, ceilings=NO_ROOFS)
    with profiler:
        model(x)
        model(x)
    report = profiler.report()
    assert report.coverage.unobserved[CONVOLUTION] == 2 * 3
    assert report.row("").incomplete
    assert CONVOLUTION in str(report)


def test_a_block_gives_them_to_the_module_that_has_them():
    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.before, self.inner = nn.Conv2d(3, 3, 1), optimized(Layers())

        def forward(self, x):
            return self.inner(self.before(x))

    model, x = Outer().eval(), torch.rand(2, 3, 10, 10)
    profiler = roofprof.RooflineProfiler(model, ceilings=NO_ROOFS)
    with profiler:
        model(x)
    report = profiler.report()
    assert report.row("inner").incomplete
    assert not report.row("before").incomplete
    assert roofprof.count(model, x).row("inner").macs == roofprof.count(model.inner, x).total.macs


def test_convolutions_of_one_dimension_and_three_are_counted():
    for dims, layer in ((1, nn.Conv1d), (3, nn.Conv3d)):
        model, x = nn.Sequential(layer(4, 6, 3, padding=1, groups=2), nn.ReLU()), torch.rand(1, 4, *[5] * dims)
        report = roofprof.count(optimized(model), x)
        assert report.total.macs == 6 * 5**dims * 2 * 3**dims
        assert not_counted(report) == {}


def test_kernels_that_onednn_fused_are_named_in_a_block():
    x = torch.rand(1, 3, 8, 8)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(72, 4)).eval()
    torch.jit.enable_onednn_fusion(True)
    try:
        with torch.no_grad():
            frozen = torch.jit.freeze(torch.jit.trace(model, x))
            for _ in range(3):  # the executor fuses after a while
                frozen(x)
            profiler = roofprof.RooflineProfiler(frozen, ceilings=NO_ROOFS)
            with profiler:
                frozen(x)
    finally:
        torch.jit.enable_onednn_fusion(False)
    assert any(name.startswith("LlgaPartition_") for name in not_counted(profiler.report()))
    assert roofprof.count(frozen, x).total.macs == 8 * 6 * 6 * 27 + 72 * 4
