"""Reports of several numbers of ranks beside each other: figures, kinds, what is refused, text, page, picture, JSON."""

import json
import re
from pathlib import Path

import pytest
import torch
from given_roofs import profiler
from scaled_reports import MACS, scaled_report
from torch import nn

import roofprof
from roofprof.cli import main

SERIAL = 0.01  # seconds of a step that more ranks do not shorten


def strong(ranks, **given):
    return scaled_report(ranks, SERIAL + 0.09 / ranks, **given)


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = [f"r{ranks}.json" for ranks in (1, 2, 4, 8)]
    for name, ranks in zip(names, (1, 2, 4, 8), strict=True):
        strong(ranks).to_json(name)
    return names


def test_strong_scaling_by_amdahls_law():
    found = roofprof.scaling([strong(ranks) for ranks in (4, 1, 8, 2)])
    assert (found.kind, found.per, found.unit) == ("strong", "step", "MACs")
    assert [point.ranks for point in found.points] == [1, 2, 4, 8]
    assert [point.work for point in found.points] == pytest.approx([MACS] * 4)
    for point in found.points:
        amdahl = 1 / (0.1 + 0.9 / point.ranks)
        assert point.speed_up == pytest.approx(amdahl)
        assert point.efficiency == pytest.approx(amdahl / point.ranks)
        assert point.throughput == pytest.approx(MACS / point.time)
        assert sum(point.parts.values()) == pytest.approx(point.loss, abs=1e-9)
        assert point.loss == pytest.approx(SERIAL * (point.ranks - 1), abs=1e-8)
        assert point.loss == pytest.approx((1 - point.efficiency) * point.ranks * point.time, abs=1e-9)
    assert found.warnings == ()


def test_weak_scaling_and_what_is_neither():
    weak = roofprof.scaling(scaled_report(n, 0.1 * (1 + 0.05 * (n - 1)), macs=MACS * n) for n in (1, 2, 4))
    assert weak.kind == "weak"
    assert weak.points[2].efficiency == pytest.approx(1 / 1.15)
    assert "weak scaling: the work of each rank is the same" in str(weak)
    neither = roofprof.scaling(scaled_report(n, 0.1, macs=MACS * n**0.5) for n in (1, 2, 4))
    assert neither.kind == "neither"
    assert neither.points[2].speed_up == pytest.approx(2, rel=1e-3)
    assert "compared by work per second" in str(neither)


def test_the_slowest_rank_and_the_smallest_report_count():
    found = roofprof.scaling([scaled_report(2, 0.1), scaled_report(4, 0.05, compute=[0.02, 0.03, 0.04, 0.02], hosts=2)])
    two, four = found.points
    assert (two.speed_up, four.speed_up) == (1, pytest.approx(2))
    assert four.efficiency == pytest.approx(1)
    assert four.hosts == 2
    assert four.parts["imbalance"] == pytest.approx(0.02 + 0.01 + 0.0 + 0.02)
    assert "speed-up" in str(found)


def test_runs_without_steps_are_compared_as_runs(monkeypatch):
    run = profiler(nn.Sequential(nn.Linear(64, 32), nn.ReLU())).run(torch.rand(16, 64))
    found = roofprof.scaling([run, scaled_report(2, 0.1)])
    assert found.per == "run"
    assert found.points[0].ranks == 1
    assert found.points[1].time == pytest.approx(1.0)  # of ten steps
    assert found.points[1].work == 10 * MACS
    assert any("whole runs are compared" in warning for warning in found.warnings)


def test_missing_ranks_and_other_set_ups_are_reported(monkeypatch):
    partial = strong(4).to_dict()
    partial["merged"]["ranks"] = partial["merged"]["ranks"][:3]
    partial["merged"]["missing"] = [3]
    partial["partial"] = True
    partial["environment"]["torch"] = "1.0"
    found = roofprof.scaling([strong(1), strong(2), roofprof.Report.from_dict(partial)])
    assert found.points[2].ranks == 4
    assert found.points[2].work == pytest.approx(MACS, rel=1e-6)
    message = " ".join(found.warnings)
    assert "report 2 lacks ranks 3 of 4: they count as the mean of the others" in message
    assert re.search(r"torch is not the same: .* in report 0, .* 1.0 in report 2", message)


def test_other_roofs_leave_intensity_and_speed_together():
    other = strong(2).to_dict()
    other["ceilings"]["memory"][0]["bytes_per_second"] *= 2
    found = roofprof.scaling([strong(1), roofprof.Report.from_dict(other)])
    assert set(found.points[1].parts) == {"communication and overhead", "imbalance", "slower compute"}
    assert found.warnings == ("roofs are not the same: lower intensity and slower ops are not told apart",)
    assert set(roofprof.scaling([strong(1), strong(2)]).points[1].parts) >= {"lower intensity", "slower ops"}


def test_what_is_refused_is_named(files, capsys, monkeypatch):
    strong(2, model="ResNet").to_json("resnet.json")
    roofprof.count(nn.Linear(2, 2), torch.rand(1, 2)).to_json("count.json")
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "4")
    profiler(nn.Linear(2, 2)).run(torch.rand(1, 2)).to_json("rank1.json")
    monkeypatch.delenv("RANK")
    Path("none.json").write_text("{}")
    Path("copy.json").write_text(Path("r2.json").read_text())
    for made in (roofprof.scaling, roofprof.merge):
        with pytest.raises(TypeError, match=r"not one path: \['a.json', ...\]"):
            made("a.json")
    for arguments, words in (
        (["r1.json"], "give 2 reports or more, not 1"),
        (["r1.json", "r2.json", "copy.json"], "r2.json and copy.json are both of 2 ranks: give one of them"),
        (["r1.json", "resnet.json"], "resnet.json is of ResNet, and r1.json of Sequential"),
        (["r1.json", "count.json"], "count.json has no times, as it is a count"),
        (["r1.json", "rank1.json"], "rank1.json is of one rank of 4: merge the reports of all ranks first"),
        (["r1.json", "none.json"], "none.json: not a roofprof report"),
        (["r1.json", "gone.json"], "gone.json"),
        (["r1.json", "r2.json", "--json", "r1.json"], "is read by this command and would be lost"),
        (["r1.json", "r2.json", "-o", "x", "--plot", "x"], "is named for two outputs"),
        (["r1.json", "r2.json", "--plot", "x.gif"], "a plot's file ends in .svg, .png or .pdf"),
    ):
        assert main(["scaling", *arguments]) == 2
        message = capsys.readouterr().err
        assert words in message
        assert message.count("\n") == 1


@pytest.mark.integration
def test_the_command_writes_what_was_requested(files, capsys):
    assert main(["scaling", *files, "--json", "s.json", "-o", "s.html", "--plot", "s.png", "--width", "130"]) == 0
    message = capsys.readouterr()
    assert [line.rpartition(" ")[2] for line in message.err.splitlines()] == ["s.json", "s.html", "s.png"]
    assert re.search(r"^8  .*  58\.8%", message.out, re.MULTILINE)  # 1 / (0.1 + 0.9 / 8) of 8
    stored = json.loads(Path("s.json").read_text())
    found = roofprof.scaling(files)
    assert stored == found.to_dict()
    assert (stored["schema"], stored["schema_version"]) == ("roofprof.scaling", 2)
    assert str(roofprof.Scaling.from_json("s.json")) == str(found)
    assert Path("s.png").read_bytes().startswith(b"\x89PNG")
    assert Path("s.html").read_text() == found.to_html()
    hostile = roofprof.scaling([strong(n, model="<b>$x") for n in (1, 2)]).to_html()
    assert "<b>" not in hostile
    assert "&lt;b&gt;$x" in hostile
