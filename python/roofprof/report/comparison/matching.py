"""The pairs of rows in two reports that are the same module: by path, else by place in the tree and equal work."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from typing import NamedTuple

from roofprof import _report

REGION = "region"  # the type of its row


class Matched(NamedTuple):
    """The rows of two reports, by index."""

    pairs: dict[int, int]  # after -> before
    renamed: list[int]  # of `after`: the paths differ
    ambiguous: set[int]  # of `after`: others would do as well; taken in the model's order


def match(first: _report.Report, second: _report.Report) -> Matched:
    """Pair rows of equal path, then those in one place that do the same, then any that do the same."""
    before, after = first.rows, second.rows
    by_name = {_identity(row): index for index, row in enumerate(before)}
    pairs = {index: by_name[_identity(row)] for index, row in enumerate(after) if _identity(row) in by_name}
    parents = first.parents(), second.parents()
    ambiguous: set[int] = set()
    # Parents come first, so a renamed one is known when its children are asked for; three levels of renaming in a row
    # need no more than one round each.
    while _pair_children(before, after, parents, pairs, ambiguous):
        pass
    _pair_moved(before, after, pairs)
    while _pair_children(before, after, parents, pairs, ambiguous):
        pass
    renamed = sorted(index for index, other in pairs.items() if after[index].path != before[other].path)
    return Matched(pairs, renamed, ambiguous)


def _identity(row: _report.Row) -> Hashable:
    """Return the path, and True for a region: a region may have the path of a module."""
    return row.path, row.type == REGION


def _work(row: _report.Row) -> Hashable:
    return row.type, row.params, row.macs, row.flops, row.int_ops, row.read_bytes, row.write_bytes, row.calls


def _pair_children(
    before: Sequence[_report.Row],
    after: Sequence[_report.Row],
    parents: tuple[list[int], list[int]],
    pairs: dict[int, int],
    ambiguous: set[int],
) -> bool:
    """Pair rows without a partner below paired parents, by equal name or else by equal work; return True if any was."""
    taken = set(pairs.values())
    found = False
    for key_of in (_name, _work):
        left, right = defaultdict[Hashable, list[int]](list), defaultdict[Hashable, list[int]](list)
        for index, row in enumerate(before):
            if index not in taken and parents[0][index] in taken:
                left[parents[0][index], key_of(row), row.type].append(index)
        for index, row in enumerate(after):
            if index not in pairs and parents[1][index] in pairs:
                right[pairs[parents[1][index]], key_of(row), row.type].append(index)
        for key, mine in right.items():
            others = left.get(key, [])
            if len(mine) > 1 and others:
                ambiguous.update(mine[: len(others)])
            elif len(others) > 1:
                ambiguous.update(mine)
            for index, other in zip(mine, others, strict=False):
                pairs[index] = other
                taken.add(other)
                found = True
    return found


def _name(row: _report.Row) -> str:
    return row.path.rpartition(".")[2]


def _pair_moved(before: Sequence[_report.Row], after: Sequence[_report.Row], pairs: dict[int, int]) -> None:
    """Pair rows that are in another place now, only where on either side a single row does such work."""
    taken = set(pairs.values())
    left, right = defaultdict[Hashable, list[int]](list), defaultdict[Hashable, list[int]](list)
    for index, row in enumerate(before):
        if index not in taken and row.flops:
            left[_work(row)].append(index)
    for index, row in enumerate(after):
        if index not in pairs and row.flops:
            right[_work(row)].append(index)
    for key, mine in right.items():
        if len(mine) == 1 and len(left.get(key, [])) == 1:
            pairs[mine[0]] = left[key][0]
