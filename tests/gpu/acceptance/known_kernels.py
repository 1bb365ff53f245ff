"""Kernels whose every instruction is known, compiled by the NVRTC that torch brings. Tensors go in as pointers."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from acceptance.closed_forms import INSTRUCTIONS_PER_ITERATION, hand_written

THREADS = 256

# Volatile: none of these instructions may be merged or dropped. What the thread holds depends on all of them.
_SOURCE = """
extern "C" __global__ void NAME(TYPE* out, int iterations) {
  TYPE x = (TYPE)threadIdx.x;
  const TYPE y = (TYPE)(blockIdx.x + 1);
#pragma unroll 1
  for (int i = 0; i < iterations; ++i) {
#pragma unroll
    for (int j = 0; j < COUNT; ++j) asm volatile("INSTRUCTION" : "+REGISTER"(x) : "REGISTER"(y));
  }
  if (iterations < 0) out[threadIdx.x] = x;
}
"""


@dataclass(frozen=True)
class Instruction:
    """One PTX instruction, and the FLOPs that one of it does in one thread."""

    name: str
    ptx: str
    c_type: str
    register: str
    flops: int

    @property
    def source(self) -> str:
        """CUDA C++ of a kernel that does little else."""
        words = {"NAME": self.name, "TYPE": self.c_type, "COUNT": str(INSTRUCTIONS_PER_ITERATION)}
        words |= {"INSTRUCTION": self.ptx, "REGISTER": self.register}
        text = _SOURCE
        for word, by in words.items():
            text = text.replace(word, by)
        return text


# add.rn.f16x2 is not among them: from sm_80 on half of its instructions become a fused multiply-add.
INSTRUCTIONS = (
    Instruction("fma_f32", "fma.rn.f32 %0, %0, %1, %1;", "float", "f", 2),
    Instruction("add_f32", "add.rn.f32 %0, %0, %1;", "float", "f", 1),
    Instruction("fma_f64", "fma.rn.f64 %0, %0, %1, %1;", "double", "d", 2),
    Instruction("fma_f16x2", "fma.rn.f16x2 %0, %0, %1, %1;", "unsigned", "r", 4),  # packed: two numbers in a register
)


def compiled(instruction: Instruction) -> Callable[..., Any]:
    """The kernel, for this process's GPU: kernel(grid, block, args)."""
    # torch looks for CUDA's headers, which these kernels do not need, and refuses to compile where it knows no folder;
    # and it looks for NVRTC on the search path, where pip's is not.
    of_pip = Path(torch.__file__).parents[1] / "nvidia" / "cu13"
    os.environ.setdefault("CUDA_HOME", str(of_pip))
    for library in (of_pip / "lib").glob("libnvrtc.so.*"):
        ctypes.CDLL(str(library))
    compile_kernel = getattr(torch.cuda, "compile_kernel", None) or torch.cuda._compile_kernel
    return compile_kernel(instruction.source, instruction.name)


def launcher(instruction: Instruction, blocks: int, iterations: int) -> tuple[Callable[[], None], int]:
    """What launches it once on torch's stream, and the FLOPs that this does."""
    kernel = compiled(instruction)
    out = torch.zeros(THREADS, dtype=torch.float64, device="cuda")

    def launch() -> None:
        kernel(grid=(blocks, 1, 1), block=(THREADS, 1, 1), args=[out, iterations])

    return launch, hand_written(blocks, THREADS, iterations, instruction.flops)
