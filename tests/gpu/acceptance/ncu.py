"""roofprof's bytes beside Nsight Compute's, of the same kernels. `python -m acceptance.ncu` is what ncu runs."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch

from acceptance.checks import Part
from acceptance.closed_forms import tall_gemm
from acceptance.machine import Machine, notes
from acceptance.ncu_table import grouped, kernels

# Two runs: what lies in the L2 before differs, and what of it is written back while a small kernel runs.
TOLERANCE = {"dram_read_bytes": 0.05, "dram_bytes": 0.05, "l2_bytes": 0.02}
METRICS = {
    "dram_read_bytes": "dram__bytes_read.sum",
    "dram_bytes": "dram__bytes.sum",
    "l2_bytes": "lts__t_bytes.sum",
}
SMALL = {"max pool": ("dram_bytes",)}  # not compared
SECONDS = 100
_INSTALLED = ("usr/local/cuda*/bin/ncu", "opt/nvidia/nsight-compute/*/ncu")


def calls(machine: Machine) -> dict[str, Callable[[], object]]:
    """Work that moves each byte once, and a pool. ncu numbers the kernels, so both sides run these in this order."""
    elements = machine.size(1 << 28, 1 << 14)
    a, b, c = (torch.rand(elements, device=machine.tensors) for _ in range(3))
    gemm = tall_gemm(4 * elements, 4)
    left, right = torch.rand(gemm.m, gemm.k, device=machine.tensors), torch.rand(gemm.k, gemm.n, device=machine.tensors)
    out = torch.empty(gemm.m, gemm.n, device=machine.tensors)
    # resnet18's: 51 MB that it reads, 13 MB that it writes. Of an H100's report of it 119 MB of DRAM were known.
    images = torch.rand(machine.size(32, 1), 64, machine.size(112, 8), machine.size(112, 8), device=machine.tensors)
    images = images.bfloat16()
    torch.backends.cuda.matmul.allow_tf32 = False
    return {
        "triad": lambda: torch.add(b, c, alpha=3.0, out=a),
        "scale": lambda: torch.mul(b, 2.0, out=a),
        "sum": lambda: b.sum(),
        "tall GEMM": lambda: torch.mm(left, right, out=out),
        "max pool": lambda: torch.nn.functional.max_pool2d(images, 3, 2, 1),
    }


def measured_by_ncu(ncu: str) -> list[dict[str, float | str]]:
    """The kernels of `calls`, as ncu sees them. Raises RuntimeError with what it said."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "ncu.csv"
        # Caches and clocks are left as they are under roofprof.
        command = [ncu, "--cache-control", "none", "--clock-control", "none", "--profile-from-start", "off"]
        command += ["--print-units", "base", "--csv", "--log-file", str(log), "--metrics", ",".join(METRICS.values())]
        command += [sys.executable, "-m", "acceptance.ncu"]
        here = Path(__file__).resolve().parents[1]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS, cwd=here)
        text = log.read_text() if log.exists() else ""
    if done.returncode:
        raise RuntimeError(f"ncu ended with {done.returncode}: {(text + done.stdout + done.stderr)[-800:]}")
    return kernels(text)


def run(part: Part, machine: Machine) -> None:
    beside = (str(path) for pattern in _INSTALLED for path in sorted(Path("/").glob(pattern)))
    ncu = shutil.which("ncu") or next(beside, None)
    if ncu is None or machine.simulated or not machine.counters_permitted:
        why = "simulated" if machine.simulated else "ncu is not installed" if ncu is None else "no permission"
        part.skip("agreement with ncu", why)
        return
    reports = {}
    with part.stage("roofprof"):
        reports = {name: machine.profile(f"beside ncu {name}", call) for name, call in calls(machine).items()}
    torch.cuda.empty_cache()
    launches = []
    with part.stage("ncu"):
        try:
            launches = measured_by_ncu(ncu)
        except (RuntimeError, ValueError, subprocess.TimeoutExpired) as error:
            part.skip("agreement with ncu", f"ncu does not work here: {error}")
            return
        part.fact("kernels by ncu", launches)
    with part.stage("comparison"):
        counts = [
            sum(kernel.instances for kernel in report.kernels if kernel.kind == "kernel")  # ncu sees no copies or fills
            for report in reports.values()
        ]
        for figure, metric in METRICS.items():
            for (name, report), theirs in zip(reports.items(), grouped(launches, counts, metric), strict=True):
                if figure in SMALL.get(name, ()):
                    continue
                ours = getattr(report.total, figure)
                why = notes(report) if ours is None else ""
                part.near(f"{name}: {figure} by roofprof and by ncu", ours, theirs, TOLERANCE[figure], why)


def target() -> None:
    """Each call once before, so that its kernels are loaded, and once for ncu to see."""
    machine = Machine.here(Path())
    if machine is None or machine.simulated:
        raise SystemExit("this needs a GPU")
    for call in calls(machine).values():
        call()
        torch.cuda.synchronize()
        torch.cuda.profiler.start()
        call()
        torch.cuda.synchronize()
        torch.cuda.profiler.stop()


if __name__ == "__main__":
    target()
