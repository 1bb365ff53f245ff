"""The methods of a report that write traces and folded stacks, and the format that a file's name asks for."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path

from roofprof import _build_info, _report
from roofprof.errors import Error
from roofprof.render.files import write_whole
from roofprof.render.traces.formats import chrome_trace, speedscope
from roofprof.render.traces.time_tree import folded, time_tree
from roofprof.render.traces.timeline import timeline

FOLDED = (".folded", ".txt")


class WritesTraces:
    """When and where time went, for tools that show it. Files are written whole or not at all."""

    _compiled: _report.Report

    def to_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the run that the rows come from, in the Trace Event Format of Perfetto (https://ui.perfetto.dev).

        Tracks for modules and regions, for ops, and for each stream of a device, with arrows from ops to the kernels
        that they launched. The file's name ends in ".json", or ".json.gz", which compresses. Raises ValueError for
        other names and where no events were kept (``RooflineProfiler(model, keep_events=True)`` keeps them), and
        OSError where the file cannot be written.
        """
        _check_suffix(path, ".json")
        facts = {"model": self._compiled.model, "device": self._compiled.device, "scope": self._compiled.mode}
        _write(path, chrome_trace(timeline(self._compiled), {"generator": f"roofprof {_build_info.VERSION}", **facts}))

    def to_speedscope(self, path: str | os.PathLike[str]) -> None:
        """Write the run as a file of https://www.speedscope.app: a profile for each thread and each stream.

        Names and exceptions are those of :meth:`to_chrome_trace`.
        """
        _check_suffix(path, ".json")
        _write(path, speedscope(timeline(self._compiled), _title(self._compiled), f"roofprof {_build_info.VERSION}"))

    def to_folded_stacks(self, path: str | os.PathLike[str]) -> None:
        """Write each module's own time in nanoseconds, "model;layer;conv 123", for flamegraph.pl and speedscope.

        Of any report with times; the file's name ends in ".folded" or ".txt". Raises ValueError for a count and for
        other names, OSError where the file cannot be written.
        """
        if Path(path).suffix.lower() not in FOLDED:
            raise Error(f"cannot write '{os.fspath(path)}': the file of folded stacks ends in {_either(FOLDED)}")
        _write(path, folded(time_tree(self._compiled)))


_Writer = Callable[[WritesTraces, "str | os.PathLike[str]"], None]
_BY_SUFFIX: dict[str, _Writer] = {
    ".speedscope.json": WritesTraces.to_speedscope,
    ".json": WritesTraces.to_chrome_trace,
    **dict.fromkeys(FOLDED, WritesTraces.to_folded_stacks),
}


def writer_for(path: str | os.PathLike[str]) -> _Writer:
    """Return the method that writes a file of that name. Raises ValueError, listing the suffixes, for others."""
    name = Path(path).name.lower()
    for suffix, write in _BY_SUFFIX.items():
        compressed = suffix.endswith(".json") and name.endswith(f"{suffix}.gz")
        if name.endswith(suffix) or compressed:
            return write
    known = [".json", ".json.gz", ".speedscope.json", *FOLDED]
    raise Error(f"cannot write '{os.fspath(path)}': a trace's file ends in {_either(known)}")


def needs_events(path: str | os.PathLike[str]) -> bool:
    """Return True when the format of the file's name is made of single events."""
    return writer_for(path) is not WritesTraces.to_folded_stacks


def _check_suffix(path: str | os.PathLike[str], wanted: str) -> None:
    name = Path(path).name.lower()
    if not name.endswith((wanted, f"{wanted}.gz")):
        raise Error(f"cannot write '{os.fspath(path)}': this trace's file ends in {wanted} or {wanted}.gz")


def _title(report: _report.Report) -> str:
    within = f", within {report.within_region}" if report.within_region else ""
    return f"{report.model or 'model'} on {report.device}{within}"


def _either(names: tuple[str, ...] | list[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"


def _write(path: str | os.PathLike[str], text: str) -> None:
    content = text.encode("utf-8", "replace")
    # The same report gives the same bytes.
    write_whole(path, gzip.compress(content, mtime=0) if Path(path).suffix.lower() == ".gz" else content)
