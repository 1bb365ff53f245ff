"""Measures time and memory of merging many ranks. The ranks are simulated: one real report of a model with that many
modules, written again for each rank with other times.

    python benchmarks/ranks.py --ranks 1024 --modules 1000
"""

from __future__ import annotations

import argparse
import random
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from common import environment
from torch import nn

import roofprof


def report_of(modules: int) -> dict[str, Any]:
    """Return the report of a model with that many modules, its root included."""
    model = nn.Sequential(*(nn.Linear(8, 8) for _ in range(modules - 1)))
    profiler = roofprof.RooflineProfiler(model, warmup=1, repeat=3)
    return profiler.run(torch.rand(4, 8)).to_dict()


def write_ranks(folder: Path, report: dict[str, Any], ranks: int) -> list[Path]:
    """A file for each rank, whose modules take as long as chance has it."""
    chance = random.Random(0)  # noqa: S311 - times on paper
    chosen = report["runs"]["chosen"]
    before = [time["self_ns"][chosen] for time in report["times"] if time.get("self_ns")]
    files = []
    for rank in range(ranks):
        report["environment"] |= {"rank": rank, "world_size": ranks, "host": f"host{rank // 8}"}
        timed = (time for time in report["times"] if time.get("self_ns"))
        for row, ns in zip(timed, before, strict=True):
            row["self_ns"][chosen] = int(ns * chance.uniform(0.9, 1.1))
        files.append(folder / f"r.rank{rank}.json")
        roofprof.Report.from_dict(report).to_json(files[-1])
    return files


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=1024)
    parser.add_argument("--modules", type=int, default=1000)
    options = parser.parse_args()
    print(environment())
    with tempfile.TemporaryDirectory() as folder:
        files = write_ranks(Path(folder), report_of(options.modules), options.ranks)
        megabytes = sum(file.stat().st_size for file in files) / 1e6
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        begin = time.perf_counter()
        merged = roofprof.merge(files)
        took = time.perf_counter() - begin
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert len(merged.ranks) == options.ranks
    print(f"{options.ranks} simulated ranks x {options.modules} modules, {megabytes:.0f} MB of files")
    print(f"merged in {took:.1f} s; peak of the process {after / 1e3:.0f} MB, {before / 1e3:.0f} MB before")


if __name__ == "__main__":
    main()
