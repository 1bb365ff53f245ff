"""Small tables of a page, which do not sort: phases, regions, ranks and collectives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from roofprof import _report
from roofprof.figures import fields

_TIME, _BYTES, _RATE, _PERCENT = (fields[name] for name in ("time", "bytes", "achieved_bandwidth", "percent_of_roof"))
# Attribute, heading, and the figure whose unit it has; None: a text or a number as it is.
_OF_RANKS = (
    ("rank", "rank", None),
    ("host", "host", None),
    ("device", "device", None),
    ("steps", "steps", None),
    ("step", "step", _TIME),
    ("wall", "wall", _TIME),
    ("compute", "compute", _TIME),
    ("communication", "comm.", _TIME),
    ("exposed", "exposed", _TIME),
    ("waiting", "waiting", _TIME),
    ("idle", "idle", _TIME),
    ("percent_of_roof", "%roof", _PERCENT),
    ("peak_memory", "peak memory", _BYTES),
)
_OF_COLLECTIVES = (
    ("name", "collective", None),
    ("module", "module", None),
    ("phase", "phase", None),
    ("group", "group", None),
    ("ranks", "ranks", None),
    ("calls", "calls", None),
    ("bytes", "bytes", _BYTES),
    ("time", "time", _TIME),
    ("wait", "wait", _TIME),
    ("transfer", "transfer", _TIME),
    ("exposed", "exposed", _TIME),
    ("bus_bandwidth", "bus bw (B/s)", _RATE),
    ("bound", "bound", None),
    ("percent_of_roof", "%roof", _PERCENT),
    ("wasted", "wasted", _TIME),
)


def parts(report: _report.Report) -> dict[str, dict[str, Any]]:
    """Return the tables by the section that shows them."""
    phases = report.group(["phase"])
    found = {
        "phases": _of_fields(report, "group", "op", "phase", phases if len(phases) > 1 else []),
        "regions": _of_fields(report, "row", "scope", "region", report.regions),
        "ranks": _of_attributes(report, "rank", _OF_RANKS, report.ranks),
        "collectives": _of_attributes(report, "collective", _OF_COLLECTIVES, report.collectives),
    }
    return {name: table for name, table in found.items() if table["rows"]}


def _of_fields(report: _report.Report, kind: str, by: str, naming: str, rows: Sequence[Any]) -> dict[str, Any]:
    every = fields.of(kind)
    shown = [every[name] for name in report.default_columns(by) if name in every]
    return {
        "headings": [naming, *(field.heading for field in shown)],
        "rows": [[row.keys[0] if kind == "group" else row.path, *(field.cell(row) for field in shown)] for row in rows],
        "numeric": [index for index, field in enumerate(shown, 1) if not field.is_text],
        "legend": [],
    }


def _of_attributes(
    report: _report.Report, by: str, columns: Sequence[tuple[str, str, _report.Field | None]], rows: Sequence[Any]
) -> dict[str, Any]:
    known = [column for column in columns if any(getattr(row, column[0]) is not None for row in rows)]
    return {
        "headings": [heading for _, heading, _ in known],
        "rows": [[_text(getattr(row, name), field) for name, _, field in known] for row in rows],
        "numeric": [index for index, (_, _, field) in enumerate(known) if field is not None],
        "legend": [text for _, text in report.paragraphs("legend", by)],
    }


def _text(value: Any, field: _report.Field | None) -> str:
    return str(value) if field is None else field.text(value)
