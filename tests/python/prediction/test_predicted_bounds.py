"""No predicted time is below the lower bound beside it: in no table, in no mode, on no card, on no roofs by hand."""

import pytest
import torch
from given_roofs import roofs
from on_meta import counted, mlp, relus, trained
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

from roofprof.roofs import published_peaks

CARDS = published_peaks.names()
MIB = 2**20


class Attention(nn.Module):
    """What it permutes is copied before and after a fused attention, which saves the second copy."""

    def __init__(self):
        super().__init__()
        self.norm, self.all, self.out = nn.LayerNorm(128), nn.Linear(128, 384), nn.Linear(128, 128)

    def forward(self, x):
        batch, tokens, _ = x.shape
        q, k, v = self.all(self.norm(x)).view(batch, tokens, 3, 2, 64).permute(2, 0, 3, 1, 4)
        return self.out(scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, tokens, 128))


class Blocks(nn.Sequential):
    """Convolutions of all classes, of tensors that some caches hold and others do not."""

    def __init__(self):
        super().__init__(
            *(nn.Conv2d(3, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU6(inplace=True)),
            *(nn.Conv2d(64, 64, 3, padding=1, groups=64), nn.Conv2d(64, 96, 1), nn.GroupNorm(8, 96), nn.GELU()),
            *(nn.Conv2d(96, 64, 3, groups=4), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Softmax(-1)),
        )


REPORTS = {
    "mlp": (mlp, 64, 64),
    "product": (lambda: nn.Linear(4096, 4096), 4096, 4096),
    "one row": (lambda: nn.Linear(4096, 4096), 1, 4096),
    "small": (nn.ReLU, MIB // 4),
    "cached": (lambda: nn.Sequential(nn.ReLU(), nn.Softmax(-1)), 32, 256, 512),
    "large": (nn.ReLU, 256 * MIB),
    "attention": (Attention, 4, 256, 128),
    "convolutions": (Blocks, 8, 3, 112, 112),
    "steps": (lambda: nn.LSTM(64, 64), 32, 8, 64),
}


def report_of(name, dtype=torch.float32):
    return counted(*REPORTS[name], dtype=dtype)


OPTIONS = [{}, {"autocast": False}, {"mode": "graph"}, {"mode": "compiled"}, {"bandwidth": 4.0, "peak": 3.0}]


def check(report, device, options):
    predicted = report.predict(device, **options)
    groups = (predicted.group(*by) for by in (("op",), ("phase",), ("dtype",), ("module", "op", "shapes")))
    seen = 0
    for rows in (predicted.rows, [predicted.total], *groups):
        for row in rows:
            if row.time is None or row.lower_bound_time is None:
                continue
            seen += 1
            where = (predicted.device, options, getattr(row, "path", None), getattr(row, "op", None))
            assert row.lower_bound_time <= row.time_low <= row.time <= row.time_high, where
            assert row.percent_of_roof is None or row.percent_of_roof <= 100, where
            assert row.wasted_time >= 0, where
    return seen


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("name", REPORTS)
def test_no_time_is_below_its_lower_bound_on_any_card(name, dtype):
    report = report_of(name, dtype)
    for options in OPTIONS:  # a card without a peak of the type has no bound
        assert sum(check(report, card, options) for card in CARDS) > 0


@pytest.mark.parametrize("options", [{}, {"mode": "compiled"}])
def test_nor_are_those_of_training_and_of_ranks(options):
    report = trained(mlp, 64, 64)
    assert sum(check(report, card, options) for card in CARDS) > 0
    for parallel in ("ddp", "fsdp", "tp"):
        check(report, "H100 SXM", {"ranks": 4, "parallel": parallel, **options})


# A GPU's caches as they are measured, a CPU's, and a card whose host link is known.
# A GPU's caches as they are measured, a CPU's, and a card whose host link is known.
BY_HAND = (
    {"L1": (4e12, MIB), "L2": (2e12, 40 * MIB), "DRAM": (1e12, 0)},
    {"DRAM": (1e12, 0)},
    {"L1": (4e11, MIB // 32), "L3": (2e11, 32 * MIB), "DRAM": (2e10, 0)},
)


@pytest.mark.parametrize("levels", BY_HAND)
def test_nor_by_roofs_by_hand(levels):
    for name in ("mlp", "small", "cached", "convolutions"):
        assert check(report_of(name), roofs({"fp32": 1e12, "fp64": 5e11}, levels), {}) > 0


@pytest.mark.parametrize("name", ["mlp", "cached", "attention", "convolutions"])
def test_higher_roofs_never_cost_time(name):
    report = report_of(name, torch.float16)
    for card in CARDS:
        # In eager mode a module may wait longer for the host where those before it are done earlier.
        alone, eager = report.what_if(card, mode="graph"), report.what_if(card)
        for question in ("memory x2", "peak x2"):
            assert all(module.saved[question] >= 0 for module in (*alone.modules, alone.total)), (card, question)
            assert eager.total.saved[question] > -1e-8, (card, question)  # each op's time is rounded up to a nanosecond


def test_bytes_that_the_last_cache_holds_stand_at_its_roof():
    """Of 1 MiB read and written nearly nothing misses an L2 of 72 MiB; 2 GiB do nearly all."""
    near, far = (counted(nn.ReLU, elements).predict("RTX 4090").total for elements in (MIB // 4, 256 * MIB))
    l2, dram = 6395e9, 1008e9
    assert near.memory_time == pytest.approx(2 * MIB / l2, rel=0.01)
    assert far.memory_time == pytest.approx(2**31 / dram, rel=1e-3)
    assert far.bound == "memory DRAM"


def test_a_cache_of_unknown_bandwidth_is_estimated_and_reported():
    report = relus(MIB // 4).predict("RTX 5090")  # whose L2 is published without a bandwidth
    assert any("no bandwidth of the L2" in note.text for note in report.coverage.notes)
    assert report.total.memory_time == pytest.approx(2 * MIB / (170 * 45e9), rel=0.01)


def test_a_copy_that_a_fused_attention_saves_moves_nothing():
    report = counted(Attention, 4, 256, 128).predict("H100 SXM")
    clones = [row for row in report.group("op") if row.op == "aten::clone"]
    assert clones
    assert all(row.time == row.bytes == 0 for row in clones)
