"""Makes the text that replacements print: roofprof's table under the other tool's column names, and the totals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from torch import nn

from roofprof import _report
from roofprof.compat._call import named_places

Line = tuple[int, Sequence[Any]]  # its level in a tree, and its cells


def shown(columns: Sequence[str], lines: Iterable[Line], facts: Mapping[str, Any] | None = None) -> str:
    """Return a table with these columns, and below it a line for each of the facts."""
    document = _report.Document()
    rows = [
        [_report.Cell(_text(cells[0]), level=level), *(_report.Cell(_text(cell)) for cell in cells[1:])]
        for level, cells in lines
    ]
    document.add_table([_report.TableColumn(name, left=not place) for place, name in enumerate(columns)], rows)
    below = ["", *(f"{name}: {_text(value)}" for name, value in facts.items())] if facts else []
    return "\n".join([document.text(0).strip("\n"), *below])


def _text(value: Any) -> str:
    return "n/a" if value is None else f"{value:,}" if type(value) is int else str(value)


def share(part: float, whole: float, digits: int = 2) -> str:
    """Return a share as "12.5%"."""
    return f"{round(100 * part / whole, digits) if whole else 0:g}%"


Columns = Mapping[str, tuple[Callable[[nn.Module], float], Callable[[float], str]]]
"""Each column's name, the function that takes its figure from a module, and the one that formats it."""


def of_modules(
    model: nn.Module, figures: Columns, facts: Mapping[str, Any], *, digits: int = 2, all_of: bool = True
) -> str:
    """Return a table of the model, and of ``all_of`` its modules, with each figure and its share of the model's."""
    totals, lines = [figure(model) for figure, _ in figures.values()], []
    for path, module in named_places(model) if all_of else [("", model)]:
        kind = str(getattr(module, "original_name", type(module).__name__))
        cells = [f"{path.rpartition('.')[2]} ({kind})" if path else kind]
        for (figure, text), total in zip(figures.values(), totals, strict=True):
            value = figure(module)
            cells += [text(value), share(value, total, digits)]
        lines.append((path.count(".") + 1 if path else 0, cells))
    columns = [column for name in figures for column in (name, f"% {name}")]
    return shown(("module", *columns), lines, facts)
