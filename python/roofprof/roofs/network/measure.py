"""The network's roofs, measured between the ranks of the running program."""

from __future__ import annotations

import itertools
import socket
import statistics
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from typing import NamedTuple

import torch
import torch.distributed as dist

from roofprof import _report
from roofprof.errors import Error
from roofprof.roofs.network import cache


class Point(NamedTuple):
    """One size: the bytes that the busiest rank sends, and the seconds of the best and the worst repeat."""

    wire_bytes: float
    best: float
    worst: float


class Line(NamedTuple):
    """seconds = latency + bytes / bandwidth."""

    latency: float
    bandwidth: float

    def seconds(self, wire_bytes: float) -> float:
        """Return the least time that a call takes."""
        return self.latency + wire_bytes / self.bandwidth


def fit(points: Sequence[Point]) -> Line:
    """Fit the bandwidth to the largest third of the sizes, and the latency to the three smallest.

    The bandwidth is the median of the slopes between any two of those (H. Theil and P. K. Sen's estimator), which one
    disturbed size does not move; the latency is the shortest time less what that bandwidth takes, and not below 0.
    Sizes between may be faster: a shaped link lets bursts through. Raises ValueError for fewer than two sizes.
    """
    by_size = sorted(points)
    if len({point.wire_bytes for point in by_size}) < 2:
        raise Error("latency and bandwidth need the times of two sizes")
    large = by_size[-max(2, -(-len(by_size) // 3)) :]
    slopes = [(b.best - a.best) / (b.wire_bytes - a.wire_bytes) for a, b in itertools.combinations(large, 2)]
    per_byte = statistics.median(slopes)
    if per_byte <= 0:  # the sizes are too small to tell a bandwidth: that of the largest is the least it can be
        per_byte = large[-1].best / large[-1].wire_bytes
    latency = min(point.best - per_byte * point.wire_bytes for point in by_size[:3])
    return Line(max(latency, 0.0), 1 / per_byte)


def spread(points: Sequence[Point]) -> float:
    """Return the median over the sizes of (worst - best) / worst."""
    return statistics.median((point.worst - point.best) / point.worst for point in points)


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


METHOD = "best of 7 calls at {sizes} sizes up to {largest} bytes on the wire, hosts {hosts}"


def measure(device: str, seconds: float, progress: Callable[[str], None]) -> _report.Ceilings:
    """Measure the network: all ranks call this at once and get the same roofs; each host keeps them.

    Raises RuntimeError where torch.distributed is not initialized or has one rank, ValueError where the ranks ask for
    different times.
    """
    if not dist.is_initialized() or dist.get_world_size() < 2:
        raise RuntimeError("a network needs two ranks: start this with torchrun --nproc-per-node 2 (or more)")
    ranks, rank = dist.get_world_size(), dist.get_rank()
    backend = cache.backend_for(device)
    gathered: list[tuple[str, float] | None] = [None] * ranks
    dist.all_gather_object(gathered, (socket.gethostname(), seconds))
    known = [one for one in gathered if one]
    if len({requested for _, requested in known}) > 1:
        raise Error("all ranks must be given the same --seconds")
    hosts = sorted({host for host, _ in known})
    points = sweep(seconds, torch.device(device), progress if rank == 0 else None)
    network = []
    for name, sizes in points.items():
        line = fit(sizes)
        provenance = {
            "source": "measured",
            "method": METHOD.format(sizes=len(sizes), largest=round(sizes[-1].wire_bytes), hosts=", ".join(hosts)),
            "date": datetime.now(timezone.utc).date().isoformat(),
            "spread": spread(sizes),
        }
        network.append(
            {
                "collective": name,
                "backend": backend,
                "ranks": ranks,
                "latency_ns": line.latency * 1e9,
                "bytes_per_second": line.bandwidth,
                "provenance": provenance,
            }
        )
    words = f"{backend} between {ranks} ranks on {', '.join(hosts)}"
    roofs = _report.ceilings_from_dict({"device": words, "compute": [], "memory": [], "network": network})
    # One rank of each host keeps them.
    if socket.gethostname() not in [host for host, _ in known[:rank]]:
        cache.save(roofs, backend, ranks)
    dist.barrier()
    return roofs
