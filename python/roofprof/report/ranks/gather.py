"""Reports of a running program's ranks, brought to rank 0.

They go through the store that torch.distributed's ranks met at, not through a collective: nobody waits for a rank that
does not come but rank 0, and it does so no longer than its timeout. The program's own collectives are left alone.
"""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import socket
import time
import warnings
import zlib
from typing import TYPE_CHECKING, Any

from roofprof import _report
from roofprof.errors import Error
from roofprof.report.ranks import clocks
from roofprof.report.report import Report

if TYPE_CHECKING:
    from torch._C._distributed_c10d import Store

# torch's TCPStore takes values of up to 8 MiB.
_CHUNK = 4 << 20
_turns = itertools.count()  # of this process; each rank's first gather() belongs to those of the others


def gather(report: Report, timeout: float = 60.0) -> Report | None:
    """Return the merged report of all ranks on rank 0, None on the others.

    Only rank 0 waits, and the first rank of each other machine, whose clock is held against rank 0's.

    To be called on every rank, equally often, after the block; torch.distributed must be initialized. Work and times
    are sums over ranks; ``merged.ranks`` has a line for each (:func:`roofprof.merge`).

    timeout: seconds that rank 0 waits for the others. Those whose report has not come by then, or does not fit, are
    warned of and listed in ``missing_ranks``; what came is merged, and ``partial``. Raises RuntimeError where
    torch.distributed is not initialized or its store cannot be reached.
    """
    import torch.distributed as dist

    if not timeout > 0:
        raise Error(f"timeout must be more than 0 seconds, not {timeout!r}")
    if not (dist.is_available() and dist.is_initialized()):
        raise RuntimeError(
            "roofprof.gather needs torch.distributed: call init_process_group first (roofprof docs ranks)"
        )
    rank = dist.get_rank()
    store = dist.distributed_c10d._get_default_store()
    prefix = f"roofprof/gather/{next(_turns)}"
    deadline = time.monotonic() + timeout
    if rank == 0:
        return _merged(store, prefix, report, deadline, timeout)
    try:
        _send(store, f"{prefix}/{rank}", report)
    except dist.DistError as error:
        raise RuntimeError(f"rank {rank}'s report does not reach rank 0: {error}") from error
    if clocks.may_be_of_another_machine():
        _align(store, prefix, rank, deadline)
    return None


def _merged(store: Store, prefix: str, report: Report, deadline: float, timeout: float) -> Report:
    import torch.distributed as dist

    size = dist.get_world_size()
    store.set(f"{prefix}/boot", clocks.boot())
    merger = _report.RankMerger()
    merger.expect(size)
    merger.add(report._compiled, "rank 0", 0, socket.gethostname())
    packed = {0: zlib.compress(report.to_json().encode(), 1)}
    known = {clocks.boot(): _report.ClockOffset(0, 0)}  # the clocks of machines, by their boots
    late = []
    for other in range(1, size):
        key = f"{prefix}/{other}"
        try:
            head, packed[other] = _receive(store, key, deadline)
        except dist.DistError:
            late.append(other)
            continue
        if head["asks"] and head["boot"] not in known:
            with contextlib.suppress(dist.DistError):  # waits in collectives are not known then, and the report says so
                known[head["boot"]] = clocks.tell(store, f"{key}/clock", deadline)
        try:
            own = _report.report_from_json(zlib.decompress(packed[other]))
            merger.add(own, f"rank {other}", other, head["host"], known.get(head["boot"]))
        except (ValueError, RuntimeError) as error:
            warnings.warn(f"roofprof: left out of the merged report: {error}", stacklevel=3)
    if late:
        ranks = ("rank " if len(late) == 1 else "ranks ") + ", ".join(map(str, late))
        warnings.warn(f"roofprof: no report came within {timeout:g} s from {ranks}", stacklevel=3)
    for rank in merger.typical_ranks():
        merger.keep(rank, _report.report_from_json(zlib.decompress(packed[rank])))
    return Report(merger.finish())


def _send(store: Store, key: str, report: Report) -> None:
    packed = base64.b85encode(zlib.compress(report.to_json().encode(), 1)).decode()  # a store takes text
    chunks = [packed[start : start + _CHUNK] for start in range(0, len(packed), _CHUNK)]
    for number, chunk in enumerate(chunks):
        store.set(f"{key}/{number}", chunk)
    # Last: who sees it finds all the others.
    asks = clocks.may_be_of_another_machine()
    head = {"host": socket.gethostname(), "boot": clocks.boot(), "asks": asks, "chunks": len(chunks)}
    store.set(key, json.dumps(head))


def _align(store: Store, prefix: str, rank: int, deadline: float) -> None:
    """Let rank 0 know this machine's clock, if it is another one than its own."""
    import torch.distributed as dist

    try:
        clocks.wait(store, f"{prefix}/boot", deadline)
        if store.get(f"{prefix}/boot").decode() != clocks.boot():
            clocks.ask(store, f"{prefix}/{rank}/clock", deadline)
    except dist.DistError:
        warnings.warn("roofprof: rank 0 did not ask for the clock of this machine in time", stacklevel=3)


def _receive(store: Store, key: str, deadline: float) -> tuple[dict[str, Any], bytes]:
    """Return the facts about the rank, and its report's JSON, compressed.

    Raises DistError where they do not come in time.
    """
    clocks.wait(store, key, deadline)  # a report that came while rank 0 waited for another rank is still accepted
    head = json.loads(store.get(key))
    names = [f"{key}/{number}" for number in range(head["chunks"])]
    packed = b"".join(store.get(name) for name in names)
    for name in [key, *names]:
        store.delete_key(name)
    return head, base64.b85decode(packed)
