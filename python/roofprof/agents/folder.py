"""The reports of one folder, and of nothing outside of it."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path, PurePosixPath

from roofprof import manual
from roofprof.render.files import content_of, real
from roofprof.report.report import Report, parsed

_MOST_FILES = 1000
_KEPT = 64  # reports in memory


class Folder:
    """Reports below a folder, by their names there. Links are not followed, and no other file can be named."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = real(path)
        if not self.path.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, "there is no such folder", os.fspath(path))
        self._reports: dict[tuple[object, ...], Report] = {}

    def files(self) -> list[str]:
        """Return the names of all JSON files, sorted, at most 1,000: "r.json", "runs/r.json"."""
        found = []
        for folder, below, names in os.walk(self.path):
            below[:] = sorted(name for name in below if not name.startswith("."))
            inside = Path(folder).relative_to(self.path)
            found += [
                (inside / name).as_posix()
                for name in names
                if name.endswith(".json") and not name.startswith(".") and not Path(folder, name).is_symlink()
            ]
            if len(found) > _MOST_FILES:
                break
        return sorted(found)[:_MOST_FILES]

    def report(self, name: str) -> Report:
        """Return the report of that name. Raises ValueError, one sentence, for what is none or is outside."""
        with open(self._open(name), "rb") as file:  # noqa: PTH123
            about = os.fstat(file.fileno())
            key = (name, about.st_ino, about.st_size, about.st_mtime_ns)
            if key not in self._reports:
                try:
                    report = parsed(content_of(file))
                except (OSError, ValueError) as error:
                    raise ValueError(f"{name}: {getattr(error, 'strerror', None) or error}") from None
                while len(self._reports) >= _KEPT:
                    del self._reports[next(iter(self._reports))]
                self._reports[key] = report
            return self._reports[key]

    def new_file(self, name: str) -> Path:
        """Return where a new report can be written, in the folder itself. Raises ValueError for other names."""
        plain = PurePosixPath(name).name == name and name.endswith(".json") and not name.startswith(".")
        if not plain or not name.isprintable():
            raise ValueError(f"'{name}' is no name for a report: give a plain one that ends in .json")
        if os.path.lexists(self.path / name):
            raise ValueError(f"'{name}' is there already: give another name")
        return self.path / name

    def _open(self, name: str) -> int:
        """Open a file, folder by folder, so that no link on the way leads elsewhere, whenever it is made."""
        parts = PurePosixPath(name).parts
        if not parts or PurePosixPath(name).is_absolute() or ".." in parts or "\0" in name:
            raise ValueError(f"'{name}' is not in the folder of reports: take a name that the tool 'reports' lists")
        opened = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for part in parts[:-1]:
                inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=opened)
                os.close(opened)
                opened = inner
            found = os.open(parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=opened)
        except OSError as error:
            if error.errno in {errno.ELOOP, errno.ENOTDIR}:
                raise ValueError(f"'{name}' is or goes through a link, and links are not followed") from None
            known = manual.nearest(name, self.files())
            raise ValueError(f"there is no report '{name}'{known}: the tool 'reports' lists them") from None
        finally:
            os.close(opened)
        if not stat.S_ISREG(os.fstat(found).st_mode):
            os.close(found)
            raise ValueError(f"'{name}' is no regular file: the tool 'reports' lists the reports")
        return found
