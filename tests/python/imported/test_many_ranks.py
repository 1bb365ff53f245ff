"""Traces of several ranks as one report: made by hand, so that waits and clocks are known."""

import json
import re
from pathlib import Path

import gpu_traces
import pytest
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

import roofprof
from roofprof.cli import main
from roofprof.profiling.imported_ranks import ranks_of_names

STEP, ELEMENTS, STEPS = 1000, 250, 4  # microseconds of a step, elements of a gradient


def trace(path, rank, world=2, compute=100, ahead=0, *, steps=STEPS, first=0, numbered=True, elements=ELEMENTS):
    """Each step is a product that takes ``compute`` microseconds and a bf16 all_reduce that ends 500 after its begin.

    The collective's kernel starts when the product's has ended, and waits for the last rank.
    """
    events = []

    def event(category, name, begin, length, **args):
        events.append(gpu_traces.event(category, name, 10**6 + ahead + begin, length, **args))

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
    facts = {"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": world}} if numbered else {}
    devices = [{"id": 0, "name": "NVIDIA H100 80GB HBM3", "computeMajor": 9, "computeMinor": 0}]
    return gpu_traces.write_trace(path, events, deviceProperties=devices, **facts)


COMPUTE = (100, 160, 400)
AHEAD = (0, 5_000_000, -777)


@pytest.fixture(name="three")
def _three(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
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
    assert "rank 1 is 5000000 µs ahead, rank 2 is 777 µs behind" in note_of(merged, "ranks-clocks")
    assert "rank 2 computes 2.50 times as long as the median rank" in merged.table()
    assert merged.report_of(2).total.time * 1e6 == micro(STEPS * 480)
    some = roofprof.from_trace(tuple(three), steps="0-2", device="A100 SXM 80GB")  # options hold for all
    assert some.ranks[0].waiting * 1e6 == micro(3 * 300)
    assert "A100" in some.ceilings.device
    again = roofprof.merge([roofprof.from_trace(path) for path in three])
    assert again.to_dict()["collectives"] == merged.to_dict()["collectives"]


def test_the_mean_of_steps_is_that_of_their_collectives_too(three):
    (row,) = roofprof.from_trace(three[0], steps="mean").collectives
    assert (row.calls, row.timed_calls, row.bytes) == (1, 1, 2 * ELEMENTS)
    assert row.time * 1e6 == row.exposed * 1e6 == pytest.approx(480 - COMPUTE[0])
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


def test_ranks_come_from_the_trace_else_from_the_name_else_from_the_order(tmp_path):
    assert ranks_of_names([Path("a/rank10.json"), Path("a/rank_2.json.gz")]) == [10, 2]
    assert ranks_of_names([Path("host_4711.rank-1.json"), Path("host_4712.rank-0.json")]) == [1, 0]
    assert ranks_of_names([Path("trace_1.json"), Path("trace_0.json")]) == [1, 0]
    assert ranks_of_names([Path("host_4711.169.pt.trace.json"), Path("host_4712.170.pt.trace.json")]) is None
    assert ranks_of_names([Path("a/rank1.json"), Path("b/rank1.json")]) is None
    named = [trace(tmp_path / f"t_rank{rank}.json", rank, numbered=False) for rank in (1, 0)]
    merged = roofprof.from_trace(named)
    assert [rank.rank for rank in merged.ranks] == [0, 1]
    assert "ranks 1, 0 are from their files' names" in note_of(merged, "ranks-assumed")
    ordered = [trace(tmp_path / name, 0, numbered=False) for name in ("a.json", "b.json")]
    merged = roofprof.from_trace(ordered)
    assert [rank.rank for rank in merged.ranks] == [0, 1]
    assert "ranks 0, 1 are from their order" in note_of(merged, "ranks-assumed")


def test_what_does_not_fit_is_refused_or_reported(tmp_path):
    zero, two = trace(tmp_path / "0.json", 0, 4), trace(tmp_path / "2.json", 2, 4)
    merged = roofprof.from_trace([zero, two])
    assert merged.missing_ranks == [1, 3]
    assert all(rank.waiting is None for rank in merged.ranks)  # two ranks of the group were not there
    with pytest.raises(ValueError, match=r"copy.json: rank 0 is there already"):
        roofprof.from_trace([zero, trace(tmp_path / "copy.json", 0, 4)])
    with pytest.raises(ValueError, match="no traces"):
        roofprof.from_trace([])
    broken = tmp_path / "broken.json"
    broken.write_text(zero.read_text()[:-100])
    with pytest.raises(ValueError, match=r"broken.json: it is cut off after .*; without this file the others can be"):
        roofprof.from_trace([zero, broken])
    with pytest.raises(OSError, match="gone.json"):
        roofprof.from_trace([zero, tmp_path / "gone.json"])


def test_the_command_takes_files_and_patterns(three, tmp_path, capsys):
    assert main(["import", *map(str, three), "-o", "all.json", "--by", "rank"]) == 0
    assert "waiting" in capsys.readouterr().out
    assert main(["import", "t.rank*.json", "-o", "glob.json", "--by", "collective", "--columns", "algorithm"]) == 0
    assert "RING LL" in capsys.readouterr().out
    assert (tmp_path / "glob.json").read_bytes() == (tmp_path / "all.json").read_bytes()
    assert main(["import", "none*.json"]) == 2
    assert re.search(r"no file matches .*none\*.json", capsys.readouterr().err)
    assert main(["import", "t.rank0.json", "t.rank0.json"]) == 2
    assert "is given twice" in capsys.readouterr().err


# ---- a folder


@pytest.fixture(name="folder")
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "traces").mkdir()
    return tmp_path / "traces"


def in_folder(run):
    """The ranks that `roofprof import FOLDER` finds, and what it says beside."""
    assert main(["import", "traces", "--json", "all.json"]) == 0
    return [rank.rank for rank in roofprof.Report.from_json("all.json").ranks], run.readouterr().err


def test_a_folder_is_the_ranks_in_it_whatever_else_lies_there(folder, capsys):
    assert main(["import", "traces"]) == 2
    assert "has no trace of torch.profiler" in capsys.readouterr().err
    (folder / "below").mkdir()
    for rank in (2, 0, 1):  # names of tensorboard_trace_handler, which tell nothing
        trace(folder / f"host_{90 - rank}.{100 + rank}.pt.trace.json", rank, 3, COMPUTE[rank], AHEAD[rank])
    roofprof.count(nn.Linear(2, 2), torch.rand(1, 2)).to_json(folder / "report.json")
    (folder / "notes.txt").write_text("words")
    (folder / "cut.json.gz").write_bytes(b"\x1f\x8b\x08")
    ranks, printed = in_folder(capsys)
    assert ranks == [0, 1, 2]
    assert "left out, no trace of a profiler: cut.json.gz, notes.txt, report.json" in printed


def test_processes_without_ranks_are_reported_by_their_names(folder, capsys):
    for process in (70, 71):
        for time in (1, 2):
            trace(folder / f"host_{process}.{time}.pt.trace.json", 0, numbered=False)
    assert in_folder(capsys)[0] == [0, 1]
    for path in folder.iterdir():
        path.rename(folder / path.name.replace("host_7", "some"))
    assert main(["import", "traces"]) == 2
    assert "as these do not say their ranks: " in capsys.readouterr().err


def test_of_several_traces_of_a_rank_the_latest_that_all_have_is_read(folder, capsys):
    for time, elements in enumerate((100, 200, 300, 400), 8):  # 8, 9, 10, 11: not in the order of letters
        trace(folder / f"host_7.{time}.pt.trace.json", 0, elements=elements)
        if time < 11:
            trace(folder / f"host_8.{time}.pt.trace.json", 1, elements=elements)
    ranks, printed = in_folder(capsys)
    assert ranks == [0, 1]
    assert {row.bytes for row in roofprof.Report.from_json("all.json").collectives} == {2 * STEPS * 2 * 300}
    assert "the latest that all ranks have is read" in printed
    assert "host_7.11.pt.trace.json" in printed
