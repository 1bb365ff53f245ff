"""The progress line of long work in a terminal or a notebook: one line of tqdm's, removed at the end."""

from __future__ import annotations

import os
import sys
import threading
import time
import warnings
from types import TracebackType
from typing import TYPE_CHECKING, Any

from roofprof.state.shared_change import lock_of_process

if TYPE_CHECKING:
    from typing_extensions import Self

QUIET_SECONDS = 2.0  # work that ends sooner shows nothing

_COUNTED = "{desc} {bar} {n_fmt}/{total_fmt} [{elapsed}<{remaining}]"
_UNCOUNTED = "{desc} [{elapsed}]"


class Progress:
    """Shows the latest text, but only after QUIET_SECONDS; nothing where stderr is neither terminal nor notebook.

    One thread wakes up once; all further lines are written by the caller of :meth:`say`, between calls of the model.
    """

    def __init__(
        self, calls: int | None = None, text: str = "counting: the first call", *, about_seconds: int | None = None
    ) -> None:
        self._text = text
        self._about_seconds = about_seconds  # how long the work takes, where that is known
        self._began = time.monotonic()
        self._calls = calls  # how many there will be after that; None: nobody knows
        self._made = 0
        self._timer = threading.Timer(QUIET_SECONDS, self._begin)
        self._timer.daemon = True
        self._lock = lock_of_process()
        self._line: Any = None  # tqdm's, once the quiet time is over
        self._over = not (_in_terminal() or _in_notebook())

    def __enter__(self) -> Self:
        if not self._over:
            self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._timer.cancel()
        with self._lock:
            self._over = True
            if self._line is not None:
                self._line.close()
            self._line = None

    def say(self, text: str) -> None:
        """Show this text from now on: it names the work that begins."""
        with self._lock:
            self._text = text
            self._show()

    def expect(self, calls: int) -> None:
        """Tell how many calls there will be."""
        self._calls = calls

    def next_call(self) -> None:
        """Show that the model is called again, to warm up or to be timed."""
        self._made += 1
        known = self._calls is not None and self._made <= self._calls  # calls that read counters are not counted
        self.say(f"timing: call {self._made}" + (f" of {self._calls}" if known else ""))

    def _begin(self) -> None:
        with self._lock:
            if self._over:
                return
            bar = _bar()
            if bar is None:
                self._over = True
                return
            self._line = bar(
                desc=self._description(),
                total=self._calls,
                initial=self._done(),
                bar_format=self._form(),
                leave=False,
                file=sys.stderr,
                **_size(),
            )

    def _show(self) -> None:
        if self._line is not None:
            self._line.bar_format = self._form()
            self._line.n = self._done()
            self._line.set_description_str(self._description(), refresh=True)

    def _description(self) -> str:
        if self._about_seconds:  # first, so that a narrow terminal shows it
            return f"roofprof: {time.monotonic() - self._began:.0f} of about {self._about_seconds} s, {self._text}"
        return f"roofprof: {self._text}"

    def _done(self) -> int:
        return max(self._made - 1, 0)  # the last one is at work

    def _form(self) -> str:
        if self._about_seconds:
            return "{desc}"
        return _COUNTED if self._made > 0 and self._made <= (self._calls or 0) else _UNCOUNTED


def _in_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def _size() -> dict[str, Any]:
    """Return tqdm's options of size. In a terminal that states no size, such as script's, tqdm would show nothing."""
    try:
        is_stated = all(os.get_terminal_size(sys.stderr.fileno()))
    except (OSError, ValueError, AttributeError):  # a stream without a number, or one that is no terminal
        is_stated = True
    return {"dynamic_ncols": True} if is_stated else {"ncols": 79, "nrows": 24}


def _in_notebook() -> bool:
    """Return True in a notebook's kernel, which shows stderr although it is not a terminal."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and "IPKernelApp" in shell.config


def _bar() -> type[Any] | None:
    """Return tqdm's bar, in a notebook its widget if there are widgets; it starts no thread. None without tqdm."""
    try:
        from tqdm import tqdm
    except ImportError:
        return None
    base: type[Any] = tqdm
    if _in_notebook():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                from tqdm import notebook

                base = notebook.tqdm if notebook.IProgress is not None else tqdm
            except ImportError:
                pass
    bar = type("Bar", (base,), {"monitor_interval": 0})
    bar.set_lock(threading.RLock())  # type: ignore[attr-defined]
    return bar
