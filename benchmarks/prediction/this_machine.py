"""Compares the times of 20 models on this CPU with those predicted from its measured roofs alone.

    python benchmarks/prediction/this_machine.py

The numbers of CPUs in python/roofprof/data/prediction.json were fitted to another processor and to compiled models;
here models run eagerly, in fp32.
"""

from __future__ import annotations

import numpy as np
import torch
import torchvision

import roofprof

MODELS = {
    "resnet18": 1,
    "resnet50": 1,
    "resnext50_32x4d": 1,
    "wide_resnet50_2": 1,
    "vgg11": 1,
    "alexnet": 4,
    "squeezenet1_1": 1,
    "densenet121": 1,
    "googlenet": 1,
    "mobilenet_v2": 1,
    "mobilenet_v3_large": 4,
    "mnasnet1_0": 1,
    "shufflenet_v2_x1_0": 4,
    "efficientnet_b0": 1,
    "regnet_y_400mf": 1,
    "regnet_x_1_6gf": 1,
    "convnext_tiny": 1,
    "swin_t": 1,
    "vit_b_16": 1,
    "vit_b_32": 4,
}


def main() -> None:
    torch.manual_seed(0)
    ceilings = roofprof.Ceilings.measure("cpu")
    print(f"{'model':20} batch  measured  predicted         80%  pred/meas")
    ratios, inside = [], 0
    for name, batch in MODELS.items():
        options = {"init_weights": False} if name == "googlenet" else {}
        model = torchvision.models.get_model(name, weights=None, **options).eval()
        images = torch.rand(batch, 3, 224, 224)
        with torch.no_grad():
            measured = roofprof.RooflineProfiler(model).time(images, warmup=3, repeat=20, seconds=6.0).median
            total = roofprof.count(model, images).predict(ceilings).total
        ratios.append(total.time / measured)
        inside += total.time_low <= measured <= total.time_high
        print(
            f"{name:20} {batch:5}  {measured * 1e3:6.1f}ms  {total.time * 1e3:7.1f}ms "
            f"{total.time_low * 1e3:5.0f}-{total.time_high * 1e3:.0f}ms  {ratios[-1]:9.2f}",
            flush=True,
        )
    error = np.abs(np.array(ratios) - 1)
    print(
        f"median error {np.median(error):.1%}, 90th percentile {np.quantile(error, 0.9):.1%}, "
        f"median predicted / measured {np.median(ratios):.2f}, "
        f"the nominal 80% interval covers {inside} of {len(MODELS)}"
    )


if __name__ == "__main__":
    main()
