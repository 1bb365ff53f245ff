"""Profile a detector that takes a list of images of several sizes: torchvision's Faster R-CNN, called and trained.

python examples/detection.py
roofprof profile examples/detection.py:build --inputs examples/detection.py:batch --depth 2
"""

from __future__ import annotations

import torch
from torchvision.models import detection

import roofprof


def build() -> detection.FasterRCNN:
    return detection.fasterrcnn_mobilenet_v3_large_320_fpn(weights=None, weights_backbone=None).eval()


def batch() -> list[torch.Tensor]:
    return [torch.rand(3, 240, 320), torch.rand(3, 200, 300)]


def targets() -> list[dict[str, torch.Tensor]]:
    """Return two objects in the first image, one in the second: corners in pixels, and classes."""
    first = {"boxes": torch.tensor([[10.0, 10, 90, 100], [20, 30, 160, 170]]), "labels": torch.tensor([1, 2])}
    return [first, {"boxes": torch.tensor([[50.0, 60, 200, 180]]), "labels": torch.tensor([3])}]


def proposals(report: roofprof.Report) -> int:
    """Return the number of boxes that the first stage handed to the second; it depends on the images' values."""
    boxes = report.row("roi_heads.box_head.fc6").macs // (256 * 7 * 7 * 1024)
    return boxes or 0


def train(steps: int) -> roofprof.Report:
    """Profile a block of training steps; given targets, the model returns losses by name."""
    model = build().train()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    profiler = roofprof.RooflineProfiler(model)
    with profiler:
        for _ in range(steps):
            losses = model(batch(), targets())
            sum(losses.values()).backward()
            optimizer.step()
            optimizer.zero_grad()
            profiler.step()
    return profiler.report()


def main() -> None:
    torch.manual_seed(0)
    with torch.no_grad():
        report = roofprof.profile(build(), batch())
    print(report.table(depth=1, legend=False))
    print(f"proposals: {proposals(report)}\n")
    print(report.table(by="op", sort="wasted_time", limit=5, legend=False))
    trained = train(2)
    print(trained.table(depth=1, legend=False))
    for phase, row in trained.by_phase().items():
        print(f"{phase:10}{row.macs / 1e9:8.2f} GMACs")


if __name__ == "__main__":
    main()
