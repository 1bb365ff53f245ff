"""`python -m acceptance OUT` runs every part as a process with a time limit; `... OUT PART` is one of them."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
import time
from pathlib import Path

from acceptance import checks
from acceptance.machine import Machine

# What tells most first, each with the most seconds that it may take.
PARTS = {"calls": 150, "traffic": 100, "roofs": 90, "training": 60, "graphs": 120}
SECONDS = 420


def run_part(out: Path, name: str) -> int:
    (out / "recorded").mkdir(parents=True, exist_ok=True)
    machine, part = Machine.here(out / "recorded"), checks.Part(name, out)
    with part.stage("importing"):
        assert machine is not None
        part.fact("simulated", machine.simulated)
        importlib.import_module(f"acceptance.{name}").run(part, machine)
    return 0


def run_all(out: Path) -> int:
    """0 where everything passed, or there is no GPU; 1 where something failed."""
    if Machine.here(out) is None:
        print("tests/gpu: there is no GPU here that torch can use, so nothing was run")
        return 0
    out.mkdir(parents=True)
    os.environ["ROOFPROF_CACHE_DIR"] = str(out / "cache")  # roofs are measured here and now
    begin, deadline = time.monotonic(), float(os.environ.get("DEADLINE", SECONDS))
    ran: dict[str, tuple[int | None, float]] = {}
    for name in filter(re.compile(os.environ.get("ONLY", ".")).search, PARTS):
        started = time.monotonic()
        print(f"[{started - begin:.0f} s] {name}", flush=True)
        limit = min(PARTS[name] * max(1, deadline / SECONDS), begin + deadline - started)
        command = [sys.executable, "-m", "acceptance", str(out), name]
        code = None
        with (out / "log.txt").open("a") as log:
            try:
                code = subprocess.run(command, stdout=log, stderr=log, check=False, timeout=max(0, limit)).returncode
            except subprocess.TimeoutExpired:
                log.write(f"{name} ran out of time\n")
        ran[name] = code, time.monotonic() - started
        checks.put_together(out, ran)
    return checks.put_together(out, ran, shown=True)


if __name__ == "__main__":
    sys.exit(run_part(Path(sys.argv[1]), sys.argv[2]) if len(sys.argv) == 3 else run_all(Path(sys.argv[1]).resolve()))
