"""Measures time and memory of reading a large trace of torch.profiler, for roofprof and HTA. The trace is a real one,
its events repeated with later times and other ids until the file has the requested size.

    python benchmarks/imported.py trace.json.gz --megabytes 60 1000

HTA (pip install HolisticTraceAnalysis) runs if it is installed; --hta-python names another environment that has it.
Each reading runs in a new process. Memory is its peak, less what it held once everything was imported.
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from common import environment, print_table

_MEASURE = """
import json, sys, time
def held(what):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(what)) / 1000
path = sys.argv[1]
{imports}
before = held("VmRSS")
begin, cpu = time.perf_counter(), time.process_time()
{reading}
took, worked = time.perf_counter() - begin, time.process_time() - cpu
print(json.dumps([took, worked, held("VmHWM") - before]))
"""
_TOOLS = {
    "roofprof: reading": (
        "import torch, roofprof; from roofprof import _C",
        """reader = _C.TraceReader()
with open(path, 'rb') as file:
    while piece := file.read(1 << 20): reader.feed(piece)""",
    ),
    "roofprof.from_trace": (
        "import torch, roofprof; roofprof.count(torch.nn.Linear(2, 2), torch.rand(2, 2))",
        "roofprof.from_trace(path)",
    ),
    "json.load": ("", "with open(path) as file: json.load(file)"),
    "HTA TraceAnalysis": (
        "from hta.trace_analysis import TraceAnalysis",
        "TraceAnalysis(trace_files={0: path}, trace_dir='')",
    ),
}
_IDS = ("correlation", "External id", "external id")


def read(path: Path) -> dict[str, Any]:
    """Return the trace's JSON; names may hold bytes that are not UTF-8."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", errors="replace") as file:
        trace = json.load(file, strict=False)
    return trace if isinstance(trace, dict) else {"traceEvents": trace}


def repeat(trace: dict[str, Any], megabytes: float, to: Path) -> int:
    """Write its events again and again, one copy after the other in time; return how many copies there are."""
    events = trace["traceEvents"]
    times = [float(event["ts"]) for event in events if event.get("ph") == "X"]
    # Strays would put decades between copies.
    span = int(sorted(times)[len(times) * 999 // 1000] - min(times)) + 1_000_000
    ids = [int(event.get("args", {}).get(name, 0)) for event in events for name in _IDS]
    next_id = max(ids, default=0) + 1
    head = {key: value for key, value in trace.items() if key != "traceEvents"}
    head.setdefault("distributedInfo", {"rank": 0, "world_size": 1})  # HTA asks for it
    copies = 0
    with to.open("w") as file:
        file.write(json.dumps(head)[:-1] + ', "traceEvents": [\n')
        while copies == 0 or file.tell() < megabytes * 1e6:
            for event in events:
                if copies and event.get("ph") != "X":
                    continue
                file.write(",\n" if copies or event is not events[0] else "")
                file.write(json.dumps(shifted(event, copies * span, copies * next_id)))
            copies += 1
        file.write("\n]}\n")
    return copies


def shifted(event: dict[str, Any], microseconds: int, ids: int) -> dict[str, Any]:
    if not microseconds or event.get("ph") != "X":
        return event
    args = event.get("args", {})
    changed = {name: int(args[name]) + ids for name in _IDS if int(args.get(name, 0)) > 0}
    return event | {"ts": event["ts"] + microseconds, "args": args | changed}


def measure(tool: str, path: Path, python: str, seconds: float) -> list[str]:
    imports, reading = _TOOLS[tool]
    code = _MEASURE.format(imports=imports, reading=reading)
    try:
        run = subprocess.run([python, "-c", code, path], capture_output=True, text=True, timeout=seconds, check=False)  # noqa: S603
    except subprocess.TimeoutExpired:
        return [f"more than {seconds:.0f} s", "", ""]
    if run.returncode != 0:
        lines = run.stderr.strip().splitlines()
        return [lines[-1][:60] if lines else f"ended with {run.returncode}", "", ""]
    took, worked, megabytes = json.loads(run.stdout.splitlines()[-1])
    return [f"{took:.1f} s", f"{worked:.1f} s", f"{megabytes:.0f} MB"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", type=Path)
    parser.add_argument("--megabytes", type=float, nargs="+", default=[60, 1000])
    parser.add_argument("--tools", default=",".join(_TOOLS), help="of " + ", ".join(_TOOLS))
    parser.add_argument("--seconds", type=float, default=600, help="at most, for each reading")
    parser.add_argument("--hta-python", default=sys.executable, help="a Python that has HTA")
    options = parser.parse_args()
    print(environment())
    trace = read(options.trace)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for megabytes in options.megabytes:
            path = Path(folder) / "trace.json"
            copies = repeat(trace, megabytes, path)
            size = path.stat().st_size / 1e6
            for tool in options.tools.split(","):
                python = options.hta_python if tool.startswith("HTA") else sys.executable
                figures = measure(tool, path, python, options.seconds)
                rows.append([f"{size:.0f} MB, {copies} copies: {tool}", *figures])
    print_table(["", "time", "of the processor", "memory"], rows)


if __name__ == "__main__":
    main()
