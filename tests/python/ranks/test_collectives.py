"""Collectives of real ranks (gloo): their times against the program's own clock, who waits, and what is exposed."""

import json
import threading
import time
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from real_ranks import torchrun

import roofprof
from roofprof import _report
from roofprof.report.ranks import clocks

SUPPORT = Path(__file__).resolve().parents[1] / "support"
PROGRAM = f"""
import json, sys, time
sys.path.insert(0, {str(SUPPORT)!r})
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch import nn
import roofprof
from given_roofs import roofs

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
layer = nn.Linear(512, 512)
value = torch.rand(3 << 16)
gathered = torch.empty(size * value.numel())
shard = torch.empty(value.numel() // size)
pairs = [dist.new_group([0, 1]), dist.new_group(list(range(size)))]
own = {{}}


def timed(name, call):
    begin = time.perf_counter()
    result = call()
    own[name] = own.get(name, 0) + time.perf_counter() - begin
    return result


calls = {{
    "all_reduce": lambda: dist.all_reduce(value),
    "all_gather": lambda: dist.all_gather_into_tensor(gathered, value),
    "reduce_scatter": lambda: dist.reduce_scatter_tensor(shard, value),
    "all_to_all": lambda: dist.all_to_all_single(torch.empty_like(value), value),
    "broadcast": lambda: dist.broadcast(value, 0),
    "barrier": lambda: dist.barrier(),
}}
for call in calls.values():
    call()  # connections are made in the first call
profiler = roofprof.RooflineProfiler(layer, ceilings=roofs())
with profiler:
    for _ in range(3):
        for name, call in calls.items():
            timed(name, call)
    if rank == 0:
        dist.send(value, 1)
    elif rank == 1:
        dist.recv(value, 0)
    if rank < 2:
        dist.all_reduce(value[:1024], group=pairs[0])
    # Rank 1 comes late.
    time.sleep(0.3 * (rank == 1))
    dist.reduce(value[:2048], 0, group=pairs[1])
    dist.all_reduce(value[:4096], group=pairs[1])
    # What is under way while others compute.
    work = dist.all_reduce(value[:8192], async_op=True)
    if rank == 1:
        time.sleep(0.2)
    work.wait()
    result = functional.all_reduce(value[:16384], "sum", dist.group.WORLD) + 1
report = profiler.report()
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as recorded:
    live = roofprof.RooflineProfiler(layer, ceilings=roofs())
    with live:
        for call in calls.values():
            call()
recorded.export_chrome_trace(f"trace.rank{{rank}}.json")
live.report().to_json(f"live.{{rank}}.json")
json.dump(own, open(f"own.{{rank}}.json", "w"))
report.to_json(f"r.{{rank}}.json")
merged = roofprof.gather(report)
if merged:
    merged.to_json("all.json")
dist.destroy_process_group()
"""
MESSAGE = 4 * (3 << 16)
RANKS = 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("collectives")
    program = folder / "program.py"
    program.write_text(PROGRAM)
    torchrun(program, ranks=RANKS, cwd=folder)
    return folder


@pytest.fixture(scope="module")
def merged(folder):
    return roofprof.Report.from_json(folder / "all.json")


def of_rank(folder, rank):
    return roofprof.Report.from_json(folder / f"r.{rank}.json")


def by_bytes(report, name, size):
    (row,) = [row for row in report.collectives if row.name == name and row.bytes == size * row.calls]
    return row


def test_sizes_are_those_of_nccl_tests(folder):
    for rank in range(RANKS):
        report = of_rank(folder, rank)
        for name, size, factor in [
            ("all_reduce", MESSAGE, 2 * (RANKS - 1) / RANKS),
            ("all_gather", RANKS * MESSAGE, (RANKS - 1) / RANKS),
            ("reduce_scatter", MESSAGE, (RANKS - 1) / RANKS),
            ("all_to_all", MESSAGE, (RANKS - 1) / RANKS),
            ("broadcast", MESSAGE, 1),
            ("barrier", 0, 0),
        ]:
            row = by_bytes(report, name, size)
            assert (row.calls, row.timed_calls, row.ranks, row.backend) == (3, 3, RANKS, "gloo"), name
            assert row.wire_bytes == pytest.approx(3 * size * factor, abs=1), name
    assert by_bytes(of_rank(folder, 0), "send", MESSAGE).calls == 1
    assert by_bytes(of_rank(folder, 1), "recv", MESSAGE).calls == 1
    assert by_bytes(of_rank(folder, 0), "all_reduce", 4 * 1024).ranks == 2
    assert not [row for row in of_rank(folder, 2).collectives if row.ranks == 2]


def test_times_are_those_of_the_programs_own_clock(folder):
    for rank in range(RANKS):
        report = of_rank(folder, rank)
        for name, seconds in json.loads((folder / f"own.{rank}.json").read_text()).items():
            row = next(row for row in report.collectives if row.name == name and row.calls == 3)
            if name == "reduce_scatter":
                # That one of gloo's is done shows when the next op begins; what it copies then is work of its own.
                assert 0 < row.exposed <= row.time, name
                continue
            assert 0 < row.time <= 1.001 * seconds, name  # what the program saw has Python's part too
            assert row.exposed == pytest.approx(row.time), name  # nothing else ran


def test_who_is_late_makes_the_others_wait(folder, merged):
    row = by_bytes(merged, "all_reduce", 4 * 4096)
    assert row.calls == RANKS
    # Before it, a reduce: rank 0 has waited for rank 1 there already.
    assert row.wait + by_bytes(merged, "reduce", 4 * 2048).wait > 2 * 0.2
    for row in merged.collectives:
        if row.wait is None:
            assert row.name in {"send", "recv"}
            continue
        assert min(row.wait, row.transfer) >= 0
        assert row.wait + row.transfer == pytest.approx(row.time, abs=1e-12), row.name
    waiting = [rank.waiting for rank in merged.ranks]
    assert waiting[2] > 0.2
    assert waiting[1] < waiting[2]


def test_ranks_tables_and_files_have_them(folder, merged):
    for rank in merged.ranks:
        report = of_rank(folder, rank.rank)
        assert rank.exposed <= rank.communication <= rank.wall
        assert rank.idle == pytest.approx(max(rank.wall - rank.compute - rank.exposed, 0))
        assert report.total.communication == pytest.approx(sum(row.time for row in report.collectives if row.time))
    waiting = merged.table(by="rank", columns="waiting", sort="waiting", legend=False).split("\n\n")[1].splitlines()
    most = max(merged.ranks, key=lambda rank: rank.waiting)
    assert waiting[0].split() == ["rank", "waiting"]
    assert waiting[2].split() == [str(most.rank), roofprof.fields.of("rank")["waiting"].cell(most)]
    assert "exposed: of it, while no op computed" in " ".join(merged.table(by="rank").split())
    files = roofprof.merge(folder / f"r.{rank}.json" for rank in range(RANKS))
    assert files.to_dict()["merged"] == merged.to_dict()["merged"]
    assert files.to_dict()["collectives"] == merged.to_dict()["collectives"]


def test_a_trace_of_the_same_calls_has_the_same_collectives(folder):
    """But for their groups, which traces of gloo do not tell where there are several."""

    def structure(report):
        return {(row.name, row.op, row.backend, row.calls, row.bytes) for row in report.collectives}

    imported = roofprof.from_trace(sorted(folder.glob("trace.rank*.json")))
    assert structure(imported) == structure(roofprof.merge(sorted(folder.glob("live.*.json"))))
    assert all(row.timed_calls == row.calls for row in imported.collectives)


def test_a_model_alone_has_none():
    report = roofprof.count(torch.nn.Linear(3, 4), torch.rand(2, 3))
    assert report.collectives == []
    assert "no collectives" in report.table(by="collective")


# ---- clocks


def test_the_offset_of_another_clock_is_found(monkeypatch):
    """Rank 0's clock is five seconds ahead of the one that asks."""
    store = dist.HashStore()
    deadline = time.monotonic() + 600
    ahead = 5_000_000_000
    true_clock = time.monotonic_ns
    asking = threading.Thread(target=clocks.ask, args=(store, "clock", deadline))

    def clock():
        return true_clock() + (0 if threading.current_thread() is asking else ahead)

    monkeypatch.setattr(time, "monotonic_ns", clock)
    asking.start()
    found = []
    monkeypatch.setattr(_report, "ClockOffset", lambda offset, error: found.append((offset, error)))
    clocks.tell(store, "clock", deadline)
    asking.join()
    ((offset, error),) = found
    assert abs(offset - ahead) <= error
    assert store.num_keys() == 0
    with pytest.raises(dist.DistError):  # who does not ask is not waited for
        clocks.tell(store, "clock", true_clock() / 1e9 + 0.2)
