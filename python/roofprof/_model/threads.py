"""Threads that Python starts know for whose call or block they work."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

from roofprof import _C
from roofprof._state.shared_change import SharedChange


def _start_for(call: _C.OwnCall, thread: threading.Thread, start: Callable[[threading.Thread], None]) -> None:
    run, given = thread.run, vars(thread).get("run")

    def put_back() -> None:
        if given is None:
            vars(thread).pop("run", None)
        else:
            vars(thread)["run"] = given

    def run_for() -> None:
        put_back()
        works_for = _C.WorksFor(call)
        try:
            run()
        finally:
            del works_for  # on this thread, however long an error is kept

    vars(thread)["run"] = run_for
    try:
        start(thread)
    except BaseException:
        put_back()
        raise


@SharedChange
@contextlib.contextmanager
def starts_are_known() -> Iterator[None]:
    """In here, what a thread that is observed starts is its own."""
    original = threading.Thread.start

    def start(thread: threading.Thread) -> None:
        call = _C.own_call()
        if call is None:
            original(thread)
        else:
            _start_for(call, thread, original)

    threading.Thread.start = start  # type: ignore[method-assign,assignment]
    try:
        yield
    finally:
        if threading.Thread.start is start:
            threading.Thread.start = original  # type: ignore[method-assign]
