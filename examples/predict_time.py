"""Predict the times of three cases with published figures, without the device.

A roofline takes two figures of a device, its peak and its bandwidth. Their quotient is the ridge I_max: what does fewer
FLOPs for each byte is memory bound, at bandwidth x intensity at most, and everything else is compute bound. No kernel
passes the lower bound; the predicted time says what usual kernels take, with an interval. Everything here is counted on
the meta device.

    python examples/predict_time.py

1. A matrix product that should take 0.248 ms on an RTX 4090, and took 203 ms for an old kernel
   (examples/gemv_or_conv.py measures it).
2. YOLOv5m on an RTX 3060: 179.74 FLOPs/B against a ridge of 35.38.
3. MobileNet on a GTX 1080 Ti and on an A100: about 7 FLOPs/B against ridges of 23.35 and 12.5.
"""

from __future__ import annotations

import torch
from torch import nn

import roofprof

LEFT = (600, 200, 8, 1, 64)
RIGHT = (600, 1, 8, 64, 1)
# MobileNet v1: the output channels of each pair of convolutions, and the stride of the first of the two.
BLOCKS = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1)]


def layer(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> nn.Sequential:
    conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(outputs), nn.ReLU())


def mobilenet() -> nn.Sequential:
    layers, width = [layer(3, 32, 3, stride=2)], 32
    for outputs, stride in BLOCKS:
        layers += [layer(width, width, 3, stride, groups=width), layer(width, outputs, 1)]
        width = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 1000))


def fp32_peak(card: str) -> float:
    roofs = roofprof.Ceilings.published(card)
    return next(peak.operations_per_second for peak in roofs.compute if peak.dtype == "fp32")


def bandwidth(card: str) -> float:
    roofs = roofprof.Ceilings.published(card)
    return next(level.bytes_per_second for level in roofs.memory if level.level == "DRAM")


def ridge(card: str) -> float:
    return fp32_peak(card) / bandwidth(card)


def line(what: str, published: str, ours: str) -> None:
    print(f"  {what:<28}{published:>22}  {ours}")


def heading(title: str) -> None:
    print(f"\n{title}")
    line("", "published", "roofprof")


def time_of(report: roofprof.Report) -> str:
    total = report.total
    return f"{1e3 * total.time:.4g} ms (80%: {1e3 * total.time_low:.4g} to {1e3 * total.time_high:.4g} ms)"


def product() -> None:
    """Predict 960,000 dot products of 64 numbers: half a FLOP for each byte."""
    operands = torch.empty(LEFT, device="meta"), torch.empty(RIGHT, device="meta")
    report = roofprof.count(torch.matmul, *operands)
    predicted = report.predict("RTX 4090")
    to_move, to_compute = report.total.bytes / bandwidth("RTX 4090"), report.total.flops / fp32_peak("RTX 4090")
    heading(f"matmul {LEFT} x {RIGHT}, fp32, RTX 4090")
    line("bytes", "250,828,800", f"{report.total.bytes:,}")
    line("bandwidth", "1.01 TB/s", f"{bandwidth('RTX 4090') / 1e12:.4g} TB/s")
    line("to compute", "far less", f"{1e3 * to_compute:.4f} ms")
    line("lower bound", "0.248 ms", f"{1e3 * max(to_move, to_compute):.4f} ms, {predicted.total.bound}")
    line("usual kernels", "0.25 to 0.27 ms", time_of(predicted))
    line("measured, kernel of sm_50", "203 ms", f"{0.202962 / predicted.total.time:.0f} x predicted")


@torch.no_grad()
def convolution() -> None:
    """Predict one 3 x 3 convolution that has the intensity of the whole YOLOv5m."""
    with torch.device("meta"):
        conv, image = nn.Conv2d(64, 128, 3, padding=1, bias=False), torch.empty(1, 64, 80, 80)
    predicted = roofprof.count(conv, image).predict("RTX 3060")
    heading("YOLOv5m, and a convolution like it (64 -> 128, k 3, 80 x 80), fp32, RTX 3060")
    line("peak", "12,737.536 GFLOP/s", f"{fp32_peak('RTX 3060') / 1e9:,.3f} GFLOP/s")
    line("I_max", "35.38", f"{ridge('RTX 3060'):.2f}")
    line("I", "179.74", f"{predicted.total.intensity:.2f}")
    line("bound", "compute", str(predicted.total.bound))
    line("time", "", time_of(predicted))


@torch.no_grad()
def network() -> None:
    """Predict one network on two cards: it is memory bound on both, and nowhere near either peak."""
    with torch.device("meta"):
        model, image = mobilenet().eval(), torch.empty(1, 3, 224, 224)
    report = roofprof.count(model, image)
    heading("MobileNet, fp32, GTX 1080 Ti and A100; times of 32 images")
    line("I", "about 7", f"{report.total.intensity:.2f}")
    published = {
        "GTX 1080 Ti": ("11.3 TFLOP/s, 484 GB/s", "23.35", "at most 3.3 TFLOP/s"),
        "A100 SXM 40GB": ("19.5 TFLOP/s, 1555 GB/s", "12.5", "memory bound"),
    }
    for card, (roofs, i_max, most) in published.items():
        predicted = report.predict(card, batch=32)  # with one image the floor of each op takes most of the time
        line(card, roofs, f"{fp32_peak(card) / 1e12:.4g} TFLOP/s, {bandwidth(card) / 1e9:.4g} GB/s")
        line("  I_max", i_max, f"{ridge(card):.2f}")
        at_seven = f"{7 * bandwidth(card) / 1e12:.2f} TFLOP/s at I = 7"
        line("  bound", most, f"{predicted.total.bound}, {at_seven}")
        line("  time", "", time_of(predicted))


def main() -> None:
    product()
    convolution()
    network()


if __name__ == "__main__":
    main()
