"""Runs programs for the server: few at a time, for a limited time, and never longer than the server runs."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import threading
import time
from contextvars import ContextVar
from pathlib import Path

MOST_RUNS = 2  # at a time
PATIENCE = 600  # seconds that a program may take

_KEPT = 65536  # bytes of what it prints: the last ones
_OFTEN = 0.1  # seconds between two looks at the clock

cancelled: ContextVar[threading.Event] = ContextVar("cancelled", default=threading.Event())  # noqa: B039
"""Set when nobody waits for the run any more: then it is ended."""


class Runs:
    """Runs programs under a keeper (keeper.py), which ends them with everything that they started."""

    def __init__(self) -> None:
        self._free = threading.BoundedSemaphore(MOST_RUNS)

    def run(self, name: str, command: list[str]) -> tuple[int, str]:
        """Return the exit code and the last that the program wrote to its standard error.

        Raises ValueError where too many run already, and where it takes too long or is cancelled, after its end.
        """
        if not self._free.acquire(blocking=False):
            raise ValueError(f"{MOST_RUNS} models run already, and no more may: ask again when one of them has ended")
        try:
            return _run(name, command)
        finally:
            self._free.release()


def _run(name: str, command: list[str]) -> tuple[int, str]:
    keeper = [sys.executable, "-I", "-S", str(Path(__file__).with_name("keeper.py"))]
    end = time.monotonic() + PATIENCE
    why_ended, tail = "", b""
    with subprocess.Popen(  # noqa: S603 - what the user named at the start
        [*keeper, *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        while True:
            if select.select([process.stderr], [], [], _OFTEN)[0]:
                piece = os.read(process.stderr.fileno(), _KEPT)
                if not piece:  # nobody has its other end: all have ended
                    break
                tail = (tail + piece)[-_KEPT:]
            if not why_ended and (cancelled.get().is_set() or time.monotonic() > end):
                why_ended = "was cancelled" if cancelled.get().is_set() else f"ran for more than {PATIENCE} seconds"
                process.stdin.close()
    if why_ended:
        raise ValueError(f"'{name}' {why_ended} and was ended")
    return process.returncode, tail.decode(errors="replace")
