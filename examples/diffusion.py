"""Profile sampling with a diffusion model: diffusers' conditional UNet, smaller than that of Stable Diffusion.

pip install diffusers
python examples/diffusion.py
roofprof profile examples/diffusion.py:build --inputs examples/diffusion.py:batch --depth 2
"""

from __future__ import annotations

from typing import Any

import torch
from diffusers import DDIMScheduler, UNet2DConditionModel

import roofprof

STEPS = 4
TOKENS, TEXT_WIDTH = 77, 256  # of the encoded prompt
LATENTS = (1, 4, 32, 32)  # for an image of 256 x 256 pixels


def build() -> UNet2DConditionModel:
    return UNet2DConditionModel(
        sample_size=LATENTS[-1],
        block_out_channels=(64, 128, 256),
        down_block_types=("CrossAttnDownBlock2D", "CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D", "CrossAttnUpBlock2D"),
        cross_attention_dim=TEXT_WIDTH,
    ).eval()


def batch() -> tuple[tuple[torch.Tensor, int], dict[str, Any]]:
    """Return the positional arguments (latents, time step) and keywords of one call."""
    return (torch.randn(LATENTS), 500), {"encoder_hidden_states": torch.randn(1, TOKENS, TEXT_WIDTH)}


def sample(model: UNet2DConditionModel, steps: int) -> roofprof.Report:
    """Profile the whole loop as a block: each step is a region, which includes the scheduler's arithmetic."""
    scheduler = DDIMScheduler()
    scheduler.set_timesteps(steps)
    (latents, _), prompt = batch()
    profiler = roofprof.RooflineProfiler(model)
    with profiler, torch.no_grad():
        for time in scheduler.timesteps:
            with roofprof.scope("step"):
                noise = model(latents, time, **prompt).sample
                latents = scheduler.step(noise, time, latents).prev_sample
    return profiler.report()


def main() -> None:
    torch.manual_seed(0)
    report = sample(build(), STEPS)
    print(report.table(by="scope", legend=False))
    print(report.table(depth=1, legend=False))
    print(report.table(by="op", sort="wasted_time", limit=5, legend=False))


if __name__ == "__main__":
    main()
