"""Chooses the files to read in a folder in which torch.profiler left the traces of a run."""

from __future__ import annotations

import gzip
import re
import zlib
from dataclasses import dataclass
from pathlib import Path

from roofprof.errors import Error
from roofprof.profiling import nsight_systems
from roofprof.profiling.imported_ranks import listed, ranks_of_names

_BEGINNING = 1 << 20  # bytes: what torch writes before the events
_RANK = re.compile(rb'"distributedInfo"\s*:\s*\{[^{}]*"rank"\s*:\s*(\d+)')
_OF_HANDLER = re.compile(r"_\d+\.(\d+\.)?pt\.trace\.json")  # tensorboard_trace_handler: host_pid.time
_OURS = b'"generator": "roofprof'  # Report.to_chrome_trace
_SHOWN = 5


@dataclass(frozen=True)
class TraceFolder:
    """The traces of a folder that are read, one of each rank, and sentences on what is not."""

    traces: tuple[Path, ...]
    left_out: tuple[str, ...]


def traces_in(folder: Path) -> TraceFolder:
    """Return the latest trace of each rank in a folder, and sentences on all else that lies there.

    Of a rank that wrote more traces than others it is the one with the same number as the others' latest. Files that
    do not tell a rank are of one process where their names are alike up to the first dot, as
    tensorboard_trace_handler names them (``host_pid.time.pt.trace.json``). Raises ValueError for a folder without
    traces.
    """
    others, folders = list[str](), list[str]()
    by_process: dict[str, list[Path]] = {}
    for path in sorted(folder.iterdir(), key=lambda path: _natural(path.name)):
        if not path.is_file():
            folders.append(path.name)
        elif (rank := _rank_of(path)) is None:
            others.append(path.name)
        else:
            by_process.setdefault(rank or path.name.partition(".")[0].replace(" ", "_"), []).append(path)
    left_out = []
    if others:
        left_out.append(f"{folder}: left out, no trace of a profiler: {listed(others, _SHOWN)}")
    if not by_process:
        below = f"; folders in it are not read: {listed(folders, _SHOWN)}" if folders else ""
        raise Error(f"{folder} has no trace of torch.profiler{below}")
    fewest = min(map(len, by_process.values()))
    _require_one_program(folder, [paths[fewest - 1] for name, paths in by_process.items() if " " not in name])
    earlier = [path.name for paths in by_process.values() for path in paths if path != paths[fewest - 1]]
    if earlier:
        left_out.append(
            f"{folder}: of several traces of a rank the latest that all ranks have is read; left out: "
            f"{listed(earlier, _SHOWN)}"
        )
    return TraceFolder(tuple(paths[fewest - 1] for paths in by_process.values()), tuple(left_out))


def _require_one_program(folder: Path, unnumbered: list[Path]) -> None:
    """Raise ValueError where nothing says that several traces without ranks are of one program."""
    if (
        len(unnumbered) < 2
        or ranks_of_names(unnumbered) is not None
        or all(_OF_HANDLER.search(path.name) for path in unnumbered)
    ):
        return
    raise Error(
        f"{folder}: which of its traces are of ranks of one program is not known, as these do not say their ranks: "
        f"{listed([path.name for path in unnumbered], _SHOWN)}; name the files"
    )


def _rank_of(path: Path) -> str | None:
    """Return the trace's rank, "" if its beginning does not have it, or None if the file is not a trace."""
    try:
        with path.open("rb") as file:
            packed = file.peek(2)[:2] == b"\x1f\x8b"
            begin = gzip.GzipFile(fileobj=file).read(_BEGINNING) if packed else file.read(_BEGINNING)
    except (EOFError, OSError, zlib.error):
        return None
    if begin.startswith(nsight_systems.MAGIC):
        return ""
    if b'"traceEvents"' not in begin or _OURS in begin:
        return None
    found = _RANK.search(begin)
    return "" if found is None else f"rank {int(found[1])}"


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]
