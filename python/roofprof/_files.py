"""Files that are written whole or not at all, and the names of those that several processes write."""

from __future__ import annotations

import os
import uuid
from pathlib import Path


def of_rank(path: Path, rank: int | None) -> Path:
    """The file of one of several processes, report.rank1.json; rank None: there is one process."""
    return path if rank is None else path.with_name(f"{path.stem}.rank{rank}{path.suffix}")


def why_not_writable(path: Path) -> str:
    """Why a file cannot be made or replaced there, in words; "": it can, as far as can be told before."""
    folder = path.parent
    if path.is_dir():
        return "it is a folder"
    if not folder.is_dir():
        return f"there is no folder '{folder}'"
    return "" if os.access(path if path.exists() else folder, os.W_OK) else "no permission"


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """What was there stays until all is written. Raises OSError where the file cannot be made."""
    target = Path(path).resolve()  # behind a link
    if target.exists() and not target.is_file():  # a pipe, /dev/null; of a folder this says what it is
        target.write_bytes(content)
        return
    part = target.with_name(f".{target.name[:100]}.{uuid.uuid4().hex}")
    try:
        part.write_bytes(content)
        if target.exists():
            part.chmod(target.stat().st_mode & 0o777)
        part.replace(target)
    except BaseException as error:
        part.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename == os.fspath(part):
            error.filename = os.fspath(path)  # what the caller knows
            error.filename2 = None
        raise
