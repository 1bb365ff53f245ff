"""Traces that others recorded on GPUs, in the folder that the environment's ROOFPROF_TRACES names; and made-up ones."""

from __future__ import annotations

import functools
import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

import roofprof

FOLDER = Path(os.environ.get("ROOFPROF_TRACES", "/nonexistent"))
ON_DEVICE = {"kernel", "gpu_memcpy", "gpu_memset", "Kernel", "Memcpy", "Memset"}

needs_traces = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="ROOFPROF_TRACES names no folder with traces that were recorded on GPUs"
)


def path_of(beginning: str) -> Path:
    """Return the only trace whose path begins like that."""
    folder, _, name = beginning.rpartition("/")
    (path,) = (FOLDER / folder).glob(f"{name}*.json.gz")
    return path


@functools.lru_cache(maxsize=2)
def document(path: Path) -> dict[str, Any]:
    return json.loads(gzip.decompress(path.read_bytes()).decode("utf-8", "replace"), strict=False)


def events_of(path: Path) -> list[dict[str, Any]]:
    """Return the events that have a begin and a length."""
    return [event for event in document(path)["traceEvents"] if event.get("ph") == "X"]


@functools.lru_cache(maxsize=8)
def read(path: Path) -> roofprof.Report:
    return roofprof.from_trace(path)


def event(category: str, name: str, begin: float, length: float, **args: Any) -> dict[str, Any]:
    """Return an event of a made-up trace, in microseconds."""
    return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1, "ts": begin, "dur": length, "args": args}


def write_trace(path: Path, events: list[dict[str, Any]], **facts: Any) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"schemaVersion": 1, **facts, "traceEvents": events}))
    return path
