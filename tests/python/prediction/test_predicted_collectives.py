"""Predicted times of collectives: limits and identities."""

import itertools

import pytest

from roofprof import _C
from roofprof.predict.options import roofs_of
from roofprof.roofs import published_peaks

KINDS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
LINKED = [name for name in published_peaks.names() if published_peaks.published(name).facts.link]
GIB = float(1 << 30)


def wire(kind, ranks):  # nccl-tests, doc/PERFORMANCE.md
    return (2 if kind == "all_reduce" else 1) * (ranks - 1) / ranks


def seconds(kind, size, ranks, device):
    roofs = roofs_of(device) if isinstance(device, str) else device
    return _C.collective_seconds(kind, size, ranks, roofs, _C.PredictionParameters.shipped())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("card", LINKED)
def test_no_collective_is_faster_than_its_link_and_more_bytes_take_longer(kind, card):
    link = roofs_of(card).facts.link_bytes_per_second
    for ranks in (2, 4, 8):
        times = [seconds(kind, 4.0**power, ranks, card) for power in range(16)]
        assert times == sorted(times)
        for power, time in enumerate(times):
            assert time > wire(kind, ranks) * 4.0**power / link
        assert times[0] == pytest.approx(seconds(kind, 0, ranks, card), rel=0.01)  # nothing but latency
    assert seconds(kind, 1e6, 1, card) == 0


def test_latency_grows_with_the_ranks_and_less_than_they_do():
    for kind in KINDS:
        times = [seconds(kind, 8, ranks, "H100 SXM") for ranks in (2, 4, 8, 16)]
        assert all(fewer < more < 2 * fewer for fewer, more in itertools.pairwise(times))


def test_large_collectives_take_the_time_of_their_bytes_on_the_wire():
    for card in ("A100 SXM 80GB", "H100 SXM", "B200"):
        link = roofs_of(card).facts.link_bytes_per_second
        for ranks in (2, 4):
            share = wire("all_reduce", ranks) * 8 * GIB / link / seconds("all_reduce", 8 * GIB, ranks, card)
            assert 0.6 < share < 0.9
        twice = seconds("all_reduce", 16 * GIB, 4, card) / seconds("all_reduce", 8 * GIB, 4, card)
        assert twice == pytest.approx(2, rel=0.01)


def test_a_faster_link_is_faster():
    assert seconds("all_reduce", GIB, 4, "H800 SXM") > 2 * seconds("all_reduce", GIB, 4, "H100 SXM")
    assert seconds("all_gather", GIB, 2, "H100 PCIe") > 5 * seconds("all_gather", GIB, 2, "H100 SXM")


def test_a_measured_network_is_taken_as_it_is():
    origin = {"source": "measured", "method": "", "date": "", "spread": None}
    roof = {"collective": "all_reduce", "backend": "nccl", "ranks": 4, "latency_ns": 2000, "bytes_per_second": 1e11}
    measured = _C.ceilings_from_dict(
        {
            "device": "a card",
            "compute": [{"dtype": "fp32", "operations_per_second": 1e13, "provenance": origin}],
            "memory": [{"level": "DRAM", "bytes_per_second": 1e12, "capacity_bytes": 0, "provenance": origin}],
            "network": [{**roof, "provenance": origin}],
        }
    )
    assert seconds("all_reduce", 4e9, 4, measured) == pytest.approx(2e-6 + 1.5 * 4e9 / 1e11)
    with pytest.raises(ValueError, match="measured network"):
        seconds("all_gather", 1e6, 4, measured)
