"""Profile torchdrive's model for driving, unchanged, on a dict of images: six cameras to one bird's-eye view.

    pip install --no-deps torchdrive    # 33 kB; only its renderers need pytorch3d, which it requires

The package asks torchvision for the weights of its backbones. This script puts random ones where torchvision looks for
earlier downloads, so nothing is downloaded and the model is not changed. Neither work nor time depends on weights.

    python examples/perception.py
    roofprof profile examples/perception.py:build --inputs examples/perception.py:batch --depth 2
"""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path

import torch
import torchvision
from torchdrive.models.bev import CamBEVEncoder

import roofprof

CAMERAS = ["front", "front_left", "front_right", "back", "back_left", "back_right"]
IMAGE = (240, 320)  # pixels
GRID = (16, 16)  # cells of the bird's-eye view
WIDTH = 96


def build() -> CamBEVEncoder:
    before = torch.hub.get_dir()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torchvision warns about the way the package asks
        url = torchvision.models.RegNet_X_800MF_Weights.IMAGENET1K_V1.url
        (Path(folder) / "checkpoints").mkdir()
        torch.save(torchvision.models.regnet_x_800mf().state_dict(), Path(folder) / "checkpoints" / Path(url).name)
        torch.hub.set_dir(folder)
        try:
            return CamBEVEncoder(CAMERAS, bev_shape=GRID, cam_shape=IMAGE, dim=WIDTH).eval()
        finally:
            torch.hub.set_dir(before)


def batch() -> dict[str, torch.Tensor]:
    return {camera: torch.rand(1, 3, *IMAGE) for camera in CAMERAS}


def main() -> None:
    torch.manual_seed(0)
    with torch.no_grad():
        report = roofprof.profile(build(), batch())
    print(report.table(depth=2, legend=False))
    print(report.table(by="op", sort="wasted_time", limit=5, legend=False))


if __name__ == "__main__":
    main()
