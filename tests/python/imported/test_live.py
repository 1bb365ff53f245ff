"""A call profiled live and its trace imported give the same work by module: traces recorded by the installed torch."""

import copy

import pytest
import torch
import torch.nn.functional as F
from models import named, vision
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function
from torch.utils.checkpoint import checkpoint

import roofprof


def recorded(call, path, **options):
    """The trace of one call, as a file."""
    settings = {"record_shapes": True, "with_stack": True} | options
    with profile(activities=[ProfilerActivity.CPU], **settings) as profiler:
        call()
    profiler.export_chrome_trace(str(path))
    return path


def by_module(report):
    """Every figure of work, and the calls, of rows that have some, children included, of phases and of operators."""

    def work(row):
        return row.macs, row.flops, row.int_ops, row.read_bytes, row.write_bytes

    rows = {row.path: (row.type, row.calls, *work(row)) for row in report.rows if any(work(row))}
    phases = {tuple(group.keys): work(group) for group in report.group("phase")}
    ops = {tuple(group.keys): (group.calls, *work(group)) for group in report.group("op", "phase") if any(work(group))}
    return rows, phases, ops


def assert_same_work(live, imported):
    for here, there in zip(by_module(live), by_module(imported), strict=True):
        assert here.keys() == there.keys()
        differing = {key: (here[key], there[key]) for key in here if here[key] != there[key]}
        assert not differing


class Mixed(nn.Module):
    """Everything that a cost can read: scalars, strides, in place, lists, types, numbers for tensors."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.norm = nn.GroupNorm(2, 8)
        self.pool = nn.MaxPool2d(3, 2, 1)
        self.out = nn.Linear(8, 5)

    def forward(self, x):
        y = F.relu_(self.norm(self.conv(x)))
        y = self.pool(y) + y.mean((2, 3), keepdim=True).expand(-1, -1, y.shape[2] // 2, y.shape[3] // 2)
        y = torch.cat([y, y * 2], dim=1)[:, :8].to(torch.float64).float()
        y = y.clamp(min=0).masked_fill(y > 1, 0.5)
        return self.out(y.flatten(2).transpose(1, 2)).softmax(-1).topk(3, -1)[0].cumsum(0)


class Checkpointed(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 8)) for _ in range(3))
        self.last = nn.Linear(8, 1)

    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False)
        return self.last(x)


def bert():
    import transformers

    config = transformers.BertConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, vocab_size=100
    )
    return transformers.BertModel(config), {"input_ids": torch.arange(12).reshape(2, 6)}


MODELS = {
    "resnet50": lambda: (vision("resnet50")(), (torch.randn(1, 3, 64, 64),)),
    "bert": bert,
    "mixed": lambda: (Mixed(), (torch.randn(2, 3, 16, 16),)),
    "checkpointed": lambda: (Checkpointed(), (torch.randn(4, 8),)),
}


def made(name):
    model, inputs = MODELS[name]()
    return (model, (), inputs) if isinstance(inputs, dict) else (model, inputs, {})


@pytest.mark.parametrize("name", named(MODELS, "resnet50", "bert"))
def test_a_forward(name, tmp_path):
    model, args, kwargs = made(name)
    model.eval()
    with torch.no_grad():
        path = recorded(lambda: model(*args, **kwargs), tmp_path / "t.json")
        live = roofprof.count(model, *args, **kwargs)
    imported = roofprof.from_trace(path, model=model, inputs=(args, kwargs))
    assert_same_work(live, imported)
    fused = {row.path: row.fused_bytes for row in live.rows}
    assert {row.path: row.fused_bytes for row in imported.rows} == fused


def floating_sum(output):
    if isinstance(output, torch.Tensor):
        return output.sum()
    return sum(value.sum() for value in output.values() if value.is_floating_point())


@pytest.mark.parametrize("name", named(MODELS, "resnet50", "bert"))
def test_a_training_step(name, tmp_path):
    """Forward, backward, recomputation and the optimizer's ops, each in its phase and module."""
    model, args, kwargs = made(name)
    model.train()
    steps = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def step():
        floating_sum(model(*args, **kwargs)).backward()
        steps.step()
        steps.zero_grad()

    step()  # the optimizer's state is made here
    path = recorded(step, tmp_path / "t.json")
    profiler = roofprof.RooflineProfiler(model)
    with profiler:
        step()
    imported = roofprof.from_trace(path, model=copy.deepcopy(model).to("meta"), inputs=(args, kwargs))
    assert_same_work(profiler.report(), imported)
    phases = {group.keys[0] for group in imported.group("phase")}
    assert phases == {"forward", "backward", "optimizer"} | ({"recompute"} if name == "checkpointed" else set())


class WithRegions(nn.Module):
    """Regions in and around modules, one of them shared."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 16)
        self.shared = nn.Sequential(nn.Linear(16, 16), nn.Dropout(0.1))
        self.attention = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)

    def forward(self, batch, scale=1.0):
        x = self.first(batch["x"]) * scale
        with record_function("twice"):
            x = self.shared(F.gelu(self.shared(x)))
        return {"y": self.attention(x), "total": x.sum()}


@pytest.mark.parametrize("at_once", [True, False])
def test_a_program_is_the_same_live_and_as_a_trace(at_once, tmp_path):
    """Rows, calls, regions, operators and phases, whether torch.profiler records the block itself or the next run."""
    model = WithRegions()
    optimizer = torch.optim.SGD(model.parameters())

    def run():
        for _ in range(2):
            with record_function("loss"):
                out = model({"x": torch.randn(2, 5, 8)}, scale=2.0)
                loss = out["y"].square().mean() + out["total"]
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()

    run()
    profiler = roofprof.RooflineProfiler(model)

    def profiled():
        with profiler:
            run()

    if not at_once:
        profiled()
    path = recorded(profiled if at_once else run, tmp_path / "t.json")
    inputs = ({"x": torch.randn(2, 5, 8)},)
    live, imported = profiler.report(), roofprof.from_trace(path, model=copy.deepcopy(model), inputs=(inputs, {}))
    assert_same_work(live, imported)
    assert live.coverage.uncosted == imported.coverage.uncosted == {}
    for here, there in zip(live.regions, imported.regions, strict=True):
        assert (here.path, here.calls, here.macs, here.bytes) == (there.path, there.calls, there.macs, there.bytes)


def test_autocast(tmp_path):
    """The ops that autocast dispatches again count once, in the type that they ran in, and its casts with them."""
    model, x = Mixed().eval(), torch.randn(2, 3, 16, 16)

    def call():
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
            model(x)

    path = recorded(call, tmp_path / "t.json")
    profiler = roofprof.RooflineProfiler(model)
    with profiler:
        call()
    imported = roofprof.from_trace(path, model=model, inputs=x)
    assert_same_work(profiler.report(), imported)
    assert imported.row("conv").flops_by_dtype["bf16"] > 0


def test_rows_without_the_model(tmp_path):
    """They are named by class and number, and parameters are not known; so it is without stacks or shapes."""
    model, x = nn.Sequential(nn.Linear(4, 8), nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 2))), torch.randn(3, 4)
    imported = roofprof.from_trace(recorded(lambda: model(x), tmp_path / "t.json"))
    paths = ["", "Linear_0", "Sequential_1", "Sequential_1.Linear_1", "Sequential_1.Linear_2"]
    assert [row.path for row in imported.rows if row.path != "(outside)"] == paths
    assert imported.row("").params is None
    assert imported.total.macs == 3 * (4 * 8 + 8 * 8 + 8 * 2)
    assert roofprof.from_trace(tmp_path / "t.json", model=model, inputs=x).row("1.0").params == 8 * 8 + 8
    lacking = roofprof.from_trace(recorded(lambda: model(x), tmp_path / "t.json", with_stack=False))
    assert lacking.total.macs == imported.total.macs
    (text,) = [note.text for note in lacking.coverage.notes if note.code == "trace-lacks"]
    assert "with_stack=True" in text


def test_steps(tmp_path):
    """Steps are chosen by ProfilerStep's numbers; all of them have times."""
    model, x = nn.Linear(4, 8), torch.randn(3, 4)
    written = tmp_path / "t.json"
    handler = roofprof.trace_handler(tmp_path / "r{step}.json", model=model, inputs=x)
    for ready in (handler, lambda profiler: profiler.export_chrome_trace(str(written))):
        options = {"record_shapes": True, "with_stack": True, "on_trace_ready": ready}
        schedule = torch.profiler.schedule(wait=1, warmup=1, active=3)
        with profile(activities=[ProfilerActivity.CPU], schedule=schedule, **options) as profiler:
            for _ in range(5):
                model(x)
                profiler.step()
    assert roofprof.Report.from_json(tmp_path / "r5.json").total.macs == 3 * 3 * 4 * 8
    one = 3 * 4 * 8
    whole = roofprof.from_trace(written)
    assert whole.total.macs == 3 * one
    assert whole.steps == len(whole.step_times) == 3
    assert roofprof.from_trace(written, steps=(3, 4)).total.macs == 2 * one
    mean = roofprof.from_trace(written, steps="mean")
    assert "the mean of 3 steps" in str(mean)
    assert (mean.total.macs, mean.row("").calls) == (one, 1)
    inside = roofprof.from_trace(written, steps="2-4").total
    assert mean.total.wall == pytest.approx(inside.wall / 3, abs=1e-8)
    for wrong in ("x", "3-1", "-1", (1,), 5):
        with pytest.raises(ValueError, match="steps are given as '3' or '1-3'"):
            roofprof.from_trace(written, steps=wrong)


def test_own_operators(tmp_path):
    """An operator without a cost is listed; with one of the user's it counts by that."""
    library = torch.library.Library("roofprof_import", "FRAGMENT")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: torch.from_numpy(x.numpy() * 2), "CPU")
    library.impl("twice", torch.empty_like, "Meta")
    path = recorded(lambda: torch.ops.roofprof_import.twice(torch.ones(10)), tmp_path / "t.json")
    try:
        assert roofprof.from_trace(path).coverage.uncosted == {"roofprof_import::twice": 1}

        @roofprof.op_cost("roofprof_import::twice")
        def cost(x):
            return roofprof.Work(flops=x.numel())

        assert roofprof.from_trace(path).by_operator()["roofprof_import::twice"].flops == 10
    finally:
        library._destroy()
