"""Files that are written whole or not at all or read whole, and the names of those that several processes write."""

from __future__ import annotations

import errno
import gzip
import io
import os
import stat
import uuid
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from roofprof.errors import Error

# No file of roofprof is larger: a report with a million events has a fifth of it. csrc/core/json/file.h has the same
# limit.
LARGEST_FILE = 2**30

# The content of a packed file may have ALWAYS_UNPACKED bytes, or MOST_GROWTH times the file's size: traces and tables
# become 5 to 45 times as large, and zeros a thousand times.
ALWAYS_UNPACKED = 2**28
MOST_GROWTH = 100


def of_rank(path: Path, rank: int | None) -> Path:
    """Return the file of one of several processes, report.rank1.json; rank None: there is one process."""
    return path if rank is None else path.with_name(f"{path.stem}.rank{rank}{path.suffix}")


def why_not_writable(path: Path) -> str:
    """Return the reason why a file cannot be made or replaced there, in words; "" where none is known beforehand."""
    folder = path.parent
    if path.is_dir():
        return "it is a folder"
    if not folder.is_dir():
        return f"there is no folder '{folder}'"
    return "" if os.access(path if path.exists() else folder, os.W_OK) else "no permission"


def real(path: str | os.PathLike[str]) -> Path:
    """Return the path behind all links. Path.resolve raises RuntimeError for links that lead to themselves."""
    return Path(os.path.realpath(path))


def read_whole(path: str | os.PathLike[str], largest: int = LARGEST_FILE) -> bytes:
    """Return the content of a regular file. Raises OSError naming the file, also for a larger or another kind of file.

    A pipe or a device may never send text, or never end.
    """
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:  # noqa: PTH123
            return content_of(file, largest)
    except OSError as error:
        error.filename = os.fspath(path)
        raise


def read_stream(stream: BinaryIO, largest: int = LARGEST_FILE) -> bytes:
    """Return all that a stream gives until its end. Raises OSError where that is more than ``largest`` bytes."""
    content = stream.read(largest + 1)
    if len(content) > largest:
        raise OSError(errno.EFBIG, f"there are more than {largest:,} bytes, and no such file has so many")
    return content


def content_of(file: BinaryIO, largest: int = LARGEST_FILE) -> bytes:
    """Return the content of an open regular file. Raises OSError for a larger or another kind of file."""
    about = os.fstat(file.fileno())
    if stat.S_ISDIR(about.st_mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder")
    if not stat.S_ISREG(about.st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file but a pipe or a device")
    content = file.read(largest + 1) if about.st_size <= largest else b""
    size = max(about.st_size, len(content))
    if size > largest:
        raise OSError(errno.EFBIG, f"it has {size:,} bytes, and no such file has more than {largest:,}")
    return content


@contextmanager
def opened(path: Path, wanted: str) -> Iterator[BinaryIO]:
    """Open a regular file of any size to read it in pieces, unpacked if its first bytes are gzip's.

    Raises ValueError, one sentence, for another kind of file (``wanted`` says what to give), and while it is read for
    one that is damaged or becomes far too large. Raises OSError naming the file.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        mode = os.fstat(handle).st_mode
        if not stat.S_ISREG(mode):
            os.close(handle)
            kind = "a folder" if stat.S_ISDIR(mode) else "not a regular file but a pipe or a device"
            raise Error(f"{path}: it is {kind}; give {wanted}")
        with open(handle, "rb") as file:  # noqa: PTH123
            packed = file.peek(2)[:2] == b"\x1f\x8b"
            yield cast("BinaryIO", io.BufferedReader(_Unpacked(file))) if packed else file
    except _GrowsError as error:
        raise Error(f"{path}: {error}") from None
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        why = str(error).strip() or type(error).__name__
        raise Error(f"{path}: it is packed by gzip, and cut off or damaged ({why})") from None
    except OSError as error:  # one of reading does not name the file
        error.filename = os.fspath(path)
        raise


class _GrowsError(Exception):
    """The unpacked content is too large."""


class _Unpacked(io.RawIOBase):
    """The unpacked content of a file, up to the limit."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = gzip.GzipFile(fileobj=file, mode="rb")
        self._most = max(ALWAYS_UNPACKED, MOST_GROWTH * os.fstat(file.fileno()).st_size)
        self._size = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        count = self._file.readinto(buffer)
        self._size += count
        if self._size > self._most:
            raise _GrowsError(
                f"it is packed by gzip and becomes more than {MOST_GROWTH} times as large, which no such file does"
            )
        return count


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write the file; the old one stays until all is written. Raises OSError, naming the file, where that fails.

    A file that is replaced keeps its permissions.
    """
    try:
        _write_whole(real(path), content)
    except OSError as error:
        if error.errno is None:
            raise
        # The path that the caller knows, once. An error of os.replace has two, and shows a second one that is None.
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None


def _write_whole(target: Path, content: bytes) -> None:
    """Write to the file behind a link."""
    if target.is_symlink():  # its links lead to themselves
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    if target.exists() and not target.is_file():  # a pipe, /dev/null; of a folder this says what it is
        target.write_bytes(content)
        return
    part = target.with_name(f".{target.name[:50]}.{uuid.uuid4().hex}")
    mode = stat.S_IMODE(target.stat().st_mode) & 0o777 if target.exists() else None
    try:
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode or 0o666), "wb") as file:  # noqa: PTH123
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            file.write(content)
        part.replace(target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
