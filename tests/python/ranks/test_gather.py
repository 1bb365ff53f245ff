"""Reports of real ranks (gloo), brought to rank 0 and merged, and ranks that do not come."""

import textwrap
from pathlib import Path

import pytest
import torch
from real_ranks import torchrun

import roofprof

SUPPORT = Path(__file__).resolve().parents[1] / "support"
# Each rank has a batch of its own size, so that its work tells which it is.
PROGRAM = """
import os, pathlib, sys, time, warnings
sys.path.insert(0, {support!r})
import torch
import torch.distributed as dist
from torch import nn
import roofprof
from given_roofs import roofs

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4)))
profiler = roofprof.RooflineProfiler(model, ceilings=roofs())
with profiler:
    for _ in range(3):
        model(torch.rand(2 + rank, 16)).sum().backward()
        profiler.step()
report = profiler.report()
{rest}
"""
MACS_OF_A_SAMPLE = 16 * 32 * 2 + 32 * 4 * 3  # no gradient of the inputs


def run(tmp_path, rest, ranks=2, expected=0):
    program = tmp_path / "train.py"
    program.write_text(PROGRAM.format(support=str(SUPPORT), rest=textwrap.dedent(rest)))
    return torchrun(program, ranks=ranks, cwd=tmp_path, expected=expected)


def test_the_sum_over_ranks_and_each_ranks_line(tmp_path):
    run(
        tmp_path,
        """
        merged = roofprof.gather(report)
        assert (merged is None) == (rank != 0)
        if merged:
            merged.to_json("all.json")
        report.to_json(f"r.rank{rank}.json")
        called = []
        for name in ("all_gather_object", "gather_object", "all_reduce", "barrier", "broadcast", "gather"):
            setattr(dist, name, lambda *args, name=name, **kwargs: called.append(name))
        for _ in range(3):
            roofprof.gather(report)
        assert not called  # gathering is no collective
        dist.destroy_process_group()
        """,
        ranks=4,
    )
    merged = roofprof.Report.from_json(tmp_path / "all.json")
    assert merged.total.macs == 3 * (2 + 3 + 4 + 5) * MACS_OF_A_SAMPLE
    assert [rank.rank for rank in merged.ranks] == [0, 1, 2, 3]
    assert [rank.macs for rank in merged.ranks] == [3 * (2 + rank) * MACS_OF_A_SAMPLE for rank in range(4)]
    assert len({rank.host for rank in merged.ranks}) == 1
    assert merged.ranks[0].host
    assert merged.missing_ranks == []
    assert not merged.partial
    assert merged.row("module").params == 16 * 32 + 32 + 32 * 4 + 4
    own = [roofprof.Report.from_json(tmp_path / f"r.rank{rank}.json") for rank in range(4)]
    for row in merged.rows:
        times = [report.row(row.path).time for report in own]
        assert row.time == pytest.approx(sum(times))
        assert (row.time_min, row.time_max) == (min(times), max(times))
        assert row.slowest_rank == times.index(max(times))
        assert row.macs == sum(report.row(row.path).macs for report in own)
    slowest = max(merged.ranks, key=lambda rank: rank.compute).rank
    assert merged.report_of(slowest) == own[slowest]
    files = roofprof.merge(tmp_path / f"r.rank{rank}.json" for rank in range(4))
    assert files.to_dict()["merged"] == merged.to_dict()["merged"]


def test_a_rank_that_does_not_come_is_named(tmp_path):
    run(
        tmp_path,
        """
        sent = pathlib.Path("sent")
        if rank == 2:
            roofprof.gather(report)
            sent.touch()
        elif rank == 0:
            while not sent.exists():  # however long that takes
                time.sleep(0.02)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                merged = roofprof.gather(report, timeout=3)
            assert merged.missing_ranks == [1], merged.missing_ranks
            assert merged.partial
            assert merged.total.macs == report.total.macs + 3 * 4 * 1408, merged.total.macs
            assert "no report came within 3 s from rank 1" in str(caught[-1].message)
            assert "rank 1 of 3 is missing" in merged.table()
        """,
        ranks=3,
    )


def test_a_rank_that_raised_is_named(tmp_path):
    done = run(
        tmp_path,
        """
        if rank == 1:
            raise KeyError("mine")
        merged = roofprof.gather(report, timeout=3)
        open("missing.txt", "w").write(str(merged.missing_ranks))
        """,
        expected=1,
    )
    assert "KeyError: 'mine'" in done.stderr
    assert not (tmp_path / "missing.txt").exists() or (tmp_path / "missing.txt").read_text() == "[1]"


def test_without_ranks_a_sentence_says_what_is_needed():
    report = roofprof.count(torch.nn.Linear(3, 4), torch.rand(2, 3))
    with pytest.raises(RuntimeError, match="call init_process_group first"):
        roofprof.gather(report)
    with pytest.raises(ValueError, match="timeout must be more than 0 seconds, not 0"):
        roofprof.gather(report, timeout=0)
