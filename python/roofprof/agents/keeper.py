"""Runs a command, and ends it with all that it has started when the standard input ends or a signal says so.

A program by itself, for Linux: ``python -I -S keeper.py COMMAND ...``. Its standard input is a pipe whose other end the
server has: it ends with the server, however that dies.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def main(command: list[str]) -> int:
    """Return the command's exit code."""
    prctl = ctypes.CDLL(None).prctl
    prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # processes that outlive their parents become children of this one
    wakes, wakeup = os.pipe()
    os.set_blocking(wakeup, False)
    signal.set_wakeup_fd(wakeup)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    me = os.getpid()

    def dies_with_us() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != me:
            os._exit(1)

    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=dies_with_us)  # noqa: PLW1509, S603
    ended = False
    while child.poll() is None and not ended:
        ready = select.select([0, wakes], [], [])[0]
        ended = 0 in ready and not os.read(0, 4096)
        if wakes in ready:
            ended = ended or any(number != signal.SIGCHLD for number in os.read(wakes, 4096))
    _end_all()
    return 1 if child.returncode is None or child.returncode < 0 else child.returncode


def _end_all() -> None:
    """Kill all children of this process, and their children, which it inherits as each of them ends."""
    while children := _children():
        for child in children:
            os.kill(child, signal.SIGKILL)
        os.waitpid(children[0], 0)


def _children() -> list[int]:
    """Return the children of this process, also those that have ended and were not waited for."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = status.read_text(errors="replace").rpartition(")")[2].split()[1]
        except OSError:  # it has gone
            continue
        if int(parent) == os.getpid():
            found.append(int(status.parent.name))
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
