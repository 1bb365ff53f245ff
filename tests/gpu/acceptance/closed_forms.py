"""What known work must come to, by hand: bytes, FLOPs, and how far counters may be from them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from acceptance.checks import FAIL, PASS

GIB = 1 << 30
# Of DRAM bytes, for arrays so much larger than the L2 that what lies in it before and after hardly counts.
DRAM_TOLERANCE = 0.05
_CACHES_PER_ARRAY = 32
_MOST_ARRAYS_AT_ONCE = 8
# Beyond the products: what scaling by alpha and beta, adding C and converting cost for each element of the result.
_MOST_EPILOGUE_FLOPS = 16


def array_bytes(l2_bytes: int, free_bytes: int) -> int:
    """Of one array: the power of two that holds 32 L2 caches, less on a card without room for eight such arrays."""
    wanted = 1 << (max(_CACHES_PER_ARRAY * l2_bytes, GIB) - 1).bit_length()
    while wanted * _MOST_ARRAYS_AT_ONCE > free_bytes:
        wanted //= 2
    return wanted


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


def tall_gemm(result_bytes: int, element_bytes: int) -> Gemm:
    """Two tall matrices of that many bytes; the small one between them stays in a cache, so each byte moves once."""
    width = 256
    return Gemm(result_bytes // element_bytes // width, width, width, element_bytes)


def executed(flops: float | None, gemm: Gemm) -> tuple[str, str]:
    """Whether counted FLOPs are a product's 2MNK, or those and what an epilogue does to each element of the result."""
    if flops is None:
        return FAIL, "not measured"
    excess = (flops - gemm.flops) / (gemm.m * gemm.n)
    if excess == 0:
        return PASS, "exactly 2MNK"
    if 0 < excess <= _MOST_EPILOGUE_FLOPS:
        return PASS, f"2MNK and {excess:.4g} FLOPs for each element of the result: the kernel's epilogue"
    return FAIL, f"{flops / gemm.flops:.6g} x 2MNK, which no epilogue explains"


# In each thread and iteration: so many instructions of a kind (known_kernels.py), each with so many FLOPs.
INSTRUCTIONS_PER_ITERATION = 16


def hand_written(blocks: int, threads: int, iterations: int, flops_per_instruction: int) -> int:
    """FLOPs of one of known_kernels' kernels."""
    return blocks * threads * iterations * INSTRUCTIONS_PER_ITERATION * flops_per_instruction


def device_work(trace: dict) -> tuple[int, float]:
    """In a trace that torch.profiler exported: how many kernels, and the seconds of all kernels, copies and fills.

    The driver runs large fills of a graph as the kernel memset32.
    """
    events = [event for event in trace["traceEvents"] if event.get("ph") == "X"]
    kernels = [event for event in events if event.get("cat") == "kernel"]
    others = [event for event in events if event.get("cat") in {"gpu_memcpy", "gpu_memset"}]
    fills = [event for event in kernels if event.get("name") == "memset32"]
    return len(kernels) - len(fills), sum(event["dur"] for event in kernels + others) * 1e-6


def busy_seconds(trace: dict) -> float:
    """In such a trace: the seconds in which at least one kernel, copy or fill ran."""
    kinds = {"kernel", "gpu_memcpy", "gpu_memset"}
    spans = sorted(
        (event["ts"], event["ts"] + event["dur"])
        for event in trace["traceEvents"]
        if event.get("ph") == "X" and event.get("cat") in kinds
    )
    busy, until = 0.0, -math.inf
    for begin, end in spans:
        busy += max(0.0, end - max(begin, until))
        until = max(until, end)
    return busy * 1e-6


def rates_of(ends: Sequence[float], durations: Sequence[float], first: float, last: float) -> tuple[float, float]:
    """The median duration of calls in a row within the first moments, and in the last ones, one call at least in each.

    ends, durations: of each call, in seconds; first, last: how many seconds the moments are.
    """
    at_first = [took for end, took in zip(ends, durations, strict=True) if end <= first] or durations[:1]
    at_last = [took for end, took in zip(ends, durations, strict=True) if end > ends[-1] - last]
    return statistics.median(at_first), statistics.median(at_last)
