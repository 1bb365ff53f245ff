"""What a terminal shows of a run that takes long: one line, written over and taken away at the end."""

from __future__ import annotations

import shutil
import sys
import threading
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self

QUIET_SECONDS = 2.0  # what is over sooner shows nothing


class Progress:
    """Shows what was last said once it is open for so long; nothing where stderr is no terminal.

    One thread wakes up once; all further lines are written by who calls :meth:`say`, between calls of the model.
    """

    def __init__(self, calls: int | None = None) -> None:
        self._text = "counting: the first call"
        self._calls = calls  # how many there will be after that; None: nobody knows
        self._stream = sys.stderr if sys.stderr is not None and sys.stderr.isatty() else None
        self._timer = threading.Timer(QUIET_SECONDS, self._begin)
        self._timer.daemon = True
        self._lock = threading.Lock()
        self._open = False  # the quiet time is over
        self._made = 0
        self._width = 0  # of what stands on the line

    def __enter__(self) -> Self:
        if self._stream:
            self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._timer.cancel()
        with self._lock:
            if self._open:
                self._write("")
            self._open = False
            self._stream = None

    def say(self, text: str) -> None:
        """What is done from now on."""
        with self._lock:
            self._text = text
            if self._open:
                self._write(f"roofprof: {text}")

    def next_call(self) -> None:
        """The model is called again, to warm up or to be timed."""
        self._made += 1
        known = self._calls is not None and self._made <= self._calls  # those that read counters are beside them
        self.say(f"timing: call {self._made}" + (f" of {self._calls}" if known else ""))

    def _begin(self) -> None:
        with self._lock:
            if self._stream:
                self._open = True
                self._write(f"roofprof: {self._text}")

    def _write(self, line: str) -> None:
        assert self._stream is not None
        line = line[: shutil.get_terminal_size().columns - 1]  # one that wraps is not written over
        # Blanks over what stood there; the cursor waits at the start for whoever writes next.
        self._stream.write("\r" + line.ljust(self._width) + ("" if line else "\r"))
        self._stream.flush()
        self._width = len(line)
