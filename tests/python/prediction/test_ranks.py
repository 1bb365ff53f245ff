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
        self.norm = nn.LayerNorm(width)
        self.query, self.key, self.value, self.out = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.second_norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width, bias=False), nn.Linear(4 * width, width, bias=False)

    def forward(self, x):
        batch, length, width = x.shape
        y = self.norm(x)
        heads = [
            made(y).view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for made in (self.query, self.key, self.value)
        ]
        attended = functional.scaled_dot_product_attention(*heads)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, width))
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
def test_one_rank_is_the_prediction_itself(transformer, parallel):
    alone = transformer.predict(CARD)
    assert transformer.predict(CARD, ranks=1, parallel=parallel).to_dict() == alone.to_dict()


@pytest.mark.parametrize("parallel", ["ddp", "fsdp", "tp"])
def test_the_step_is_the_ops_and_what_is_exposed(transformer, parallel):
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


@pytest.mark.parametrize("parallel", ["ddp", "fsdp", "tp"])
def test_the_total_of_a_ranking_is_that_of_the_report(transformer, parallel):
    (ranked,) = transformer.predict_all([CARD], ranks=RANKS, parallel=parallel)
    report = transformer.predict(CARD, ranks=RANKS, parallel=parallel)
    assert ranked.time == pytest.approx(report.total.time, rel=1e-3)
    assert ranked.time_high == pytest.approx(report.total.time_high, rel=1e-3)


def test_a_report_of_ranks_is_written_and_read(transformer, tmp_path):
    report = transformer.predict(CARD, ranks=RANKS, parallel="fsdp")
    report.to_json(tmp_path / "r.json")
    again = roofprof.Report.from_json(tmp_path / "r.json")
    assert again.to_dict() == report.to_dict()
    assert again.prediction == report.prediction
    assert str(again.table(by="collective"))


# ---- ddp


def test_ddp_reduces_every_gradient_once(transformer):
    report = transformer.predict(CARD, ranks=RANKS)
    assert sum(sizes(report, "all_reduce")) == parameters(transformer)
    assert {line.phase for line in report.collectives} == {"backward"}


def test_buckets_are_filled_in_the_order_of_the_backward():
    layer = 1024 * 1024 * 4  # bytes
    with torch.device("meta"):
        model = nn.Sequential(*(nn.Linear(1024, 1024, bias=False) for _ in range(16)))
        report = step_of(model, torch.empty(64, 1024)).predict(CARD, ranks=RANKS)
    # The first bucket is full with the last layer's; 25 MiB are seven layers more.
    by_module = {line.module: line.bytes for line in report.collectives}
    assert by_module == {"15": layer, "8": 7 * layer, "1": 7 * layer, "0": layer}


def test_a_model_of_one_layer_waits_for_its_bucket():
    with torch.device("meta"):
        report = step_of(nn.Linear(4096, 4096), torch.empty(64, 4096)).predict(CARD, ranks=RANKS)
    (bucket,) = report.collectives
    assert bucket.bytes == 4 * (4096 * 4096 + 4096)
    assert bucket.exposed == pytest.approx(bucket.time)
    assert report.total.exposed_communication == pytest.approx(seconds("all_reduce", bucket.bytes), rel=1e-3)


def test_a_large_batch_hides_all_but_the_last_bucket():
    with torch.device("meta"):
        model = nn.Sequential(*(nn.Linear(1024, 1024, bias=False) for _ in range(16)))
        exposed = {}
        for batch in (64, 2**20):
            report = step_of(model, torch.empty(batch, 1024)).predict(CARD, ranks=RANKS, mode="graph")
            exposed[batch] = {line.module: line.exposed for line in report.collectives}
    assert exposed[2**20].pop("0") == pytest.approx(seconds("all_reduce", 4 * 1024 * 1024), rel=1e-3)
    assert set(exposed[2**20].values()) == {0}
    assert sum(exposed[64].values()) > 2 * seconds("all_reduce", 4 * 1024 * 1024)


def test_more_ranks_expose_more(transformer):
    times = [transformer.predict(CARD, ranks=ranks).total.time for ranks in (1, 2, 4, 8)]
    assert times == sorted(times)
    assert times[0] < times[-1]


def test_tied_parameters_are_sent_once():
    class Tied(Transformer):
        def __init__(self):
            super().__init__()
            self.head.weight = self.words.weight

    with torch.device("meta"):
        report = step_of(Tied(), torch.empty(4, 128, dtype=torch.long))
    reduced = report.predict(CARD, ranks=RANKS)
    assert sum(sizes(reduced, "all_reduce")) == parameters(report)
    # The embedding adds its part last.
    assert "words" in {line.module for line in reduced.collectives}
    assert "head" not in {line.module for line in reduced.collectives}


def test_gradients_under_autocast_are_those_of_parameters_in_fp32():
    with torch.device("meta"):
        report = step_of(nn.Linear(1024, 1024, bias=False).half(), torch.empty(64, 1024, dtype=torch.half))
    assert sizes(report.predict(CARD, ranks=2), "all_reduce") == [4 * 1024 * 1024]
    assert sizes(report.predict(CARD, ranks=2, autocast=False), "all_reduce") == [2 * 1024 * 1024]


# ---- fsdp


def test_fsdp_sends_parameters_three_times(transformer):
    report = transformer.predict(CARD, ranks=RANKS, parallel="fsdp")
    assert sum(sizes(report, "all_gather")) == 2 * parameters(transformer)
    assert sum(sizes(report, "reduce_scatter")) == parameters(transformer)
    wire = sum(line.wire_bytes for line in report.collectives)
    assert wire == pytest.approx(3 * (RANKS - 1) / RANKS * parameters(transformer))


def test_fsdp_gathers_by_block(transformer):
    report = transformer.predict(CARD, ranks=RANKS, parallel="fsdp")
    gathered = {(line.module, line.phase) for line in report.collectives if line.name == "all_gather"}
    units = {"", "blocks.0", "blocks.1", "blocks.2"}
    assert gathered == {(unit, phase) for unit in units for phase in ("forward", "backward")}


def test_only_the_first_gather_and_the_last_scatter_of_a_large_batch_are_exposed():
    with torch.device("meta"):
        model = nn.Sequential(*(nn.Linear(1024, 1024, bias=False) for _ in range(6)))
        report = step_of(model, torch.empty(2**20, 1024)).predict(CARD, ranks=RANKS, parallel="fsdp")
    exposed = {(line.name, line.module, line.phase) for line in report.collectives if line.exposed}
    assert exposed == {
        ("all_gather", "0", "forward"),
        ("all_gather", "5", "backward"),
        ("reduce_scatter", "0", "backward"),
    }


def test_fsdp_ranks_update_their_own_part():
    def updates(ranks):
        report = trained(lambda: nn.Linear(4096, 4096, bias=False), 8, 4096)
        return report.predict(CARD, ranks=ranks, parallel="fsdp").by_phase()["optimizer"].bytes

    assert updates(4) == pytest.approx(updates(1) / 4, rel=1e-3)


# ---- tp


def test_tp_sums_activations_twice_a_block_and_pass(transformer, inference):
    activations = 4 * 128 * 512 * 4  # bytes
    for report, passes in ((inference, 1), (transformer, 2)):
        split = report.predict(CARD, ranks=RANKS, parallel="tp")
        assert sizes(split, "all_reduce") == [activations] * (3 * 2 * passes)
        wire = sum(line.wire_bytes for line in split.collectives)
        assert wire == pytest.approx(3 * 2 * passes * 2 * (RANKS - 1) / RANKS * activations)
        assert all(line.exposed == pytest.approx(line.time) for line in split.collectives)


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_tp_divides_the_products_of_blocks(transformer, inference, ranks):
    head = 4 * 128 * 512 * 1000
    for report, products in ((inference, 1), (transformer, 3)):
        split = report.predict(CARD, ranks=ranks, parallel="tp")
        rest = split.total.macs - products * head
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
    for parallel in ("ddp", "fsdp"):
        with pytest.raises(ValueError, match="count a training step"):
            inference.predict(CARD, ranks=2, parallel=parallel)
    with pytest.raises(ValueError, match="has none"):
        counted(lambda: nn.Sequential(nn.Conv2d(3, 8, 3)), 1, 3, 8, 8).predict(CARD, ranks=2, parallel="tp")
    with pytest.raises(ValueError, match="3 ranks cannot share the 512 outputs of blocks.0.query"):
        inference.predict(CARD, ranks=3, parallel="tp")
    with pytest.raises(ValueError, match="parallel must be"):
        transformer.predict(CARD, ranks=2, parallel="pp")
    with pytest.raises(ValueError, match="ranks must be 1 or more"):
        transformer.predict(CARD, ranks=0)
    for ranks in (True, 2.0):
        with pytest.raises(TypeError, match="ranks is a whole number"):
            transformer.predict(CARD, ranks=ranks)
    with pytest.raises(ValueError, match="measured network"):
        transformer.predict("GH200 480GB", ranks=2)


def test_a_pair_of_products_is_split_without_blocks():
    report = counted(mlp, 8, 64).predict(CARD, ranks=2, parallel="tp")
    assert report.total.macs == (64 * 256 + 256 * 10) * 8 // 2
