"""The tables of a page: columns of texts, as tables print them, and the raw values that they sort by."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

from roofprof import _report
from roofprof.figures import fields
from roofprof.render.page.folds import Line

AnyRow: TypeAlias = _report.Row | _report.GroupRow | _report.KernelRow

_EXACT = 1 << 53  # JavaScript cannot hold larger integers as numbers; as text they stay exact
_NAMING = {"path", "depth", "name"}  # figures that make the name of a line


def modules(report: _report.Report, lines: Sequence[Line]) -> dict[str, Any]:
    """Return the tree: a line for each module, its path and level, and the total below them."""
    rows = [line.row for line in lines]
    marked = set(report.marked_rows())
    tree = {
        "model": report.model or "model",
        "levels": [line.level for line in lines],
        "inferred": [index for index, row in enumerate(rows) if row.inferred],
        "marked": [index for index, line in enumerate(lines) if line.place in marked],
        "folds": [[index, line.fold] for index, line in enumerate(lines) if line.fold],
        "parents": [line.parent for line in lines],
    }
    names = [row.path for row in rows]
    return _table(report, "module", "row", fields["path"].heading, names, rows, report.total) | tree


def ops(report: _report.Report) -> dict[str, Any]:
    """Return a line for each operator."""
    rows = report.group(["op"])
    return _table(report, "op", "group", "op", [row.keys[0] for row in rows], rows, *report.group([])[:1])


def kernels(report: _report.Report) -> dict[str, Any] | None:
    """Return a line for each kernel, copy and memset in one module, op and launch size; None where none was traced."""
    rows = report.kernels
    naming = fields.of("kernel")["name"].heading
    return _table(report, "kernel", "kernel", naming, [row.name for row in rows], rows) if rows else None


def _table(
    report: _report.Report,
    by: str,
    kind: str,
    naming: str,
    names: list[str],
    rows: Sequence[AnyRow],
    total: AnyRow | None = None,
) -> dict[str, Any]:
    columns = [_column(field, rows, total) for name, field in fields.of(kind).items() if name not in _NAMING]
    legend = report.part("legend", by).blocks
    return {
        "naming": naming,
        "names": names,
        "columns": [column for column in columns if column],
        "usual": report.default_columns(by),
        "legend": [sentence for of in legend if isinstance(of, _report.Paragraph) for sentence in of.items],
    }


def _column(field: _report.Field, rows: Sequence[AnyRow], total: AnyRow | None) -> dict[str, Any] | None:
    """Return a figure's column; None if no row has it. ``at``: each row's index into the distinct values and texts."""
    seen: dict[tuple[Any, str], int] = {}
    at = [seen.setdefault((_raw(field, row), field.cell(row)), len(seen)) for row in rows]
    if not any(raw is not None and raw != "" for raw, _ in seen):
        return None
    column: dict[str, Any] = {
        "name": field.name,
        "heading": field.heading,
        "unit": _unit(field),
        "meaning": meaning(field),
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


def exact_text(field: _report.Field, row: AnyRow) -> str | None:
    """Return a figure's value in full, with its unit, for a tooltip; None of texts and of what is not known."""
    raw = None if field.is_text or field.type == "bool" else _raw(field, row)
    return None if raw is None else f"{raw} {_unit(field)}"


def _unit(field: _report.Field) -> str:
    return "nanoseconds" if field.unit == "seconds" else field.unit


def meaning(field: _report.Field) -> str:
    """Return what a heading's tooltip says."""
    return f"{field.legend or field.heading}, in {_unit(field)}"
