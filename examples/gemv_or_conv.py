"""Measure a matrix product that should take a quarter of a millisecond, and show why it takes longer.

(600, 200, 8, 1, 64) x (600, 1, 8, 64, 1) in fp32 is 960,000 dot products of 64 numbers: half a FLOP for each byte. A
roofline predicts its time: the larger of its FLOPs at the machine's peak and its bytes at the machine's bandwidth. The
bandwidth is roofprof's own measurement; the peak is the rate of a convolution, which is arithmetic and little else. On
an RTX 4090 the prediction was 0.27 ms, and 203 ms passed: the table of kernels showed a matrix-vector kernel that had
been built for a much older GPU.

    python examples/gemv_or_conv.py                     # on the GPU where there is one; on the CPU with fewer calls
    python examples/gemv_or_conv.py --device cpu --full # the convolution of the case on the CPU, too: minutes
    python examples/gemv_or_conv.py --published "RTX 4090"    # what that card would need
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import torch
from torch import nn

import roofprof

LEFT = (600, 200, 8, 1, 64)
RIGHT = (600, 1, 8, 64, 1)


@dataclass
class Roof:
    """A rate that nothing on this machine passes, and its source."""

    rate: float
    source: str

    def time_for(self, amount: float) -> float:
        return amount / self.rate


def dram(roofs: roofprof.Ceilings) -> Roof:
    level = next(level for level in roofs.memory if level.level == "DRAM")
    return Roof(level.bytes_per_second, f"{level.provenance.source}: {level.provenance.method}")


def fp32(roofs: roofprof.Ceilings) -> Roof:
    peak = next(peak for peak in roofs.compute if peak.dtype == "fp32")
    return Roof(peak.operations_per_second, f"{peak.provenance.source}: {peak.provenance.method}")


@dataclass
class Bench:
    """The options of every profile here. Without given roofs they use this machine's, measured once and kept."""

    device: str
    roofs: roofprof.Ceilings | None
    quick: bool

    def profile(self, what: object, *args: torch.Tensor) -> roofprof.Report:
        warmup, repeat = (1, 2) if self.quick else (3, 10)
        profiler = roofprof.RooflineProfiler(
            what, warmup=warmup, repeat=repeat, device=self.device, ceilings=self.roofs
        )
        with torch.no_grad():
            return profiler.run(*args)

    def convolution(self) -> roofprof.Report:
        """Profile a convolution: 2 x 512 x 512 x 5 x 5 x 256 x 256 = 858,993,459,200 FLOPs on 1 x 512 x 256 x 256."""
        size = 32 if self.quick else 256
        model = nn.Conv2d(512, 512, kernel_size=5, padding=2, bias=False, device=self.device)
        return self.profile(model, torch.rand(1, 512, size, size, device=self.device))

    def product(self) -> roofprof.Report:
        return self.profile(torch.matmul, torch.rand(LEFT, device=self.device), torch.rand(RIGHT, device=self.device))


def show(report: roofprof.Report, compute: Roof, memory: Roof) -> None:
    """Print the predicted time, the actual time, and the share of the roof that was reached."""
    total = report.total
    to_compute, to_move = compute.time_for(total.flops), memory.time_for(total.bytes)
    predicted, actual = max(to_compute, to_move), total.time
    print(f"\nmatmul {LEFT} x {RIGHT}, fp32")
    print(f"  FLOPs          {total.flops:,}")
    print(f"  bytes          {total.bytes:,}  ({total.flops / total.bytes:.2f} FLOPs/B)")
    print(f"  to compute     {1e3 * to_compute:.4f} ms")
    print(f"  to move        {1e3 * to_move:.4f} ms")
    print(f"  predicted      {1e3 * predicted:.4f} ms, {'memory' if to_move > to_compute else 'compute'} bound")
    print(f"  actual         {1e3 * actual:.4f} ms, {actual / predicted:.1f} x predicted")
    print(f"  % of roof      {100 * predicted / actual:.1f}")
    if actual < predicted:
        print("  faster than its roof: what it reads lies in a cache, or a roof was measured on a busy machine")


def show_kernels(report: roofprof.Report) -> None:
    """Print the kernels that ran behind the one line of Python, and the GPUs that they were built for."""
    if not report.device.startswith("cuda"):
        print("\nOnly a run on a GPU shows which kernels ran, and which GPUs they were built for.")
        return
    print(f"\n{report.table(by='kernel', limit=8)}")
    for kernel in (kernel for kernel in report.kernels if kernel.kind == "kernel"):
        built_for = kernel.built_for or "an architecture that its name does not tell"
        print(f"  built for {built_for}: {kernel.name[:90]}")


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Predicted and actual time of one matrix product.")
    parser.add_argument("--device", default="cuda:0" if torch.cuda.is_available() else "cpu")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="a smaller convolution and fewer calls, as on a CPU")
    size.add_argument("--full", action="store_true", help="the whole convolution and ten calls, as on a GPU")
    roofs = parser.add_mutually_exclusive_group()
    roofs.add_argument("--published", metavar="CARD", help="predict with a card's published roofs, not this machine's")
    roofs.add_argument("--ceilings", metavar="FILE", help="roofs that `roofprof ceilings --json` wrote")
    return parser.parse_args()


def main() -> None:
    given = options()
    # TF32 is another arithmetic with a higher roof, so it is off.
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    roofs = None
    if given.published:
        roofs = roofprof.Ceilings.published(given.published)
    elif given.ceilings:
        roofs = roofprof.Ceilings.load(given.ceilings)
    on_cpu = given.device.startswith("cpu")
    bench = Bench(given.device, roofs, quick=given.quick or (on_cpu and not given.full))

    conv = bench.convolution()
    reached = Roof(conv.total.flops / conv.total.time, "what the convolution reaches")
    # Published roofs ask for the time on that card, so the rate of this machine does not count.
    compute = fp32(conv.ceilings) if given.published else reached
    memory = dram(conv.ceilings)
    print(f"device           {conv.environment.get('gpu_device') or conv.environment['device']}")
    print(f"convolution      {conv.total.flops:,} FLOPs in {1e3 * conv.total.time:.4f} ms")
    print(f"compute roof     {compute.rate / 1e12:.4g} TFLOP/s  ({compute.source})")
    print(f"memory roof      {memory.rate / 1e12:.4g} TB/s  ({memory.source})")

    matmul = bench.product()
    show(matmul, compute, memory)
    show_kernels(matmul)
    for note in matmul.coverage.notes:
        print(f"note: {note}")


if __name__ == "__main__":
    main()
