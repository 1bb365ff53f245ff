"""Work with known bytes and FLOPs, through roofprof's own counters."""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import roofprof
from acceptance.checks import FAIL, PASS, SKIPPED, Check, Part
from acceptance.machine import Machine, notes

# Of DRAM bytes, for arrays so much larger than the L2 that what lies in it before and after hardly counts.
DRAM_TOLERANCE = 0.05
# Beyond the products: what scaling by alpha and beta, adding C and converting cost for each element of the result.
_MOST_EPILOGUE_FLOPS = 16
# A constant may be loaded by an instruction that counts as one of a packed fma.
STRAY_INSTRUCTIONS = 1e-3


@dataclass(frozen=True)
class Gemm:
    """(m, k) x (k, n) with elements of so many bytes."""

    m: int
    n: int
    k: int
    element_bytes: int

    @property
    def flops(self) -> int:
        return 2 * self.m * self.n * self.k

    @property
    def least_bytes(self) -> int:
        """Each operand read once, the result written once."""
        return self.element_bytes * (self.m * self.k + self.k * self.n + self.m * self.n)


def executed(flops: float | None, gemm: Gemm) -> tuple[str, str]:
    """Whether counted FLOPs are a product's 2MNK, or those and what an epilogue does to each element of the result."""
    if flops is None:
        return FAIL, "not measured"
    excess = (flops - gemm.flops) / (gemm.m * gemm.n)
    if 0 <= excess <= _MOST_EPILOGUE_FLOPS:
        return PASS, f"2MNK and {excess:.4g} FLOPs for each element of the result: the kernel's epilogue"
    return FAIL, f"{flops / gemm.flops:.6g} x 2MNK, which no epilogue explains"


def unless_missing(part: Part, machine: Machine, check: Check, report: roofprof.Report) -> None:
    """Adds the check; a figure that was not measured is no pass, but may have a good reason."""
    if check.measured is None:
        check.status, check.explanation = FAIL if machine.counters_permitted else SKIPPED, notes(report)
    part.add(check)


def near(name: str, measured: float | None, *expected: float, tolerance: float = DRAM_TOLERANCE) -> Check:
    """One of the figures that are expected, within a share of it."""
    passed = any(abs((measured or 0) - one) <= tolerance * one for one in expected)
    return Check(name, PASS if passed else FAIL, measured, " or ".join(map(str, expected)), tolerance)


def check_streams(part: Part, machine: Machine) -> None:
    """Each of the usual kernels on arrays beyond the L2: its call, its DRAM bytes, and those by the definitions."""
    n = machine.array_bytes
    a, b, c = (machine.rand(n // 4) for _ in range(3))
    streams: dict[str, tuple[Callable[[], object], int, int]] = {
        "triad a = b + 3c": (lambda: torch.add(b, c, alpha=3.0, out=a), 3 * n, 3 * n),
        "scale a = 2b": (lambda: torch.mul(b, 2.0, out=a), 2 * n, 2 * n),
        "fill_": (lambda: a.fill_(1.0), n, n),
        "sum": (lambda: b.sum(), n, n + 4),
        "copy_": (lambda: a.copy_(b), 2 * n, 2 * n),
    }
    for name, (call, expected, analytic) in streams.items():
        with part.stage(name):
            is_copy = name == "copy_"  # by the driver: its record names its bytes, and it may have no counters
            work = {"kind": 1, "copy_kind": 8, "bytes": n} if is_copy else {"dram_read_bytes": expected}
            report = machine.profile(f"traffic {name}", machine.call(call, **work))
            part.equal(f"{name}: analytic bytes", report.total.bytes, analytic)
            if is_copy:
                part.equal(f"{name}: bytes of its record", sum(k.bytes for k in report.kernels if k.kind == "copy"), n)
            else:
                dram = report.total.dram_bytes
                unless_missing(part, machine, near(f"{name}: DRAM bytes", dram, expected), report)
            part.fact(f"{name}: GB/s by the closed form", expected / (report.total.time or 1) * 1e-9)


DTYPES = {"fp32": torch.float32, "tf32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16,
          "fp64": torch.float64}  # fmt: skip


def prepared(machine: Machine, name: str, gemm: Gemm) -> Callable[[], object]:
    torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
    a, b = machine.rand(gemm.m, gemm.k).to(DTYPES[name]), machine.rand(gemm.k, gemm.n).to(DTYPES[name])
    out = torch.empty(gemm.m, gemm.n, device=machine.tensors, dtype=DTYPES[name])
    return machine.call(lambda: torch.mm(a, b, out=out), dram_read_bytes=gemm.least_bytes, flops=gemm.flops)


def check_product(part: Part, machine: Machine, name: str) -> None:
    """A square product that divides into every tile executes 2MNK; a tall one moves each byte once.

    Or the tall operand is read for each of two tiles of columns, as the TF32 kernel on an H100 does.
    """
    size, element = machine.size(4096, 64), DTYPES[name].itemsize
    square = Gemm(size, size, size, element)
    report = machine.profile(f"flops {name}", prepared(machine, name, square), counters="flops", repeat=1)
    part.equal(f"{name} GEMM {size}: analytic FLOPs", report.total.flops, square.flops)
    measured = report.total.executed_flops
    status, why = executed(measured, square)
    check = Check(f"{name} GEMM {size}: executed FLOPs", status, measured, square.flops, 0.0, why)
    unless_missing(part, machine, check, report)
    if name == "fp64":
        return
    tall = Gemm(machine.array_bytes // 2 // element // 256, 256, 256, element)
    report = machine.profile(f"tall {name}", prepared(machine, name, tall))
    twice = tall.least_bytes + tall.m * tall.k * element
    check = near(f"tall {name}: DRAM bytes", report.total.dram_bytes, tall.least_bytes, twice)
    unless_missing(part, machine, check, report)


# Volatile: none of these instructions may be merged or dropped. What the thread holds depends on all of them.
_SOURCE = """
extern "C" __global__ void NAME(TYPE* out, int iterations) {
  TYPE x = (TYPE)threadIdx.x;
  const TYPE y = (TYPE)(blockIdx.x + 1);
#pragma unroll 1
  for (int i = 0; i < iterations; ++i) {
#pragma unroll
    for (int j = 0; j < 16; ++j) asm volatile("PTX" : "+REGISTER"(x) : "REGISTER"(y));
  }
  if (iterations < 0) out[threadIdx.x] = x;
}
"""
# The PTX, the type, its register, and the FLOPs that one of it does in one thread: four where two halves are packed.
# add.rn.f16x2 is not among them: from sm_80 on half of its instructions become a fused multiply-add.
INSTRUCTIONS = {
    "fma_f32": ("fma.rn.f32 %0, %0, %1, %1;", "float", "f", 2),
    "add_f32": ("add.rn.f32 %0, %0, %1;", "float", "f", 1),
    "fma_f64": ("fma.rn.f64 %0, %0, %1, %1;", "double", "d", 2),
    "fma_f16x2": ("fma.rn.f16x2 %0, %0, %1, %1;", "unsigned", "r", 4),
}


def compiled(name: str) -> Callable[..., Any]:
    """The kernel, by the NVRTC that torch brings: kernel(grid, block, args)."""
    # torch looks for CUDA's headers, which these kernels do not need, and refuses to compile where it knows no folder;
    # and it looks for NVRTC on the search path, where pip's is not.
    of_pip = Path(torch.__file__).parents[1] / "nvidia" / "cu13"
    os.environ.setdefault("CUDA_HOME", str(of_pip))
    for library in (of_pip / "lib").glob("libnvrtc.so.*"):
        ctypes.CDLL(str(library))
    ptx, c_type, register, _ = INSTRUCTIONS[name]
    source = _SOURCE.replace("NAME", name).replace("TYPE", c_type).replace("PTX", ptx).replace("REGISTER", register)
    return (getattr(torch.cuda, "compile_kernel", None) or torch.cuda._compile_kernel)(source, name)


def check_instructions(part: Part, machine: Machine) -> None:
    """Kernels whose every instruction is known: what counts as one depends on the chip."""
    machine.needs_gpu()
    out = torch.zeros(256, dtype=torch.float64, device=machine.tensors)
    for name, (*_, flops) in INSTRUCTIONS.items():
        kernel = compiled(name)
        launch = functools.partial(kernel, grid=(256, 1, 1), block=(256, 1, 1), args=[out, 1000])
        report = machine.profile(f"instruction {name}", launch, counters="flops", repeat=1)
        check = near(f"{name}: executed FLOPs of known instructions", report.total.executed_flops,
                     256 * 256 * 1000 * 16 * flops, tolerance=STRAY_INSTRUCTIONS)  # fmt: skip
        unless_missing(part, machine, check, report)


def run(part: Part, machine: Machine) -> None:
    part.fact("bytes of one array", machine.array_bytes)
    check_streams(part, machine)
    for name in DTYPES:
        with part.stage(f"{name} GEMM"):
            check_product(part, machine, name)
    with part.stage("known instructions"):
        check_instructions(part, machine)
