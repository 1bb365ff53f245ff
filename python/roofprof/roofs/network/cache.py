"""The network's roofs in files of the cache, one for each backend, number of ranks and ranks on this host.

A rank finds them without asking others: by its host's name, and by torchrun's variables. The file names the hosts
between which they were measured.
"""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path

from roofprof import _report
from roofprof.roofs import ceilings


def path_of(backend: str, ranks: int) -> Path:
    """Return the file in which this host keeps the measured roofs."""
    local = os.environ.get("LOCAL_WORLD_SIZE", "0")
    name = re.sub(r"[^A-Za-z0-9.-]", "_", f"{socket.gethostname()}-{backend}-{ranks}-ranks-{local}-here")
    return ceilings.cache_dir() / f"network-{name}.json"


def load(backend: str, ranks: int) -> _report.Ceilings | None:
    """Return the measured roofs; None where nobody measured them. Raises ValueError where the file cannot be used."""
    path = path_of(backend, ranks)
    return ceilings.load(path) if path.exists() else None


def save(roofs: _report.Ceilings, backend: str, ranks: int) -> Path:
    """Keep them on this host. Raises OSError naming the file."""
    path = path_of(backend, ranks)
    path.parent.mkdir(parents=True, exist_ok=True)
    ceilings.save(roofs, path)
    return path


def with_network(roofs: _report.Ceilings, notes: list[str], device: str) -> tuple[_report.Ceilings, list[str]]:
    """Return the roofs with the network's, if the running program has several ranks and they were measured."""
    import torch.distributed as dist

    if not (dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1):
        return roofs, notes
    try:
        network = load(backend_for(device), dist.get_world_size())
    except ValueError as error:
        return roofs, [*notes, f"the network's roofs cannot be used: {error}"]
    if network is None:
        return roofs, notes
    return _report.ceilings_from_dict(roofs.to_dict() | {"network": network.to_dict()["network"]}), notes


def backend_for(device: str) -> str:
    """Return the default group's backend, which may differ for each kind of device ("cpu:gloo,cuda:nccl")."""
    import torch.distributed as dist

    by_device = dict(pair.split(":", 1) for pair in dist.get_backend_config().split(",") if ":" in pair)
    backend: str = by_device.get(device.split(":", maxsplit=1)[0], dist.get_backend())
    return backend
