"""The modules that share a dot: equal siblings, and the modules at the same place below them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from roofprof import _report


@dataclass(frozen=True)
class Fold:
    """Modules that are one: ``mean`` is the report's row of them, whose rates are those of their sums."""

    mean: _report.Row
    members: tuple[str, ...]  # paths


Folds: TypeAlias = dict[str, Fold]  # by name, as in "layers.0-79.mlp"


def folds_of(report: _report.Report) -> Folds:
    """Return the folds of a report, by its siblings."""
    rows = report.rows
    return {
        line.mean.path: Fold(line.mean, tuple(rows[member].path for member in line.members))
        for line in report.folded_rows
        if len(line.members) > 1
    }


def in_both(folds: Folds, others: Folds) -> tuple[Folds, Folds]:
    """Return the folds that have the same modules in two reports, so that no folded dot exists on one side alone."""
    same = [name for name, fold in folds.items() if name in others and others[name].members == fold.members]
    return {name: folds[name] for name in same}, {name: others[name] for name in same}
