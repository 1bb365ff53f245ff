"""Two reports beside each other: what changed, what came, went and was renamed, what else differs."""

import json
import pickle
import re

import pytest
import torch
from given_roofs import profiler, roofs
from torch import nn

import roofprof
from roofprof.cli import main


class Net(nn.Module):
    def __init__(self, names=("first", "second"), width=16):
        super().__init__()
        self.names = names
        for name in names:
            self.add_module(name, nn.Linear(16, 16))
        self.head = nn.Linear(16, width)

    def forward(self, x):
        for name in self.names:
            x = self.get_submodule(name)(x)
        return self.head(x)


X = torch.rand(4, 16)


def made(model, **options):
    return profiler(model, repeat=10, **options).run(X)


@pytest.fixture(scope="module")
def report():
    return made(Net())


def timed(report, factor=1.0, of=None, jitter=0.01, runs=10):
    """The report with quiet times: 1 ms for each module, of one of them times a factor."""
    data = report.to_dict()
    paths = [module["path"] for module in data["modules"]]
    for number, time in enumerate(data["times"]):
        slower = factor if of is None or paths[time["module"]] == of else 1
        time["self_ns"] = [
            round(1e6 * slower * (1 + jitter * ((7 * run + 3 * number) % 10) / 10)) for run in range(runs)
        ]
    for key in ("total_ns", "bare_ns"):
        data["runs"][key] = [10_000_000 + run for run in range(runs)]
    data["runs"]["chosen"] = runs // 2 if runs else -1
    return roofprof.Report.from_dict(data)


def test_a_report_beside_itself(report):
    quiet = timed(report)
    comparison = roofprof.compare(quiet, quiet)
    assert not comparison.changed
    assert (comparison.differences, comparison.added, comparison.removed, comparison.renamed) == ((), (), (), ())
    assert {row.verdict for row in (comparison.total, *comparison.modules)} == {"same"}
    assert [row.path for row in comparison.modules] == [row.path for row in quiet.rows]
    assert "nothing: machine, torch" in str(comparison)


def test_a_slower_module_is_called_and_its_siblings_are_not(report):
    comparison = roofprof.compare(timed(report), timed(report, 1.5, "first"))
    assert comparison.row("first").verdict == "slower"
    assert comparison.row("first").p < 0.05
    assert comparison.row("first").figure("time").ratio == pytest.approx(1.5, rel=0.03)
    assert comparison.row("second").verdict == comparison.row("head").verdict == "same"
    assert comparison.row("").verdict == "slower"  # 0.5 of 4 ms more
    assert roofprof.compare(comparison.after, comparison.before).row("first").verdict == "faster"
    assert comparison.changed


def test_counts_are_exact(report):
    wider = made(Net(width=17))
    comparison = roofprof.compare(report, wider)
    head = comparison.row("head")
    assert head.counts_changed
    assert not comparison.row("first").counts_changed
    assert head.figure("macs").change == 4 * 16  # one more output of 16 products, for each of 4 samples
    assert head.figure("params").change == 17
    assert head.figure("flops").ratio == (4 * 17 * 33) / (4 * 16 * 33)
    assert re.search(r"head .* 1\.02k -> 1\.09k", comparison.table(160))


def test_modules_come_go_and_are_renamed(report):
    def renamed(after):
        return [(row.before.path, row.path, row.ambiguous) for row in roofprof.compare(report, after).renamed]

    comparison = roofprof.compare(report, made(Net(("first", "second", "third"))))
    assert ([row.path for row in comparison.added], comparison.removed) == (["third"], ())
    assert [row.path for row in roofprof.compare(comparison.after, report).removed] == ["third"]
    assert renamed(made(Net(("first", "other")))) == [("second", "other", False)]
    both = made(Net(("one", "two")))
    assert renamed(both) == [("first", "one", True), ("second", "two", True)]
    assert "others would match as well" in str(roofprof.compare(report, both))
    parent, other = nn.Sequential(), nn.Sequential()
    for name, model in (("stem", parent), ("body", other)):
        model.add_module(name, nn.Sequential(nn.Linear(16, 16), nn.ReLU()))
    moved = roofprof.compare(made(parent), made(other)).renamed  # a parent takes its children along
    assert [(row.before.path, row.path) for row in moved] == [
        ("stem", "body"),
        ("stem.0", "body.0"),
        ("stem.1", "body.1"),
    ]


def test_what_differs_has_its_unit(report):
    data = report.to_dict()
    data["environment"] |= {"frequency_hz": 2_200_000_000, "memory_total_bytes": 64_000_000_000, "cores": 4}
    first = roofprof.Report.from_dict(data)
    data["environment"] |= {"frequency_hz": 3_000_000_000, "memory_total_bytes": 64_000_000_001, "cores": 8}
    del data["environment"]["torch_threads"]
    for roof, rate in (("compute", "operations_per_second"), ("memory", "bytes_per_second")):
        data["ceilings"][roof][0] |= {rate: 228e9}
    second = roofprof.Report.from_dict(data)
    differing = {one.what: (one.before, one.after) for one in roofprof.compare(first, second).differences}
    assert differing["frequency"] == ("2.2 GHz", "3 GHz")
    assert differing["memory"] == ("64,000,000,000 B", "64,000,000,001 B")  # which three digits would not tell apart
    assert differing["cores"] == ("4", "8")
    assert differing["threads"][1] == "unknown"
    assert differing["roofs"][1] == "fp32 228 GFLOP/s, L2 228 GB/s"


def test_what_else_differs_is_reported_first(report):
    data = report.to_dict()
    data["environment"] |= {"torch": "2.11.0", "torch_threads": 64, "device": "another"}
    other = profiler(Net(), repeat=10, ceilings=roofs({"fp32": 2e11})).run(X)
    data["ceilings"] = other.to_dict()["ceilings"]
    changed = roofprof.Report.from_dict(data)
    comparison = roofprof.compare(report, changed)
    assert [difference.what for difference in comparison.differences] == ["machine", "torch", "threads", "roofs"]
    lines = str(comparison).splitlines()
    assert lines[1].startswith("differs   machine ")
    assert "wasted and %roof are not comparable, because" in " ".join(" ".join(lines).split())
    assert comparison.total.figure("wasted_time").ratio is None
    assert comparison.total.figure("time").ratio == 1


def test_without_repeats_nothing_is_tested(report):
    once = timed(report, runs=1)
    comparison = roofprof.compare(once, timed(report))
    assert {(row.verdict, row.reason) for row in comparison.modules} == {("not tested", "one run")}
    assert "not tested, because one run" in str(comparison)
    counted = roofprof.compare(roofprof.count(Net(), X), roofprof.count(Net(), X))
    assert counted.total.reason == "its time is not known"
    assert not counted.changed


def test_times_of_a_busy_machine_are_not_tested(report):
    data = timed(report, 2).to_dict()
    data["notes"] = [{"level": "warning", "code": "machine-busy", "where": [], "count": 1, "text": "others"}]
    busy = roofprof.Report.from_dict(data)
    comparison = roofprof.compare(timed(report), busy, names=("a.json", "b.json"))
    assert {row.verdict for row in comparison.modules} == {"not tested"}
    assert comparison.total.reason == "other programs used the processors while b.json was timed"


def test_the_json_has_the_same_figures(report):
    before, after = timed(report), timed(report, 1.5, "first")
    comparison = roofprof.compare(before, after, names=("a", "b"))
    read = comparison.to_dict()
    assert (read["schema"], read["schema_version"], read["generator"]) == ("roofprof.comparison", 1, "roofprof compare")
    row = next(row for row in read["modules"] if row["path"] == "first")
    old, new = (next(r for r in side.to_dict()["rows"] if r["path"] == "first") for side in (before, after))
    assert row["time_ns"]["before"] == old["time_ns"]
    assert row["time_ns"]["after"] == new["time_ns"]
    assert row["time_ns"]["change"] == pytest.approx(new["time_ns"] - old["time_ns"], abs=1)
    assert row["flops"] == {"before": old["flops"], "after": old["flops"], "change": 0, "ratio": 1}
    assert row["bound"] == {"before": old["bound"], "after": new["bound"], "change": None, "ratio": None}
    assert row["verdict"] == "slower"
    assert read["units"]["time_ns"] == "nanoseconds"
    assert "Westfall" in read["test"]["name"]


def test_the_table_fits_and_says_what_it_leaves_out(report):
    comparison = roofprof.compare(timed(report), timed(report, 1.5, "first"))
    for width in (60, 100, 160):
        assert max(map(len, comparison.table(width, every=True).splitlines())) <= width
    assert "second" not in comparison.table().split("time  ")[0]
    assert "2 more modules without a change are not shown" in comparison.table()
    assert "head" in comparison.table(every=True)
    lines = comparison.table(limit=1, every=True)
    assert "(model)" in lines and "second" not in lines
    assert "3 more modules are not shown" in lines
    again = pickle.loads(pickle.dumps(comparison))
    assert (str(again), again.to_dict()) == (str(comparison), comparison.to_dict())


def test_a_training_step_is_not_a_forward(report):
    model = Net()
    step_of = profiler(model, repeat=1).run_step(lambda x: model(x).sum().backward(), X)
    changed = {difference.what: difference for difference in roofprof.compare(report, step_of).differences}
    assert (changed["phases"].before, changed["phases"].after) == ("forward", "forward, backward")


def test_what_is_no_report_is_refused(report):
    with pytest.raises(TypeError, match=r"before is a report, not str: roofprof.Report.from_json\(path\) reads one"):
        roofprof.compare("a.json", report)


def test_the_command(report, tmp_path, capsys):
    before, after = tmp_path / "a.json", tmp_path / "b.json"
    timed(report).to_json(before)
    timed(report, 1.5, "first").to_json(after)
    files = ["--json", str(tmp_path / "c.json"), "--html", str(tmp_path / "c.html")]
    assert main(["compare", str(before), str(after), *files, "--width", "110"]) == 0
    shown = capsys.readouterr()
    assert re.search(r"first .* slower", shown.out)
    assert str(tmp_path / "c.html") in shown.err
    assert (tmp_path / "c.html").exists()
    assert json.loads((tmp_path / "c.json").read_text())["before"]["name"] == str(before)
    assert main(["compare", str(before), str(tmp_path / "none.json")]) == 2
    assert main(["compare", str(before), str(after), "--json", str(before)]) == 2
    assert capsys.readouterr().err.count("\n") == 2
    assert roofprof.Report.from_json(before)  # not written over
