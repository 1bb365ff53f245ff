"""Finds traces of the capture of graphs next to the trace of a run, as vLLM and SGLang write them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from roofprof.errors import Error
from roofprof.render.files import read_whole

NONE = "none"
_LARGEST_LIST = 2**26  # bytes
_LARGEST_BATCH = 2**31 - 1
_DETAILS = Path("capture_traces") / "execution_details.json"


class CaptureFile(NamedTuple):
    """A file with a trace of a capture."""

    path: Path
    name: str  # as notes say it
    batch: int = 0  # that its graphs are for; 0: not known
    given: bool = True  # by the user, not found


def given_captures(
    capture: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None,
) -> list[CaptureFile] | None:
    """Return the files that the user gave, an empty list for "none"; None: look next to the trace.

    Raises ValueError if "none" is given together with files.
    """
    if capture is None:
        return None
    names = [os.fspath(one) for one in ([capture] if isinstance(capture, (str, os.PathLike)) else capture)]
    if NONE not in names:
        return [CaptureFile(Path(name), name) for name in dict.fromkeys(names)]
    if len(set(names)) > 1:
        raise Error("captures are files, or 'none' alone")
    return []


def captures_beside(trace: Path, batches: list[int], rank: int) -> list[CaptureFile]:
    """Return the captures next to a trace whose graphs it may replay.

    batches: those of the replays, 0 where one is not known; empty: nothing is replayed.
    rank: the trace's, or -1.
    Raises ValueError if the list of captures cannot be understood, or names a file that is not there.
    """
    details = trace.parent / _DETAILS
    if not batches:
        return []
    if not details.is_file():
        names = sorted(one.name for one in details.parent.glob("*.json*") if one.name.endswith((".json", ".json.gz")))
        return [_found(details.parent / name, 0) for name, _ in _of_rank([(name, 0) for name in names], rank)]
    refuse = f"give the captures by name, or {NONE!r} to go without"
    try:
        entries = json.loads(read_whole(details, _LARGEST_LIST))
        listed = [(str(one["file"]), _batch(one.get("batch_size"))) for one in entries]
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
        raise Error(
            f"{details}: it is not a list of captures, each with 'file' and 'batch_size' "
            f"({type(error).__name__}): {refuse}"
        ) from None
    chosen = [one for one in _of_rank(listed, rank) if _may_run(one[1], batches, {batch for _, batch in listed})]
    found = []
    for file, batch in chosen:
        path = details.parent / Path(file).name
        if not os.path.isfile(path):  # noqa: PTH113 (it takes any name)
            raise Error(f"{details}: it names the capture {path.name[:200]!r}, which is not there: {refuse}")
        found.append(_found(path, batch))
    return found


def _batch(named: Any) -> int:
    batch = int(named or 0)
    if not 0 <= batch <= _LARGEST_BATCH:
        raise ValueError
    return batch


def _found(path: Path, batch: int) -> CaptureFile:
    return CaptureFile(path, f"{path.parent.name}/{path.name}", batch, given=False)


def _of_rank(listed: list[tuple[str, int]], rank: int) -> list[tuple[str, int]]:
    """Return the captures of that rank, or those whose names say no rank, or those of the lowest rank.

    Ranks of one program capture the same graphs, and captures that are not the replays' are noticed later.
    """
    ranks = [int(named[1]) if (named := re.search(r"rank_?(\d{1,9})", file)) else None for file, _ in listed]
    if rank < 0:
        return listed
    known = sorted(of for of in ranks if of is not None)
    wanted = rank if rank in ranks else None if None in ranks or not known else known[0]
    return [one for one, of in zip(listed, ranks, strict=True) if of == wanted]


def _may_run(batch: int, batches: list[int], sizes: set[int]) -> bool:
    """Return whether a graph of that batch runs one of the batches: the smallest that holds it does."""
    if batch == 0 or 0 in batches:
        return True
    return any(batch == min((size for size in sizes if size >= wanted), default=-1) for wanted in batches)
