"""Reports of several ranks become one."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from pathlib import Path

from roofprof import _report
from roofprof.report.report import Report, refuse_one_path


def merge(reports: Iterable[Report | str | Path], *, skip_bad: bool = False) -> Report:
    """Merge the reports of several ranks, or their files, into one.

    Work and times are sums over ranks; ``merged.ranks`` has a line for each rank, and a row's ``time_min``,
    ``time_median``, ``time_max`` and ``slowest_rank`` are of its time on one rank. torchrun's variables gave the rank
    when the report was made. Files are read one after the other, and only merged data is kept.

    skip_bad: warn of a source that cannot be read as a report, or does not fit those before it, and merge the rest.
    Without it such a source raises ValueError or OSError, as does a merge with nothing left. Raises TypeError for one
    path in place of a list.
    """
    refuse_one_path(reports)
    merger = _report.RankMerger()
    sources: dict[int, Report | str | Path] = {}
    for position, report in enumerate(reports):
        name = f"report {position}" if isinstance(report, Report) else str(report)
        try:
            sources[merger.add(_read(report)._compiled, name)] = report
        except (ValueError, OSError) as error:
            if not skip_bad:
                raise
            warnings.warn(f"roofprof: left out: {error}", stacklevel=2)
    for rank in merger.typical_ranks():
        merger.keep(rank, _read(sources[rank])._compiled)
    return Report(merger.finish())


def _read(source: Report | str | Path) -> Report:
    return source if isinstance(source, Report) else Report.from_json(source)
