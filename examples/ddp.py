"""Profile data parallelism on two ranks of this machine, in one report: rank 1 has twice the batch, and is slow.

    torchrun --nproc-per-node 2 examples/ddp.py

On CPUs it runs over gloo, on GPUs over NCCL.
"""

from __future__ import annotations

import os

import torch
import torch.distributed as dist
from torch import nn

import roofprof

STEPS = 5


def build() -> nn.Sequential:
    layers = [nn.Linear(512, 512) for _ in range(4)]
    return nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 512), nn.GELU(), *layers, nn.Linear(512, 10))


def main() -> None:
    on_gpu = torch.cuda.is_available()
    dist.init_process_group("nccl" if on_gpu else "gloo")
    rank = dist.get_rank()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if on_gpu else torch.device("cpu")
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(build().to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    images = torch.rand(64 * (1 + rank), 3, 32, 32, device=device)
    model(images).sum().backward()  # the first step sets up buckets

    profiler = roofprof.RooflineProfiler(model)
    with profiler:
        for _ in range(STEPS):
            optimizer.zero_grad()
            model(images).square().mean().backward()
            optimizer.step()
            profiler.step()
    merged = roofprof.gather(profiler.report())
    if merged:
        print(merged.table(by="rank"))
        print(merged.table(depth=2, legend=False))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
