"""CUPTI by way of ../raw/raw_device.cpp, a library that run.sh builds: what roofprof's profiler never does."""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from acceptance.checks import NotOnThisMachineError

ROOMS = 256


class RefusedError(RuntimeError):
    """CUPTI, or the driver, does not do what it was asked: an answer, too."""


class Raw:
    """The library's functions; each raises RefusedError with CUPTI's sentence, RuntimeError where ours is at fault."""

    def __init__(self) -> None:
        path = os.environ.get("ACCEPTANCE_RAW", "")
        if not path:
            raise NotOnThisMachineError("the library that asks CUPTI directly was not built")
        self._library = ctypes.CDLL(path)
        for name in ("raw_push", "raw_pop"):
            getattr(self._library, name).restype = ctypes.c_int
        for name in ("raw_trace_push", "raw_trace_pop"):
            getattr(self._library, name).restype = None
        self._library.raw_trace_push.argtypes = [ctypes.c_uint64]

    def _ask(self, name: str, *args: object) -> dict[str, Any]:
        function = getattr(self._library, name)
        function.restype = ctypes.c_char_p
        answer = json.loads(function(*(str(arg).encode() if isinstance(arg, (str, Path)) else arg for arg in args)))
        if "refused" in answer:
            raise RefusedError(answer["refused"])
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def push(self, name: str) -> None:
        """Open a range. Raises RefusedError with CUPTI's code."""
        code = self._library.raw_push(name.encode())
        if code:
            raise RefusedError(f"a range could not be opened: CUPTI's error {code}")

    def pop(self) -> None:
        """Close it."""
        code = self._library.raw_pop()
        if code:
            raise RefusedError(f"a range could not be closed: CUPTI's error {code}")

    def count(
        self, metrics: Sequence[str], body: Callable[[], object], *, modules: bool = False, save: Path | None = None
    ) -> dict[str, Any]:
        """Run the body once for each pass: {"chip", "passes", "dropped", "ranges": [{"name", "values"}]}."""
        found = self._ask("raw_begin", ",".join(metrics), int(modules), ROOMS)
        try:
            last = False
            while not last:
                self._ask("raw_start")
                body()
                last = self._ask("raw_stop")["last"]
            found |= self._ask("raw_ranges")
            if save is not None:
                self._ask("raw_save", save)
        finally:
            self._ask("raw_end")
        return found

    def evaluate(self, folder: Path) -> dict[str, Any]:
        """The ranges of an image that count() saved."""
        return self._ask("raw_evaluate", folder)

    def trace(self, body: Callable[[], object]) -> dict[str, Any]:
        """The activity records of what the body launches: {"records": [...], "dropped", "incomplete", "notes"}."""
        self._ask("raw_trace_start")
        try:
            body()
        finally:
            found = self._ask("raw_trace_stop")
        return found

    def belongs(self, launch: int, call: Callable[[], object]) -> None:
        """What the call launches is recorded under that id."""
        self._library.raw_trace_push(launch)
        try:
            call()
        finally:
            self._library.raw_trace_pop()

    def record(self, path: Path, body: Callable[[], object]) -> dict[str, Any]:
        """A trace of the body and its kernels' counters, in roofprof's format for recorded data."""
        return self._ask("raw_record", path, ctypes.CFUNCTYPE(None)(lambda: body() and None))
