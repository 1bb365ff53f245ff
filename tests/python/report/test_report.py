"""Reports written, read back, grouped and printed."""

from __future__ import annotations

import copy
import csv
import io
import json
import pickle
import sys

import pytest
import torch
from given_roofs import profiler
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn

import roofprof
from roofprof import Report


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU())
        self.head = nn.Linear(8, 5)
        self.spare = nn.Linear(1, 1)

    def forward(self, image):
        return self.head(self.body(image).mean((2, 3)))


IMAGE = torch.ones(2, 3, 16, 16)


def trained() -> Report:
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with profiler(model) as prof:
        for _ in range(2):
            model(IMAGE).sum().backward()
            optimizer.step()
            prof.step()
    return prof.report()


def raised() -> Report:
    def forward(value):
        net(value)
        raise ValueError

    net = Net()
    prof = profiler(forward)
    with pytest.raises(ValueError):
        prof.run(IMAGE)
    return prof.report()


def odd_names() -> Report:
    model = nn.Sequential()
    odd = ("nan", "NA", "null", "with, comma", 'with "quotes"', "ünï→код", "None", "  ", "line\nbreak")
    formulas = ("=1+1", "+x", "-x", "@x", "\tx", "\rx", "'x", "\uff1dx")  # as OWASP lists what begins one
    for name in (*odd, *formulas):
        model.add_module(name, nn.Linear(8, 8))
    return profiler(model).run(torch.ones(2, 8))


REPORTS = {
    "run": lambda: profiler(Net()).run(IMAGE),
    "count": lambda: roofprof.count(Net(), IMAGE),
    "block": trained,
    "partial": raised,
    "odd names": odd_names,
    "empty": lambda: roofprof.count(lambda: None),
    "infinite": lambda: _above_every_count(),
}


def _above_every_count() -> Report:
    """More work than an int64 holds."""
    left = torch.empty(1, 1, device="meta").expand(1 << 22, 1 << 22)
    return roofprof.count(lambda: left @ left)


@pytest.fixture(scope="module", params=REPORTS)
def report(request):
    return REPORTS[request.param]()


@pytest.fixture(scope="module")
def timed():
    return REPORTS["run"]()


# ---- JSON


def test_json_round_trip(report, tmp_path):
    path = tmp_path / "report.json"
    text = report.to_json(path)
    assert path.read_text(encoding="utf-8") == text
    back = Report.from_json(path)
    assert back == report
    assert hash(back) == hash(report)
    assert back.to_json() == text
    assert back.table() == report.table()
    assert back.to_csv() == report.to_csv()
    assert Report.from_json(str(path)) == report
    data = json.loads(text, parse_constant=pytest.fail)
    assert Report.from_dict(data) == report
    assert data == report.to_dict()
    assert data["schema_version"] == 6
    assert (data["units"]["macs"], data["units"]["time_ns"]) == ("multiply-accumulates", "nanoseconds")


def test_reports_that_differ_in_one_part_are_not_equal(timed):
    data = timed.to_dict()
    assert len({timed, Report.from_dict(data), REPORTS["count"]()}) == 2
    note = {"level": "info", "code": "deferred-work", "text": "", "where": [], "count": 1}
    for part, change in {
        "model": "another",
        "modules": [*data["modules"][:-1], data["modules"][-1] | {"type": "Another"}],
        "ops": [data["ops"][0] | {"calls": data["ops"][0]["calls"] + 1}, *data["ops"][1:]],
        "times": data["times"][:-1],
        "runs": data["runs"] | {"warmup": data["runs"]["warmup"] + 1},
        "ceilings": data["ceilings"] | {"device": "another"},
        "environment": data["environment"] | {"device": "another"},
        "notes": [*data["notes"], note],
    }.items():
        assert Report.from_dict(data | {part: change}) != timed, part
    assert timed != "a report"


def test_copies_and_pickles_are_equal(report):
    protocols = [pickle.loads(pickle.dumps(report, protocol)) for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1)]
    for other in (*protocols, copy.deepcopy(report), copy.copy(report)):
        assert isinstance(other, Report)
        assert other == report
        assert other.table() == report.table()  # str() has the legend once in a process
    assert report.rows is report.rows
    assert len(pickle.dumps(report)) == len(pickle.dumps(Report(report._compiled)))


def test_shapes_of_schema_version_5_are_text():
    report = roofprof.count(lambda x: torch.where(x > 0, x, torch.zeros(())), torch.rand(8, 256))
    data = report.to_dict()
    (where,) = [op for op in data["ops"] if op["op"] == "aten::where"]
    assert where["shapes"] == [[8, 256], [8, 256], []]
    for op in data["ops"]:
        if "shapes" in op:
            op["shapes"] = ", ".join("x".join(map(str, shape)) or "scalar" for shape in op["shapes"])
    read = Report.from_dict(data | {"schema_version": 5, "prediction": ""})
    assert read == report
    assert read.to_dict()["schema_version"] == 6


def test_report_is_written_whole_or_not_at_all(timed, tmp_path):
    path = tmp_path / "report.json"
    path.write_text("before")
    with pytest.raises((OSError, RuntimeError), match="no/such"):
        timed.to_json(tmp_path / "no/such/report.json")
    with pytest.raises((OSError, RuntimeError), match="no/such"):
        timed.to_csv(tmp_path / "no/such/report.csv")
    timed.to_json(path)
    assert Report.from_json(path) == timed
    assert [each.name for each in tmp_path.iterdir()] == ["report.json"]


# ---- what is no report


def test_files_that_are_no_report(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere.json"):
        Report.from_json(tmp_path / "nowhere.json")
    path = tmp_path / "odd.json"
    for content in (b"", b"not json", b"\xff\xfe\x00", b"[]", b"{}", b'{"schema_version": 6}', b"[" * 100_000):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="^.*odd.json: not a [^\n]*$"):
            Report.from_json(path)
    with pytest.raises(ValueError, match="schema version 6.*but 7"):
        Report.from_dict({"schema_version": 7})


def places_in(value, place=()):
    """Every place in a JSON document."""
    yield place
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places_in(item, (*place, key))


DAMAGE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(1 << 70), 1 << 70),
    st.floats(allow_nan=False, allow_infinity=False),  # JSON has none
    st.text(max_size=5),
    st.sampled_from([[], {}, [[1, 2]], {"a": 1}]),
)


@settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_damaged_reports_are_refused_or_read_but_never_crash(timed, data):
    document = timed.to_dict()
    for key in ("units", "coverage", "total", "rows"):  # nobody reads them
        del document[key]
    *path, last = data.draw(st.sampled_from([place for place in places_in(document) if place]))
    target = document
    for key in path:
        target = target[key]
    target[last] = data.draw(DAMAGE)
    try:
        report = Report.from_dict(document)
    except ValueError as error:
        assert str(error)
    else:
        assert report.table()
        assert report.to_csv()
        # No report equals one with a null among the facts of the machine, which is read as NaN.
        assert Report.from_dict(report.to_dict()).to_json() == report.to_json()


# ---- CSV and pandas


def test_csv(report, tmp_path):
    path = tmp_path / "report.csv"
    text = report.to_csv(path)
    assert path.read_bytes().decode() == text
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert [row["path"].removeprefix("'") for row in rows] == [row.path for row in report.rows]
    assert not [row["path"] for row in rows if row["path"].startswith(("=", "+", "-", "@", "\t", "\r", "\uff1d"))]
    for written, row in zip(rows, report.rows, strict=True):
        assert None not in written
        assert int(written["flops"]) == row.flops
        assert int(written["self_macs"]) == row.self_macs
        assert written["bound"] == row.bound
        if row.time is None:
            assert written["time_ns"] == ""
        else:
            assert int(written["time_ns"]) * 1e-9 == pytest.approx(row.time)
    for figure in ("macs", "flops", "bytes"):
        assert sum(int(row[f"self_{figure}"]) for row in rows) == getattr(report.total, figure)
    if report.total.time is not None:
        assert sum(int(row["self_time_ns"] or 0) for row in rows) * 1e-9 == pytest.approx(report.total.time)
    lines = list(csv.reader(io.StringIO(report.to_csv(by="op, phase"), newline="")))
    assert lines[0][:3] == ["op", "phase", "calls"]
    assert [line[:2] for line in lines[1:]] == [row.keys for row in report.group("op", "phase")]


@pytest.mark.integration
def test_the_same_words_for_table_csv_and_pandas(report):
    for by in ("module", "scope", "op", "op, phase", "kernel", "rank", "collective", "memory"):
        text = report.to_csv(by=by)
        frame = report.to_pandas(by)
        assert report.table(by=by)
        assert list(frame.columns) == next(csv.reader(io.StringIO(text)))
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
        assert len(frame) == len(rows)
        numbers = frame.select_dtypes("number").columns
        for name in numbers:
            assert frame[name].dropna().tolist() == pytest.approx([float(row[name]) for row in rows if row[name]])
        texts = {*frame.columns} - {*frame.select_dtypes(["number", "bool"]).columns}
        assert not frame[[*texts]].isna().any().any()
        if by.startswith("op"):
            keys = by.split(", ")
            assert frame[keys].to_numpy().tolist() == [row.keys for row in report.group(*keys)]


def test_pandas_that_is_not_there(timed, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        timed.to_pandas()


# ---- rows and groups


def test_rows_by_path(timed):
    assert timed.row("").type == "Net"
    assert timed.row("body.0").type == "Conv2d"
    assert timed.row("head").flops_by_dtype == {"fp32": timed.row("head").flops}
    with pytest.raises(KeyError, match=r"no row 'body.O'.*'body.0'"):
        timed.row("body.O")


def test_one_liners_are_groups(timed):
    for method, keys in (
        (timed.by_operator, ("op",)),
        (timed.by_module, ("module",)),
        (timed.by_phase, ("phase",)),
        (timed.by_module_and_operator, ("module", "op")),
    ):
        assert [repr(group) for group in method().values()] == [repr(group) for group in timed.group(*keys)]
    assert timed.by_operator()["aten::linear"].macs == 2 * 8 * 5
    assert timed.by_module_and_operator()["head", "aten::linear"].calls == 1
    with pytest.raises(ValueError, match="the keys are phase, op, module, scope, dtype, shapes"):
        timed.group("op", "modules")


def test_facts_about_the_run(timed):
    assert timed.model == "Net"
    assert timed.device == "cpu"
    assert not timed.partial
    assert torch.__version__.startswith(timed.environment["torch"])
    assert timed.coverage.uncalled_modules == ["spare"]
    assert repr(timed) == "<roofprof.Report of Net on cpu: 7 rows>"
    assert "Conv2d" in repr(timed.row("body.0"))
    assert REPORTS["partial"]().partial
    assert REPORTS["block"]().steps == REPORTS["block"]().to_dict()["runs"]["steps"] == 2


def test_counts_saturate_with_a_note():
    report = REPORTS["infinite"]()
    assert report.total.macs == 2**63 - 1
    assert any("lower limits" in note for note in report.coverage.notes)


# ---- tables


def lines(text: str) -> list[str]:
    """The rows between heading and rule."""
    inside = text.split("─\n")
    return inside[1].splitlines()[:-1] if len(inside) > 1 else []


def heading(text: str) -> list[str]:
    return next(line.split() for line in text.splitlines() if line.startswith("module "))


def test_table_columns(timed):
    assert heading(timed.table(columns=["macs", "calls"])) == ["module", "MACs", "calls"]
    assert heading(timed.table(columns="macs, calls")) == ["module", "MACs", "calls"]
    assert timed.table(columns=("params",)) == timed.table(columns=iter(["params"]))
    assert lines(timed.table(by="op", sort="macs"))[0].startswith("aten::conv2d")
    assert "time" not in heading(REPORTS["count"]().table())
    with pytest.raises(TypeError, match="by and sort are names such as 'op' and 'time', not by="):
        timed.table(by=3)


def test_table_that_cannot_be(timed):
    for options, named in (
        ({"sort": "beauty"}, "no column 'beauty': the closest are 'busy'"),
        ({"depth": -1}, "depth and limit must be integers of 0 or more, not depth=-1, limit=0"),
        ({"depth": 1.5}, "depth and limit must be integers of 0 or more, not depth=1.5, limit=0"),
    ):
        with pytest.raises(ValueError, match=named):
            timed.table(**options)


def test_what_is_no_file_of_a_report(timed, tmp_path):
    with pytest.raises(ValueError, match=r"reads a file: give its path, not the JSON itself"):
        Report.from_json(timed.to_json())
    roofprof.compare(timed, timed).to_json(tmp_path / "comparison.json")
    of_comparison = r"comparison.json: not a report, but another file of roofprof: .roofprof.comparison"
    with pytest.raises(ValueError, match=of_comparison):
        Report.from_json(tmp_path / "comparison.json")
    (tmp_path / "other.json").write_text('{"schema": "roofprof.batch_sweep", "schema_version": 1}')
    with pytest.raises(ValueError, match=r"not a report, but another file of roofprof: .roofprof.batch_sweep"):
        Report.from_json(tmp_path / "other.json")
    with pytest.raises(TypeError, match=r"before is a report, not a file: roofprof.Report.from_json\('a.json'\)"):
        timed.plot(before="a.json")


def test_ops_without_a_cost_are_listed_with_where_and_how_long():
    """An op that nothing is known of and whose work no other op shows."""
    with torch.library._scoped_library("roofprof_report", "FRAGMENT") as library, torch.no_grad():
        library.define("mystery(Tensor x) -> Tensor")
        library.impl("mystery", lambda x: torch.from_numpy(x.numpy() * 2), "CPU")
        report = profiler(lambda x: torch.ops.roofprof_report.mystery(x).relu()).run(torch.ones(4))
    (op,) = report.coverage.uncosted_ops
    assert (op.op, op.calls, op.modules, op.module_count) == ("roofprof_report::mystery", 1, [""], 1)
    share = 100 * report.by_operator()[op.op].time / report.total.op_time
    assert op.percent_of_time == pytest.approx(share)
    assert "% of the op time, in the model)" in " ".join(str(report).split())
    assert Report.from_dict(report.to_dict()) == report
