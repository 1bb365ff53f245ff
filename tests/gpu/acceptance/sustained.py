"""How fast products are at first and for long, with power and clocks beside: what roofs are held against."""

from __future__ import annotations

import contextlib
import shutil
import statistics
import subprocess
import time
from collections.abc import Iterator

import torch
from torch import Tensor

import roofprof
from acceptance.checks import Part
from acceptance.closed_forms import rates_of
from acceptance.machine import Machine, seconds_by_events

BURST = 0.01  # seconds from the first product on, after a rest
REST, LONG = 0.5, 2.0  # seconds without work before, and of work
EVERY_MS = 20
QUERY = "timestamp,clocks.sm,clocks.mem,power.draw.instant,power.draw,clocks_event_reasons.active,temperature.gpu"
ABOVE = 1.02  # of its roof
DTYPES = {"fp32": torch.float32, "tf32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16,
          "fp64": torch.float64}  # fmt: skip
SIZES = (4096, 8192)


@contextlib.contextmanager
def sampled() -> Iterator[list[str]]:
    """Clocks and power while what is in here runs, a line for each moment; none where there is no nvidia-smi."""
    lines: list[str] = []
    if not shutil.which("nvidia-smi"):
        yield lines
        return
    command = ["nvidia-smi", f"--query-gpu={QUERY}", "--format=csv,noheader,nounits", f"-lms={EVERY_MS}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            yield lines
        finally:
            process.terminate()
            lines += (process.communicate()[0] or "").splitlines()


def ends_of_products(machine: Machine, left: Tensor, right: Tensor, seconds: float) -> list[float]:
    """When each of many products in a row ended, from the first one's begin on, by CUDA's events."""
    out = left @ right
    machine.synchronize()
    time.sleep(REST)
    begin = torch.cuda.Event(enable_timing=True)
    marks: list[torch.cuda.Event] = []
    begin.record()
    started = time.perf_counter()
    while time.perf_counter() - started < seconds:
        for _ in range(8):
            torch.mm(left, right, out=out)
            marks.append(torch.cuda.Event(enable_timing=True))
            marks[-1].record()
        marks[-8].synchronize()  # the host stays a little ahead, and no more
    machine.synchronize()
    return [begin.elapsed_time(mark) * 1e-3 for mark in marks]


def check_products(part: Part, machine: Machine, dtype: str, roofs: dict[str, float]) -> None:
    """The best of the first moments, and the median for long; none above its roof."""
    torch.backends.cuda.matmul.allow_tf32 = dtype == "tf32"
    for size in SIZES[: 1 if dtype == "fp64" else None]:
        left, right = (torch.rand(size, size, device=machine.tensors).to(DTYPES[dtype]) for _ in range(2))
        with sampled() as lines:
            ends = ends_of_products(machine, left, right, LONG)
        durations = [end - begin for begin, end in zip([0.0, *ends], ends, strict=False)]
        burst, sustained = (2 * size**3 / seconds for seconds in rates_of(ends, durations, BURST, LONG / 2))
        name = f"{dtype} product of {size}"
        figures = {"burst": burst, "sustained": sustained, "best": 2 * size**3 / min(durations)}
        part.fact(name, figures | {"median": 2 * size**3 / statistics.median(durations), "calls": len(ends)})
        part.fact(f"{name}: {QUERY}", lines)
        if dtype in roofs:
            part.between(f"{name}: its first moments over the roof", burst / roofs[dtype], 0.0, ABOVE)
    torch.backends.cuda.matmul.allow_tf32 = False


def check_streams(part: Part, machine: Machine, roofs: dict[str, float]) -> None:
    """Reading, writing and copying arrays far larger than the L2, over DRAM's rate for that mix."""
    n = machine.array_bytes
    a, b = (torch.rand(n // 4, device=machine.tensors) for _ in range(2))
    moved = {"read": ("read", lambda: a.sum(), n), "write": ("write", lambda: a.fill_(1.0), n),
             "copy": ("copy", lambda: a.copy_(b), 2 * n),
             "scale": ("copy", lambda: torch.mul(b, 2.0, out=a), 2 * n)}  # fmt: skip
    for name, (mix, call, total) in moved.items():
        seconds = seconds_by_events(call, 8)[1:]
        rate = total / min(seconds)
        part.fact(f"{name}: bytes per second", {"best": rate, "median": total / statistics.median(seconds)})
        if mix in roofs:
            part.between(f"{name} over DRAM's roof", rate / roofs[mix], 0.0, ABOVE)


def run(part: Part, machine: Machine) -> None:
    with part.stage("sustained"):
        machine.needs_gpu()
    if machine.simulated:
        return
    peaks: dict[str, float] = {}
    mixes: dict[str, float] = {}
    with part.stage("roofs"):
        with sampled() as lines:
            measured = roofprof.Ceilings.measure(machine.device)
        part.fact("roofs", measured.to_dict())
        part.fact(f"while roofs were measured: {QUERY}", lines)
        peaks = {peak.dtype: peak.operations_per_second for peak in measured.compute}
        points = measured.to_dict()["curve"]["points"]
        mixes = points[-1] if points else {}
    for dtype in DTYPES:
        with part.stage(dtype):
            check_products(part, machine, dtype, peaks)
    with part.stage("DRAM"):
        check_streams(part, machine, mixes)
