"""Traces that lack something, profilers that have no trace, and files that cannot be read or written."""

import os
import threading
import warnings

import pytest
import torch
from gpu_traces import event, write_trace
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
    """On threads that started later, ops are recorded without stacks: no option of the user's was left out.

    Without profile_all_threads there are no operators at all.
    """
    model, x = nn.Linear(4, 8), torch.ones(3, 4)
    with recording(**ALL_THREADS) as profiler:
        in_threads(lambda: model(x))
    report = roofprof.from_trace(profiler)
    assert report.total.macs == 2 * 3 * 4 * 8
    (text,) = notes(report)
    assert "no call of an nn.Module" in text
    assert "with_stack" not in text
    with recording() as profiler:
        in_threads(lambda: torch.ones(3).exp())
    (text,) = notes(roofprof.from_trace(profiler))
    assert text.startswith("the trace has no operators")
    assert "profile_all_threads" in text


def test_a_profiler_that_records_still():
    """It is refused by a sentence, and goes on."""
    x = torch.ones(3)
    with pytest.raises(ValueError, match="not a int"):
        roofprof.from_trace(5)
    with pytest.raises(ValueError, match="it must have ended"):
        roofprof.from_trace(profile())
    with recording() as profiler:
        x.exp()
        with pytest.raises(ValueError, match="the profiler gives no trace: it must have ended"):
            roofprof.from_trace(profiler)
        x.sin()
    assert set(roofprof.from_trace(profiler).by_operator()) >= {"aten::exp", "aten::sin"}


@pytest.mark.parametrize("recorder", [profile, torch.autograd.profiler.profile, torch.autograd.profiler_legacy.profile])
def test_an_event_list_has_names_and_times(recorder, tmp_path):
    model, x = nn.Linear(4, 8), torch.ones(3, 4)
    with recorder(record_shapes=True) as profiler:
        model(x).sum().backward()
    events = profiler.events() if recorder is profile else profiler.function_events
    events.export_chrome_trace(str(tmp_path / "events.json"))
    report = roofprof.from_trace(tmp_path / "events.json")
    linear = next(event for event in events if event.name == "aten::linear")
    row = report.by_operator()["aten::linear"]
    assert row.calls == 1
    assert row.time == pytest.approx(1e-6 * linear.time_range.elapsed_us(), abs=2e-9)
    (text,) = notes(report)
    assert "EventList.export_chrome_trace" in text


@pytest.mark.parametrize(
    ("path", "options", "why"),
    [
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
    shown = [str(warning.message) for warning in caught if "no report was written" in str(warning.message)]
    assert len(shown) == (1 if lost == "the folder" else 2)
    assert shown[0].startswith(f"roofprof: no report was written to '{folder / 'r2.json'}': ")
    assert "None" not in shown[0]
    assert [path.name for path in folder.iterdir()] == (["r4.json"] if lost == "the folder" else [])


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="a file of Linux's")  # noqa: PTH110
def test_a_file_that_cannot_be_read_is_named():
    with pytest.raises(OSError, match="/proc/self/mem"):
        roofprof.from_trace("/proc/self/mem")


def test_arguments_that_an_old_trace_lacks_are_named(tmp_path):
    """Also where torch runs into it first, which says something else. torch 1.x wrote no "Concrete Inputs"."""
    calls = (
        ("aten::clamp", [[4, 4], [], []], ["float", "Scalar", "Scalar"]),
        ("aten::gather", [[4, 4], [], [4, 4]], ["float", "Int", "long int"]),
        ("aten::_pin_memory", [[4, 4], []], ["int", ""]),
    )
    events = [
        event("cpu_op", name, 10 * i, 5, **{"Input Dims": sizes, "Input type": types})
        for i, (name, sizes, types) in enumerate(calls, 1)
    ]
    failed = notes(roofprof.from_trace(write_trace(tmp_path / "t.json", events)), "cost-failed")
    lacks = "the trace does not have the"
    assert f"no cost for aten::clamp: {lacks} values of its arguments min, max (torch before" in str(failed)
    assert f"no cost for aten::gather: {lacks} value of its argument dim" in str(failed)
    assert "no cost for aten::_pin_memory: torch does not run it without data: " in str(failed)
