"""Predictions of one rank among several: closed forms of what ranks send, and of what is exposed."""

import pytest
import torch
from on_meta import counted, mlp, trained
from torch import nn
from torch.nn import functional

import roofprof
from roofprof import _C
from roofprof.predict.options import roofs_of

CARD = "H100 SXM"
RANKS = 8


class Block(nn.Module):
    """A transformer's, without biases and dropout; norms before attention and MLP."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm, self.second_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key, self.value, self.out = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.up, self.down = nn.Linear(width, 4 * width, bias=False), nn.Linear(4 * width, width, bias=False)

    def forward(self, x):
        y = self.norm(x)
        split = [made(y).unflatten(-1, (self.heads, -1)).transpose(1, 2) for made in (self.query, self.key, self.value)]
        x = x + self.out(functional.scaled_dot_product_attention(*split).transpose(1, 2).reshape(x.shape))
        return x + self.down(functional.gelu(self.up(self.second_norm(x))))


class Transformer(nn.Module):
    def __init__(self, width=512, heads=8, layers=3, words=1000):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, tokens):
        x = self.words(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def step_of(model, *inputs):
    """A training step without an optimizer, as a count of a block."""
    profiler = roofprof.RooflineProfiler(model)
    with profiler:
        model(*inputs).float().square().mean().backward()
    return profiler.report()


@pytest.fixture(scope="module")
def transformer():
    with torch.device("meta"):
        return step_of(Transformer(), torch.empty(4, 128, dtype=torch.long))


@pytest.fixture(scope="module")
def inference():
    with torch.device("meta"), torch.no_grad():
        return roofprof.count(Transformer(), torch.empty(4, 128, dtype=torch.long))


def seconds(kind, size, ranks=RANKS):
    return _C.collective_seconds(kind, size, ranks, roofs_of(CARD), _C.PredictionParameters.shipped())


def sizes(report, name):
    return [line.bytes for line in report.collectives if line.name == name]


def parameters(report):
    return report.rows[0].param_bytes


# ---- what holds of all


@pytest.mark.parametrize("parallel", ["ddp", "fsdp", "tp"])
def test_the_step_is_the_ops_and_what_is_exposed(transformer, parallel, tmp_path):
    report = transformer.predict(CARD, ranks=RANKS, parallel=parallel)
    exposed = sum(line.exposed for line in report.collectives)
    computed = sum(group.time for group in report.group("op") if not group.keys[0].startswith("c10d::"))
    assert report.total.time == pytest.approx(computed + exposed, rel=1e-6)
    assert report.total.exposed_communication == pytest.approx(exposed, rel=1e-6)
    assert report.total.communication == pytest.approx(sum(line.time for line in report.collectives), rel=1e-6)
    assert report.total.time_low < report.total.time < report.total.time_high
    assert report.prediction == f"{RANKS} ranks by {parallel}"
    assert "prediction-ranks" in [note.code for note in report.coverage.notes]
    for line in report.collectives:
        assert line.time == pytest.approx(line.calls * seconds(line.name, line.bytes / line.calls), rel=1e-3)
        assert 0 <= line.exposed <= line.time
    (ranked,) = transformer.predict_all([CARD], ranks=RANKS, parallel=parallel)
    assert ranked.time == pytest.approx(report.total.time, rel=1e-3)
    assert ranked.time_high == pytest.approx(report.total.time_high, rel=1e-3)
    report.to_json(tmp_path / "r.json")
    assert roofprof.Report.from_json(tmp_path / "r.json").to_dict() == report.to_dict()
    alone = transformer.predict(CARD, ranks=1, parallel=parallel)
    assert alone.to_dict() == transformer.predict(CARD).to_dict()


# ---- ddp


def test_ddp_reduces_every_gradient_once(transformer):
    report = transformer.predict(CARD, ranks=RANKS)
    assert sum(sizes(report, "all_reduce")) == parameters(transformer)
    assert {line.phase for line in report.collectives} == {"backward"}


@pytest.fixture
def layers():
    def count(batch, number=16):
        with torch.device("meta"):
            model = nn.Sequential(*(nn.Linear(1024, 1024, bias=False) for _ in range(number)))
            return step_of(model, torch.empty(batch, 1024))

    return count


def test_buckets_are_filled_in_the_order_of_the_backward(layers):
    layer = 1024 * 1024 * 4  # bytes
    # The first bucket is full with the last layer's; 25 MiB are seven layers more.
    by_module = {line.module: line.bytes for line in layers(64).predict(CARD, ranks=RANKS).collectives}
    assert by_module == {"15": layer, "8": 7 * layer, "1": 7 * layer, "0": layer}


def test_a_large_batch_hides_all_but_the_last_bucket(layers):
    exposed = {}
    for batch in (64, 2**20):
        report = layers(batch).predict(CARD, ranks=RANKS, mode="graph")
        exposed[batch] = {line.module: line.exposed for line in report.collectives}
    assert exposed[2**20].pop("0") == pytest.approx(seconds("all_reduce", 4 * 1024 * 1024), rel=1e-3)
    assert set(exposed[2**20].values()) == {0}
    assert sum(exposed[64].values()) > 2 * seconds("all_reduce", 4 * 1024 * 1024)


def test_tied_parameters_are_sent_once_and_in_fp32():
    with torch.device("meta"):
        model = Transformer()
        model.head.weight = model.words.weight
        report = step_of(model, torch.empty(4, 128, dtype=torch.long))
        half = step_of(nn.Linear(1024, 1024, bias=False).half(), torch.empty(64, 1024, dtype=torch.half))
    reduced = report.predict(CARD, ranks=RANKS)
    assert sum(sizes(reduced, "all_reduce")) == parameters(report)
    # The embedding adds its part last.
    assert "words" in {line.module for line in reduced.collectives}
    assert "head" not in {line.module for line in reduced.collectives}
    # Under autocast parameters are in fp32, and so are gradients.
    assert sizes(half.predict(CARD, ranks=2), "all_reduce") == [4 * 1024 * 1024]
    assert sizes(half.predict(CARD, ranks=2, autocast=False), "all_reduce") == [2 * 1024 * 1024]


# ---- fsdp


def test_fsdp_sends_parameters_three_times_by_block(transformer):
    report = transformer.predict(CARD, ranks=RANKS, parallel="fsdp")
    assert sum(sizes(report, "all_gather")) == 2 * parameters(transformer)
    assert sum(sizes(report, "reduce_scatter")) == parameters(transformer)
    wire = sum(line.wire_bytes for line in report.collectives)
    assert wire == pytest.approx(3 * (RANKS - 1) / RANKS * parameters(transformer))
    gathered = {(line.module, line.phase) for line in report.collectives if line.name == "all_gather"}
    units = {"", "blocks.0", "blocks.1", "blocks.2"}
    assert gathered == {(unit, phase) for unit in units for phase in ("forward", "backward")}


def test_only_the_first_gather_and_the_last_scatter_of_a_large_batch_are_exposed(layers):
    report = layers(2**20, 6).predict(CARD, ranks=RANKS, parallel="fsdp")
    exposed = {(line.name, line.module, line.phase) for line in report.collectives if line.exposed}
    assert exposed == {
        ("all_gather", "0", "forward"),
        ("all_gather", "5", "backward"),
        ("reduce_scatter", "0", "backward"),
    }


def test_fsdp_ranks_update_their_own_part():
    report = trained(lambda: nn.Linear(4096, 4096, bias=False), 8, 4096)
    alone, shared = (
        report.predict(CARD, ranks=ranks, parallel="fsdp").by_phase()["optimizer"].bytes for ranks in (1, 4)
    )
    assert shared == pytest.approx(alone / 4, rel=1e-3)


# ---- tp


def test_tp_sums_activations_twice_a_block_and_pass(transformer, inference):
    activations = 4 * 128 * 512 * 4  # bytes
    for report, passes in ((inference, 1), (transformer, 2)):
        split = report.predict(CARD, ranks=RANKS, parallel="tp")
        assert sizes(split, "all_reduce") == [activations] * (3 * 2 * passes)
        wire = sum(line.wire_bytes for line in split.collectives)
        assert wire == pytest.approx(3 * 2 * passes * 2 * (RANKS - 1) / RANKS * activations)
        assert all(line.exposed == pytest.approx(line.time) for line in split.collectives)


def test_tp_divides_the_products_of_blocks(transformer, inference):
    head = 4 * 128 * 512 * 1000
    for report, products in ((inference, 1), (transformer, 3)):
        for ranks in (2, 8):
            rest = report.predict(CARD, ranks=ranks, parallel="tp").total.macs - products * head
            assert rest == pytest.approx((report.total.macs - products * head) / ranks, rel=1e-3)


def test_tp_leaves_norms_whole_and_divides_the_weights_that_are_read(inference):
    def by_module(report):
        return {row.path: row for row in report.rows}

    whole, split = by_module(inference.predict(CARD)), by_module(inference.predict(CARD, ranks=4, parallel="tp"))
    assert split["blocks.0.norm"].bytes == whole["blocks.0.norm"].bytes
    tokens, width = 4 * 128, 512
    assert split["blocks.0.up"].bytes == 4 * (tokens * width + width * width + tokens * width)
    summed = 2 * 4 * tokens * width  # an all_reduce reads and writes
    assert split["blocks.0.down"].bytes == 4 * (tokens * width + width * width + tokens * width) + summed
    assert split["blocks.0.query"].bytes == 4 * (tokens * width + width * width // 4 + tokens * width // 4)


# ---- what is refused


def test_what_ranks_need(transformer, inference):
    for report, words, options in (
        (inference, "count a training step", {"parallel": "ddp"}),
        (inference, "count a training step", {"parallel": "fsdp"}),
        (counted(lambda: nn.Sequential(nn.Conv2d(3, 8, 3)), 1, 3, 8, 8), "has none", {"parallel": "tp"}),
        (inference, "3 ranks cannot share the 512 outputs of blocks.0.query", {"parallel": "tp", "ranks": 3}),
    ):
        with pytest.raises(ValueError, match=words):
            report.predict(CARD, **{"ranks": 2} | options)
    with pytest.raises(ValueError, match="measured network"):
        transformer.predict("GH200 480GB", ranks=2)
    pair = counted(mlp, 8, 64).predict(CARD, ranks=2, parallel="tp")  # which needs no blocks
    assert pair.total.macs == (64 * 256 + 256 * 10) * 8 // 2
