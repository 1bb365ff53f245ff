"""Reports written, read back, grouped and printed."""

from __future__ import annotations

import copy
import csv
import io
import json
import math
import pickle
import subprocess
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
    for name in ("nan", "NA", "null", "with, comma", 'with "quotes"', "ünï→код", "None", "  ", "line\nbreak", "=1+1"):
        model.add_module(name, nn.Linear(8, 8))
    return profiler(model).run(torch.ones(2, 8))


REPORTS = {
    "run": lambda: profiler(Net()).run(IMAGE),
    "count": lambda: roofprof.count(Net(), IMAGE),
    "meta": lambda: roofprof.count(Net().to("meta"), IMAGE.to("meta")),
    "block": trained,
    "partial": raised,
    "odd names": odd_names,
    "empty": lambda: roofprof.count(lambda: None),
    "no model": lambda: _block_without_model(),
    "infinite": lambda: _above_every_count(),
}


def _block_without_model() -> Report:
    with profiler(None) as prof:
        torch.ones(3) + 1
    return prof.report()


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


NOTE = {"level": "info", "code": "deferred-work", "text": "", "where": [], "count": 1}


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("model", lambda name: name + "'"),
        ("modules", lambda modules: [*modules[:-1], modules[-1] | {"type": "Another"}]),
        ("ops", lambda ops: [ops[0] | {"calls": ops[0]["calls"] + 1}, *ops[1:]]),
        ("times", lambda times: times[:-1]),
        ("runs", lambda runs: runs | {"warmup": runs["warmup"] + 1}),
        ("ceilings", lambda roofs: roofs | {"device": "another"}),
        ("environment", lambda facts: facts | {"device": "another"}),
        (
            "notes",
            lambda notes: [*notes, {"level": "info", "code": "deferred-work", "text": "", "where": [], "count": 1}],
        ),
    ],
)
def test_reports_that_differ_in_one_part_are_not_equal(timed, part, change):
    data = timed.to_dict()
    assert Report.from_dict(data) == timed
    assert Report.from_dict(data | {part: change(data[part])}) != timed


def test_copies_and_pickles_are_equal(report):
    protocols = [pickle.loads(pickle.dumps(report, protocol)) for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1)]
    for other in (*protocols, copy.deepcopy(report), copy.copy(report)):
        assert isinstance(other, Report)
        assert other == report
        assert other.table() == report.table()  # str() has the legend once in a process
        assert other.rows[0].macs == report.rows[0].macs


def test_a_pickle_is_read_in_another_process(timed):
    script = "import pickle, sys; print(pickle.load(sys.stdin.buffer).total.flops)"
    done = subprocess.run([sys.executable, "-c", script], input=pickle.dumps(timed), capture_output=True, check=True)
    assert int(done.stdout) == timed.total.flops


def test_dict_round_trip(report):
    data = report.to_dict()
    assert Report.from_dict(data) == report
    assert json.loads(json.dumps(data)) == data
    assert data["schema_version"] == 6


class WithScalars(nn.Module):
    def forward(self, x):
        return torch.where(x > 0, x, torch.zeros(()))


def test_shapes_of_schema_version_5_are_text():
    report = roofprof.count(WithScalars(), torch.rand(8, 256))
    data = report.to_dict()
    (where,) = [op for op in data["ops"] if op["op"] == "aten::where"]
    assert where["shapes"] == [[8, 256], [8, 256], []]
    for op in data["ops"]:
        if "shapes" in op:
            op["shapes"] = ", ".join("x".join(map(str, shape)) or "scalar" for shape in op["shapes"])
    assert where["shapes"] == "8x256, 8x256, scalar"
    read = Report.from_dict(data | {"schema_version": 5, "prediction": ""})
    assert read == report
    assert read.to_dict()["schema_version"] == 6


def test_shapes_that_are_not_kept_apart_are_null():
    of_block = profiler(nn.ReLU())
    with of_block:
        for size in range(1, 100):
            of_block.model(torch.rand(size))
    report = of_block.report()
    shapes = [op["shapes"] for op in report.to_dict()["ops"] if op["op"] == "aten::relu"]
    assert shapes.count(None) == 1
    assert all(len(shape) == 1 for shape in shapes if shape is not None)
    assert Report.from_dict(report.to_dict()) == report
    assert "other shapes" in {group.shapes for group in report.group("shapes")}


def test_every_figure_of_a_row_is_in_the_json(report):
    def same(value, written):
        if isinstance(value, float) and isinstance(written, (int, float)):
            return math.isclose(value, written, rel_tol=1e-9, abs_tol=1e-12)
        return value == written

    data = report.to_dict()
    names = [name for name in dir(type(report.total)) if not name.startswith("_")]
    for row, written in zip([*report.rows, report.total], [*data["rows"], data["total"]], strict=True):
        for name in names:
            if "by_dtype" in name:
                continue
            value = getattr(row, name)
            # A row without children has no figures of its own; what no row knows has no key.
            key = name if "self_macs" in written else name.removeprefix("self_")
            if f"{key}_ns" in written:
                nanoseconds = written[f"{key}_ns"]
                assert same(value, None if nanoseconds is None else nanoseconds * 1e-9), name
            else:
                assert same(value, written.get(key)), name


def test_every_row_has_the_same_keys_but_for_those_of_its_own(report):
    rows = [*(data := report.to_dict())["rows"], data["total"]]
    shared = {frozenset(key for key in row if not key.startswith("self_")) for row in rows}
    assert len(shared) == 1
    for row in rows:
        own = {key.removeprefix("self_") for key in row if key.startswith("self_")}
        assert not own or own == set(*shared) - NOT_FIGURES
        assert own or not any(other["path"].startswith(f"{row['path']}.") for other in data["rows"])


NOT_FIGURES = {
    *("path", "type", "depth", "calls", "params", "trainable_params", "param_bytes", "buffer_bytes", "input_shapes"),
    *("output_shapes", "output_bytes", "peak_memory", "kept_memory", "inferred", "work_share"),
    *("fused_bytes", "fused_bound_time_ns", "percent_of_fused", "shared_time_ns"),
}


def test_operations_by_dtype(timed):
    row = timed.row("head")
    assert row.flops_by_dtype == {"fp32": row.flops}
    assert row.int_ops_by_dtype == {}
    assert row.self_flops_by_dtype == row.flops_by_dtype


def test_json_has_no_infinities_and_states_its_units(report):
    def refuse(constant):
        raise AssertionError(constant)

    data = json.loads(report.to_json(), parse_constant=refuse)
    assert data["units"]["macs"] == "multiply-accumulates"
    assert data["units"]["time_ns"] == "nanoseconds"
    assert data["units"]["intensity"] == "FLOPs per byte (int_ops per byte where those are more)"


def test_unequal_reports(timed):
    other = REPORTS["count"]()
    assert timed != other
    assert timed != "a report"
    assert len({timed, Report.from_dict(timed.to_dict()), other}) == 2


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


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere.json"):
        Report.from_json(tmp_path / "nowhere.json")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not json",
        b"\xff\xfe\x00",
        b"[]",
        b"3",
        b"null",
        b'"text"',
        b"{}",
        b'{"schema_version": 6}',
        b'{"schema_version": 5}',
        b'{"schema_version": 3}',
        b'{"schema_version": 1, "model": "Net"}',
        b"[" * 100_000,
    ],
)
def test_files_that_are_no_report(content, tmp_path):
    path = tmp_path / "odd.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="odd.json: not a") as caught:
        Report.from_json(path)
    assert "\n" not in str(caught.value)


def test_schema_version_is_said():
    with pytest.raises(ValueError, match="schema version 6.*but 7"):
        Report.from_dict({"schema_version": 7})
    with pytest.raises(ValueError, match="schema_version"):
        Report.from_dict({})


def test_each_key_is_needed(timed):
    data = timed.to_dict()
    derived = {"generator", "units", "coverage", "total", "rows", "regions", "flops_utilization", "kernels", "findings"}
    derived.add("memory_at_peak")
    later = {
        "bypass_sought",
        "common_error",
        "within",
        "imported",
        "prediction",
        "region_paths",
        "token_calls",
        "compiled_kernels",
        "peak_memory",
        "crossings_known",
        "alive_at_peak",
        "memory_timeline",
        "idle_before_ns",
        "idle_after_ns",
        "idle_basis",
        "observing_ns",
        "collectives",
    }  # than the schema
    for key in set(data) - derived - later:
        with pytest.raises(ValueError, match=f"'{key}'"):
            Report.from_dict({name: value for name, value in data.items() if name != key})
    assert Report.from_dict({name: value for name, value in data.items() if name not in derived}) == timed


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
    st.just([]),
    st.just({}),
    st.just([[1, 2]]),
    st.just({"a": 1}),
)


@settings(max_examples=300, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
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
    assert not [row["path"] for row in rows if row["path"].startswith(("=", "+", "-", "@"))]
    for written, row in zip(rows, report.rows, strict=True):
        assert None not in written
        assert int(written["flops"]) == row.flops
        assert int(written["self_macs"]) == row.self_macs
        assert written["bound"] == row.bound
        if row.time is None:
            assert written["time_ns"] == ""
        else:
            assert int(written["time_ns"]) * 1e-9 == pytest.approx(row.time)


def test_csv_self_columns_add_up_to_the_total(timed):
    rows = list(csv.DictReader(io.StringIO(timed.to_csv())))
    assert sum(int(row["self_flops"]) for row in rows) == timed.total.flops
    assert sum(int(row["self_bytes"]) for row in rows) == timed.total.bytes
    assert sum(int(row["self_time_ns"] or 0) for row in rows) * 1e-9 == pytest.approx(timed.total.time)


@pytest.mark.integration
def test_pandas(report):
    import pandas

    frame = report.to_pandas()
    assert list(frame["path"]) == [row.path for row in report.rows]
    assert list(frame["type"]) == [row.type for row in report.rows]
    assert list(frame["flops"]) == [row.flops for row in report.rows]
    assert list(frame["bound"]) == [row.bound for row in report.rows]
    assert list(frame["time_ns"].isna()) == [row.time is None for row in report.rows]
    assert pandas.api.types.is_integer_dtype(frame["macs"])
    numbers = frame.select_dtypes(["number", "bool"]).columns
    text = set(frame.columns) - set(numbers)
    assert text == {field.key for field in roofprof.fields.of("row").values() if field.is_text}
    assert not frame[list(text)].isna().any().any()


@pytest.mark.integration
@pytest.mark.parametrize("by", ["module", "scope", "op", "op, phase", "kernel", "rank", "collective", "memory"])
def test_the_same_words_for_table_csv_and_pandas(report, by):
    rows = list(csv.DictReader(io.StringIO(report.to_csv(by=by), newline="")))
    frame = report.to_pandas(by)
    assert report.table(by=by)
    assert len(frame) == len(rows)
    assert list(frame.columns) == next(csv.reader(io.StringIO(report.to_csv(by=by))))
    keys = by.split(", ") if by.startswith("op") else []
    assert list(frame.columns)[: len(keys)] == keys
    for name in frame.select_dtypes("number").columns:
        written = [float(row[name]) for row in rows if row[name]]
        assert frame[name].dropna().tolist() == pytest.approx(written)
    if keys:
        assert frame["macs"].sum() == report.total.macs or report.total.macs == 2**63 - 1
        assert frame[keys].to_numpy().tolist() == [row.keys for row in report.group(*keys)]


def test_rows_are_made_once(report):
    assert report.rows is report.rows
    assert [row.path for row in report.rows] == [row.path for row in report._compiled.rows]
    assert len(pickle.dumps(report)) == len(pickle.dumps(Report(report._compiled)))


def test_pandas_that_is_not_there(timed, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        timed.to_pandas()


# ---- rows and groups


def test_rows_by_path(timed):
    assert timed.row("").type == "Net"
    assert timed.row("body.0").type == "Conv2d"
    with pytest.raises(KeyError, match=r"no row 'body.O'.*'body.0'"):
        timed.row("body.O")
    with pytest.raises(KeyError, match="no row 'total'"):
        timed.row("total")


@pytest.mark.parametrize(
    "keys", [(), ("phase",), ("op",), ("module",), ("dtype",), ("shapes",), ("module", "op"), ("op", "shapes", "phase")]
)
def test_groups_add_up(report, keys):
    groups = report.group(*keys)
    assert sum(group.macs for group in groups) == report.total.macs or report.total.macs == 2**63 - 1
    assert all(len(group.keys) == len(keys) for group in groups)
    assert len({tuple(group.keys) for group in groups}) == len(groups)
    assert sum(group.calls for group in groups) == sum(op["calls"] for op in report.to_dict()["ops"])


@pytest.mark.parametrize("key", ["modules", "", "Phase", "op "])
def test_group_by_what_is_no_key(timed, key):
    with pytest.raises(ValueError, match="the keys are phase, op, module, scope, dtype, shapes"):
        timed.group("op", key)


def test_one_liners_are_groups(timed):
    for method, keys in (
        (timed.by_operator, ("op",)),
        (timed.by_module, ("module",)),
        (timed.by_phase, ("phase",)),
        (timed.by_module_and_operator, ("module", "op")),
    ):
        assert [repr(group) for group in method().values()] == [repr(group) for group in timed.group(*keys)]
    assert timed.by_operator()["aten::linear"].macs == 2 * 8 * 5
    assert timed.by_module()["body.0"].macs == timed.row("body.0").macs
    assert timed.by_module_and_operator()["head", "aten::linear"].calls == 1
    assert set(timed.by_phase()) == {"forward"}


def test_time_shares_add_up_to_all_of_the_ops(timed):
    assert sum(group.percent_of_time for group in timed.group("op")) == pytest.approx(100)
    assert timed.group()[0].time == pytest.approx(timed.total.op_time)


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


def test_table_fits_its_width(report):
    for width in (60, 80, 120, 200):
        assert max(map(len, report.table(width=width).splitlines())) <= width


def test_table_depth(timed):
    names = lambda **options: [line.split()[0] for line in lines(timed.table(**options))]  # noqa: E731
    assert names(depth=0) == ["Net"]
    assert names(depth=1) == ["Net", "body", "head", "spare"]
    assert names(depth=2) == names() == ["Net", "body", "0", "1", "2", "head", "spare"]
    assert names(limit=2) == ["Net", "body"]


def test_table_sorted(timed):
    for sort, key in (("macs", "macs"), ("FLOPs", "flops"), ("time", "time"), ("wasted", "wasted_time")):
        shown = [line.split()[0] for line in lines(timed.table(sort=sort, depth=9))]
        rows = sorted(timed.rows, key=lambda row: -(getattr(row, key) or -math.inf))
        expected = [row.path or "Net" for row in rows if getattr(row, key)]
        assert shown[: len(expected)] == expected


def test_table_columns(timed):
    assert heading(timed.table(columns=["macs", "calls"])) == ["module", "MACs", "calls"]
    assert heading(timed.table(columns="macs, calls")) == ["module", "MACs", "calls"]
    assert timed.table(columns=("params",)) == timed.table(columns=iter(["params"]))


def test_what_names_nothing_is_refused(timed):
    for option in ({"by": 3}, {"sort": None}):
        with pytest.raises(TypeError, match="by and sort are names such as 'op' and 'time', not by="):
            timed.table(**option)


def test_table_by_op(timed):
    text = timed.table(by="op", sort="macs")
    assert lines(text)[0].startswith("aten::conv2d")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"sort": "beauty"}, "no column 'beauty': the closest are 'busy'"),
        ({"columns": ["macs", "beauty"]}, "no column 'beauty'"),
        ({"by": "beauty"}, "beauty"),
        ({"by": "op", "columns": ["params"]}, "no column 'params'"),
        ({"depth": -1}, "depth and limit must be integers of 0 or more, not depth=-1, limit=0"),
        ({"limit": -2}, "depth and limit must be integers of 0 or more, not depth=None, limit=-2"),
        ({"depth": 1.5}, "depth and limit must be integers of 0 or more, not depth=1.5, limit=0"),
    ],
)
def test_table_that_cannot_be(timed, options, named):
    with pytest.raises(ValueError, match=named):
        timed.table(**options)


def test_table_of_what_is_not_known(timed):
    assert "time" in heading(timed.table())
    assert "time" not in heading(REPORTS["count"]().table())
    # The first report that a process prints has the legend.
    assert str(timed) in (timed.table(), timed.table(legend=False))


def test_copies_are_equal(timed):
    assert copy.copy(timed) == timed


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


def test_reading_a_report_needs_no_model(timed, tmp_path):
    path = tmp_path / "report.json"
    timed.to_json(path)
    code = f"import roofprof; print(roofprof.Report.from_json({str(path)!r}).row('head').macs)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "80"


# ---- ops without a cost


@pytest.fixture(scope="module")
def mystery():
    """An op that nothing is known of and whose work no other op shows."""
    with torch.library._scoped_library("roofprof_report", "FRAGMENT") as library:
        library.define("mystery(Tensor x) -> Tensor")
        library.impl("mystery", lambda x: torch.from_numpy(x.numpy() * 2), "CPU")
        yield torch.ops.roofprof_report.mystery


def test_ops_without_a_cost_are_listed_with_where_and_how_long(mystery, tmp_path):
    class Mystery(nn.Module):
        def forward(self, x):
            return mystery(x)

    model = nn.Sequential(Mystery(), nn.Sequential(Mystery(), nn.ReLU()))
    with torch.no_grad():
        counted = roofprof.count(model, torch.ones(4))
        timed = roofprof.RooflineProfiler(model, warmup=0, repeat=1, ceilings=roofprof.Ceilings()).run(torch.ones(4))
    for report in (counted, timed):
        (op,) = report.coverage.uncosted_ops
        assert (op.op, op.calls, op.modules, op.module_count) == ("roofprof_report::mystery", 2, ["0", "1.0"], 2)
        assert report.coverage.uncosted == {op.op: op.calls}
        assert Report.from_dict(report.to_dict()) == report
        assert report.to_dict()["coverage"]["uncosted_ops"][0]["modules"] == ["0", "1.0"]
    assert counted.coverage.uncosted_ops[0].percent_of_time is None
    (group,) = [group for group in timed.group("op") if group.keys == ["roofprof_report::mystery"]]
    share = timed.coverage.uncosted_ops[0].percent_of_time
    assert share == pytest.approx(100 * group.time / timed.total.op_time) and 0 < share < 100
    assert "roofprof_report::mystery (2 calls, in 0, 1.0)" in str(counted)
    assert "% of the op time, in 0, 1.0)" in " ".join(str(timed).split())


def test_groups_know_the_elements_that_go_in_and_come_out():
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.MaxPool2d(2))
    with torch.no_grad():
        report = roofprof.count(model, torch.ones(2, 3, 10, 10))
    elements = {group.keys[0]: (group.input_elements, group.output_elements) for group in report.group("op")}
    assert elements["aten::conv2d"] == (2 * 3 * 10 * 10, 2 * 4 * 8 * 8)
    assert elements["aten::max_pool2d"] == (2 * 4 * 8 * 8, 2 * 4 * 4 * 4)
    assert Report.from_dict(report.to_dict()).group("op")[0].output_elements == elements["aten::conv2d"][1]


def test_a_model_without_others_inside_has_one_row_in_its_table():
    def rows(report):
        table = report.table(legend=False).split("\n\n")[1].splitlines()
        return [line.split()[0] for line in table[2:] if not line.startswith("─")]

    x = torch.rand(2, 3)
    assert rows(roofprof.count(nn.Linear(3, 4), x)) == ["Linear"]
    assert rows(roofprof.count(nn.Sequential(nn.Linear(3, 4)), x)) == ["Sequential", "0", "total"]
    with roofprof.RooflineProfiler(nn.Linear(3, 4), ceilings=roofprof.Ceilings()) as profiler:
        profiler.model(x).sum()
    assert rows(profiler.report()) == ["Linear", "(outside)", "total"]
