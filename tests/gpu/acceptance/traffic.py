"""Work with known bytes and FLOPs, through roofprof's own counters."""

from __future__ import annotations

import ctypes
import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

import roofprof
from acceptance.checks import FAIL, SKIPPED, Check, Part, between, compared
from acceptance.closed_forms import DRAM_TOLERANCE, Gemm, executed, tall_gemm
from acceptance.known_kernels import INSTRUCTIONS, launcher
from acceptance.machine import Machine, notes

# A constant may be loaded by an instruction that counts as one of a packed fma.
STRAY_INSTRUCTIONS = 1e-3


@dataclass
class Traffic:
    """Something to run, and the bytes that it must move through DRAM."""

    name: str
    call: Callable[[], object]
    dram_bytes: int
    analytic_bytes: int | None = None  # by the definitions of bytes; None: the same as through DRAM
    record_bytes: int | None = None  # of a copy or fill by the driver: what its record names; it may have no counters


def streams(machine: Machine) -> Iterator[Traffic]:
    """Each of the usual kernels on arrays far larger than the L2."""
    n = machine.array_bytes
    a, b, c = (torch.rand(n // 4, device=machine.tensors) for _ in range(3))
    yield Traffic("triad a = b + 3c", lambda: torch.add(b, c, alpha=3.0, out=a), 3 * n)
    yield Traffic("scale a = 2b", lambda: torch.mul(b, 2.0, out=a), 2 * n)
    yield Traffic("fill_", lambda: a.fill_(1.0), n)
    yield Traffic("zero_", a.zero_, n)
    yield Traffic("sum", lambda: b.sum(), n, analytic_bytes=n + 4)
    yield Traffic("copy_", lambda: a.copy_(b), 2 * n, record_bytes=n)
    if not machine.simulated:
        yield Traffic("memset of the driver's", memset(a), n, analytic_bytes=0, record_bytes=n)


def memset(array: torch.Tensor) -> Callable[[], None]:
    """cuMemsetD32Async on torch's stream: no op of torch's is sure to use it."""
    libcuda = ctypes.CDLL("libcuda.so.1")

    def fill() -> None:
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        pointer, count = ctypes.c_uint64(array.data_ptr()), ctypes.c_size_t(array.numel())
        code = libcuda.cuMemsetD32Async(pointer, ctypes.c_uint(0), count, stream)
        if code:
            raise RuntimeError(f"cuMemsetD32Async failed with {code}")

    return fill


def dram_check(machine: Machine, traffic: Traffic, report: roofprof.Report) -> Check:
    """Measured bytes against the closed form. None is no pass, but may have a good reason."""
    name, measured = f"{traffic.name}: DRAM bytes", report.total.dram_bytes
    if measured is None and not machine.counters_permitted:
        return Check(name, SKIPPED, None, traffic.dram_bytes, explanation=f"no permission: {notes(report)}")
    if measured is None and traffic.record_bytes is not None:
        return Check(name, SKIPPED, None, traffic.dram_bytes, explanation=f"not by a kernel: {notes(report)}")
    why = notes(report) if measured is None else ""
    return compared(name, measured, traffic.dram_bytes, DRAM_TOLERANCE, why)


def check_streams(part: Part, machine: Machine) -> None:
    for traffic in streams(machine):
        with part.stage(traffic.name):
            work = {"dram_bytes": traffic.dram_bytes, "copied": traffic.record_bytes or 0}
            report = machine.profile(f"traffic {traffic.name}", machine.call(traffic.call, **work))
            expected = traffic.dram_bytes if traffic.analytic_bytes is None else traffic.analytic_bytes
            part.equal(f"{traffic.name}: analytic bytes", report.total.bytes, expected)
            part.add(dram_check(machine, traffic, report))
            moved = sum(kernel.bytes or 0 for kernel in report.kernels if kernel.kind != "kernel")
            if traffic.record_bytes is not None:
                part.equal(f"{traffic.name}: bytes that its record names", moved, traffic.record_bytes)
            if report.total.time:
                rate = traffic.dram_bytes / report.total.time
                part.fact(f"{traffic.name}: GB/s by the closed form", round(rate * 1e-9, 1))


@dataclass
class Product:
    """A matrix product in one arithmetic."""

    name: str
    dtype: torch.dtype
    tf32: bool = False

    def prepare(self, machine: Machine, gemm: Gemm) -> Callable[[], object]:
        torch.backends.cuda.matmul.allow_tf32 = self.tf32
        a = torch.rand(gemm.m, gemm.k, device=machine.tensors).to(self.dtype)
        b = torch.rand(gemm.k, gemm.n, device=machine.tensors).to(self.dtype)
        out = torch.empty(gemm.m, gemm.n, device=machine.tensors, dtype=self.dtype)
        return machine.call(lambda: torch.mm(a, b, out=out), dram_bytes=gemm.least_bytes, flops=gemm.flops)


PRODUCTS = (
    Product("fp32", torch.float32),
    Product("tf32", torch.float32, tf32=True),
    Product("fp16", torch.float16),
    Product("bf16", torch.bfloat16),
    Product("fp64", torch.float64),
)


def check_flops(part: Part, machine: Machine, product: Product) -> None:
    """A square product that divides into every tile: executed FLOPs are 2MNK, or it is said what else was done."""
    size = machine.size(4096, 64)
    gemm = Gemm(size, size, size, product.dtype.itemsize)
    report = machine.profile(f"flops {product.name}", product.prepare(machine, gemm), counters="flops", repeat=1)
    part.equal(f"{product.name} GEMM {size}: analytic FLOPs", report.total.flops, gemm.flops)
    measured = report.total.executed_flops
    status, why = executed(measured, gemm)
    if measured is None:
        status, why = (FAIL if machine.counters_permitted else SKIPPED), notes(report)
    part.add(Check(f"{product.name} GEMM {size}: executed FLOPs", status, measured, gemm.flops, 0.0, why))
    part.fact(f"{product.name} GEMM {size}: kernels", [kernel.name for kernel in report.kernels])


def check_bytes(part: Part, machine: Machine, product: Product) -> None:
    """A tall product moves each byte once; of a square one the operands are the least that it can move.

    Or the tall operand is read for each of two tiles of columns, as the TF32 kernel on an H100 does.
    """
    tall = tall_gemm(machine.array_bytes // 2, product.dtype.itemsize)
    report = machine.profile(f"tall {product.name}", product.prepare(machine, tall))
    traffic = Traffic(f"tall {product.name} GEMM {tall.m}x{tall.n}x{tall.k}", lambda: None, tall.least_bytes)
    check = dram_check(machine, traffic, report)
    if check.status == FAIL and report.total.dram_bytes is not None:
        again = dataclasses.replace(traffic, dram_bytes=tall.least_bytes + tall.m * tall.k * tall.element_bytes)
        check = dram_check(machine, again, report)
        check = dataclasses.replace(check, explanation=f"the tall operand is read twice {check.explanation}".strip())
    part.add(check)

    size = machine.size(8192, 64)
    square = Gemm(size, size, size, product.dtype.itemsize)
    report = machine.profile(f"square {product.name}", product.prepare(machine, square))
    name, measured = f"square {product.name} GEMM {size}: DRAM bytes over the operands' and the result's", None
    if report.total.dram_bytes is not None:
        measured = report.total.dram_bytes / square.least_bytes
    check = between(name, measured, 0.5, 20.0, "tiles are read again where the L2 is too small; less: they lay in it")
    if measured is None:
        check = Check(name, FAIL if machine.counters_permitted else SKIPPED, explanation=notes(report))
    part.add(check)


def check_instructions(part: Part, machine: Machine) -> None:
    """2 FLOPs for a fused multiply-add, 4 where two halves are packed: what counts as one depends on the chip."""
    machine.needs_gpu()
    for instruction in INSTRUCTIONS:
        launch, expected = launcher(instruction, blocks=256, iterations=1000)
        report = machine.profile(f"instruction {instruction.name}", launch, counters="flops", repeat=1)
        name, measured = f"{instruction.name}: executed FLOPs of known instructions", report.total.executed_flops
        if measured is None and not machine.counters_permitted:
            part.skip(name, notes(report))
        else:
            part.near(name, measured, expected, STRAY_INSTRUCTIONS, "" if measured else notes(report))


def run(part: Part, machine: Machine) -> None:
    part.fact("bytes of one array", machine.array_bytes)
    check_streams(part, machine)
    for product in PRODUCTS:
        with part.stage(f"{product.name} GEMM, FLOPs"):
            check_flops(part, machine, product)
    for product in PRODUCTS[:4]:
        with part.stage(f"{product.name} GEMM, bytes"):
            check_bytes(part, machine, product)
    with part.stage("known instructions"):
        check_instructions(part, machine)
    torch.backends.cuda.matmul.allow_tf32 = False
