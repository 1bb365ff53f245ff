"""Changes of the process's state that profiles on several threads share."""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

_locks: weakref.WeakSet[Any] = weakref.WeakSet()


def lock_of_process(kind: Callable[[], Any] = threading.Lock) -> Any:
    """Return a lock for data that all threads share, such as ``threading.Lock()``, but free in each forked child."""
    lock = kind()
    _locks.add(lock)
    return lock


def _free() -> None:
    for lock in list(_locks):
        lock._at_fork_reinit()


os.register_at_fork(after_in_child=_free)


class SharedChange:
    """A change for as long as anyone is in here: the first makes it, the last undoes it."""

    def __init__(self, change: Callable[[], contextlib.AbstractContextManager[object]]) -> None:
        self._change = change
        # Python leaves a lock held where a tracer raises as its `with` ends: that thread must not wait for itself.
        self._lock = lock_of_process(threading.RLock)
        self._users: set[object] = set()
        self._made = contextlib.ExitStack()

    @contextlib.contextmanager
    def __call__(self) -> Iterator[None]:
        """Make the change for the first that enters, and undo it after the last that leaves."""
        user = object()
        try:  # something may raise at any step
            with self._lock:
                if not self._users:
                    self._made.enter_context(self._change())
                self._users.add(user)
            yield
        finally:
            with self._lock:
                self._users.discard(user)
                if not self._users:
                    self._made.close()
