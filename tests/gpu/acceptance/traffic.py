"""Work with known bytes and FLOPs, through roofprof's own counters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

import roofprof
from acceptance.checks import FAIL, PASS, SKIPPED, Check, Part
from acceptance.machine import Machine, notes

# Of DRAM bytes, for arrays so much larger than the L2 that what lies in it before and after hardly counts.
DRAM_TOLERANCE = 0.05
# Beyond the products: what scaling by alpha and beta, adding C and converting cost for each element of the result.
_MOST_EPILOGUE_FLOPS = 16


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


def run(part: Part, machine: Machine) -> None:
    part.fact("bytes of one array", machine.array_bytes)
    check_streams(part, machine)
    for name in DTYPES:
        with part.stage(f"{name} GEMM"):
            check_product(part, machine, name)
