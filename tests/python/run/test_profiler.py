"""RooflineProfiler's own behaviour: runs, blocks, repeats, and what it refuses."""

from __future__ import annotations

import re
import threading
import time

import pytest
import torch
from given_roofs import profiler, roofs
from torch import nn

import roofprof
from roofprof import Report, RooflineProfiler
from roofprof.roofs import ceilings

MACS = 2 * 8 * 4  # of linear() on x()


def x() -> torch.Tensor:
    return torch.ones(2, 8)


def linear() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 4, bias=False))


class Counted(nn.Module):
    """Counts its calls where nothing puts them back."""

    def __init__(self, seconds: float = 0):
        super().__init__()
        self.fc = nn.Linear(8, 4, bias=False)
        self.seconds = seconds
        self.lock = threading.Semaphore(0)  # looks after itself: not put back

    @property
    def calls(self) -> int:
        return self.lock._value

    def forward(self, value):
        self.lock.release()
        time.sleep(self.seconds)
        return self.fc(value)


# ---- how often the model is called


def is_counted(report):
    """As by count: no times, no roofs."""
    assert report.total.macs == MACS
    assert report.total.time is None
    assert report.run_times == []
    assert not report.ceilings
    assert "one call, counted only" in report.table()
    assert report.to_dict()["scope"] == "count"
    return True


def test_without_repeats_one_call_is_counted(monkeypatch):
    monkeypatch.setattr(ceilings, "for_device_with_notes", lambda _device: pytest.fail("roofs are measured"))
    model = Counted()
    assert is_counted(RooflineProfiler(model, repeat=0).run(x()))
    assert is_counted(RooflineProfiler(model).count(x()))
    assert is_counted(RooflineProfiler(model, repeat=0).run_step(lambda value: model(value), x()))
    assert model.calls == 3
    with pytest.raises(TypeError, match="no model to run"):
        RooflineProfiler(None).count(x())


def test_profile_takes_the_roofs_of_this_machine(monkeypatch):
    given = roofs()
    devices = []
    monkeypatch.setattr(ceilings, "for_device_with_notes", lambda device: devices.append(device) or (given, ["busy"]))
    report = roofprof.profile(linear(), x())
    assert devices == ["cpu"]
    assert report.ceilings == given
    assert "roofs: busy" in report.coverage.notes
    assert report.total.percent_of_roof > 0
    roofprof.count(linear(), x())
    profiler(linear()).run(x())
    assert devices == ["cpu"]


# ---- later calls that differ


class SetsUp(nn.Module):
    """Keeps a mask from its first call on, as many models do."""

    def __init__(self):
        super().__init__()
        self.fc = linear()
        self.mask = None

    def forward(self, value):
        if self.mask is None:
            self.mask = torch.triu(torch.ones(2, 4))
        return self.fc(value) * self.mask


@pytest.mark.parametrize("limits", [{"warmup": 0, "repeat": 1}, {"warmup": 0, "repeat": 3}, {}])
def test_what_the_first_call_sets_up_is_noted_and_not_counted(limits):
    model = SetsUp()
    report = RooflineProfiler(model, ceilings=roofs(), **limits).run(x())
    assert len(report.run_times) == limits.get("repeat", 10)
    assert "aten::triu" not in report.by_operator()
    kept = SetsUp()
    kept(x())
    assert report.total.flops == roofprof.count(kept, x()).total.flops
    (note,) = (note for note in report.coverage.notes if note.code == "first-call")
    assert note.where == [""]
    # Ones, as torch makes them, have no work of their own.
    assert "aten::triu (1 call)" in note
    assert model.mask is not None, "as one call leaves it"
    assert "aten::triu" in roofprof.count(SetsUp(), x()).by_operator()


def test_gradients_that_the_first_call_makes_are_added_to_by_the_others():
    model = linear()

    def step(value):
        model(value).sum().backward()

    report = profiler(step).run(x())
    assert len(report.run_times) == 2
    assert report.by_operator()["aten::add_"].calls == 1
    (note,) = (note for note in report.coverage.notes if note.code == "first-call")
    assert "1 fewer operator: aten::add_ (1 call)" in note
    gradient = model[0].weight.grad.clone()
    model.zero_grad()
    step(x())
    assert torch.equal(model[0].weight.grad, gradient), "as one call leaves it"


# ---- blocks


def test_block_is_summed_over_its_steps():
    model = linear()
    with profiler(model) as prof:
        for _ in range(3):
            model(x())
            prof.step()
    report = prof.report()
    assert report.row("").calls == 3
    assert report.total.macs == 3 * MACS
    assert report.steps == Report.from_dict(report.to_dict()).steps == 3
    # Equal steps: their mean is what each does. 2 x 8 inputs are made and read, 8 x 4 weights, 2 x 4 results.
    moved = 4 * (2 * 16 + 32 + 8)
    heading = " ".join(str(report).split("module ", maxsplit=1)[0].split())
    assert re.search(
        rf"a block of 3 steps: [\d.]+ .s a step on average: [\d.]+ .s, {MACS} MACs, 128 FLOPs, {moved} B", heading
    )


def test_block_with_nothing_in_it():
    with profiler(linear()) as prof:
        pass
    report = prof.report()
    assert report.total.flops == 0
    assert not report.row("").time
    assert report.coverage.uncalled_modules == ["", "0"]
    assert str(report)


# ---- what is refused


def test_nothing_profiled_yet():
    prof = profiler(linear())
    with pytest.raises(RuntimeError, match="nothing was profiled yet"):
        prof.report()
    with pytest.raises(RuntimeError, match="there is none open"):
        prof.step()
    with prof, pytest.raises(RuntimeError, match="block is still open"):
        prof.report()
    with pytest.raises(RuntimeError, match="there is none open"):
        prof.step()


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"warmup": -1}, ValueError),
        ({"repeat": -1}, ValueError),
        ({"counters": "maybe"}, ValueError),
        ({"ceilings": "/no/such/file.json"}, ValueError),
        ({"ceilings": 5}, TypeError),
        ({"repeat": 1.5}, TypeError),
        ({"warmup": "a"}, TypeError),
        ({"keep_events": "yes"}, TypeError),
        ({"compiled_kernels": "yes"}, TypeError),
        ({"device": "foo"}, ValueError),
        ({"device": "cuda:99x"}, ValueError),
    ],
)
def test_options_that_make_no_sense(options, error):
    ((name, value),) = options.items()
    with pytest.raises(error, match=f"{name}.*{value}|{value}.*{name}|no/such/file"):
        RooflineProfiler(linear(), **options)


def test_what_is_to_be_known_of_roofs_stays_with_their_file(tmp_path):
    path = tmp_path / "roofs.json"
    ceilings.save(roofs(), path, ["other programs used 52% of the processors"])
    assert ceilings.load_with_notes(path) == (roofs(), ["other programs used 52% of the processors"])
    (note,) = profiler(linear(), ceilings=path).run(x()).coverage.notes
    assert note.code == "roofs-doubtful"
    assert "52%" in note.text


INNER = {
    "block": lambda model: RooflineProfiler(model).__enter__(),
    "run": lambda model: profiler(model).run(x()),
    "profile": lambda model: roofprof.profile(model, x()),
    "count": lambda model: roofprof.count(model, x()),
}


@pytest.mark.parametrize("inner", INNER)
def test_profilers_do_not_nest_and_the_outer_one_goes_on(inner):
    model = linear()
    with profiler(model) as prof:
        model(x())
        with pytest.raises(RuntimeError, match="profilers do not nest") as caught:
            INNER[inner](linear())
        model(x())
    assert str(caught.value).count("\n") == 0
    report = prof.report()
    assert report.row("").calls == 2
    assert report.total.macs == 2 * MACS
    assert not report.partial
    assert profiler(model).run(x()).total.macs == MACS


def test_a_profile_inside_the_model_is_refused_as_the_model_s_error():
    inner = linear()
    with pytest.raises(RuntimeError, match="profilers do not nest"):
        profiler(lambda value: roofprof.count(inner, value)).run(x())
    prof = profiler(lambda value: prof.run(value))
    with pytest.raises(RuntimeError, match="this profiler is in use"):
        prof.run(x())
    assert profiler(inner).run(x()).total.macs == MACS


# ---- what cannot be timed


def test_meta_device_is_counted_and_not_timed():
    model = linear().to("meta")
    report = profiler(model).run(x().to("meta"))
    assert report.total.macs == MACS
    assert report.device == "meta"
    assert report.total.time is None
    assert report.run_times == []
    assert "not timed: tensors on the meta device hold no data" in report.coverage.notes
    assert roofprof.count(model, x().to("meta")).coverage.notes == []
    with profiler(model) as prof:
        model(x().to("meta"))
    assert prof.report().total.time is None
    assert prof.report().total.macs == MACS


# ---- times


def test_times_are_positive_and_within_the_wall():
    model = nn.Sequential(*(nn.Linear(256, 256) for _ in range(8)))
    report = profiler(model, repeat=5).run(torch.ones(256, 256))
    chosen = sorted(report.run_times)[2]
    assert report.total.wall == pytest.approx(chosen)
    assert 0 < report.total.time <= chosen + 1e-6
    assert all(row.time > 0 and row.self_time > 0 for row in report.rows)
    assert all(row.time_spread >= 0 for row in report.rows)
    assert all(time > 0 for time in report.bare_times)
    assert 0 < report.total.op_time <= report.total.time


def test_self_times_add_up_exactly():
    model = nn.Sequential(nn.Sequential(nn.Linear(8, 8), nn.ReLU()), nn.Linear(8, 4))
    for report in (profiler(model).run(x()), _training_block(model)):
        rows = report.to_dict()["rows"]
        own = {row["path"]: row.get("self_time_ns", row["time_ns"]) for row in rows}
        assert sum(own.values()) == report.to_dict()["total"]["time_ns"]
        by_path = {row["path"]: row for row in rows}
        for path, row in by_path.items():
            if path.startswith("("):
                continue
            inside = [name for name in by_path if name == path or name.startswith(f"{path}.")]
            inside = [name for name in by_path if not name.startswith("(")] if path == "" else inside
            assert row["time_ns"] == sum(own[name] for name in inside)


def _training_block(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with profiler(model) as prof:
        model(x()).sum().backward()
        optimizer.step()
    return prof.report()


def test_rows_come_from_one_run_and_spreads_from_all():
    report = profiler(linear(), repeat=5).run(x())
    data = report.to_dict()
    chosen = data["runs"]["chosen"]
    assert data["runs"]["total_ns"][chosen] == sorted(data["runs"]["total_ns"])[2]
    by_module = {time["module"]: time["self_ns"] for time in data["times"] if time["phase"] == "forward"}
    for place, facts in enumerate(data["modules"]):
        if facts["path"].startswith("("):
            continue
        row = report.row(facts["path"])
        times = by_module[place]
        assert row.self_time == pytest.approx(times[chosen] * 1e-9)
        median = sorted(times)[2]
        assert row.self_time_spread == pytest.approx((max(times) - min(times)) / median)


def test_python_in_front_of_a_tiny_op_is_overhead():
    class Busy(nn.Module):
        def forward(self, value):
            sum(range(20_000))
            return value + 1

    report = profiler(nn.Sequential(Busy(), nn.Linear(8, 4))).run(x())
    row = report.row("0")
    assert row.bound == "overhead"
    assert row.op_time < row.time / 2
    assert row.wasted_time == pytest.approx(row.time - row.lower_bound_time)
    assert report.row("").bound == "overhead"
