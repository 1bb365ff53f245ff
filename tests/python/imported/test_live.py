"""A call profiled live and its trace imported give the same work by module: traces recorded by the installed torch."""

import copy
import threading

import pytest
import torch
import torch.nn.functional as F
from models import ResNet, named, vision
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


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.SiLU())
        self.inner = nn.Sequential(nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.GELU())
        self.up = nn.ConvTranspose2d(16, 8, 2, stride=2)
        self.out = nn.Conv2d(16, 1, 1)

    def forward(self, x):
        skip = self.down(x)
        up = self.up(self.inner(skip))
        resized = F.interpolate(up, size=skip.shape[-2:], mode="bilinear")
        return self.out(torch.cat([skip, resized], dim=1))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 16)
        self.lstm = nn.LSTM(16, 12, num_layers=2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(24, 50)

    def forward(self, tokens):
        return self.head(self.lstm(self.embed(tokens))[0])


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


def vit():
    import torchvision

    return torchvision.models.VisionTransformer(32, 8, 2, 4, 32, 64), (torch.randn(2, 3, 32, 32),)


def bert():
    import transformers

    config = transformers.BertConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, vocab_size=100
    )
    return transformers.BertModel(config), {"input_ids": torch.arange(12).reshape(2, 6)}


MODELS = {
    "resnet": lambda: (ResNet(), (torch.randn(1, 3, 16, 16),)),
    "resnet50": lambda: (vision("resnet50")(), (torch.randn(1, 3, 64, 64),)),
    "vit": vit,
    "bert": bert,
    "lstm": lambda: (Recurrent(), (torch.arange(20).reshape(2, 10),)),
    "unet": lambda: (UNet(), (torch.randn(1, 3, 32, 32),)),
    "mixed": lambda: (Mixed(), (torch.randn(2, 3, 16, 16),)),
    "checkpointed": lambda: (Checkpointed(), (torch.randn(4, 8),)),
}


def made(name):
    model, inputs = MODELS[name]()
    return (model, (), inputs) if isinstance(inputs, dict) else (model, inputs, {})


@pytest.mark.parametrize("name", named(MODELS, "resnet50", "vit", "bert"))
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


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.AdamW])
@pytest.mark.parametrize("name", named(MODELS, "resnet50", "vit", "bert"))
def test_a_training_step(name, optimizer, tmp_path):
    """Forward, backward, recomputation and the optimizer's ops, each in its phase and module."""
    model, args, kwargs = made(name)
    model.train()
    steps = optimizer(model.parameters(), lr=1e-3)

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


def trained(model, optimizer):
    """Two steps on dicts, as a loop has them."""

    def steps():
        for _ in range(2):
            with record_function("loss"):
                out = model({"x": torch.randn(2, 5, 8)}, scale=2.0)
                loss = out["y"].square().mean() + out["total"]
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()

    return steps


def called(model, _):
    """Calls alone, of the model and of a part of it."""

    def calls():
        with torch.no_grad():
            for _ in range(3):
                model({"x": torch.randn(2, 5, 8)})
            with record_function("part"):
                model.first(torch.randn(4, 8))

    return calls


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("program", [trained, called])
def test_a_program_is_the_same_live_and_as_a_trace(program, at_once, tmp_path):
    """Rows, calls, regions, operators and phases, whether torch.profiler records the block itself or the next run."""
    model = WithRegions()
    run = program(model, torch.optim.AdamW(model.parameters()))
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


def test_a_closure_that_the_optimizer_calls(tmp_path):
    """The model's calls in it are forward; the loss is taken for the optimizer's."""
    model, x = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2)), torch.randn(3, 4)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=2)

    def closure():
        optimizer.zero_grad()
        loss = model(x).sum()
        loss.backward()
        return loss

    path = recorded(lambda: optimizer.step(closure), tmp_path / "t.json")
    imported = roofprof.from_trace(path, model=copy.deepcopy(model), inputs=x)
    calls = imported.row("").calls
    assert calls > 1
    assert imported.by_phase()["forward"].macs == calls * 3 * (4 * 8 + 8 * 2)
    assert imported.by_phase()["backward"].macs == calls * 3 * (4 * 8 + 2 * 8 * 2)


def test_threads_of_the_program(tmp_path):
    """A trace has their operators only with profile_all_threads, and never their modules."""
    model, x = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2)), torch.randn(3, 4)

    def run():
        threads = [threading.Thread(target=model, args=(x,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    everything = torch._C._profiler._ExperimentalConfig(profile_all_threads=True)
    imported = roofprof.from_trace(recorded(run, tmp_path / "t.json", experimental_config=everything))
    with roofprof.RooflineProfiler(model) as profiler:
        run()
    live = profiler.report()
    assert by_module(live)[1:] == by_module(imported)[1:]
    assert imported.row("(outside)").macs == live.row("").macs == 3 * 3 * (4 * 8 + 8 * 2)
    (note,) = [note.text for note in imported.coverage.notes if note.code == "trace-lacks"]
    assert "stacks are recorded of threads that run when the profiler starts" in note


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


def test_regions(tmp_path):
    """Ranges of record_function are regions, those with torch's own names are none."""
    model, x = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)), torch.randn(3, 4)

    def call():
        with record_function("## forward ##"), torch.no_grad():
            model(x)
            with record_function("inner"):
                x @ x.T

    path = recorded(call, tmp_path / "t.json")
    imported = roofprof.from_trace(path, model=model, inputs=x)
    assert {row.path: row.macs for row in imported.regions} == {
        "## forward ##": 3 * 4 * 8 + 3 * 8 * 2 + 9 * 4,
        "## forward ##/inner": 9 * 4,
    }


def test_rows_without_the_model(tmp_path):
    """Without the model, rows are named by class and number, and parameters are not known."""
    model, x = nn.Sequential(nn.Linear(4, 8), nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 2))), torch.randn(3, 4)
    imported = roofprof.from_trace(recorded(lambda: model(x), tmp_path / "t.json"))
    assert [row.path for row in imported.rows if row.path != "(outside)"] == [
        "",
        "Linear_0",
        "Sequential_1",
        "Sequential_1.Linear_1",
        "Sequential_1.Linear_2",
    ]
    assert imported.row("").type == "Sequential"
    assert imported.row("").params is None
    assert imported.total.macs == 3 * (4 * 8 + 8 * 8 + 8 * 2)
    with_model = roofprof.from_trace(tmp_path / "t.json", model=model, inputs=x)
    assert with_model.row("1.0").params == 8 * 8 + 8
    assert with_model.row("1.0").macs == imported.row("Sequential_1.Linear_1").macs


def test_another_model(tmp_path):
    """A model that was not recorded is told from the one that was, with the first difference."""
    model, x = nn.Sequential(nn.Linear(4, 8), nn.ReLU()), torch.randn(3, 4)
    path = recorded(lambda: model(x), tmp_path / "t.json")
    other = nn.Sequential(nn.Linear(4, 8), nn.Tanh())
    imported = roofprof.from_trace(path, model=other, inputs=x)
    notes = [note.text for note in imported.coverage.notes if note.code == "model-not-aligned"]
    (text,) = notes
    assert "where the model calls 1 (Tanh), the trace has a ReLU" in text
    assert imported.row("Linear_0").macs == 3 * 4 * 8


def test_steps(tmp_path):
    """Steps are chosen by ProfilerStep's numbers; all of them have times."""
    model, x = nn.Linear(4, 8), torch.randn(3, 4)
    schedule = torch.profiler.schedule(wait=1, warmup=1, active=3)
    written = tmp_path / "r.json"
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule,
        record_shapes=True,
        with_stack=True,
        on_trace_ready=lambda prof: prof.export_chrome_trace(str(written)),
    ) as profiler:
        for _ in range(5):
            model(x)
            profiler.step()
    one = 3 * 4 * 8
    whole = roofprof.from_trace(written)
    assert whole.total.macs == 3 * one
    assert whole.steps == 3
    assert len(whole.step_times) == 3
    assert roofprof.from_trace(written, steps="3").total.macs == one
    assert roofprof.from_trace(written, steps=(3, 4)).total.macs == 2 * one
    mean = roofprof.from_trace(written, steps="mean")
    assert mean.total.macs == one
    assert mean.row("").calls == 1
    inside = roofprof.from_trace(written, steps="2-4").total
    assert mean.total.wall == pytest.approx(inside.wall / 3, abs=1e-8)
    with pytest.raises(ValueError, match="it has the steps 2 to 4, none of 7 to 9"):
        roofprof.from_trace(written, steps="7-9")
    for wrong in ("x", "3-1", "-1", (1,), 5):
        with pytest.raises(ValueError, match="steps are given as '3' or '1-3'"):
            roofprof.from_trace(written, steps=wrong)


def test_a_mean_is_of_whole_steps(tmp_path):
    """The loop ends before the schedule does: the profiler has a range for the step that never ran."""
    model, x = nn.Linear(4, 8), torch.randn(3, 4)
    written = tmp_path / "t.json"
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=torch.profiler.schedule(wait=0, warmup=1, active=5),
        record_shapes=True,
        with_stack=True,
        on_trace_ready=lambda prof: prof.export_chrome_trace(str(written)),
    ) as profiler:
        for _ in range(3):
            model(x)
            profiler.step()
    whole, mean = roofprof.from_trace(written), roofprof.from_trace(written, steps="mean")
    assert whole.steps == len(whole.step_times) == 2
    assert whole.total.macs == 2 * 3 * 4 * 8
    assert mean.total.macs == 3 * 4 * 8
    assert mean.row("").calls == 1
    assert "a step on average" not in str(whole)  # what ran outside of its steps is not known
    assert "the mean of 2 steps" in str(mean)


def test_a_profiler_in_place_of_a_file():
    """What has ended can be given itself, once; a handler writes each trace's report."""
    model, x = nn.Linear(4, 8), torch.randn(3, 4)
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, with_stack=True) as profiler:
        model(x)
    assert roofprof.from_trace(profiler).total.macs == 3 * 4 * 8
    with pytest.raises(ValueError, match="not a int"):
        roofprof.from_trace(5)


def test_the_handler(tmp_path):
    model, x = nn.Linear(4, 8), torch.randn(3, 4)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=torch.profiler.schedule(wait=0, warmup=1, active=1),
        record_shapes=True,
        with_stack=True,
        on_trace_ready=roofprof.trace_handler(tmp_path / "r{step}.json", model=model, inputs=x),
    ) as profiler:
        for _ in range(4):
            model(x)
            profiler.step()
    written = sorted(tmp_path.glob("*.json"))
    assert [path.name for path in written] == ["r2.json", "r4.json"]
    for path in written:
        assert roofprof.Report.from_json(path).total.macs == 3 * 4 * 8


def test_what_a_trace_lacks(tmp_path):
    """Each missing option is named with what to record."""
    model, x = nn.Linear(4, 8), torch.randn(3, 4)

    def notes(**options):
        report = roofprof.from_trace(recorded(lambda: model(x), tmp_path / "t.json", **options))
        return report, [note.text for note in report.coverage.notes if note.code == "trace-lacks"]

    report, texts = notes(record_shapes=False)
    assert any("record_shapes=True" in text for text in texts)
    assert report.total.incomplete
    report, texts = notes(with_stack=False)
    assert any("with_stack=True" in text for text in texts)
    assert report.total.macs == 3 * 4 * 8


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


def test_texts_are_named(tmp_path):
    """Traces have no texts: where a cost reads one, the note says which default was taken."""
    x = torch.randn(4, 4)
    path = recorded(lambda: F.gelu(x, approximate="tanh"), tmp_path / "t.json")
    (text,) = [note.text for note in roofprof.from_trace(path).coverage.notes if "texts" in note.text]
    assert "aten::gelu approximate" in text
