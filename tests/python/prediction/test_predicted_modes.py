"""Eager, graph and compiled: the host's time and the device's. Closed forms; no measured time is in here."""

import json

import pytest
import torch
from on_meta import counted, mlp, relus
from torch import nn

import roofprof
from roofprof.predict.host import LAUNCH_SECONDS, host_seconds

SMALL, LARGE = 64, 2**28  # elements: a kernel shorter than a launch, and one that is longer by far


def time(report, **options):
    return report.predict("RTX 4090", **options).total.time


def test_eager_is_the_larger_of_host_and_device():
    host, calls = 50e-6, 8
    small, large = relus(SMALL, calls), relus(LARGE, calls)
    # The host has launched the first op when the time begins.
    alone = time(relus(SMALL), mode="graph")
    assert time(small, host=host) == pytest.approx((calls - 1) * host + alone, rel=1e-3)
    assert time(large, host=host) == pytest.approx(time(large, mode="graph"), rel=1e-9)


def test_a_graph_does_not_wait_for_the_host():
    small = relus(SMALL, 8)
    graph = time(small, mode="graph")
    assert graph == time(small, host=0) == time(small, mode="graph", host=1.0)
    assert graph == pytest.approx(8 * time(relus(SMALL), mode="graph"), rel=1e-3)
    assert time(small, host=1e-3) > 7e-3


def test_the_host_runs_ahead_during_a_long_kernel():
    def chain(first, then):
        return counted(lambda: nn.Sequential(nn.Linear(first, 8), *(nn.ReLU() for _ in range(then))), 4096, first)

    host = 50e-6
    long = time(counted(lambda: nn.Linear(2**16, 8), 4096, 2**16), mode="graph")
    assert long > 4 * host
    # Its launch is ahead of all that fit beside the kernel.
    hidden = chain(2**16, int(long / host) - 1)
    assert time(hidden, host=host) == pytest.approx(time(hidden, mode="graph"), rel=1e-6)


def test_what_waits_for_the_host_is_overhead():
    eager, graph = (relus(SMALL, 8).predict("RTX 4090", mode=mode, host=50e-6) for mode in ("eager", "graph"))
    assert str(eager.total.bound) == "overhead"
    assert eager.total.time > 7 * 50e-6 > graph.total.time


def test_a_host_that_reads_a_result_waits_for_the_device():
    """After `.item()` the host launches the next op when the device is done: both times add up."""

    class Reads(nn.Module):
        def __init__(self, reads):
            super().__init__()
            self.reads = reads

        def forward(self, x):
            y = torch.relu(x)
            if self.reads:
                torch.nonzero(y[:1])
            return torch.tanh(y)

    x = torch.zeros(2**24)
    reading, ahead = (roofprof.count(Reads(reads), x) for reads in (True, False))
    kernels = time(ahead, mode="graph")
    assert kernels > 1e-4
    assert time(ahead, host=1e-4) == pytest.approx(kernels, rel=1e-6)
    assert time(reading, host=1e-4) > time(reading, mode="graph") + 0.9e-4


def test_modes_in_words_and_in_json(tmp_path):
    report = counted(mlp, 4, 64)
    for options, words in (
        ({"mode": "graph"}, "as a graph"),
        ({"mode": "compiled"}, "compiled"),
        ({"compiled": True}, "compiled"),
        ({"host": 8e-6}, "with 8e-06 s of the host per op"),
    ):
        predicted = report.predict("RTX 4090", **options)
        assert predicted.prediction == words
        path = tmp_path / "report.json"
        predicted.to_json(path)
        assert roofprof.Report.from_json(path) == predicted
    assert report.predict("RTX 4090", mode="eager").prediction == report.predict("RTX 4090").prediction


def test_intervals_of_sums_are_narrower_than_the_sums_of_intervals():
    report = counted(lambda: nn.Sequential(*(nn.Linear(1024, 1024 + 8 * i) for i in range(1))), 64, 1024)
    alone = report.predict("RTX 4090", mode="graph").total
    chain = counted(lambda: nn.Sequential(*(nn.Linear(1024, 1024) for _ in range(16))), 64, 1024)
    together = chain.predict("RTX 4090", mode="graph").total
    share = (together.time_high - together.time) / together.time
    assert share <= (alone.time_high - alone.time) / alone.time * (1 + 1e-6)
    common = json.loads(json.dumps(chain.predict("RTX 4090").to_dict())).get("common_error", 1)
    own = (1 - common) / 16 + common
    assert share == pytest.approx((alone.time_high - alone.time) / alone.time * own**0.5, rel=0.01)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"mode": "fast"}, ValueError, "mode must be eager, graph or compiled, not 'fast'"),
        ({"mode": "graph", "compiled": True}, ValueError, "give one of them"),
        ({"host": -1.0}, ValueError, "host is the seconds in which an op is launched, 0 or more, not -1"),
        ({"host": "fast"}, TypeError, "host is seconds or 'measured', not 'fast'"),
    ],
)
def test_what_is_refused(options, error, words):
    with pytest.raises(error, match=words):
        counted(mlp, 4, 64).predict("RTX 4090", **options)


def test_the_host_of_this_machine():
    assert LAUNCH_SECONDS < host_seconds() < 1e-3
    report = relus(SMALL, 8)
    assert time(report, host="measured") == time(report, host=host_seconds())


def _predicted(module, x, **options):
    with torch.no_grad():
        report = roofprof.RooflineProfiler(module.to("meta", x.dtype), ceilings=roofprof.Ceilings()).run(x)
    return report.predict("H100 SXM", autocast=False, **options).total.time


@pytest.mark.parametrize("features", [50_257, 1_001])
def test_compiled_code_pads_products_of_an_odd_width(features):
    """At most the padded product, and a copy of the weights: what torch's Inductor does where that is faster."""
    x = torch.empty(8192, 768, dtype=torch.bfloat16, device="meta")
    time = _predicted(nn.Linear(768, features, bias=False), x, mode="compiled")
    padded = _predicted(nn.Linear(768, -(-features // 8) * 8, bias=False), x, mode="compiled")
    copy = 2 * 2 * 768 * features / (0.8 * 3.35e12)
    assert padded <= time <= padded + copy
    assert time <= _predicted(nn.Linear(768, features, bias=False), x, mode="graph")


def test_convolutions_on_hopper_take_longer_with_the_channels_first():
    """1.55 times as long on an H100 (tests/data/gpu/h100), where another kernel changes the order before."""
    x = torch.empty(1024, 256, 56, 56, dtype=torch.bfloat16, device="meta")
    first = _predicted(nn.Conv2d(256, 256, 3, padding=1), x, mode="graph")
    last = _predicted(nn.Conv2d(256, 256, 3, padding=1), x, mode="graph", channels_last=True)
    assert first / last == pytest.approx(1.55 / 0.66, rel=0.02)
