"""roofprof.fields: the table of figures, and what follows from it."""

import csv
import io
import json

import given_roofs
import pytest
import torch
from torch import nn

import roofprof
from roofprof import _report


@pytest.fixture(scope="module")
def report():
    return given_roofs.profiler(nn.Sequential(nn.Linear(16, 8), nn.ReLU()), repeat=3).run(torch.rand(4, 16))


def test_a_figure_as_tables_write_it(report):
    flops = roofprof.fields["flops"]
    assert flops.cell(report.total) == flops.text(report.total.flops) == "1.09k"  # 4 x (2 x 16 x 8 + 8) + 4 x 8
    assert roofprof.fields["time"].text(1.2e-3) == "1.20ms"
    assert roofprof.fields["dram_bytes"].cell(report.total) == roofprof.fields["intensity"].text(None) == "n/a"
    assert roofprof.fields["type"].cell(report.row("0")) == "Linear"
    assert roofprof.fields.of("group")["calls"].cell(report.by_operator()["aten::linear"]) == "1"
    with pytest.raises(RuntimeError):
        flops.cell(report.by_operator()["aten::linear"])


def test_a_figure_by_its_name():
    field = roofprof.fields["intensity"]
    assert (field.name, field.heading, field.aliases, field.of) == ("intensity", "AI", (), "row")
    assert (field.unit, field.key, field.type) == (
        "FLOPs per byte (int_ops per byte where those are more)",
        "intensity",
        "float | None",
    )
    assert (field.needs, field.limit, field.legend) == ((), "?", "AI = FLOPs / bytes")
    field = roofprof.fields["wasted_time"]
    assert (field.unit, field.key, field.needs) == ("seconds", "wasted_time_ns", ("time", "roofs"))
    assert roofprof.fields["dram_bytes_ratio"].limit == "<="
    assert roofprof.fields["dram_bytes_ratio"].needs == ("counters",)
    assert roofprof.fields["flops"].limit == ">="
    # More work could take no less time, and would waste no more of it.
    assert roofprof.fields["lower_bound_time"].limit == roofprof.fields["percent_of_roof"].limit == ">="
    assert roofprof.fields["wasted_time"].limit == "<="
    assert repr(field) == "<Field 'wasted_time' of a row>"


def test_a_self_figure_is_one_of_a_row():
    field = roofprof.fields["self_achieved_flops"]
    assert (field.heading, field.aliases, field.of) == ("self FLOP/s", ("self_flops/s",), "row")
    assert field.limit == ">="
    assert roofprof.fields["self_time"].key == "self_time_ns"


def test_the_same_name_of_several_kinds_of_row():
    assert roofprof.fields["dram_bytes"].of == "row"
    assert roofprof.fields["percent_of_time"].of == "group"
    assert roofprof.fields["instances"].of == "kernel"
    assert roofprof.fields.of("kernel")["dram_bytes"].limit == ""
    assert roofprof.fields.of("group")["time"].of == "group"
    with pytest.raises(ValueError, match="figures of row, group, kernel, rank, collective, memory, not of 'op'"):
        roofprof.fields.of("op")


def test_it_is_a_mapping_that_nobody_can_change():
    assert {"flops", "keys"} & set(roofprof.fields) == {"flops"}
    assert len(roofprof.fields) == len(set(roofprof.fields))
    assert "speed" not in roofprof.fields
    with pytest.raises(TypeError):
        roofprof.fields["speed"] = None
    with pytest.raises(TypeError):
        roofprof.fields.of("row")["speed"] = None
    with pytest.raises(AttributeError):
        roofprof.fields["flops"].heading = "floating-point operations"


def test_rows_have_every_figure_under_its_name(report):
    kinds = {"row": report.total, "group": report.group("op")[0]}
    for kind, row in kinds.items():
        for name, field in roofprof.fields.of(kind).items():
            value = getattr(row, name)
            assert value is not None or field.type.endswith("| None"), name
            assert value is None or type(value).__name__ == field.type.split("[")[0].removesuffix(" | None"), name


def test_json_and_csv_have_every_figure_under_its_key(report):
    keys = [field.key for field in roofprof.fields.of("row").values()]
    assert next(csv.reader(io.StringIO(report.to_csv()))) == keys
    rows = [report.total, *report.rows]
    unknown = {f.key for f in roofprof.fields.of("row").values() if all(getattr(r, f.name) is None for r in rows)}
    assert list(json.loads(report.to_json())["rows"][0]) == [key for key in keys if key not in unknown]
    keys = [field.key for field in roofprof.fields.of("kernel").values()]
    assert next(csv.reader(io.StringIO(report.to_csv(by="kernel")))) == keys


def test_headings_and_aliases_are_those_of_the_table(report):
    for kind, by in (("row", "module"), ("group", "op")):
        for name, field in roofprof.fields.of(kind).items():
            if name == "path" or (kind, name) == ("group", "time"):  # names the line; "self time"
                continue
            table = report.table(columns=[name], by=by, width=400)
            assert field.heading in table.split("\n\n")[1].splitlines()[0], name
            for alias in (field.heading, field.heading.lower(), *field.aliases):
                assert report.table(columns=[alias], by=by, width=400) == table


def test_no_word_stands_for_two_figures():
    for kind in ("row", "group", "kernel", "rank", "collective"):
        words = [{field.name, field.heading.lower(), *field.aliases} for field in roofprof.fields.of(kind).values()]
        assert len(set().union(*words)) == sum(map(len, words))


@pytest.mark.parametrize("by", ["module", "op", "op, phase", "kernel", "scope", "rank", "collective"])
def test_tables_of_every_kind_refuse_unknown_columns_and_sort_keys(report, by):
    for options in ({"columns": ["bogus"]}, {"sort": "bogus"}):
        with pytest.raises(ValueError, match=r"^no column 'bogus': the closest are .*; the columns are .*$"):
            report.table(by=by, **options)


def test_ranks_and_collectives_are_in_the_table_of_figures():
    ranks, collectives = roofprof.fields.of("rank"), roofprof.fields.of("collective")
    assert (ranks["wall"].heading, ranks["wall"].unit, ranks["wall"].key) == ("wall", "seconds", "wall_ns")
    assert (collectives["bus_bandwidth"].text(34.1e9), collectives["wait"].text(1.2e-3)) == ("34.1G", "1.20ms")
    assert roofprof.fields["wire_bytes"].of == "collective"
    assert roofprof.fields["time"].of == "row"


def test_what_a_report_cannot_fill_is_no_usual_column(report):
    counted = roofprof.count(nn.Sequential(nn.Linear(16, 8), nn.ReLU()), torch.rand(4, 16))
    timed, untimed = (r.table(width=400).split("\n\n")[1].splitlines()[0].split() for r in (report, counted))
    for field in roofprof.fields.of("row").values():
        if field.heading in untimed:
            assert not field.needs
        if field.heading in timed:
            assert set(field.needs) <= {"time", "roofs"}
    assert {"time", "%roof"} <= set(timed)


def test_the_legend_has_its_sentences(report):
    legend = " ".join(report.table(width=4000).split())
    of_other_reports = {roofprof.fields[name].legend for name in ("time", "incomplete", "inferred")}
    for field in roofprof.fields.of("row").values():
        holds = set(field.needs) <= {"time", "roofs"} and field.legend not in of_other_reports
        if field.legend:
            assert (field.legend in legend) == holds, field.name


def test_the_type_of_a_field_is_that_of_the_attribute():
    """As the binding's signature says it, which the type stubs are made of."""
    kinds = {
        "row": _report.Row,
        "group": _report.GroupRow,
        "kernel": _report.KernelRow,
        "rank": _report.Rank,
        "collective": _report.Collective,
        "memory": _report.MemoryRow,
    }
    for kind, rows in kinds.items():
        for name, field in roofprof.fields.of(kind).items():
            assert getattr(rows, name).fget.__doc__.strip().endswith(f" -> {field.type}"), (kind, name)
