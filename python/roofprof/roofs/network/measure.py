"""The network's roofs, measured between the ranks of the running program."""

from __future__ import annotations

import socket
from collections.abc import Callable
from datetime import datetime, timezone

import torch
import torch.distributed as dist

from roofprof import _report
from roofprof.roofs.network import cache
from roofprof.roofs.network.fit import fit, spread
from roofprof.roofs.network.sweep import sweep

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
    said: list[tuple[str, float] | None] = [None] * ranks
    dist.all_gather_object(said, (socket.gethostname(), seconds))
    told = [one for one in said if one]
    if len({requested for _, requested in told}) > 1:
        raise ValueError("all ranks must be given the same --seconds")
    hosts = sorted({host for host, _ in told})
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
    if socket.gethostname() not in [host for host, _ in told[:rank]]:
        cache.save(roofs, backend, ranks)
    dist.barrier()
    return roofs
