"""CUPTI's activity records switched on kind by kind, below roofprof: what each kind costs is a question of its own."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from acceptance.checks import NotOnThisMachineError

# Of cupti_activity.h.
MEMCPY, MEMSET, DRIVER, RUNTIME, CONCURRENT_KERNEL, MEMCPY2, EXTERNAL_CORRELATION = 1, 2, 4, 5, 10, 22, 39
_CUSTOM2 = 5  # the kind of external ids that roofprof uses, and torch.profiler does not
_FORCED = 1
_DRIVER_API, _RUNTIME_API = 1, 2  # of cupti_callbacks.h
_BUFFER = 8 << 20

_REQUESTED = ctypes.CFUNCTYPE(
    None, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_size_t), ctypes.POINTER(ctypes.c_size_t)
)
_COMPLETED = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)


def library_path() -> str:
    """The CUPTI that torch has loaded, or that is named. Raises NotOnThisMachineError where there is none."""
    named = os.environ.get("ROOFPROF_CUPTI_LIB")
    lines = [] if named else Path("/proc/self/maps").read_text().splitlines()
    loaded = sorted({line.split()[-1] for line in lines if "libcupti.so" in line})
    if not named and not loaded:
        raise NotOnThisMachineError("torch has loaded no libcupti")
    return named or loaded[0]


class Records:
    """Takes CUPTI's buffers for this process: nothing else may trace in it."""

    def __init__(self) -> None:
        self._cupti = ctypes.CDLL(library_path())
        self._cupti.cuptiActivityPushExternalCorrelationId.argtypes = [ctypes.c_int, ctypes.c_uint64]
        self._free: list[Any] = [ctypes.create_string_buffer(_BUFFER) for _ in range(8)]
        self._lent: dict[int, Any] = {}
        self._written: list[tuple[Any, int]] = []
        self._callbacks = _REQUESTED(self._lend), _COMPLETED(self._take)
        self._ask("cuptiActivityRegisterCallbacks", *self._callbacks)

    def _ask(self, function: str, *args: Any) -> None:
        code = getattr(self._cupti, function)(*args)
        if code:
            raise RuntimeError(f"{function} failed with CUPTI's error {code}")

    def _lend(self, buffer: Any, size: Any, most: Any) -> None:
        fresh = self._free.pop() if self._free else ctypes.create_string_buffer(_BUFFER)
        self._lent[ctypes.addressof(fresh)] = fresh
        buffer[0], size[0], most[0] = ctypes.addressof(fresh), _BUFFER, 0

    def _take(self, _context: int, _stream: int, buffer: int, _size: int, valid: int) -> None:
        self._written.append((self._lent.pop(buffer), valid))

    def push(self, number: int) -> None:
        self._cupti.cuptiActivityPushExternalCorrelationId(_CUSTOM2, number)

    def pop(self) -> None:
        last = ctypes.c_uint64()
        self._cupti.cuptiActivityPopExternalCorrelationId(_CUSTOM2, ctypes.byref(last))

    @contextlib.contextmanager
    def of(self, kinds: Sequence[int]) -> Iterator[None]:
        """Record these kinds in here."""
        for kind in kinds:
            self._ask("cuptiActivityEnable", kind)
        try:
            yield
        finally:
            for kind in kinds:
                self._ask("cuptiActivityDisable", kind)

    @contextlib.contextmanager
    def told_of_launches(self) -> Iterator[None]:
        """CUPTI calls back as each launch begins and ends in here; what it calls is C's abs, which does nothing."""
        subscriber, name = ctypes.c_void_p(), ctypes.c_char_p()
        self._ask("cuptiSubscribe", ctypes.byref(subscriber), ctypes.CDLL(None).abs, None)
        try:
            for domain in (_RUNTIME_API, _DRIVER_API):
                number = 1
                while not self._cupti.cuptiGetCallbackName(domain, number, ctypes.byref(name)):
                    if any(word in (name.value or b"") for word in (b"Launch", b"Memcpy", b"Memset")):
                        self._ask("cuptiEnableCallback", 1, subscriber, domain, number)
                    number += 1
            yield
        finally:
            self._ask("cuptiUnsubscribe", subscriber)

    def taken(self) -> dict[int, int]:
        """How many records of each kind came since the last question."""
        self._ask("cuptiActivityFlushAll", _FORCED)
        found: Counter[int] = Counter()
        for buffer, valid in self._written:
            record = ctypes.POINTER(ctypes.c_uint32)()  # every record begins with its kind
            address = ctypes.c_void_p(ctypes.addressof(buffer))
            while valid and not self._cupti.cuptiActivityGetNextRecord(
                address, ctypes.c_size_t(valid), ctypes.byref(record)
            ):
                found[record[0]] += 1
            self._free.append(buffer)
        self._written.clear()
        return dict(found)
