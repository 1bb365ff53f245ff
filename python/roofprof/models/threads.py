"""Threads that Python starts, and those of its pools, know for whose call or block they work."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from roofprof import _C
from roofprof.state.shared_change import SharedChange


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


_pool = threading.local()  # .starts: this thread submits to a pool, which may start a worker for all that is to come


def _work_for(call: _C.OwnCall, function: Callable[..., Any]) -> Callable[..., Any]:
    def work(*args: Any, **kwargs: Any) -> Any:
        works_for = _C.WorksFor(call)
        try:
            return function(*args, **kwargs)
        finally:
            del works_for

    return work


@SharedChange
@contextlib.contextmanager
def starts_are_known() -> Iterator[None]:
    """Attribute in here, to an observed thread's call, threads that it starts and work that it submits to a pool."""
    original, submitted = threading.Thread.start, ThreadPoolExecutor.submit

    def start(thread: threading.Thread) -> None:
        call = None if getattr(_pool, "starts", False) else _C.own_call()
        if call is None:
            original(thread)
        else:
            _start_for(call, thread, original)

    def submit(pool: ThreadPoolExecutor, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        call = _C.own_call()
        _pool.starts = True
        try:
            return submitted(pool, function if call is None else _work_for(call, function), *args, **kwargs)
        finally:
            _pool.starts = False

    threading.Thread.start = start  # type: ignore[method-assign,assignment]
    ThreadPoolExecutor.submit = submit  # type: ignore[method-assign,assignment]
    try:
        yield
    finally:
        if threading.Thread.start is start:
            threading.Thread.start = original  # type: ignore[method-assign]
        if ThreadPoolExecutor.submit is submit:
            ThreadPoolExecutor.submit = submitted  # type: ignore[method-assign]
