"""Traces of several ranks, one after the other, as one merged report."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from roofprof import _report
from roofprof.errors import Error
from roofprof.report.report import Report

_IN_NAME = re.compile(r"rank[-_ ]?(\d+)", re.IGNORECASE)
_NUMBER = re.compile(r"(?<![0-9a-zA-Z])(\d+)(?![0-9a-zA-Z])")


def ranks_of_names(paths: Sequence[Path]) -> list[int] | None:
    """Return the rank that each file's name tells: "rank3", "rank-3", or "trace_3.json" of files from 0 on.

    None where a name tells none, or two tell the same. Names may have numbers of processes and times, too.
    """
    for pattern in (_IN_NAME, _NUMBER):
        found = [pattern.findall(path.name) for path in paths]
        ranks = [int(numbers[-1]) for numbers in found if numbers]
        is_whole = pattern is _IN_NAME or set(ranks) == set(range(len(paths)))
        if is_whole and len(ranks) == len(set(ranks)) == len(paths):
            return ranks
    return None


def merged(paths: Sequence[Path], read: Callable[[Path], Report]) -> Report:
    """Return the merged report of the ranks' traces. One of their reports at a time is in memory.

    Raises ValueError, which names the file, for one that is not a trace or does not fit those before it.
    """
    if not paths:
        raise Error("there are no traces to read")
    merger = _report.RankMerger()
    for position, path in enumerate(paths):
        if path in paths[:position]:
            raise Error(f"{path} is given twice: give the trace of each rank once")
    from_names = ranks_of_names(paths)
    read_from: dict[int, Path] = {}
    assumed = []
    for position, path in enumerate(paths):
        try:
            report = read(path)
        except ValueError as error:
            raise Error(f"{error}; without this file the others can be merged, and the report says so") from None
        rank = report.environment.get("rank")
        if rank is None:
            rank = from_names[position] if from_names else position
            assumed.append(int(rank))
        if rank in read_from:
            raise Error(
                f"{path}: rank {rank} is there already, from {read_from[int(rank)]}: give the trace of each rank once"
            )
        read_from[merger.add(report._compiled, str(path), int(rank))] = path
        del report  # before the next one is read
    if assumed:
        source = "their files' names" if from_names else "their order"
        which = f"rank {assumed[0]} is" if len(assumed) == 1 else f"ranks {listed(assumed, 8)} are"
        merger.note_assumed(
            f"traces were recorded without torch.distributed, or do not say their ranks: {which} from {source}",
        )
    for rank in merger.typical_ranks():
        merger.keep(rank, read(read_from[rank])._compiled)
    return Report(merger.finish())


def listed(names: Sequence[object], most: int) -> str:
    """Return so many of the names at most, and the number of the others: "a, b and 3 more"."""
    shown = ", ".join(map(str, names[:most]))
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
