"""Collectives of many sizes, timed on all ranks of the program at once."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
import torch.distributed as dist

from roofprof import _report
from roofprof.roofs.network.fit import Point

SMALLEST, LARGEST = 1 << 10, 256 << 20  # parts of a size are rounded down to whole elements
_REPEATS = 7


def _all_reduce(size: int, _: int, device: torch.device) -> Callable[[], object]:
    value = torch.ones(size // 4, device=device)
    return lambda: dist.all_reduce(value)


def _all_gather(size: int, ranks: int, device: torch.device) -> Callable[[], object]:
    part = torch.ones(size // 4 // ranks, device=device)
    gathered = torch.empty(part.numel() * ranks, device=device)
    return lambda: dist.all_gather_into_tensor(gathered, part)


def _reduce_scatter(size: int, ranks: int, device: torch.device) -> Callable[[], object]:
    part = torch.empty(size // 4 // ranks, device=device)
    whole = torch.ones(part.numel() * ranks, device=device)
    return lambda: dist.reduce_scatter_tensor(part, whole)


def _all_to_all(size: int, ranks: int, device: torch.device) -> Callable[[], object]:
    value = torch.ones(size // 4 // ranks * ranks, device=device)
    received = torch.empty_like(value)
    return lambda: dist.all_to_all_single(received, value)


def _broadcast(size: int, _: int, device: torch.device) -> Callable[[], object]:
    value = torch.ones(size // 4, device=device)
    return lambda: dist.broadcast(value, 0)


def _send(size: int, ranks: int, device: torch.device) -> Callable[[], object]:
    """Return a call that sends from the first rank to the last, perhaps on another machine; it answers with four bytes.

    The answer is timed too: sweep() takes half of what four bytes need there and back off.
    """
    value, answer = torch.ones(size // 4, device=device), torch.ones(1, device=device)

    def call() -> None:
        if dist.get_rank() == 0:
            dist.send(value, ranks - 1)
            dist.recv(answer, ranks - 1)
        elif dist.get_rank() == ranks - 1:
            dist.recv(value, 0)
            dist.send(answer, 0)

    return call


COLLECTIVES = {
    "all_reduce": _all_reduce,
    "all_gather": _all_gather,
    "reduce_scatter": _reduce_scatter,
    "all_to_all": _all_to_all,
    "broadcast": _broadcast,
    "send": _send,
}


def sweep(seconds: float, device: torch.device, tell: Callable[[str], None] | None) -> dict[str, list[Point]]:
    """Time each collective from 1 kB to 256 MB, as many sizes as there is time for; all ranks get the same times.

    seconds: for all collectives together; each gets two sizes at least. A call takes as long as on its slowest rank.
    """
    ranks = dist.get_world_size()
    points: dict[str, list[Point]] = {}
    for name, make in COLLECTIVES.items():
        if tell:
            tell(f"{name} between {ranks} ranks")
        deadline = time.monotonic() + seconds / len(COLLECTIVES)
        points[name] = []
        answer = min(_times(make(4, ranks, device), device)) / 2 if name == "send" else 0.0
        size = max(SMALLEST, 4 * ranks)  # an element for each rank
        while size <= LARGEST:
            call = make(size, ranks, device)
            times = [max(took - answer, took / 2) for took in _times(call, device)]
            points[name].append(Point(size * _report.bus_factor(name, ranks), min(times), max(times)))
            next_takes = 2 * (_REPEATS + 1) * max(times)
            enough = len(points[name]) >= 2 and time.monotonic() + next_takes > deadline
            if _agreed(enough, device):
                break
            size *= 2
    return points


def _times(call: Callable[[], object], device: torch.device) -> list[float]:
    """Return for each repeat the slowest rank's seconds."""
    call()
    own = []
    for _ in range(_REPEATS):
        dist.barrier()
        begin = time.perf_counter()
        call()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        own.append(time.perf_counter() - begin)
    slowest = torch.tensor(own, dtype=torch.float64, device=device)
    dist.all_reduce(slowest, dist.ReduceOp.MAX)
    times: list[float] = slowest.tolist()
    return times


def _agreed(enough: bool, device: torch.device) -> bool:
    """Return rank 0's decision: the ranks' clocks differ."""
    decision = torch.tensor([int(enough)], device=device)
    dist.broadcast(decision, 0)
    return bool(decision.item())
