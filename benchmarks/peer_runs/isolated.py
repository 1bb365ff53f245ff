"""Runs a task in a new process with limits, because other tools crash, hang, print, and leave torch changed."""

from __future__ import annotations

import contextlib
import functools
import json
import multiprocessing
import multiprocessing.context
import os
import resource
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Loaded once, before the processes are split off: what takes seconds.
PRELOADED = ["torch", "torchvision", "transformers"]


@dataclass(frozen=True)
class Limits:
    """The limits of a task. megabytes: in addition to what its process has at its start."""

    seconds: float = 300
    megabytes: int = 8000


@dataclass(frozen=True)
class Outcome:
    """The value that a task returned, or the first line of the error that stopped it."""

    value: Any = None
    error: str = ""
    printed: str = ""  # by the task, to both streams

    @property
    def succeeded(self) -> bool:
        """Return whether there is a value."""
        return not self.error


def run(task: Callable[..., Any], *args: Any, limits: Limits | None = None) -> Outcome:
    """``task(*args)``, a function of a module that can be imported, and what became of it. The value is JSON's."""
    limits = limits or Limits()
    context = _context()
    with tempfile.TemporaryDirectory() as folder:
        process = context.Process(target=_child, args=(folder, limits, task, args))
        process.start()
        process.join(limits.seconds)
        hung = process.is_alive()
        if hung:
            process.kill()
            process.join()
        printed = _text(Path(folder, "printed"))
        if hung:
            return Outcome(error=f"no answer in {limits.seconds:g} s", printed=printed)
        answer = _text(Path(folder, "answer"))
        if not answer:
            return Outcome(error=_end_of(process.exitcode), printed=printed)
        return Outcome(printed=printed, **json.loads(answer))


@functools.cache
def _context() -> multiprocessing.context.ForkServerContext:
    """Return a context that has loaded everything, so that loading does not count as a task's time."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    first = context.Process(target=int)
    first.start()
    first.join()
    return context


def first_line(error: BaseException) -> str:
    """Return an exception's type and the first line of its text."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0].strip()}" if lines else type(error).__name__


def printed_bytes() -> int:
    """Return the bytes that this process has printed so far, if its streams are files."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    return os.fstat(1).st_size


def _text(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""


def _end_of(code: int | None) -> str:
    if code is not None and code < 0:
        return f"crashed: {signal.Signals(-code).name}"
    return f"ended without an answer, exit code {code}"


def _child(folder: str, limits: Limits, task: Callable[..., Any], args: tuple[Any, ...]) -> None:
    printed = os.open(Path(folder, "printed"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(printed, 1)
    os.dup2(printed, 2)
    sys.stdout = open(1, "w", buffering=1, closefd=False)  # noqa: SIM115 (of this process, as long as it lives)
    sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
    warnings.simplefilter("ignore")
    os.chdir(folder)  # what a tool writes to where it is goes with it
    with contextlib.suppress(ValueError, OSError):
        in_use = int(Path("/proc/self/statm").read_text().split()[5]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_DATA, (in_use + limits.megabytes * 2**20,) * 2)
    try:
        answer = {"value": task(*args)}
    except BaseException as error:  # noqa: BLE001 (a SystemExit of a tool's is an answer too)
        traceback.print_exc()
        answer = {"error": first_line(error)}
    Path(folder, "answer").write_text(json.dumps(answer))
    sys.stdout.flush()
    os._exit(0)  # threads of a tool do not hold it up
