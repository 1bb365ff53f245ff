"""Locks that a child of a fork finds free: the threads that held them in its parent are not in it."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

_locks: weakref.WeakSet[Any] = weakref.WeakSet()


def lock_of_process() -> threading.Lock:
    """Return a lock for data that all threads share, like ``threading.Lock()``, but free in each forked child."""
    lock = threading.Lock()
    _locks.add(lock)
    return lock


def _free() -> None:
    for lock in list(_locks):
        lock._at_fork_reinit()


os.register_at_fork(after_in_child=_free)
