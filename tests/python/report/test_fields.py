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
    assert roofprof.fields.of("group")["calls"].cell(report.by_operator()["aten::linear"]) == "1"
    assert roofprof.fields.of("collective")["bus_bandwidth"].text(34.1e9) == "34.1G"
    with pytest.raises(RuntimeError):
        flops.cell(report.by_operator()["aten::linear"])


def test_a_figure_by_its_name():
    field = roofprof.fields["self_achieved_flops"]
    assert (field.heading, field.aliases, field.of, field.limit) == ("self FLOP/s", ("self_flops/s",), "row", ">=")
    field = roofprof.fields["wasted_time"]
    assert (field.unit, field.key, field.type) == ("seconds", "wasted_time_ns", "float | None")
    assert (field.needs, field.limit) == (("time", "roofs"), "<=")  # more work could take no less time
    assert (roofprof.fields["intensity"].limit, roofprof.fields["intensity"].legend) == ("?", "AI = FLOPs / bytes")
    assert repr(field) == "<Field 'wasted_time' of a row>"
    assert [roofprof.fields[name].of for name in ("dram_bytes", "percent_of_time", "instances", "wire_bytes")] == [
        "row",
        "group",
        "kernel",
        "collective",
    ]
    with pytest.raises(ValueError, match="figures of row, group, kernel, rank, collective, memory, not of 'op'"):
        roofprof.fields.of("op")


def test_it_is_a_mapping_that_nobody_can_change():
    assert {"flops", "keys"} & set(roofprof.fields) == {"flops"}
    assert len(roofprof.fields) == len(set(roofprof.fields))
    assert "speed" not in roofprof.fields
    for mapping in (roofprof.fields, roofprof.fields.of("row")):
        with pytest.raises(TypeError):
            mapping["speed"] = None
    with pytest.raises(AttributeError):
        roofprof.fields["flops"].heading = "floating-point operations"


def test_rows_json_and_csv_have_every_figure(report):
    for kind, row in {"row": report.total, "group": report.group("op")[0]}.items():
        for name, field in roofprof.fields.of(kind).items():
            value = getattr(row, name)
            assert value is not None or field.type.endswith("| None"), name
            assert value is None or type(value).__name__ == field.type.split("[")[0].removesuffix(" | None"), name
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


def test_the_type_of_a_field_is_that_of_the_attribute():
    """As the binding's signature says it, which the type stubs are made of."""
    classes = ("Row", "GroupRow", "KernelRow", "Rank", "Collective", "MemoryRow")
    for kind, name_of in zip(("row", "group", "kernel", "rank", "collective", "memory"), classes, strict=True):
        for name, field in roofprof.fields.of(kind).items():
            docstring = getattr(getattr(_report, name_of), name).fget.__doc__
            assert docstring.strip().endswith(f" -> {field.type}"), (kind, name)
