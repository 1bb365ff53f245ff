"""What crosses the boundary of a module, against closed forms: the fused bytes of chains, blocks and steps."""

from __future__ import annotations

import json

import pytest
import torch
from fused_checks import assert_bounded, assert_not_known
from given_roofs import LEVELS, PEAKS, profiler
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import roofprof

FLOAT, LONG = 4, 8  # bytes
BATCH, WIDTH = 8, 16
ROW = BATCH * WIDTH * FLOAT


class Calls(nn.Module):
    """A module around a function and its children."""

    def __init__(self, function, **children):
        super().__init__()
        for name, child in children.items():
            setattr(self, name, child)
        self.function = function

    def forward(self, *args, **kwargs):
        return self.function(self, *args, **kwargs)


def x(*sizes):
    return torch.rand(*(sizes or (BATCH, WIDTH)))


def fused(model, *inputs, **keywords):
    """The fused bytes of each row of one call without gradients."""
    with torch.no_grad():
        report = profiler(model).count(*inputs, **keywords)
    assert_sane(report)
    return {row.path: row.fused_bytes for row in report.rows}


def assert_sane(report):
    assert_bounded(report)
    below = {row.path: row.self_bytes for row in report.rows}
    for row in report.rows:
        if row.path and not row.path.startswith("("):
            below[row.path.rpartition(".")[0]] += row.fused_bytes
    for row in report.rows:  # what crosses a boundary crosses those inside of it, or is its own ops'
        assert row.fused_bytes <= below[row.path], row.path


# ---- one call


def test_chain_reads_its_input_and_writes_its_output():
    model = nn.Sequential(nn.ReLU(), nn.Sigmoid(), nn.Tanh(), nn.Sequential(nn.ReLU(), nn.Tanh()))
    rows = fused(model, x())
    assert rows == dict.fromkeys(("", "0", "1", "2", "3", "3.0", "3.1"), 2 * ROW)


def test_softmax_of_ops():
    def softmax(_, scores):
        raised = (scores - scores.amax(-1, keepdim=True)).exp()
        return raised / raised.sum(-1, keepdim=True)

    assert fused(Calls(softmax), x())[""] == 2 * ROW


def test_normalisation_of_ops():
    def normalise(self, values):
        centred = values - values.mean(-1, keepdim=True)
        return centred * torch.rsqrt((centred * centred).mean(-1, keepdim=True) + 1e-5) * self.weight

    model = Calls(normalise)
    model.weight = nn.Parameter(torch.ones(WIDTH))
    assert fused(model, x())[""] == 2 * ROW + WIDTH * FLOAT


def test_epilogue_of_a_linear():
    rows = fused(nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.ReLU()), x())
    weights = (2 * WIDTH * WIDTH + 2 * WIDTH) * FLOAT
    assert rows == {"": 3 * ROW + weights, "0": 3 * ROW + weights, "1": 4 * ROW}


def test_attention_keeps_its_scores():
    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
            self.out = nn.Linear(WIDTH, WIDTH)

        def forward(self, tokens):
            q, k, v = (t.unflatten(-1, (2, WIDTH // 2)).transpose(1, 2) for t in self.qkv(tokens).chunk(3, -1))
            scores = (q @ k.transpose(-2, -1) / 4).softmax(-1)
            return self.out((scores @ v).transpose(1, 2).flatten(2))

    rows = fused(Attention(), x(2, 32, WIDTH))
    tokens = 2 * 32 * WIDTH * FLOAT
    assert rows[""] == 2 * tokens + (4 * WIDTH * WIDTH + 4 * WIDTH) * FLOAT
    assert rows["qkv"] == 4 * tokens + 3 * (WIDTH * WIDTH + WIDTH) * FLOAT
    assert rows["out"] == 2 * tokens + (WIDTH * WIDTH + WIDTH) * FLOAT


def test_residual_block_reads_its_input_once():
    block = Calls(lambda self, v: v + self.act(self.fc(v)), fc=nn.Linear(WIDTH, WIDTH), act=nn.ReLU())
    rows = fused(block, x())
    weights = (WIDTH * WIDTH + WIDTH) * FLOAT
    assert rows == {"": 2 * ROW + weights, "fc": 2 * ROW + weights, "act": 2 * ROW}


def test_module_called_twice_reads_its_weights_in_each_call():
    twice = Calls(lambda self, v: self.fc(self.fc(v)), fc=nn.Linear(WIDTH, WIDTH, bias=False))
    weights = WIDTH * WIDTH * FLOAT
    assert fused(twice, x()) == {"": 2 * ROW + weights, "fc": 4 * ROW + 2 * weights}


def test_shared_weights_come_in_once():
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False))
    model[1].weight = model[0].weight
    weights = WIDTH * WIDTH * FLOAT
    rows = fused(model, x())
    assert rows == {"": 2 * ROW + weights, "0": 2 * ROW + weights, "1": 2 * ROW + weights}


def test_in_place():
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH, bias=False), nn.ReLU(inplace=True))
    rows = fused(model, x())
    assert rows[""] == 2 * ROW + WIDTH * WIDTH * FLOAT
    assert rows["1"] == 2 * ROW
    # The input itself is changed: it comes in, and goes out.
    assert fused(Calls(lambda _, v: v.add_(1).mul_(2)), x())[""] == 2 * ROW


def test_out_argument_is_written_only():
    target = x()
    assert fused(Calls(lambda _, v: torch.mul(v + 1, 2, out=target)), x())[""] == 2 * ROW


def test_a_cache_of_which_a_part_is_written():
    cache = torch.zeros(2 * BATCH, WIDTH)

    def step(_, v):
        cache[:BATCH] = v
        return cache.sum(0)

    # The other half comes in; the half that was written goes out, and so does the sum.
    assert fused(Calls(step), x())[""] == ROW + ROW + ROW + WIDTH * FLOAT


def test_views_count_what_is_read():
    big = x(4 * BATCH, WIDTH)
    assert fused(Calls(lambda _, v: v[:BATCH].relu()), big)[""] == 2 * ROW
    assert fused(Calls(lambda _, v: v[:BATCH].relu() + v[:BATCH]), big)[""] == 2 * ROW
    assert fused(Calls(lambda _, v: v[:BATCH].relu() + v[BATCH : 2 * BATCH]), big)[""] == 3 * ROW
    assert fused(Calls(lambda _, v: v[: 2 * BATCH].sum() + v[BATCH : 3 * BATCH].sum()), big)[""] == 3 * ROW + FLOAT
    wide = x(BATCH, 2 * WIDTH)
    assert fused(Calls(lambda _, v: v[:, :WIDTH] * v[:, WIDTH:]), wide)[""] == 3 * ROW
    assert fused(Calls(lambda _, v: v[:, :WIDTH] * v[:, :WIDTH].t().t()), wide)[""] == 2 * ROW
    assert fused(Calls(lambda _, v: v[:, :WIDTH].sum() + v.sum()), wide)[""] == 2 * ROW + FLOAT


def test_a_broadcast_operand_comes_in_once():
    assert fused(Calls(lambda _, v: v + torch.ones(()).expand(BATCH, WIDTH) * 0 + v[:1]), x())[""] <= 3 * ROW
    bias = x(WIDTH)
    assert fused(Calls(lambda _, v: v * bias.expand(BATCH, WIDTH)), x())[""] == 2 * ROW + WIDTH * FLOAT


def test_embedding_reads_rows():
    table = nn.Embedding(1000, WIDTH)
    indices = torch.arange(BATCH)
    assert fused(table, indices)[""] == BATCH * LONG + 2 * ROW
    both = Calls(lambda self, i, j: self.table(i) + self.table(j), table=table)
    rows = fused(both, indices, indices + BATCH)
    assert rows["table"] == 2 * (BATCH * LONG + 2 * ROW)
    assert rows[""] == 2 * (BATCH * LONG + ROW) + ROW
    small = Calls(lambda self, i, j: self.table(i) + self.table(j), table=nn.Embedding(BATCH, WIDTH))
    assert fused(small, indices, indices.clone())[""] == 2 * BATCH * LONG + ROW + ROW  # no row comes in twice


def test_dicts_and_a_tensor_that_is_passed_on():
    def pick(self, batch):
        return {"new": self.act(batch["a"]), "same": batch["b"]}

    rows = fused(Calls(pick, act=nn.ReLU()), {"a": x(), "b": x()})
    assert rows == {"": 2 * ROW, "act": 2 * ROW}
    assert fused(nn.Identity(), x()) == {"": 0}


def test_what_a_module_keeps_goes_out():
    def keep(self, v):
        self.kept = v + 1
        return self.kept * 2

    assert fused(Calls(keep), x())[""] == 3 * ROW


def test_a_module_outside_of_the_tree_that_calls_it():
    """The child stands elsewhere in the tree: what it reads of its caller goes out, and what it makes comes in."""
    act = nn.ReLU()
    first = Calls(lambda self, v: self.borrowed[0](v + 1) * 2)
    first.borrowed = [act]
    model = Calls(lambda self, v: self.first(v) + 0 * self.act(v), first=first, act=act)
    rows = fused(model, x())
    assert rows["first"] == 4 * ROW  # v, v + 1, its relu, the product
    assert rows["act"] == 2 * 2 * ROW
    assert rows[""] == 2 * ROW


def test_containers_without_a_forward():
    layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(3))

    def run(self, v):
        for layer in self.layers:
            v = layer(v)
        return v

    weights = WIDTH * WIDTH * FLOAT
    rows = fused(Calls(run, layers=layers), x())
    assert rows[""] == rows["layers"] == 2 * ROW + 3 * weights


def test_batch_norm_in_training_writes_its_statistics():
    norm = nn.BatchNorm1d(WIDTH)
    rows = fused(norm.train(), x())
    statistics = 2 * WIDTH * FLOAT
    assert rows[""] >= 2 * ROW + statistics
    assert fused(norm.eval(), x())[""] == 2 * ROW + 2 * WIDTH * FLOAT + statistics


@pytest.mark.parametrize("device", ["meta", "fake"])
def test_tensors_without_data(device):
    from torch._subclasses.fake_tensor import FakeTensorMode

    def net():
        return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU()))

    expected = fused(net(), x())
    if device == "meta":
        with torch.device("meta"):
            assert fused(net(), x()) == expected
    else:
        with FakeTensorMode():
            assert fused(net(), x()) == expected


# ---- a training step


def test_training_step():
    """x -> fc -> relu -> sum: the forward keeps the relu's result, and the backward needs x and that."""
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH, bias=False), nn.ReLU())
    data = x()
    prof = profiler(model)
    with prof:
        model(data).sum().backward()
    report = prof.report()
    assert_sane(report)
    rows = {row.path: row.fused_bytes for row in report.rows}
    weights = WIDTH * WIDTH * FLOAT
    # Forward: x, weights, the result. Backward: the gradient (one number, expanded), the kept result, x, the gradient
    # of the weights.
    assert rows["0"] == (ROW + weights + ROW) + (ROW + ROW + weights)
    assert rows[""] == (ROW + weights + ROW) + (FLOAT + ROW + ROW + weights)


def test_kept_for_the_backward_goes_out():
    """Of two activations, only the second one's result is an output: the first one's is kept for the backward."""
    act = nn.Sequential(nn.Sigmoid(), nn.Sigmoid())
    data = x().requires_grad_()
    with torch.no_grad():
        assert profiler(act).count(data).row("").fused_bytes == 2 * ROW
    assert profiler(act).count(data).row("").fused_bytes == 3 * ROW


def test_steps_of_a_loop_count_each():
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = x()

    def steps(number):
        prof = profiler(model)
        with prof:
            for _ in range(number):
                optimizer.zero_grad()
                model(data).sum().backward()
                optimizer.step()
                prof.step()
        assert_sane(prof.report())
        return {row.path: row.fused_bytes for row in prof.report().rows}

    one, three = steps(1), steps(3)
    for path in one:
        assert three[path] == 3 * one[path], path


def test_optimizer():
    model = nn.Linear(WIDTH, WIDTH, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)
    model(x()).sum().backward()
    prof = profiler(model)
    with prof:
        optimizer.step()
    weights = WIDTH * WIDTH * FLOAT
    assert prof.report().row("(optimizer)").fused_bytes == 3 * weights  # the gradient and the weights, and these again


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpointing(reentrant):
    """The activation inside is not kept, and the forward runs again."""
    inner = nn.Sequential(nn.Linear(WIDTH, WIDTH, bias=False), nn.Sigmoid(), nn.Sigmoid())
    model = Calls(lambda self, v: checkpoint(self.inner, v, use_reentrant=reentrant), inner=inner)
    data = x().requires_grad_()
    weights = WIDTH * WIDTH * FLOAT
    prof = profiler(model)
    with prof:
        loss = model(data)
    assert prof.report().row("inner").fused_bytes == 2 * ROW + weights
    prof = profiler(model)
    with prof:
        loss = model(data).sum()
        loss.backward()
    assert_sane(prof.report())
    assert prof.report().row("inner").fused_bytes > 2 * (2 * ROW + weights)


# ---- the bound, and who has none


def test_bound_by_hand():
    """Given roofs, and a working set that DRAM alone holds on paper."""
    levels = {"DRAM": LEVELS["DRAM"]}
    from given_roofs import roofs

    model = nn.Sequential(nn.ReLU(), nn.Tanh(), nn.Linear(WIDTH, WIDTH, bias=False))
    with torch.no_grad():
        report = profiler(model, ceilings=roofs(levels=levels)).run(x())
    row = report.row("")
    bytes_per_second = LEVELS["DRAM"][0]
    assert row.fused_bytes == 2 * ROW + WIDTH * WIDTH * FLOAT
    seconds = max(row.compute_time, row.fused_bytes / bytes_per_second)
    assert row.compute_time == pytest.approx(row.flops / PEAKS["fp32"], abs=5e-9)
    assert row.fused_bound_time == pytest.approx(seconds, abs=5e-9)
    assert row.lower_bound_time == pytest.approx(row.bytes / bytes_per_second, abs=5e-9)
    assert row.percent_of_fused == pytest.approx(100 * row.fused_bound_time / row.time)


def test_written_and_read():
    import roofprof

    with torch.no_grad():
        report = profiler(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU())).run(x())
    again = roofprof.Report.from_dict(json.loads(report.to_json()))
    for row, read in zip(report.rows, again.rows, strict=True):
        assert (read.fused_bytes, read.fused_bound_time, read.percent_of_fused) == (
            row.fused_bytes,
            row.fused_bound_time,
            row.percent_of_fused,
        )
    assert "fused bound" in report.table(columns=["fused_bound", "fused"])


def test_function_with_a_kernel_of_its_own():
    """The largest operand gives what an op does not read: rows of a table, by what definitions say."""
    lookup = Calls(lambda _, table, index: F.embedding(index, table))
    assert fused(lookup, x(100, WIDTH), torch.arange(3))[""] == 3 * LONG + 2 * 3 * WIDTH * FLOAT


def in_trace(call, tmp_path, *model_and_inputs):
    with torch.profiler.profile(record_shapes=True, with_stack=True) as prof:
        call()
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    return roofprof.from_trace(tmp_path / "trace.json", *model_and_inputs)


def linear_and_relu():
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU())


def notes_on_fused(report):
    return [note.text for note in report.coverage.notes if note.code == "fused-not-known"]


def test_a_trace_does_not_tell(tmp_path):
    model = linear_and_relu()
    report = in_trace(lambda: model(x()), tmp_path)
    assert_not_known(report)
    assert "n/a: a trace does not tell which memory its ops share" in " ".join(report.table(columns=["fused"]).split())


@pytest.mark.parametrize("calls", [1, 3])
def test_the_model_of_a_trace_tells(tmp_path, calls):
    """Each call moves the input, the parameters and the output; what is between both modules stays inside."""
    model = linear_and_relu()

    def call():
        with torch.no_grad():
            for _ in range(calls):
                model(x())

    report = in_trace(call, tmp_path, model, x())
    parameters = (WIDTH * WIDTH + WIDTH) * FLOAT
    of_row = {row.path: row.fused_bytes for row in report.rows if row.path != "(outside)"}
    assert of_row == {"": calls * (2 * ROW + parameters), "0": calls * (2 * ROW + parameters), "1": calls * 2 * ROW}
    assert report.row("(outside)").fused_bytes == report.row("(outside)").bytes
    assert notes_on_fused(report) == []


def test_a_backward_in_a_trace_is_not_that_of_the_model(tmp_path):
    model = linear_and_relu()
    report = in_trace(lambda: model(x()).sum().backward(), tmp_path, model, x())
    assert_not_known(report)
    (note,) = notes_on_fused(report)
    assert "the trace has a backward" in note


def test_another_batch_is_not_that_of_the_trace(tmp_path):
    model = linear_and_relu()
    with torch.no_grad():
        report = in_trace(lambda: model(x()), tmp_path, model, x(BATCH + 1, WIDTH))
    assert_not_known(report)
    (note,) = notes_on_fused(report)
    assert f"lacks ops with 100% of the recorded bytes, most of these of aten::linear of {BATCH}x{WIDTH}, " in note


def test_what_the_model_of_a_trace_has_not_crosses_whole(tmp_path):
    """An op of the trace alone, with fewer than a twentieth of the bytes."""
    model, more = linear_and_relu(), torch.ones(2)
    hook = model[1].register_forward_hook(lambda *_: more.exp_())
    with torch.no_grad(), torch.profiler.profile(record_shapes=True, with_stack=True) as prof:
        model(x())
    hook.remove()
    report = roofprof.from_trace(prof, model, x())
    assert report.row("1").fused_bytes == 2 * ROW + 2 * more.numel() * FLOAT
    (note,) = notes_on_fused(report)
    assert "aten::exp_ of 2 (fp32) in 1; in fused bytes these cross every boundary whole" in note


class Windowed(nn.Module):
    """A large product, and a small one whose split is the model's own."""

    def __init__(self, parts):
        super().__init__()
        self.layer, self.parts = nn.Linear(WIDTH, WIDTH), parts

    def forward(self, value):
        return self.layer(value).sum(0)[:4].reshape(self.parts, -1).exp()


def test_the_same_ops_of_other_shapes_are_a_contradiction(tmp_path):
    """However few their bytes are: nothing of the counted call is taken."""
    with torch.no_grad():
        report = in_trace(lambda: Windowed(2)(x()), tmp_path, Windowed(2), x())
        assert report.row("").fused_bytes is not None
        report = in_trace(lambda: Windowed(2)(x()), tmp_path, Windowed(1), x())
    assert_not_known(report)
    (note,) = notes_on_fused(report)
    assert "calls aten::exp of 2x2 in the trace, and of 1x4 in the counted call" in note


def test_predictions_keep_it_where_the_batch_is_the_same():
    with torch.no_grad():
        report = profiler(nn.Sequential(nn.Linear(1024, 1024), nn.ReLU())).count(x(BATCH, 1024))  # not of no time
    predicted = report.predict("RTX 4090")
    assert predicted.row("").fused_bytes == report.row("").fused_bytes
    assert 0 < predicted.row("").fused_bound_time <= predicted.row("").lower_bound_time
    assert report.predict("RTX 4090", precision="fp16").row("").fused_bytes == report.row("").fused_bytes / 2
    assert report.predict("RTX 4090", batch=2 * BATCH).row("").fused_bytes is None


def test_regions_have_a_boundary():
    def run(_, v):
        with roofprof.scope("inner"):
            v = (v + 1) * 2
        return v * 3

    assert fused(Calls(run), x()) == {"": 2 * ROW, "inner": 2 * ROW}


def test_torchscript_has_none():
    report = profiler(torch.jit.trace(nn.ReLU(), x())).count(x())
    assert report.row("").fused_bytes is None


def test_siblings_show_their_mean():
    layers = nn.Sequential(*(nn.Sequential(nn.Linear(WIDTH, WIDTH, bias=False), nn.Tanh()) for _ in range(4)))
    with torch.no_grad():
        report = profiler(layers).run(x())
    (group,) = (group for group in report.siblings if group.count == 4)
    assert group.mean.fused_bytes == 2 * ROW + WIDTH * WIDTH * FLOAT
    assert group.mean.fused_bound_time == pytest.approx(report.row("0").fused_bound_time, abs=2e-9)


def test_declared_work_crosses_every_boundary():
    def run(_, v):
        roofprof.work("mine", bytes=1000)
        return v.relu()

    assert fused(Calls(run), x())[""] == 2 * ROW + 1000
