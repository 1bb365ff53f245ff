"""The names of `import roofprof`: what dir() shows, the types of what reports hold, one base of all errors."""

from __future__ import annotations

import inspect
import pickle
import re

import pytest
import torch
from given_roofs import profiler
from torch import nn

import roofprof
from roofprof import _report


def test_dir_shows_what_is_for_users_and_nothing_else():
    shown = {name for name in dir(roofprof) if not name.startswith("__")}
    assert shown - set(roofprof.__all__) == {"time", "budget", "callbacks", "compat", "errors"}
    assert all(getattr(roofprof, name) is not None for name in shown)


def test_every_type_that_a_report_hands_out_is_public():
    """By the annotations of its attributes and methods, which name the compiled types as `_report.Row`."""
    members = [member for _, member in inspect.getmembers(roofprof.Report) if not inspect.isclass(member)]
    returned = [getattr(member, "fget", None) or member for member in members]
    texts = [str(getattr(member, "__annotations__", {}).get("return", "")) for member in returned]
    named = {name for text in texts for name in re.findall(r"_report\.(\w+)", text)}
    assert {"Row", "GroupRow", "KernelRow", "Finding", "Rank", "Collective", "Siblings"} <= named
    assert not [name for name in named if getattr(roofprof, name, None) is not getattr(_report, name)]


def test_options_are_keywords_only():
    for function, positional in (
        (roofprof.RooflineProfiler, ["model"]),
        (roofprof.from_trace, ["trace", "model", "inputs"]),
    ):
        parameters = inspect.signature(function).parameters.values()
        assert [one.name for one in parameters if one.kind is not inspect.Parameter.KEYWORD_ONLY] == positional


def refused(call, kind):
    assert issubclass(kind, roofprof.Error) and issubclass(roofprof.Error, ValueError)
    with pytest.raises(roofprof.Error) as error:
        call()
    assert type(error.value) is kind
    return str(error.value)


def test_which_error_says_what(tmp_path):
    file = tmp_path / "file"
    file.write_text("nothing")
    report = roofprof.count(nn.Linear(2, 2), torch.zeros(1, 2))
    refused(lambda: roofprof.Report.from_json(file), roofprof.ReportError)
    refused(lambda: roofprof.Report.from_dict({}), roofprof.ReportError)
    refused(lambda: roofprof.from_trace(file), roofprof.TraceError)
    refused(lambda: roofprof.from_ncu(file), roofprof.NcuError)
    refused(lambda: roofprof.budget.Budget.load(file), roofprof.BudgetError)
    refused(lambda: roofprof.RooflineProfiler(nn.Linear(2, 2)).time(torch.zeros(1, 2), repeat=-1), roofprof.TimingError)
    assert "no card" in refused(lambda: report.predict("no card"), roofprof.Error)  # Python's own refusals
    assert "speed" in refused(lambda: report.group("speed"), roofprof.Error)  # and those of C++


# ---- pickles and docstrings


@pytest.fixture(scope="module")
def report():
    model = nn.Sequential(nn.Linear(8, 4), nn.Embedding(3, 2))
    with profiler(model) as prof, roofprof.scope("region"):
        model[0](torch.rand(2, 8)).sum().backward()
    return prof.report()


def values(thing):
    names = [name for name in dir(type(thing)) if isinstance(getattr(type(thing), name), property)]
    assert names
    return {name: getattr(thing, name) for name in names}


def rows(report):
    return [report.total, *report.rows, *report.group("op", "phase"), *report.memory_at_peak, *report.regions]


def test_rows_and_what_is_around_them_can_be_pickled(report):
    for row in rows(report):
        again = pickle.loads(pickle.dumps(row))
        assert type(again) is type(row)
        assert values(again) == values(row)
    coverage = pickle.loads(pickle.dumps(report.coverage))
    assert values(coverage)["notes"] == report.coverage.notes
    assert pickle.loads(pickle.dumps(report.ceilings)) == report.ceilings
    assert report.ceilings
    assert pickle.loads(pickle.dumps(roofprof.fields)) is roofprof.fields
    for kind in ("row", "kernel"):
        for name, field in roofprof.fields.of(kind).items():
            again = pickle.loads(pickle.dumps(field))
            assert (again.of, again.name, again.heading) == (kind, name, field.heading)


def test_every_attribute_of_a_row_says_what_it_is():
    kinds = (_report.Row, _report.GroupRow, _report.KernelRow, _report.Rank, _report.Collective, _report.MemoryRow)
    for kind in kinds:
        public = {name: value for name, value in vars(kind).items() if isinstance(value, property)}
        assert public
        assert not [name for name, value in public.items() if not (value.__doc__ or "").strip().endswith((".", ")"))]
    docstring = _report.Row.percent_of_roof.__doc__
    assert docstring == 'Column "%roof"; percent. %roof = lower bound / time. Needs time, roofs.'
    assert _report.Row.self_time.__doc__.startswith('Column "self time"; seconds. Of its own ops')
