"""Traces that lack something, profilers that have no trace, and files that cannot be read or written."""

import json
import os
import threading
import warnings

import pytest
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, schedule

import roofprof

ALL_THREADS = {"experimental_config": torch._C._profiler._ExperimentalConfig(profile_all_threads=True)}


def recording(**options):
    return profile(activities=[ProfilerActivity.CPU], record_shapes=True, with_stack=True, **options)


def notes(report, code="trace-lacks"):
    return [note.text for note in report.coverage.notes if note.code == code]


def in_threads(call):
    threads = [threading.Thread(target=call) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_stacks_without_modules():
    """On threads that started later, ops are recorded without stacks: no option of the user's was left out."""
    model, x = nn.Linear(4, 8), torch.ones(3, 4)
    with recording(**ALL_THREADS) as profiler:
        in_threads(lambda: model(x))
    report = roofprof.from_trace(profiler)
    assert report.total.macs == 2 * 3 * 4 * 8
    (text,) = notes(report)
    assert "no call of an nn.Module" in text
    assert "with_stack" not in text


@pytest.mark.parametrize("call", [lambda: None, lambda: in_threads(lambda: torch.ones(3).exp())], ids=["no", "threads"])
def test_no_operator_at_all(call):
    with recording() as profiler:
        call()
    report = roofprof.from_trace(profiler)
    (text,) = notes(report)
    assert text.startswith("the trace has no operators")
    assert "profile_all_threads" in text


def test_a_profiler_that_records_still():
    """It is refused by a sentence, and goes on."""
    x = torch.ones(3)
    with recording() as profiler:
        x.exp()
        with pytest.raises(ValueError, match="the profiler gives no trace: it must have ended"):
            roofprof.from_trace(profiler)
        x.sin()
    assert set(roofprof.from_trace(profiler).by_operator()) >= {"aten::exp", "aten::sin"}


@pytest.mark.parametrize("kind", ["torch.profiler", "torch.autograd.profiler", "profiler_legacy"])
def test_an_event_list_has_names_and_times(kind, tmp_path):
    model, x = nn.Linear(4, 8), torch.ones(3, 4)
    profilers = {
        "torch.profiler": profile,
        "torch.autograd.profiler": torch.autograd.profiler.profile,
        "profiler_legacy": torch.autograd.profiler_legacy.profile,
    }
    with profilers[kind](record_shapes=True) as profiler:
        model(x).sum().backward()
    events = profiler.events() if kind == "torch.profiler" else profiler.function_events
    events.export_chrome_trace(str(tmp_path / "events.json"))
    report = roofprof.from_trace(tmp_path / "events.json")
    linear = next(event for event in events if event.name == "aten::linear")
    row = report.by_operator()["aten::linear"]
    assert row.calls == 1
    assert row.time == pytest.approx(1e-6 * linear.time_range.elapsed_us(), abs=2e-9)
    (text,) = notes(report)
    assert "EventList.export_chrome_trace" in text
    assert "record_shapes" not in text


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_a_trace_in_another_encoding_is_named(encoding, tmp_path):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": []}), encoding=encoding)
    with pytest.raises(ValueError, match="UTF-16 or UTF-32"):
        roofprof.from_trace(path)


def test_a_trace_twice_in_one_file_is_refused(tmp_path):
    once = tmp_path / "once.json"
    with recording() as profiler:
        torch.ones(3).exp()
    profiler.export_chrome_trace(str(once))
    trace = json.loads(once.read_text())
    trace["traceEvents"] *= 2
    (tmp_path / "twice.json").write_text(json.dumps(trace))
    with pytest.raises(ValueError, match="stands in it twice"):
        roofprof.from_trace(tmp_path / "twice.json")
    assert "aten::exp" in roofprof.from_trace(once).by_operator()


def test_a_profiler_that_never_started():
    with pytest.raises(ValueError, match="it must have ended"):
        roofprof.from_trace(profile())


@pytest.mark.parametrize(
    ("path", "options", "why"),
    [
        ("none/r.json", {}, "there is no folder"),
        ("none/{rank}.{step}.json", {}, "there is no folder"),
        (".", {}, "it is a folder"),
        ("r.json", {"steps": "3-1"}, "steps are given as"),
        ("r.json", {"device": "no such card"}, "no such card"),
    ],
)
def test_a_handler_that_cannot_write_is_refused_at_once(path, options, why, tmp_path):
    with pytest.raises(ValueError, match=why):
        roofprof.trace_handler(tmp_path / path, **options)
    assert list(tmp_path.iterdir()) == []


def test_a_handler_with_an_unknown_option(tmp_path):
    with pytest.raises(TypeError, match="nonsense"):
        roofprof.trace_handler(tmp_path / "r.json", nonsense=1)


@pytest.mark.parametrize("lost", ["the folder", "the model"])
def test_what_goes_wrong_later_does_not_end_the_program(lost, tmp_path):
    """The loop goes on, a warning names the file and the reason once, and what can be written is."""
    folder = tmp_path / "reports"
    folder.mkdir()
    options = {"model": nn.Linear(4, 8), "inputs": torch.ones(3, 5)} if lost == "the model" else {}
    handler = roofprof.trace_handler(folder / "r{step}.json", **options)
    if lost == "the folder":
        folder.rmdir()
    steps = 0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with recording(schedule=schedule(wait=0, warmup=1, active=1), on_trace_ready=handler) as profiler:
            for _ in range(4):
                torch.ones(3).exp()
                profiler.step()
                steps += 1
                if steps == 2:  # the first trace was ready
                    folder.mkdir(exist_ok=True)
    assert steps == 4
    said = [str(warning.message) for warning in caught if "no report was written" in str(warning.message)]
    assert len(said) == (1 if lost == "the folder" else 2)
    assert said[0].startswith(f"roofprof: no report was written to '{folder / 'r2.json'}': ")
    assert "None" not in said[0]
    assert [path.name for path in folder.iterdir()] == (["r4.json"] if lost == "the folder" else [])


def test_a_folder_for_each_step(tmp_path):
    """Which folders there will be is not known before: the handler is made, and writes where there is one."""
    (tmp_path / "2").mkdir()
    handler = roofprof.trace_handler(tmp_path / "{step}" / "r.json")
    with recording(schedule=schedule(wait=0, warmup=1, active=1, repeat=1), on_trace_ready=handler) as profiler:
        for _ in range(2):
            torch.ones(3).exp()
            profiler.step()
    assert roofprof.Report.from_json(tmp_path / "2" / "r.json").by_operator()["aten::exp"].calls == 1


def test_a_report_that_cannot_be_written_names_its_path_once(tmp_path):
    report = roofprof.count(torch.exp, torch.ones(3))
    path = tmp_path / "none" / "r.json"
    with pytest.raises(FileNotFoundError) as raised:
        report.to_json(path)
    assert str(raised.value) == f"[Errno 2] No such file or directory: '{path}'"
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(IsADirectoryError) as raised:
        report.to_json(folder)
    assert str(raised.value).count(str(folder)) == 1
    assert "None" not in str(raised.value)


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="a file of Linux's")  # noqa: PTH110
def test_a_file_that_cannot_be_read_is_named():
    with pytest.raises(OSError, match="/proc/self/mem"):
        roofprof.from_trace("/proc/self/mem")


def old_trace(path, *ops):
    """As torch 1.x wrote them: without "Concrete Inputs". An op is its name, sizes and types."""
    events = [
        {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": 10 * (i + 1), "dur": 5}
        | {"args": {"Input Dims": sizes, "Input type": types}}
        for i, (name, sizes, types) in enumerate(ops)
    ]
    path.write_text(json.dumps({"traceEvents": events}))
    return path


def test_arguments_that_an_old_trace_lacks_are_named(tmp_path):
    """Also where torch runs into it first, which says something else."""
    trace = old_trace(
        tmp_path / "t.json",
        ("aten::clamp", [[4, 4], [], []], ["float", "Scalar", "Scalar"]),
        ("aten::sum", [[4, 4], [], []], ["float", "", "Scalar"]),
        ("aten::gather", [[4, 4], [], [4, 4]], ["float", "Int", "long int"]),
        ("aten::_pin_memory", [[4, 4], []], ["int", ""]),
    )
    failed = notes(roofprof.from_trace(trace), "cost-failed")
    lacks = "the trace does not have the"
    assert f"no cost for aten::clamp: {lacks} values of its arguments min, max (torch before" in str(failed)
    assert f"no cost for aten::gather: {lacks} value of its argument dim" in str(failed)
    assert "no cost for aten::_pin_memory: torch does not run it without data: " in str(failed)
