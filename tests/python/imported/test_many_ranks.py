"""Traces of several ranks as one report: made by hand, so that waits and clocks are known; and of real ranks (gloo)."""

import json
import re
from pathlib import Path

import pytest
import torch
from real_ranks import torchrun
from report.test_recorded_with_roofs import said_of_total
from torch import nn
from torch.profiler import ProfilerActivity, profile

import roofprof
from roofprof.cli import main
from roofprof.profiling.imported_ranks import ranks_of_names

STEP, ELEMENTS, STEPS = 1000, 250, 4  # microseconds of a step, elements of a gradient


def trace(path, rank, world=2, compute=100, ahead=0, *, steps=STEPS, first=0, told=True, elements=ELEMENTS):
    """Each step is a product that takes ``compute`` microseconds and a bf16 all_reduce that ends 500 after its begin.

    The collective's kernel starts when the product's has ended, and waits for the last rank.
    """
    events = []

    def event(category, name, begin, length, thread=1, **args):
        timed = {"ts": 10**6 + ahead + begin, "dur": length}
        events.append({"ph": "X", "cat": category, "name": name, "pid": 7, "tid": thread, **timed, "args": args})

    for step in range(steps):
        begin, number = step * STEP, 10 + 2 * step
        event("user_annotation", f"ProfilerStep#{first + step}", begin, STEP - 10)
        shapes = {"Input Dims": [[16, 32], [32, 8]], "Input type": ["float", "float"], "Concrete Inputs": ["", ""]}
        event("cpu_op", "aten::mm", begin + 10, 20, **shapes)
        event("cuda_runtime", "cudaLaunchKernel", begin + 15, 2, correlation=number)
        event("kernel", "gemm", begin + 20, compute, correlation=number, device=0, stream=7)
        event("cpu_op", "c10d::allreduce_", begin + 40, 30)
        message = {"Collective name": "allreduce", "dtype": "BFloat16", "Group size": world, "Process Group Name": "0"}
        counts = {"In msg nelems": elements, "Out msg nelems": elements}
        event("cpu_op", "record_param_comms", begin + 45, 20, **message, **counts)
        event("cuda_runtime", "cudaLaunchKernel", begin + 50, 2, correlation=number + 1)
        kernel = {"correlation": number + 1, "device": 0, "stream": 20}
        name = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
        event("kernel", name, begin + 20 + compute, 480 - compute, **kernel)
    facts = {"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": world}} if told else {}
    devices = [{"id": 0, "name": "NVIDIA H100 80GB HBM3", "computeMajor": 9, "computeMinor": 0}]
    path.write_text(json.dumps({"schemaVersion": 1, "deviceProperties": devices, **facts, "traceEvents": events}))
    return path


COMPUTE = (100, 160, 400)
AHEAD = (0, 5_000_000, -777)


@pytest.fixture(name="three")
def _three(tmp_path):
    return [trace(tmp_path / f"t.rank{rank}.json", rank, 3, COMPUTE[rank], AHEAD[rank]) for rank in range(len(COMPUTE))]


def note_of(report, code):
    return "\n".join(note.text for note in report.coverage.notes if note.code == code)


def test_waits_clocks_and_the_slowest_rank_are_those_that_were_written(three):
    merged = roofprof.from_trace(three)
    micro = pytest.approx
    assert [rank.rank for rank in merged.ranks] == [0, 1, 2]
    for rank, compute in zip(merged.ranks, COMPUTE, strict=True):
        assert rank.waiting * 1e6 == micro(STEPS * (max(COMPUTE) - compute))
        assert rank.compute * 1e6 == micro(STEPS * compute)
        assert rank.exposed * 1e6 == rank.communication * 1e6 == micro(STEPS * (480 - compute))
        assert rank.steps == STEPS
    (row,) = merged.collectives
    assert (row.calls, row.bytes, row.ranks, row.algorithm) == (3 * STEPS, 3 * STEPS * 2 * ELEMENTS, 3, "RING LL")
    assert row.transfer * 1e6 == micro(3 * STEPS * (480 - max(COMPUTE)))
    assert row.bus_bandwidth == micro(row.bytes / row.transfer * 4 / 3)
    assert merged.total.macs == 3 * STEPS * 16 * 32 * 8
    assert merged.total.slowest_rank == 0 or merged.total.imbalance >= 0
    clocks = note_of(merged, "ranks-clocks")
    assert "rank 1 is 5000000 µs ahead, rank 2 is 777 µs behind" in clocks
    assert f"the ends of {STEPS} or more collectives" in clocks
    assert "within 0 µs" in clocks
    assert "rank 2 computes 2.50 times as long as the median rank" in merged.table()
    assert merged.report_of(2).total.time * 1e6 == micro(STEPS * 480)


def test_reports_of_single_traces_merge_to_the_same(three, tmp_path):
    files = []
    for path in three:
        roofprof.from_trace(path).to_json(files.append(tmp_path / f"{path.stem}.report.json") or files[-1])
    again = roofprof.merge(files)
    assert again.to_dict()["collectives"] == roofprof.from_trace(three).to_dict()["collectives"]
    assert [rank.waiting for rank in again.ranks] == [rank.waiting for rank in roofprof.from_trace(three).ranks]


def test_options_hold_for_all(three):
    merged = roofprof.from_trace(tuple(three), steps="0-2", device="A100 SXM 80GB")
    assert merged.total.macs == 3 * 3 * 16 * 32 * 8
    assert merged.ranks[0].waiting * 1e6 == pytest.approx(3 * 300)
    assert "A100" in merged.ceilings.device


def test_the_mean_of_steps_is_that_of_their_collectives_too(three):
    (row,) = roofprof.from_trace(three[0], steps="mean").collectives
    assert (row.calls, row.timed_calls, row.bytes) == (1, 1, 2 * ELEMENTS)
    assert row.time * 1e6 == row.exposed * 1e6 == pytest.approx(480 - COMPUTE[0])
    assert row.algorithm_bandwidth == pytest.approx(row.bytes / row.time)
    merged = roofprof.from_trace(three, steps="mean")
    assert [rank.waiting for rank in merged.ranks] == [None] * 3
    assert sum(row.calls for row in merged.collectives) == 3


def test_a_given_model_names_the_rows_of_all(tmp_path):
    model, batch = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4)), torch.rand(8, 16)
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, with_stack=True) as recorded:
        model(batch)
    recorded.export_chrome_trace(str(tmp_path / "one.json"))
    whole = json.loads((tmp_path / "one.json").read_text())
    for rank in (0, 1):
        facts = {"distributedInfo": {"backend": "gloo", "rank": rank, "world_size": 2}}
        (tmp_path / f"{rank}.json").write_text(json.dumps(whole | facts))
    merged = roofprof.from_trace([tmp_path / "0.json", tmp_path / "1.json"], model, batch)
    assert merged.row("2").params == 32 * 4 + 4
    assert merged.row("2").macs == 2 * 8 * 32 * 4
    assert merged.row("2").time_max <= merged.row("2").time


def test_ranks_come_from_the_trace_else_from_the_name_else_from_the_order(tmp_path):
    assert ranks_of_names([Path("a/rank10.json"), Path("a/rank_2.json.gz")]) == [10, 2]
    assert ranks_of_names([Path("host_4711.rank-1.json"), Path("host_4712.rank-0.json")]) == [1, 0]
    assert ranks_of_names([Path("trace_1.json"), Path("trace_0.json")]) == [1, 0]
    assert ranks_of_names([Path("host_4711.169.pt.trace.json"), Path("host_4712.170.pt.trace.json")]) is None
    assert ranks_of_names([Path("x.json"), Path("rank1.json")]) is None
    assert ranks_of_names([Path("a/rank1.json"), Path("b/rank1.json")]) is None
    named = [trace(tmp_path / f"t_rank{rank}.json", rank, told=False) for rank in (1, 0)]
    merged = roofprof.from_trace(named)
    assert [rank.rank for rank in merged.ranks] == [0, 1]
    assert "ranks 1, 0 are from their files' names" in note_of(merged, "ranks-assumed")
    ordered = [trace(tmp_path / name, 0, told=False) for name in ("a.json", "b.json")]
    merged = roofprof.from_trace(ordered)
    assert [rank.rank for rank in merged.ranks] == [0, 1]
    assert "ranks 0, 1 are from their order" in note_of(merged, "ranks-assumed")


def test_what_does_not_fit_is_refused_or_said(tmp_path):
    zero, two = trace(tmp_path / "0.json", 0, 4), trace(tmp_path / "2.json", 2, 4)
    merged = roofprof.from_trace([zero, two])
    assert merged.missing_ranks == [1, 3]
    assert all(rank.waiting is None for rank in merged.ranks)  # two ranks of the group were not there
    with pytest.raises(ValueError, match=r"copy.json: rank 0 is there already"):
        roofprof.from_trace([zero, trace(tmp_path / "copy.json", 0, 4)])
    merged = roofprof.from_trace([zero, trace(tmp_path / "1.json", 1, 8)])
    assert "the number of ranks is not the same on all ranks: 4 on rank 0, 8 on rank 1" in note_of(
        merged, "ranks-differ"
    )
    with pytest.raises(ValueError, match="no traces"):
        roofprof.from_trace([])
    broken = tmp_path / "broken.json"
    broken.write_text(zero.read_text()[:-100])
    with pytest.raises(ValueError, match=r"broken.json: it is cut off after .*; without this file the others can be"):
        roofprof.from_trace([zero, broken])
    with pytest.raises(OSError, match="gone.json"):
        roofprof.from_trace([zero, tmp_path / "gone.json"])


def test_where_clocks_cannot_be_aligned_waits_are_not_known(tmp_path):
    short = [trace(tmp_path / f"short{rank}.json", rank, steps=2) for rank in (0, 1)]
    merged = roofprof.from_trace(short)
    assert all(rank.waiting is None for rank in merged.ranks)
    assert "the clock of rank 1 could not be aligned" in note_of(merged, "ranks-clocks")
    sizes = [trace(tmp_path / f"size{rank}.json", rank, elements=10 + rank) for rank in (0, 1)]
    assert all(rank.waiting is None for rank in roofprof.from_trace(sizes).ranks)
    steps = [trace(tmp_path / f"step{rank}.json", rank, first=rank) for rank in (0, 1)]
    merged = roofprof.from_trace(steps)
    assert all(rank.waiting is None for rank in merged.ranks)
    assert "0-3 on rank 0, 1-4 on rank 1" in note_of(merged, "ranks-differ")


def test_the_command_takes_files_and_patterns(three, tmp_path, capsys):
    assert main(["import", *map(str, three), "-o", str(tmp_path / "all.json"), "--by", "rank"]) == 0
    assert "waiting" in capsys.readouterr().out
    by_files = roofprof.Report.from_json(tmp_path / "all.json").to_dict()
    pattern = str(three[0].parent / "t.rank*.json")
    assert (
        main(
            ["import", pattern, "-o", str(tmp_path / "glob.json"), "--by", "collective", "--columns", "algorithm,bytes"]
        )
        == 0
    )
    assert "RING LL" in capsys.readouterr().out
    assert roofprof.Report.from_json(tmp_path / "glob.json").to_dict() == by_files
    assert main(["import", str(tmp_path / "none*.json")]) == 2
    assert re.search(r"no file matches .*none\*.json", capsys.readouterr().err)
    assert main(["import", str(three[0]), str(three[0])]) == 2
    assert "is given twice" in capsys.readouterr().err


PROGRAM = """
import os, sys
import torch
import torch.distributed as dist
from torch import nn
from torch.profiler import ProfilerActivity, profile
import roofprof

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 8)))
value = torch.rand(1 << 10)
gathered = torch.empty(size << 10)


def step():
    model(torch.rand(4, 64)).sum().backward()
    dist.all_reduce(value)
    dist.all_gather_into_tensor(gathered, value)
    dist.reduce_scatter_tensor(value, gathered)
    dist.all_to_all_single(torch.empty_like(gathered), gathered)
    dist.broadcast(value, 0)
    if rank == 0:
        dist.send(value[:256], 1)
    elif rank == 1:
        dist.recv(value[:256], 0)
    dist.barrier()


for _ in range(3):
    step()
profiler = roofprof.RooflineProfiler(model)
with profiler:
    for _ in range(3):
        step()
        profiler.step()
profiler.report().to_json(f"{sys.argv[1]}/live.rank{rank}.json")
with profile(activities=[ProfilerActivity.CPU], record_shapes=True, with_stack=True) as recorded:
    for _ in range(3):
        step()
        recorded.step()
recorded.export_chrome_trace(f"{sys.argv[1]}/trace.rank{rank}.json")
dist.barrier()
dist.destroy_process_group()
"""


@pytest.mark.slow
def test_real_ranks_profiled_live_and_imported_have_the_same_collectives(tmp_path):
    """Calls, bytes, groups and kinds; every call has a time, and waits are those of a machine's own clock, or near."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    torchrun(program, tmp_path, ranks=2, ROOFPROF_CEILINGS="off")
    live = roofprof.merge(sorted(tmp_path.glob("live.rank*.json")))
    imported = roofprof.from_trace(sorted(tmp_path.glob("trace.rank*.json")))

    def structure(report):
        found = {}
        for row in report.collectives:
            key = row.name, row.op, row.group, row.backend, row.ranks, row.dtype
            calls, size, wire = found.get(key, (0, 0, 0))
            found[key] = calls + row.calls, size + row.bytes, wire + row.wire_bytes
        return found

    assert structure(imported) == structure(live)
    assert [rank.rank for rank in imported.ranks] == [0, 1]
    assert all(row.timed_calls == row.calls for row in imported.collectives)
    assert all(rank.waiting is not None for rank in imported.ranks)
    assert {row.time is None for row in imported.collectives} == {False}


# ---- a folder


def in_folder(run, folder):
    """The ranks that `roofprof import FOLDER` finds, and what it says beside."""
    assert main(["import", str(folder), "--json", "all.json"]) == 0
    return [rank.rank for rank in roofprof.Report.from_json("all.json").ranks], run.readouterr().err


def test_a_folder_is_the_ranks_in_it_whatever_else_lies_there(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "traces"
    (folder / "below").mkdir(parents=True)
    for rank in (2, 0, 1):  # names of tensorboard_trace_handler, which tell nothing
        trace(folder / f"host_{90 - rank}.{100 + rank}.pt.trace.json", rank, 3, COMPUTE[rank], AHEAD[rank])
    roofprof.count(nn.Linear(2, 2), torch.rand(1, 2)).to_json(folder / "report.json")
    (folder / "notes.txt").write_text("words")
    (folder / "other.json").write_text('{"nodes": []}')
    (folder / "cut.json.gz").write_bytes(b"\x1f\x8b\x08")
    ranks, said = in_folder(capsys, folder)
    assert ranks == [0, 1, 2]
    assert "left out, no trace of a profiler: cut.json.gz, notes.txt, other.json, report.json" in said


def test_of_several_traces_of_a_rank_the_latest_that_all_have_is_read(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "traces"
    folder.mkdir()
    for time, elements in enumerate((100, 200, 300, 400), 8):  # 8, 9, 10, 11: not in the order of letters
        trace(folder / f"host_7.{time}.pt.trace.json", 0, elements=elements)
        if time < 11:
            trace(folder / f"host_8.{time}.pt.trace.json", 1, elements=elements)
    ranks, said = in_folder(capsys, folder)
    assert ranks == [0, 1]
    assert {row.bytes for row in roofprof.Report.from_json("all.json").collectives} == {2 * STEPS * 2 * 300}
    assert "the latest that all ranks have is read" in said
    assert "host_7.11.pt.trace.json" in said


def test_processes_without_ranks_are_told_by_their_names(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "traces"
    folder.mkdir()
    for process in (70, 71):
        for time in (1, 2):
            trace(folder / f"host_{process}.{time}.pt.trace.json", 0, told=False)
    assert in_folder(capsys, folder)[0] == [0, 1]
    for path in folder.iterdir():
        path.rename(folder / path.name.replace("host_7", "some"))
    assert main(["import", str(folder)]) == 2
    assert "as these do not say their ranks: " in capsys.readouterr().err


def test_one_trace_in_a_folder_is_no_merge_and_none_is_refused(tmp_path, capsys):
    (tmp_path / "below").mkdir()
    assert main(["import", str(tmp_path)]) == 2
    assert "has no trace of torch.profiler; folders in it are not read: below" in capsys.readouterr().err
    trace(tmp_path / "t.json", 0)
    assert main(["import", str(tmp_path)]) == 0
    assert "ranks" not in capsys.readouterr().out.splitlines()[1]


def test_the_total_of_all_ranks_is_the_same_by_each_grouping(three):
    """In each step a rank computes and then waits: its kernels exclude each other, so nothing is hidden."""
    report = roofprof.merge([roofprof.from_trace(path) for path in three])
    total = report.total
    assert total.time == pytest.approx(len(three) * STEPS * 480e-6)
    assert total.hidden_communication == 0
    for by in ("module", "phase", "op", "dtype", "module,op"):
        cells = said_of_total(report, by, ("time", "lower_bound_time", "wasted_time", "percent_of_roof", "bound"))
        for figure in ("time", "lower_bound_time", "wasted_time"):
            assert cells[figure].value == pytest.approx(getattr(total, figure) * 1e9, abs=1), (by, figure)
        assert cells["bound"].text == total.bound == "network nccl", by
        assert cells["percent_of_roof"].value == pytest.approx(total.percent_of_roof), by
