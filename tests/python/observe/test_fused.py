"""What crosses the boundary of a module, against closed forms: the fused bytes of chains, blocks and steps."""

from __future__ import annotations

import pytest
import torch
from fused_checks import assert_bounded, assert_not_known
from given_roofs import profiler
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
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

WEIGHTS = WIDTH * WIDTH * FLOAT
BIAS = WIDTH * FLOAT


def linear(bias=False):
    return nn.Linear(WIDTH, WIDTH, bias=bias)


def normalised(self, values):
    centred = values - values.mean(-1, keepdim=True)
    return centred * torch.rsqrt((centred * centred).mean(-1, keepdim=True) + 1e-5) * self.gain.weight


def kept(self, v):
    self.kept = v + 1
    return self.kept * 2


def tied():
    model = nn.Sequential(linear(), linear())
    model[1].weight = model[0].weight
    return model


def one_by_one(self, v):
    for layer in self.layers:
        v = layer(v)
    return v


def in_a_region(_, v):
    with roofprof.scope("inner"):
        v = (v + 1) * 2
    return v * 3


def declared(_, v):
    roofprof.work("mine", bytes=1000)
    return v.relu()


# What each row of a call on a tensor of ROW bytes reads and writes, in closed form.
ONE_CALL = {
    "chain": (
        lambda: nn.Sequential(nn.ReLU(), nn.Sigmoid(), nn.Sequential(nn.ReLU(), nn.Tanh())),
        dict.fromkeys(("", "0", "1", "2", "2.0", "2.1"), 2 * ROW),
    ),
    "normalisation of ops": (
        lambda: Calls(normalised, gain=nn.LayerNorm(WIDTH, bias=False)),
        {"": 2 * ROW + BIAS, "gain": 0},
    ),
    "residual block": (
        lambda: Calls(lambda self, v: v + self.act(self.fc(v)), fc=linear(bias=True), act=nn.ReLU()),
        {"": 2 * ROW + WEIGHTS + BIAS, "fc": 2 * ROW + WEIGHTS + BIAS, "act": 2 * ROW},
    ),
    "called twice": (
        lambda: Calls(lambda self, v: self.fc(self.fc(v)), fc=linear()),
        {"": 2 * ROW + WEIGHTS, "fc": 4 * ROW + 2 * WEIGHTS},
    ),
    "shared weights": (tied, dict.fromkeys(("", "0", "1"), 2 * ROW + WEIGHTS)),
    "in place": (
        lambda: nn.Sequential(linear(), nn.ReLU(inplace=True)),
        {"": 2 * ROW + WEIGHTS, "0": 2 * ROW + WEIGHTS, "1": 2 * ROW},
    ),
    "the input is changed": (lambda: Calls(lambda _, v: v.add_(1).mul_(2)), {"": 2 * ROW}),
    "out=": (lambda: Calls(lambda _, v: torch.mul(v + 1, 2, out=x())), {"": 2 * ROW}),
    "passed on": (nn.Identity, {"": 0}),
    "kept by the module": (lambda: Calls(kept), {"": 3 * ROW}),
    "container": (
        lambda: Calls(one_by_one, layers=nn.ModuleList(linear() for _ in range(2))),
        {
            "": 2 * ROW + 2 * WEIGHTS,
            "layers": 2 * ROW + 2 * WEIGHTS,
            **dict.fromkeys(("layers.0", "layers.1"), 2 * ROW + WEIGHTS),
        },
    ),
    "region": (lambda: Calls(in_a_region), {"": 2 * ROW, "inner": 2 * ROW}),
    "declared work": (lambda: Calls(declared), {"": 2 * ROW + 1000}),
}


@pytest.mark.parametrize("name", ONE_CALL)
def test_one_call(name):
    make, rows = ONE_CALL[name]
    assert fused(make(), x()) == rows


@pytest.mark.parametrize(
    ("function", "sizes", "expected"),
    [
        (lambda v: v[:BATCH].relu() + v[:BATCH], (4 * BATCH, WIDTH), 2 * ROW),
        (lambda v: v[:BATCH].relu() + v[BATCH : 2 * BATCH], (4 * BATCH, WIDTH), 3 * ROW),
        (lambda v: v[: 2 * BATCH].sum() + v[BATCH : 3 * BATCH].sum(), (4 * BATCH, WIDTH), 3 * ROW + FLOAT),
        (lambda v: v[:, :WIDTH] * v[:, WIDTH:], (BATCH, 2 * WIDTH), 3 * ROW),
        (lambda v: v[:, :WIDTH] * v[:, :WIDTH].t().t(), (BATCH, 2 * WIDTH), 2 * ROW),
        (lambda v: v[:, :WIDTH].sum() + v.sum(), (BATCH, 2 * WIDTH), 2 * ROW + FLOAT),
    ],
)
def test_views_count_what_is_read(function, sizes, expected):
    assert fused(Calls(lambda _, v: function(v)), x(*sizes))[""] == expected


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
    assert rows[""] == 2 * tokens + 4 * (WEIGHTS + BIAS)
    assert rows["qkv"] == 4 * tokens + 3 * (WEIGHTS + BIAS)
    assert rows["out"] == 2 * tokens + WEIGHTS + BIAS


def test_embedding_reads_rows():
    indices = torch.arange(BATCH)
    both = Calls(lambda self, i, j: self.table(i) + self.table(j), table=nn.Embedding(1000, WIDTH))
    rows = fused(both, indices, indices + BATCH)
    assert rows["table"] == 2 * (BATCH * LONG + 2 * ROW)
    assert rows[""] == 2 * (BATCH * LONG + ROW) + ROW
    both.table = nn.Embedding(BATCH, WIDTH)
    assert fused(both, indices, indices.clone())[""] == 2 * BATCH * LONG + ROW + ROW  # no row comes in twice
    # The largest operand gives what an op does not read: rows of a table, by what definitions say.
    lookup = Calls(lambda _, table, index: F.embedding(index, table))
    assert fused(lookup, x(100, WIDTH), torch.arange(3))[""] == 3 * LONG + 2 * 3 * WIDTH * FLOAT


@pytest.mark.parametrize("mode", [lambda: torch.device("meta"), FakeTensorMode], ids=["meta", "fake"])
def test_tensors_without_data(mode):
    def net():
        return nn.Sequential(linear(), nn.ReLU(), nn.Sequential(linear(), nn.GELU()))

    expected = fused(net(), x())
    with mode():
        assert fused(net(), x()) == expected


# ---- a training step


def in_block(model, call):
    with profiler(model) as prof:
        call()
    assert_sane(prof.report())
    return {row.path: row.fused_bytes for row in prof.report().rows}


def test_training_step():
    """x -> fc -> relu -> sum: the forward keeps the relu's result, and the backward needs x and that."""
    model, data = nn.Sequential(linear(), nn.ReLU()), x()
    rows = in_block(model, lambda: model(data).sum().backward())
    # Forward: x, weights, the result. Backward: the gradient (one number, expanded), the kept result, x, the gradient
    # of the weights.
    assert rows["0"] == (ROW + WEIGHTS + ROW) + (ROW + ROW + WEIGHTS)
    assert rows[""] == (ROW + WEIGHTS + ROW) + (FLOAT + ROW + ROW + WEIGHTS)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)
    rows = in_block(model, optimizer.step)
    assert rows["(optimizer)"] == 3 * WEIGHTS  # the gradient and the weights, and these again


def test_kept_for_the_backward_goes_out():
    """Of two activations, only the second one's result is an output: the first one's is kept for the backward."""
    act = nn.Sequential(nn.Sigmoid(), nn.Sigmoid())
    data = x().requires_grad_()
    with torch.no_grad():
        assert profiler(act).count(data).row("").fused_bytes == 2 * ROW
    assert profiler(act).count(data).row("").fused_bytes == 3 * ROW


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpointing(reentrant):
    """The activation inside is not kept, and the forward runs again."""
    inner = nn.Sequential(linear(), nn.Sigmoid(), nn.Sigmoid())
    model = Calls(lambda self, v: checkpoint(self.inner, v, use_reentrant=reentrant), inner=inner)
    data = x().requires_grad_()
    assert in_block(model, lambda: model(data))["inner"] == 2 * ROW + WEIGHTS
    assert in_block(model, lambda: model(data).sum().backward())["inner"] > 2 * (2 * ROW + WEIGHTS)


# ---- the bound, and who has none


def in_trace(call, tmp_path, *model_and_inputs):
    with torch.profiler.profile(record_shapes=True, with_stack=True) as prof:
        call()
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    return roofprof.from_trace(tmp_path / "trace.json", *model_and_inputs)


def linear_and_relu():
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU())


def notes_on_fused(report):
    return [note.text for note in report.coverage.notes if note.code == "fused-not-known"]


class Windowed(nn.Module):
    """A large product, and a small one whose split is the model's own."""

    def __init__(self, parts):
        super().__init__()
        self.layer, self.parts = nn.Linear(WIDTH, WIDTH), parts

    def forward(self, value):
        return self.layer(value).sum(0)[:4].reshape(self.parts, -1).exp()


def test_the_model_of_a_trace_tells(tmp_path):
    """Each call moves the input, the parameters and the output; what is between both modules stays inside."""
    model, calls = linear_and_relu(), 3

    def call():
        with torch.no_grad():
            for _ in range(calls):
                model(x())

    report = in_trace(call, tmp_path, model, x())
    layer = calls * (2 * ROW + WEIGHTS + BIAS)
    of_row = {row.path: row.fused_bytes for row in report.rows if row.path != "(outside)"}
    assert of_row == {"": layer, "0": layer, "1": calls * 2 * ROW}
    assert report.row("(outside)").fused_bytes == report.row("(outside)").bytes
    assert notes_on_fused(report) == []


@pytest.mark.parametrize(
    ("recorded", "model", "rows", "sentence"),
    [
        (lambda: linear_and_relu()(x()).sum().backward(), linear_and_relu, BATCH, "the trace has a backward"),
        (
            lambda: linear_and_relu()(x()),
            linear_and_relu,
            BATCH + 1,
            f"lacks ops with 100% of the recorded bytes, most of these of aten::linear of {BATCH}x{WIDTH}, ",
        ),
        (  # however few their bytes are
            lambda: Windowed(2)(x()),
            lambda: Windowed(1),
            BATCH,
            "calls aten::exp of 2x2 in the trace, and of 1x4 in the counted call",
        ),
        (lambda: linear_and_relu()(x()), None, BATCH, None),
    ],
    ids=["backward", "other batch", "other shapes", "no model"],
)
def test_a_trace_whose_model_does_not_tell(tmp_path, recorded, model, rows, sentence):
    with torch.set_grad_enabled(sentence is not None and "backward" in sentence):
        report = in_trace(recorded, tmp_path, *([model(), x(rows, WIDTH)] if model else []))
    assert_not_known(report)
    if sentence:
        (note,) = notes_on_fused(report)
        assert sentence in note
        return
    why = "n/a: a trace does not tell which memory its ops share"
    assert why in " ".join(report.table(columns=["fused"]).split())


def test_what_the_model_of_a_trace_has_not_crosses_whole(tmp_path):
    """An op of the trace alone, with fewer than a twentieth of the bytes."""
    model, more = linear_and_relu(), torch.ones(2)

    def call():
        with model[1].register_forward_hook(lambda *_: more.exp_()):
            model(x())

    with torch.no_grad():
        report = in_trace(call, tmp_path, model, x())
    assert report.row("1").fused_bytes == 2 * ROW + 2 * more.numel() * FLOAT
    (note,) = notes_on_fused(report)
    assert "aten::exp_ of 2 (fp32) in 1; in fused bytes these cross every boundary whole" in note


def test_torchscript_has_none():
    report = profiler(torch.jit.trace(nn.ReLU(), x())).count(x())
    assert report.row("").fused_bytes is None
