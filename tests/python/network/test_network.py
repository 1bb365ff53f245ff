"""The network's roof: fitted, measured between real ranks (gloo), kept, and found by a profile."""

import json
import random
import textwrap
from functools import partial

import pytest
import real_ranks

import roofprof
from roofprof.cli import main
from roofprof.roofs.network import links
from roofprof.roofs.network.measure import Point, fit, spread

SIZES = [1 << exponent for exponent in range(10, 29)]


def points_of(latency, bandwidth, noise=lambda: 1.0):
    times = [(size, (latency + size / bandwidth) * noise()) for size in SIZES]
    return [Point(size, seconds, 1.25 * seconds) for size, seconds in times]


def test_noise_moves_the_roof_little():
    line = fit(points_of(50e-6, 2e9))
    assert (line.latency, line.bandwidth) == (pytest.approx(50e-6), pytest.approx(2e9))
    assert spread(points_of(50e-6, 2e9)) == pytest.approx(0.2)
    chance = random.Random(1)
    line = fit(points_of(50e-6, 2e9, lambda: 1 + 0.2 * chance.random()))
    assert line.bandwidth == pytest.approx(2e9, rel=0.2)
    assert line.latency == pytest.approx(50e-6, rel=0.25)
    disturbed = points_of(50e-6, 2e9)
    disturbed[-3] = disturbed[-3]._replace(best=10 * disturbed[-3].best)
    assert fit(disturbed).bandwidth == pytest.approx(2e9, rel=0.05)


def test_a_link_that_lets_bursts_through_has_the_roof_of_what_it_sustains():
    """Up to 64 kB at once; what is more has to wait."""
    points = [Point(size, 50e-6 + max(0, size - 65536) / 1e8, 1.0) for size in SIZES]
    line = fit(points)
    assert line.bandwidth == pytest.approx(1e8)
    assert 0 < line.latency <= 50e-6


def test_times_that_no_line_fits_still_give_a_roof():
    falling = [Point(1000, 2e-3, 2e-3), Point(2000, 1e-3, 1e-3)]  # the larger one is faster
    line = fit(falling)
    assert (line.latency, line.bandwidth) == (0, pytest.approx(2e6))
    assert all(line.seconds(point.wire_bytes) <= point.best for point in falling)
    with pytest.raises(ValueError, match="two sizes"):
        fit(falling[:1])


def test_links_are_known_with_their_sources():
    rates = {link.name: link.bytes_per_second for link in links.published()}
    for transfers, name in [(8e9, "PCIe 3.0 x16"), (16e9, "PCIe 4.0 x16"), (32e9, "PCIe 5.0 x16")]:
        assert rates[name] == pytest.approx(transfers * 16 * 128 / 130 / 8, rel=1e-3)
    for gigabits, name in [(100, "InfiniBand EDR 4x"), (400, "InfiniBand NDR 4x"), (25, "Ethernet 25G")]:
        assert rates[name] == gigabits * 1e9 / 8
    assert all(link.source for link in links.published())


def test_without_torchrun_a_sentence_says_how(capsys, monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    assert main(["ceilings", "--network"]) != 0
    assert "start it with torchrun" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["ceilings", "--network", "--seconds", "0"])


PROGRAM = """
import torch, roofprof
import torch.distributed as dist

dist.init_process_group("gloo")
layer = torch.nn.Linear(8, 8)
profiler = roofprof.RooflineProfiler(layer)
with profiler:
    dist.all_reduce(torch.ones(1 << 20))
    layer(torch.rand(2, 8))
report = profiler.report()
dist.barrier()
if dist.get_rank() == 0:
    report.to_json("r.json")
dist.destroy_process_group()
"""


@pytest.mark.measuring
def test_it_is_measured_kept_and_found_by_a_profile(tmp_path):
    torchrun = partial(real_ranks.torchrun, cwd=tmp_path, ROOFPROF_CACHE_DIR=str(tmp_path / "cache"))
    done = torchrun("-m", "roofprof", "ceilings", "--network", "--seconds", 2, "--json", "network.json")
    assert done.stdout.count("gloo between 2 ranks") == 1  # rank 0 alone prints
    roofs = roofprof.Ceilings.load(tmp_path / "network.json")
    names = ["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "send"]
    assert [roof.collective for roof in roofs.network] == names
    for roof in roofs.network:
        assert (roof.backend, roof.ranks) == ("gloo", 2)
        assert roof.bytes_per_second > 0
        assert roof.latency_ns >= 0
    assert "all_reduce between" not in torchrun("-m", "roofprof", "ceilings", "--network").stderr  # it was known
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM))
    torchrun(program)
    report = roofprof.Report.from_json(tmp_path / "r.json")
    (row,) = report.collectives
    roof = report.ceilings.network[0]
    assert row.wire_bytes == row.bytes == 4 << 20
    assert row.lower_bound == pytest.approx(roof.latency_ns * 1e-9 + (4 << 20) / roof.bytes_per_second, rel=1e-6)
    assert row.percent_of_roof == pytest.approx(100 * row.lower_bound / row.time, rel=1e-6)
    assert row.bound == "network gloo"
    assert "network gloo" in report.table(by="collective", width=200)
    # Between other numbers of ranks nothing was measured.
    torchrun(program, ranks=3)
    assert roofprof.Report.from_json(tmp_path / "r.json").ceilings.network == []


def test_impossible_roofs_are_refused(tmp_path):
    file = tmp_path / "roofs.json"
    roof = {"collective": "send", "backend": "gloo", "ranks": 2, "latency_ns": 1.0, "bytes_per_second": 0.0}
    roof["provenance"] = {"source": "given", "method": "", "date": "", "spread": None}
    content = {"device": "d", "compute": [], "memory": [], "network": [roof]}
    file.write_text(json.dumps({"schema_version": 2, "ceilings": content, "notes": []}))
    with pytest.raises(ValueError, match="bytes_per_second of send between 2 ranks is 0"):
        roofprof.Ceilings.load(file)
