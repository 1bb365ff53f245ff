"""The values that a call returns before its work is done (generators, coroutines, futures), and how to do that work."""

from __future__ import annotations

import asyncio
import concurrent.futures
import itertools
import types
from typing import Any

import torch

# A generator may never end.
MOST_ITEMS = 10_000

_FUTURES = (concurrent.futures.Future, torch._C.Future, asyncio.Future)
_KINDS: list[tuple[tuple[type, ...], str]] = [
    ((types.GeneratorType,), "a generator"),
    ((types.CoroutineType,), "a coroutine"),
    ((types.AsyncGeneratorType,), "an asynchronous generator"),
    (_FUTURES, "a future"),
]


def deferred_kind(value: object) -> str:
    """Return the name of such a value's kind, with its article; "" for any other value."""
    return next((name for kinds, name in _KINDS if issubclass(type(value), kinds)), "")


def finish(value: Any) -> str:
    """Do the work that such a value stands for, on this thread. Return what was done, or why nothing.

    Raises what the work raises.
    """
    kind = type(value)
    if issubclass(kind, types.GeneratorType):
        taken = sum(1 for _ in itertools.islice(value, MOST_ITEMS))
        value.close()
        return "it was consumed in the call" + (f", up to {taken:,} items" if taken == MOST_ITEMS else "")
    if issubclass(kind, (types.CoroutineType, types.AsyncGeneratorType)):
        is_coroutine = issubclass(kind, types.CoroutineType)
        if _loop_runs():
            if is_coroutine:
                value.close()
            return f"an event loop runs on this thread, so that it cannot be awaited here; {_NOT_COUNTED}"
        asyncio.run(value if is_coroutine else _consumed(value))
        return "it was awaited in the call"
    if issubclass(kind, asyncio.Future):
        return f"it is of an event loop, and nobody can await it here; {_NOT_COUNTED}"
    value.wait() if issubclass(kind, torch._C.Future) else value.result()
    return "it was waited for in the call"


_NOT_COUNTED = "its work is not counted: profile it in a `with` block around the code that awaits it"


def _loop_runs() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def _consumed(items: types.AsyncGeneratorType[Any, None]) -> None:
    taken = 0
    async for _ in items:
        taken += 1
        if taken == MOST_ITEMS:
            break
    await items.aclose()
