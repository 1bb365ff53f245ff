"""Write the AOTInductor package that run_package profiles: `python save_package.py MODEL.pt2`.

The counts of roofprof ride in the package's metadata, so that profiles of it have the work of the model's modules.
"""

from __future__ import annotations

import sys

import torch
from torch import nn
from torch._inductor import aoti_compile_and_package

import roofprof


class Net(nn.Module):
    """An image classifier."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, width, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, stride=2, padding=1),
            nn.ReLU(),
        )
        self.scores = nn.Linear(width, 10)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.scores(self.features(image).mean(dim=[2, 3]))


def save(path: str) -> None:
    """Write the package to that file."""
    with torch.no_grad():
        program = torch.export.export(Net().eval(), (torch.randn(1, 3, 64, 64),))
        aoti_compile_and_package(
            program,
            package_path=path,
            inductor_configs={"aot_inductor.metadata": roofprof.package_metadata(program)},
        )


if __name__ == "__main__":
    save(sys.argv[1])
