"""The roofs of a machine: measured, kept, loaded; published_peaks has the published ones.

A file of roofs is JSON: ``{"schema_version": 2, "ceilings": {device, compute, memory, curve}, "notes": [...]}``.
Programs of C++ read and write the same files, those of the cache too. Only what measures loads torch.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from roofprof import _report
from roofprof.errors import Error
from roofprof.render import progress as _progress
from roofprof.roofs.published_peaks import published

Progress = Callable[[str], None]


def measure(device: str = "cpu", progress: Progress | None = None) -> _report.Ceilings:
    """Measure the roofs of a device ("cpu", "cuda:0"); takes at most twenty seconds, of a GPU thirty.

    ``progress`` is called with a line for each thing being measured, and with the notes on what was left out or looks
    odd. Raises ValueError for a device that cannot be measured.
    """
    ceilings, notes = measure_with_notes(device, progress)
    _tell_notes(notes, progress)
    return ceilings


def measure_with_notes(device: str = "cpu", progress: Progress | None = None) -> tuple[_report.Ceilings, list[str]]:
    """Measure like :func:`measure`, and return the roofs with the notes."""
    from roofprof import _C

    return _C.measure_ceilings(device, progress)


def for_device(device: str = "cpu", progress: Progress | None = None, *, again: bool = False) -> _report.Ceilings:
    """Return the roofs of this machine: measured when first needed, later read from the cache.

    They are kept for each host, device, number of threads and torch version, those of a GPU for each GPU, driver, power
    limit and highest clocks too, in a folder that the environment variable ROOFPROF_CACHE_DIR names, else in
    ``~/.cache/roofprof``. Without ``progress`` a terminal or notebook shows how far a measurement is, and its notes go
    to stderr.
    ``again`` measures even where they are known, and keeps the new ones: after a measurement on a busy machine.
    """
    ceilings, notes, is_new = _cached(device, progress, again)
    if is_new:
        _tell_notes(notes, progress or _to_stderr)
    return ceilings


def for_device_with_notes(
    device: str = "cpu", progress: Progress | None = None, *, again: bool = False
) -> tuple[_report.Ceilings, list[str]]:
    """Return the roofs of :func:`for_device`, with the notes of the measurement."""
    ceilings, notes, _ = _cached(device, progress, again)
    return ceilings, notes


def _cached(device: str, progress: Progress | None, again: bool) -> tuple[_report.Ceilings, list[str], bool]:
    from roofprof import _C

    if progress is not None:
        return _C.cached_ceilings(device, progress, again)
    about_seconds = 20 if device.startswith("cpu") else 30
    with _progress.Progress(text="measuring the roofs of this machine", about_seconds=about_seconds) as shown:
        return _C.cached_ceilings(device, lambda line: shown.say(f"measuring {line}"), again)


def load(path: str | os.PathLike[str]) -> _report.Ceilings:
    """Return the roofs in a file. Raises ValueError, naming the file and its fault, where it cannot be used."""
    return load_with_notes(path)[0]


def load_with_notes(path: str | os.PathLike[str]) -> tuple[_report.Ceilings, list[str]]:
    """Return the roofs of :func:`load`, with the notes of the measurement."""
    try:
        return _report.load_ceilings(os.fsencode(path))
    except RuntimeError as error:
        raise Error(str(error)) from None


def given_with_notes() -> tuple[_report.Ceilings, list[str]] | None:
    """Return the roofs that the environment variable ROOFPROF_CEILINGS names: a file, or "off" for none; None: not set.

    Raises ValueError, naming the variable and what is wrong with the file.
    """
    try:
        return _report.given_ceilings()
    except RuntimeError as error:
        raise Error(str(error)) from None


def save(ceilings: _report.Ceilings, path: str | os.PathLike[str], notes: Sequence[str] = ()) -> None:
    """Write roofs and their notes to a file, whole or not at all. Raises OSError naming the file."""
    try:
        _report.save_ceilings(ceilings, os.fsencode(path), list(notes))
    except RuntimeError as error:
        raise OSError(f"roofs cannot be written: {error}") from None


def cache_dir() -> Path:
    """Return the folder that keeps measured roofs between runs."""
    from roofprof import _C

    return Path(_C.ceilings_cache_folder())


def _to_stderr(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def _tell_notes(notes: list[str], progress: Progress | None) -> None:
    if progress is not None:
        for note in notes:
            progress(f"roofs of this machine: {note}")


def _save(self: _report.Ceilings, path: str | os.PathLike[str], notes: Sequence[str] = ()) -> None:
    """Write the roofs and their notes to a file, whole or not at all. Raises OSError naming the file."""
    save(self, path, notes)


# Users look for these on the class: roofprof.Ceilings.measure(), .published("RTX 4090"), .load(path); roofs.save(path).
_report.Ceilings.measure = staticmethod(measure)  # type: ignore[method-assign]
_report.Ceilings.published = staticmethod(published)  # type: ignore[method-assign]
_report.Ceilings.load = staticmethod(load)  # type: ignore[method-assign]
_report.Ceilings.save = _save  # type: ignore[method-assign]
