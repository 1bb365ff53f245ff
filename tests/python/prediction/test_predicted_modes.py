"""Eager, graph and compiled: the host's time and the device's. Closed forms; no measured time is in here."""

import pytest
import torch
from on_meta import counted, mlp, relus
from torch import nn

import roofprof
from roofprof.predict.host import host_seconds

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
    eager = small.predict("RTX 4090", mode="eager", host=1e-3)
    assert str(eager.total.bound) == "overhead"
    assert eager.total.time > 7e-3
    for options, words in (({"mode": "graph"}, "as a graph"), ({"host": 8e-6}, "with 8e-06 s of the host per op")):
        assert small.predict("RTX 4090", **options).prediction == words


def test_the_host_runs_ahead_during_a_long_kernel():
    def chain(then):
        return counted(lambda: nn.Sequential(nn.Linear(2**16, 8), *(nn.ReLU() for _ in range(then))), 4096, 2**16)

    host = 50e-6
    long = time(chain(0), mode="graph")
    assert long > 4 * host
    # Its launch is ahead of all that fit beside the kernel.
    hidden = chain(int(long / host) - 1)
    assert time(hidden, host=host) == pytest.approx(time(hidden, mode="graph"), rel=1e-6)
    assert time(hidden, host="measured") == time(hidden, host=host_seconds())


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


def test_intervals_of_sums_are_narrower_than_the_sums_of_intervals():
    def share(layers):
        total = counted(lambda: nn.Sequential(*(nn.Linear(1024, 1024) for _ in range(layers))), 64, 1024)
        predicted = total.predict("RTX 4090", mode="graph").total
        return (predicted.time_high - predicted.time) / predicted.time

    # What the errors of all ops have in common does not cancel out.
    common = counted(mlp, 4, 64).predict("RTX 4090").to_dict().get("common_error", 1)
    assert share(16) == pytest.approx(share(1) * ((1 - common) / 16 + common) ** 0.5, rel=0.01)


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
