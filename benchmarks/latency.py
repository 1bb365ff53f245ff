"""Compares roofprof.time with torch.utils.benchmark.Timer: medians of the same calls, in turn, in one run.

    .venv/bin/python benchmarks/latency.py [--rounds 5] [--threads 1]

Each round times every model with both; the table has the median over the rounds, and the ratio of each round's pair.
"""

from __future__ import annotations

import argparse
import statistics

import torch
import torchvision
from torch import nn
from torch.utils.benchmark import Timer

import roofprof


def models() -> dict[str, tuple[nn.Module, torch.Tensor]]:
    mlp = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256))
    layer = nn.TransformerEncoderLayer(256, 4, batch_first=True)
    return {
        "MLP, 16x256": (mlp.eval(), torch.rand(16, 256)),
        "transformer layer, 4x64x256": (layer.eval(), torch.rand(4, 64, 256)),
        "resnet18, 1x3x64x64": (torchvision.models.resnet18().eval(), torch.rand(1, 3, 64, 64)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    made = models()
    ours: dict[str, list[float]] = {name: [] for name in made}
    torchs: dict[str, list[float]] = {name: [] for name in made}
    with torch.no_grad():
        for _ in range(arguments.rounds):
            for name, (model, given) in made.items():
                timer = Timer("model(x)", globals={"model": model, "x": given}, num_threads=arguments.threads)
                torchs[name].append(timer.blocked_autorange(min_run_time=0.5).median)
                ours[name].append(roofprof.time(model, given).median)
    print(f"{'model':30} {'roofprof':>10} {'Timer':>10}   ratio of each round")
    for name in made:
        ratios = sorted(a / b for a, b in zip(ours[name], torchs[name], strict=True))
        print(
            f"{name:30} {statistics.median(ours[name]) * 1e6:8.1f}us {statistics.median(torchs[name]) * 1e6:8.1f}us   "
            f"{statistics.median(ratios):.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f})"
        )


if __name__ == "__main__":
    main()
