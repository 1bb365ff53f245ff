"""Finds out whether a call is one of several that ranks make together."""

from __future__ import annotations

import torch.distributed as dist


def is_among_ranks() -> bool:
    """Return True where other processes may wait in their calls for this one's: a process group has several ranks."""
    if not (dist.is_available() and dist.is_initialized()):
        return False
    return dist.get_world_size() > 1 and dist.get_backend() != "fake"
