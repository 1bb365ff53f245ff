"""Write the model that run_torchscript profiles: `python save_torchscript.py MODEL.pt`.

It takes one dict, an image and a cloud of points, and gives boxes and their scores.
"""

from __future__ import annotations

import sys

import torch
from torch import nn


class Fusion(nn.Module):
    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.camera = nn.Sequential(
            nn.Conv2d(3, width, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, stride=2, padding=1),
            nn.ReLU(),
        )
        self.lidar = nn.Sequential(nn.Linear(4, width), nn.ReLU(), nn.Linear(width, width))
        self.boxes = nn.Linear(2 * width, 7)
        self.scores = nn.Linear(2 * width, 1)

    def forward(self, batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        seen = self.camera(batch["image"]).mean(dim=[2, 3])
        touched = self.lidar(batch["points"])
        both = torch.cat([touched, seen.unsqueeze(1).expand_as(touched)], dim=-1)
        return {"boxes": self.boxes(both), "scores": self.scores(both).sigmoid()}


def example_batch() -> dict[str, torch.Tensor]:
    """Return tensors of the shapes that run_torchscript.cpp makes."""
    return {"image": torch.randn(1, 3, 64, 64), "points": torch.randn(1, 500, 4)}


if __name__ == "__main__":
    torch.jit.script(Fusion().eval()).save(sys.argv[1])
