"""Kernels of torch.compile on a CPU: bytes and FLOPs by closed forms, modules, sums, and what is left as it was."""

import importlib
import json

import pytest
import torch
import torch._dynamo
from given_roofs import profiler
from torch import nn

import roofprof
from roofprof.models import inductor

pytestmark = pytest.mark.usefixtures("nothing_compiled")
needs_kernels = pytest.mark.skipif(inductor.why_not() != "", reason=inductor.why_not())


def kernels_of(model, *args, step=None):
    given = profiler(model, compiled_kernels=True, warmup=1, repeat=2)
    return given.run(*args) if step is None else given.run_step(step, *args)


@pytest.mark.parametrize(("module", "path"), inductor.INTERFACES, ids=lambda text: text)
def test_torch_has_this_private_interface(module, path):
    if torch.__version__.startswith("2.11"):
        pytest.skip("torch 2.11 lacks some: a note says so")
    value = importlib.import_module(module)
    for name in path.split("."):
        value = getattr(value, name)


def test_a_torch_without_them_says_so_in_one_sentence(monkeypatch):
    monkeypatch.setattr(inductor, "INTERFACES", (("torch._inductor.debug", "gone"),))
    report = kernels_of(torch.compile(nn.Linear(8, 8)), torch.rand(2, 8))
    assert report.kernels == []
    (note,) = [note for note in report.coverage.notes if note.code == "no-kernels"]
    assert "has no torch._inductor.debug.gone" in note.text
    assert report.total.time > 0


# ---- bytes and FLOPs


@needs_kernels
@pytest.mark.parametrize("elements", [1000, 4096])
def test_an_elementwise_chain_reads_and_writes_once(elements):
    class Chain(nn.Module):
        def forward(self, x):
            return (x * 2 + 1).relu()

    with torch.no_grad():
        (kernel,) = kernels_of(torch.compile(Chain()), torch.rand(elements)).kernels
    assert kernel.bytes == 2 * 4 * elements
    assert kernel.unfused_bytes == 3 * 2 * 4 * elements
    assert kernel.flops == 3 * elements
    assert kernel.intensity == 3 / 8
    assert set(kernel.fused.split(", ")) == {"aten::relu", "aten::add", "aten::mul"}
    assert kernel.instances == 1


@needs_kernels
def test_a_layer_norm_moves_its_input_weight_bias_and_output():
    rows, width = 32, 64
    with torch.no_grad():
        report = kernels_of(torch.compile(nn.Sequential(nn.LayerNorm(width))), torch.rand(rows, width))
    (kernel,) = report.kernels
    assert kernel.bytes == 4 * (2 * rows * width + 2 * width)
    assert kernel.modules == kernel.module == "0"


@needs_kernels
def test_an_epilogue_reads_what_the_linear_wrote():
    rows, width = 32, 64
    with torch.no_grad():
        report = kernels_of(torch.compile(nn.Sequential(nn.Linear(width, width), nn.GELU())), torch.rand(rows, width))
    by_module = {kernel.module: kernel for kernel in report.kernels}
    linear, gelu = by_module["0"], by_module["1"]
    assert linear.name == "aten::addmm"
    assert linear.flops == report.row("0").flops
    assert linear.bytes == report.row("0").bytes == 4 * (2 * rows * width + width * width + width)
    assert gelu.bytes == 2 * 4 * rows * width
    assert not gelu.shared


@needs_kernels
def test_a_kernel_of_several_modules_counts_for_the_one_around_them():
    model = nn.Sequential(nn.Sequential(nn.ReLU(), nn.Sigmoid()), nn.Sequential(nn.Linear(64, 64)))
    with torch.no_grad():
        report = kernels_of(torch.compile(model), torch.rand(32, 64))
    (shared,) = [kernel for kernel in report.kernels if kernel.shared]
    assert shared.module == "0"
    assert sorted(part.split()[0] for part in shared.modules.split(", ")) == ["0.0", "0.1"]
    assert report.row("0").time > 0
    assert report.row("0.0").time is None
    assert report.row("1.0").time > 0


# ---- sums


def check_sums(report, least_known=0.95):
    times = [row.self_time for row in report.rows if row.self_time is not None]
    assert sum(times) == pytest.approx(report.total.time, rel=1e-9)
    known = sum(kernel.total for kernel in report.kernels if kernel.modules)
    assert known >= least_known * sum(kernel.total for kernel in report.kernels)
    assert all(kernel.total > 0 and kernel.code for kernel in report.kernels)


@needs_kernels
def test_a_transformer_block():
    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, dropout=0.0)
    layer.train()
    with torch.no_grad():
        report = kernels_of(torch.compile(layer), torch.rand(4, 32, 64))
        eager = roofprof.count(layer, torch.rand(4, 32, 64))
    check_sums(report)
    assert report.total.macs == eager.total.macs
    assert report.row("linear1").time > 0
    linear = sum(kernel.flops for kernel in report.kernels if kernel.name == "aten::addmm")
    assert linear >= sum(report.row(name).flops for name in ("linear1", "linear2"))


@needs_kernels
@pytest.mark.slow
def test_resnet50():
    torchvision = pytest.importorskip("torchvision")
    model = torchvision.models.resnet50().eval()
    with torch.no_grad():
        report = kernels_of(torch.compile(model), torch.rand(1, 3, 64, 64))
    check_sums(report)
    assert report.row("layer1.0.conv1").time > 0
    convolutions = sum(kernel.flops for kernel in report.kernels if kernel.name == "aten::convolution")
    assert convolutions == 2 * (report.total.macs - report.row("fc").macs)


@needs_kernels
def test_a_training_step():
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64))
    compiled = torch.compile(model)

    def step(x):
        compiled(x).sum().backward()

    report = kernels_of(compiled, torch.rand(32, 64), step=step)
    check_sums(report, 0.5)
    assert {kernel.phase for kernel in report.kernels} == {"forward", "backward"}
    backward = [kernel for kernel in report.kernels if kernel.phase == "backward" and kernel.name == "aten::mm"]
    assert {kernel.module for kernel in backward} == {"0", "2"}


@needs_kernels
def test_blocks_that_share_one_graph_get_their_own_time():
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(64, 64)

        def forward(self, x):
            return self.linear(x).relu()

    model = nn.Sequential(Block(), Block(), Block())
    for block in model:
        block.compile()
    with torch.no_grad():
        report = kernels_of(model, torch.rand(32, 64))
    check_sums(report)
    for i in range(3):
        assert report.row(f"{i}.linear").time > 0
    assert {kernel.module for kernel in report.kernels} >= {f"{i}.linear" for i in range(3)}


@needs_kernels
def test_a_compiled_part_of_an_eager_model():
    model = nn.Sequential(nn.Linear(64, 64), nn.Sequential(nn.Linear(64, 64), nn.ReLU()))
    model[1].compile()
    with torch.no_grad():
        report = kernels_of(model, torch.rand(32, 64))
    check_sums(report)
    assert {kernel.module for kernel in report.kernels} <= {"1", "1.0", "1.1"}


@needs_kernels
def test_graph_breaks_are_counted_with_place_and_reason():
    class Broken(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(64, 64), nn.Linear(64, 64)

        def forward(self, x):
            x = self.first(x)
            torch._dynamo.graph_break()
            return self.second(x)

    with torch.no_grad():
        report = kernels_of(torch.compile(Broken()), torch.rand(32, 64))
    check_sums(report)
    (note,) = [note for note in report.coverage.notes if note.code == "graph-breaks"]
    assert note.text.startswith("1 graph break: test_compiled_kernels.py:")
    assert {kernel.module for kernel in report.kernels} == {"first", "second"}


@needs_kernels
def test_sizes_may_be_symbolic():
    model = torch.compile(nn.Sequential(nn.Linear(64, 64), nn.ReLU()), dynamic=True)
    with torch.no_grad():
        report = kernels_of(model, torch.rand(32, 64))
    check_sums(report)
    relu = next(kernel for kernel in report.kernels if kernel.module == "1")
    assert relu.bytes == 2 * 4 * 32 * 64


@needs_kernels
def test_casts_move_bytes_and_compute_nothing():
    class Cast(nn.Module):
        def forward(self, x):
            return (x.float() * 2).bfloat16()

    with torch.no_grad():
        (kernel,) = kernels_of(torch.compile(Cast()), torch.rand(1000).bfloat16()).kernels
    assert kernel.bytes == 2 * 2 * 1000
    assert kernel.flops == 1000


@needs_kernels
def test_a_graph_that_ran_with_several_sizes_has_times_alone():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.part = nn.Sequential(nn.Linear(64, 64), nn.ReLU())
            self.part.compile(dynamic=True)

        def forward(self, x):
            return self.part(x).sum() + self.part(x[:5]).sum()

    with torch.no_grad():
        report = kernels_of(Twice(), torch.rand(32, 64))
    check_sums(report)
    assert {(kernel.instances, kernel.bytes, kernel.flops) for kernel in report.kernels} == {(2, None, None)}


# ---- what is left


@needs_kernels
def test_the_users_compiled_code_is_as_it_was():
    model = torch.compile(nn.Sequential(nn.Linear(64, 64), nn.ReLU()))
    x = torch.rand(32, 64)
    with torch.no_grad():
        model(x)
        counters = json.dumps(torch._dynamo.utils.counters)
        config = torch._inductor.config.get_config_copy()
        kernels_of(model, x)
        assert json.dumps(torch._dynamo.utils.counters) == counters
        assert torch._inductor.config.get_config_copy() == config
        with torch.compiler.set_stance("fail_on_recompile"):
            model(x)


@needs_kernels
def test_nothing_is_compiled_where_nobody_asks():
    model = torch.compile(nn.Sequential(nn.Linear(64, 64), nn.ReLU()))
    with torch.no_grad():
        report = profiler(model).run(torch.rand(32, 64))
    assert report.kernels == []
    assert report.row("0").time is None


@needs_kernels
def test_another_backend_has_no_kernels(backend):
    report = kernels_of(torch.compile(nn.Linear(8, 8), backend=backend), torch.rand(2, 8))
    assert report.kernels == []
    assert any(note.code == "no-kernels" for note in report.coverage.notes)


@needs_kernels
def test_a_saved_report_has_its_kernels(tmp_path):
    with torch.no_grad():
        report = kernels_of(torch.compile(nn.Sequential(nn.Linear(64, 64), nn.ReLU())), torch.rand(32, 64))
    report.to_json(tmp_path / "r.json")
    again = roofprof.Report.from_json(tmp_path / "r.json")
    assert [(k.name, k.modules, k.bytes, k.code) for k in again.kernels] == [
        (k.name, k.modules, k.bytes, k.code) for k in report.kernels
    ]
    assert "cpp_fused" in report.table(by="kernel", width=300)
