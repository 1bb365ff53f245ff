"""The offset of another machine's clock from rank 0's, measured by asking for the time there.

The process that asks knows that the other machine read its clock between the question and the answer; of several
answers the quickest is the most certain (F. Cristian, "Probabilistic clock synchronization", Distributed Computing 3,
1989).
"""

from __future__ import annotations

import os
import socket
import time
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from roofprof import _report

if TYPE_CHECKING:
    from torch._C._distributed_c10d import Store

_ROUNDS = 16


def boot() -> str:
    """Return the id of this machine's boot, when its clock began: processes with the same id share a clock."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    except OSError:
        return socket.gethostname()


def may_be_of_another_machine() -> bool:
    """Return True when this process asks for its machine, which may not be rank 0's, by torchrun's variables."""
    if os.environ.get("LOCAL_RANK", "0") != "0" or os.environ.get("GROUP_RANK") == "0":
        return False
    return os.environ.get("LOCAL_WORLD_SIZE", "") != os.environ.get("WORLD_SIZE", "0")


def ask(store: Store, prefix: str, deadline: float) -> None:
    """Measure the offset of rank 0's clock from this rank's, and send it to rank 0.

    Raises DistError where rank 0 does not answer by the deadline.
    """
    best: tuple[int, int] | None = None
    for turn in range(_ROUNDS):
        sent = time.monotonic_ns()
        store.set(f"{prefix}/ask/{turn}", "")
        remote = int(_get(store, f"{prefix}/tell/{turn}", deadline))
        received = time.monotonic_ns()
        error = (received - sent + 1) // 2
        if best is None or error < best[1]:
            best = remote - (sent + received) // 2, error
    if best:
        store.set(f"{prefix}/offset", f"{best[0]} {best[1]}")


def tell(store: Store, prefix: str, deadline: float) -> _report.ClockOffset:
    """Send rank 0's clock to a rank that asks, and return the offset. Raises DistError if the rank stops asking."""
    for turn in range(_ROUNDS):
        _get(store, f"{prefix}/ask/{turn}", deadline)
        store.set(f"{prefix}/tell/{turn}", str(time.monotonic_ns()))
    offset, error = _get(store, f"{prefix}/offset", deadline).split()
    return _report.ClockOffset(int(offset), int(error))


def wait(store: Store, key: str, deadline: float) -> None:
    """Wait for the key, for a moment even after the deadline. Raises DistError where it does not come."""
    store.wait([key], timedelta(seconds=max(deadline - time.monotonic(), 0.01)))


def _get(store: Store, key: str, deadline: float) -> str:
    wait(store, key, deadline)
    value = store.get(key).decode()
    store.delete_key(key)
    return value
