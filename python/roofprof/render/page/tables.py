"""The tables of a page: columns of texts, as tables print them, and the raw values that they sort by."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

from roofprof import _report
from roofprof.figures import fields
from roofprof.render.page.folds import Line

AnyRow: TypeAlias = _report.Row | _report.GroupRow | _report.KernelRow

_EXACT = 1 << 53  # larger integers are no JavaScript numbers; as text they stay exact
_NOT_OFFERED = {"path", "depth"}  # of a row: they make the tree


def modules(report: _report.Report, lines: Sequence[Line]) -> dict[str, Any]:
    """Return the tree: a line for each module, its path and level, and the total below them."""
    rows = [line.row for line in lines]
    marked = set(report.marked_rows())
    inner = sorted({line.parent for line in lines} - {-1})
    columns = []
    for name, field in fields.of("row").items():
        if name in _NOT_OFFERED:
            continue
        of_self = name.startswith("self_")
        # A module without children has its own figures only: they are not written twice.
        column = _column(field, [rows[i] for i in inner] if of_self else rows, report.total)
        if column:
            columns.append(column | ({"self": name.removeprefix("self_")} if of_self else {}))
    return {
        "naming": fields["path"].heading,
        "model": report.model or "model",
        "paths": [row.path for row in rows],
        "levels": [line.level for line in lines],
        "inferred": [index for index, row in enumerate(rows) if row.inferred],
        "marked": [index for index, line in enumerate(lines) if line.place in marked],
        "folds": [[index, line.fold] for index, line in enumerate(lines) if line.fold],
        "parents": [line.parent for line in lines],
        "inner": inner,
        "columns": columns,
        "usual": report.default_columns("module"),
        "legend": _legend(report, "module"),
    }


def ops(report: _report.Report) -> dict[str, Any]:
    """Return a line for each operator."""
    rows = report.group(["op"])
    totals = report.group([])
    columns = [_column(field, rows, totals[0] if totals else None) for field in fields.of("group").values()]
    return {
        "naming": "op",
        "names": [row.keys[0] for row in rows],
        "columns": [column for column in columns if column],
        "usual": report.default_columns("op"),
        "legend": _legend(report, "op"),
    }


def kernels(report: _report.Report) -> dict[str, Any] | None:
    """Return a line for each kernel, copy and memset in one module, op and launch size; None where none was traced."""
    rows = report.kernels
    if not rows:
        return None
    columns = [_column(field, rows, None) for name, field in fields.of("kernel").items() if name != "name"]
    return {
        "naming": fields.of("kernel")["name"].heading,
        "names": [row.name for row in rows],
        "columns": [column for column in columns if column],
        "usual": report.default_columns("kernel"),
        "legend": _legend(report, "kernel"),
    }


def hotspots(report: _report.Report) -> dict[str, Any] | None:
    """Return the list that tables print as "most waste in", equal siblings as one; None where no waste is known."""
    rows = report.most_wasting()
    if not rows:
        return None
    shown = [fields.of("group")[name] for name in ("time", "bound", "percent_of_roof", "wasted_time")]
    return {
        "headings": [fields["path"].heading, "op", *(field.heading for field in shown)],
        "modules": [row.module or "" for row, _ in rows],
        "rows": [
            [f" x{count}" if count > 1 else "", row.op, *(field.cell(row) for field in shown)] for row, count in rows
        ],
    }


def _legend(report: _report.Report, by: str) -> list[str]:
    blocks = report.part("legend", by).blocks
    return [sentence for block in blocks if isinstance(block, _report.Paragraph) for sentence in block.items]


def _column(field: _report.Field, rows: Sequence[AnyRow], total: AnyRow | None) -> dict[str, Any] | None:
    """None where no row knows the figure. ``at`` has each row's index into the different values and texts."""
    seen: dict[tuple[Any, str], int] = {}
    at = [seen.setdefault((_raw(field, row), field.cell(row)), len(seen)) for row in rows]
    if not any(raw is not None and raw != "" for raw, _ in seen):
        return None
    column: dict[str, Any] = {
        "name": field.name,
        "key": field.key,
        "heading": field.heading,
        "unit": "nanoseconds" if field.unit == "seconds" else field.unit,
        "legend": field.legend,
        "textual": field.is_text or field.type == "bool",
        "texts": [text for _, text in seen],
        "at": at,
    }
    if not column["textual"]:
        column["raws"] = [raw for raw, _ in seen]
    if total is not None:
        column["total"] = [field.cell(total), _raw(field, total)]
    return column


def _raw(field: _report.Field, row: AnyRow) -> int | float | str | None:
    """Return a value as JSON has it: times in nanoseconds. A text is the one that tables show."""
    value = getattr(row, field.name)
    if value is None:
        return None
    if field.is_text or isinstance(value, bool):
        return field.cell(row)
    if field.unit == "seconds":
        value = round(value * 1e9, 3)
    return exact(value)


def exact(value: float) -> int | float | str | None:
    """Return a number that JavaScript reads without loss, as a string if need be; None for infinity and NaN."""
    if not math.isfinite(value):
        return None
    if value == int(value):
        value = int(value)
        return value if abs(value) < _EXACT else str(value)
    return value
