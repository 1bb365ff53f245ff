"""The modules that share a dot: equal siblings, and the modules at the same place below them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from roofprof import _report
from roofprof.render.views.reads import ViewedReport


@dataclass(frozen=True)
class Fold:
    """Modules that are one: ``mean`` is the report's row of them, whose rates are those of their sums."""

    mean: _report.Row
    members: tuple[str, ...]  # paths


Folds: TypeAlias = dict[str, Fold]  # by name, as in "layers.0-79.mlp"


def folds_of(report: ViewedReport) -> Folds:
    """Return the folds of a report, by its siblings."""
    known = {row.path for row in report.rows}
    folds: Folds = {}
    for group in report.siblings:  # outer ones first: a group within a group has its members below all of the outer's
        for row in group.rows:
            below = row.path.removeprefix(group.name)
            members = tuple(path + below for path in group.paths)
            if row.path.startswith(group.name) and known.issuperset(members):
                folds[row.path] = Fold(row, members)
    return folds


def in_both(folds: Folds, others: Folds) -> tuple[Folds, Folds]:
    """Return the folds that have the same modules in two reports, so that no folded dot exists on one side alone."""
    same = [name for name, fold in folds.items() if name in others and others[name].members == fold.members]
    return {name: folds[name] for name in same}, {name: others[name] for name in same}
