"""Reads the reports of one folder, and no file outside of it."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, TypeVar

from roofprof import manual
from roofprof.agents.quoting import NAME, SHORT, one_line, quoted
from roofprof.render.files import content_of, real
from roofprof.report.report import Report, parsed

_MOST_FILES = 1000
_MOST_FOLDERS = 10_000  # looked into
_KEPT_BYTES = 2**30  # of memory that kept reports take; one takes from once to a hundred times its file
_LONGEST_NAME = 4096  # bytes: Linux has no longer path

_Key = tuple[object, ...]
_T = TypeVar("_T")


def resident() -> int:
    """Return the bytes of memory that this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _give_back() -> None:
    """Have the C library return free memory to the system."""
    if hasattr(library := ctypes.CDLL(None), "malloc_trim"):
        library.malloc_trim(0)


def _shown(file: str) -> set[str]:
    """Return a file's name as answers show it, with and without the quotes."""
    return {show(file, most) for show in (quoted, one_line) for most in (NAME, SHORT)}


class Folder:
    """Reports below a folder, by their names there. Links are not followed, and no other file can be named."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = real(path)
        if not self.path.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, "there is no such folder", os.fspath(path))
        self._reports: dict[_Key, Report] = {}  # the last one used comes last
        self._summaries: dict[_Key, Any] = {}
        self._lock = threading.RLock()
        self._most = resident() + _KEPT_BYTES

    def files(self) -> list[str]:
        """Return the names of all JSON files, sorted, at most 1,000: "r.json", "runs/r.json"."""
        found: list[str] = []
        for looked_into, (folder, below, names) in enumerate(os.walk(self.path)):
            below[:] = sorted(name for name in below if not name.startswith("."))
            inside = Path(folder).relative_to(self.path)
            found += [
                (inside / name).as_posix()
                for name in names
                if name.endswith(".json") and not name.startswith(".") and not Path(folder, name).is_symlink()
            ]
            if len(found) > _MOST_FILES or looked_into > _MOST_FOLDERS:
                break
        return sorted(found)[:_MOST_FILES]

    def report(self, name: str) -> Report:
        """Return the report of that name. Raises ValueError, one sentence, if it is not a report or is outside."""
        with self._lock, self._opened(name) as (file, key):
            if key in self._reports:
                self._reports[key] = self._reports.pop(key)
                return self._reports[key]
            self.make_room()
            try:
                report = parsed(content_of(file))
            except (OSError, ValueError) as error:
                raise ValueError(f"{quoted(name)}: {getattr(error, 'strerror', None) or error}") from None
            self._reports[key] = report
            return report

    def make_room(self) -> None:
        """Drop the least recently used reports until the process's resident memory is within its limit."""
        with self._lock:
            while self._reports and resident() > self._most:
                del self._reports[next(iter(self._reports))]
                _give_back()

    def summary(self, name: str, of: Callable[[Report], _T]) -> _T | None:
        """Return ``of(report)``, kept until the file changes; None if the file is not a report."""
        with self._lock:
            try:
                with self._opened(name) as (_, key):
                    pass
            except ValueError:  # it went, or became something else
                return None
            if key not in self._summaries:
                try:
                    self._summaries[key] = of(self.report(name))
                except ValueError:
                    self._summaries[key] = None
                if len(self._summaries) > _MOST_FILES:
                    del self._summaries[next(iter(self._summaries))]
            kept: _T | None = self._summaries[key]
            return kept

    def new_file(self, name: str) -> Path:
        """Return where a new report can be written, in the folder itself. Raises ValueError for other names."""
        plain = PurePosixPath(name).name == name and name.endswith(".json") and not name.startswith(".")
        if not plain or not name.isprintable():
            raise ValueError(f"'{one_line(name, NAME)}' is no name for a report: give a plain one that ends in .json")
        if os.path.lexists(self.path / name):
            raise ValueError(f"'{one_line(name, NAME)}' is there already: give another name")
        return self.path / name

    @contextlib.contextmanager
    def _opened(self, name: str) -> Iterator[tuple[BinaryIO, _Key]]:
        """Open the file; yield it and a key, which differs once the file has changed."""
        try:
            found = self._open(name)
        except ValueError:
            named = [file for file in self.files() if name in _shown(file)]
            if len(named) != 1:
                raise
            name, found = named[0], self._open(named[0])
        with open(found, "rb") as file:  # noqa: PTH123
            about = os.fstat(file.fileno())
            yield file, (name, about.st_ino, about.st_size, about.st_mtime_ns)

    def _open(self, name: str) -> int:
        """Open a file, folder by folder, so that no link on the way leads elsewhere, whenever it is made."""
        parts, shown = PurePosixPath(name).parts, one_line(name, NAME)
        outside = not parts or PurePosixPath(name).is_absolute() or ".." in parts or "\0" in name
        if outside or len(name.encode(errors="surrogatepass")) > _LONGEST_NAME:
            raise ValueError(f"'{shown}' is not in the folder of reports: take a name that the tool 'reports' lists")
        opened = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for part in parts[:-1]:
                inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=opened)
                os.close(opened)
                opened = inner
            found = os.open(parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=opened)
        except (OSError, UnicodeEncodeError) as error:  # a lone surrogate is in no file's name
            if isinstance(error, OSError) and error.errno in {errno.ELOOP, errno.ENOTDIR}:
                raise ValueError(f"'{shown}' is or goes through a link, and links are not followed") from None
            known = manual.nearest(shown, [one_line(file, NAME) for file in self.files()])
            raise ValueError(f"there is no report '{shown}'{known}: the tool 'reports' lists them") from None
        finally:
            os.close(opened)
        if not stat.S_ISREG(os.fstat(found).st_mode):
            os.close(found)
            raise ValueError(f"'{shown}' is no regular file: the tool 'reports' lists the reports")
        return found
