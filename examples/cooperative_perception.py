"""Build a small cooperative-perception model: several vehicles look, one decides. Its forward takes ONE nested dict.

Every agent's bird's-eye-view features are encoded, warped into the ego vehicle's frame by the agents' poses, fused by
attention at each cell, and read by detection heads. Its inputs and outputs have the forms of such models: nested dicts,
lists, strings, ints and None as well as tensors. The number of agents differs from call to call.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Batch = dict[str, Any]


def conv(inputs: int, outputs: int, stride: int = 1) -> nn.Sequential:
    """Return convolution, normalisation and activation: the block of the encoder and the heads."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)
    )


class BevEncoder(nn.Module):
    """Encode an agent's pillars on its bird's-eye-view grid, and those of its last frames, as one feature map."""

    def __init__(self, pillars: int, channels: int) -> None:
        super().__init__()
        self.stem = conv(pillars, channels // 2, stride=2)
        self.stage1 = nn.Sequential(conv(channels // 2, channels, stride=2), conv(channels, channels))
        self.stage2 = nn.Sequential(conv(channels, channels, stride=2), conv(channels, channels))
        self.merge = nn.Conv2d(2 * channels, channels, 1)
        self.history = nn.GRU(channels, channels, batch_first=True)

    def forward(self, agent: Batch) -> Tensor:
        fine = self.stage1(self.stem(agent["bev"]))
        coarse = F.interpolate(self.stage2(fine), size=fine.shape[-2:], mode="bilinear", align_corners=False)
        features = self.merge(torch.cat([fine, coarse], dim=1))
        if agent["history"]:
            past = torch.stack([frame.mean(dim=(-2, -1)) for frame in agent["history"]], dim=1)
            summary = self.history(past)[1][-1]
            features = features + summary[:, :, None, None]
        return features


class PoseWarp(nn.Module):
    """Resample an agent's features on the ego's grid, given both poses (x, y, yaw) in metres and radians."""

    def __init__(self, extent: float) -> None:
        super().__init__()
        self.extent = extent

    def forward(self, features: Tensor, pose: Tensor, ego_pose: Tensor) -> Tensor:
        shift = (pose[:, :2] - ego_pose[:, :2]) / self.extent
        yaw = pose[:, 2] - ego_pose[:, 2]
        rows = [torch.stack([yaw.cos(), -yaw.sin(), shift[:, 0]], dim=1)]
        rows.append(torch.stack([yaw.sin(), yaw.cos(), shift[:, 1]], dim=1))
        grid = F.affine_grid(torch.stack(rows, dim=1), list(features.shape), align_corners=False)
        return F.grid_sample(features, grid, align_corners=False)


class AttentionFusion(nn.Module):
    """Fuse the agents' features: at each cell the ego's features attend to what the agents see there."""

    def __init__(self, channels: int, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(channels, channels)
        self.key_value = nn.Linear(channels, 2 * channels)
        self.project = nn.Linear(channels, channels)
        self.norm = nn.LayerNorm(channels)

    def forward(self, ego: Tensor, agents: list[Tensor]) -> Tensor:
        batch, channels, height, width = ego.shape
        # Cells become the batch: (batch * cells, agents, channels).
        seen = torch.stack(agents, dim=1).permute(0, 3, 4, 1, 2).reshape(-1, len(agents), channels)
        asking = ego.permute(0, 2, 3, 1).reshape(-1, 1, channels)
        query = self.query(asking).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        key, value = self.key_value(seen).unflatten(-1, (2, self.heads, -1)).permute(2, 0, 3, 1, 4)
        fused = F.scaled_dot_product_attention(query, key, value).transpose(1, 2).flatten(2)
        fused = self.norm(asking + self.project(fused))
        return fused.reshape(batch, height, width, channels).permute(0, 3, 1, 2)


class DetectionHead(nn.Module):
    """Compute objectness and boxes (x, y, z, length, width, height, yaw) per cell and anchor."""

    def __init__(self, channels: int, anchors: int) -> None:
        super().__init__()
        self.tower = nn.Sequential(conv(channels, channels), conv(channels, channels))
        self.score = nn.Conv2d(channels, anchors, 1)
        self.box = nn.Conv2d(channels, 7 * anchors, 1)

    def forward(self, features: Tensor) -> dict[str, Tensor]:
        features = self.tower(features)
        return {"score": self.score(features), "box": self.box(features)}


class CooperativePerception(nn.Module):
    """Run the whole model; `example_batch` makes the argument of its forward."""

    def __init__(
        self, pillars: int = 32, channels: int = 64, anchors: int = 2, classes: tuple[str, ...] = ("car", "person")
    ) -> None:
        super().__init__()
        self.encoder = BevEncoder(pillars, channels)
        self.warp = PoseWarp(extent=50.0)
        self.fusion = AttentionFusion(channels)
        self.heads = nn.ModuleDict({name: DetectionHead(channels, anchors) for name in classes})

    def forward(self, batch: Batch) -> Batch:
        ego = self.encoder(batch["ego"])
        ego_pose = batch["ego"]["pose"]
        views, used = [ego], ["ego"]
        for name, agent in batch["agents"].items():
            if agent["meta"]["delay_ms"] > batch["ego"]["meta"]["max_delay_ms"]:
                continue  # too old to be of use
            views.append(self.warp(self.encoder(agent), agent["pose"], ego_pose))
            used.append(name)
        fused = self.fusion(ego, views)
        detections = {name: head(fused) for name, head in self.heads.items()}
        loss = None if batch["labels"] is None else F.mse_loss(detections["car"]["score"], batch["labels"])
        return {"detections": detections, "per_agent": views, "used": used, "loss": loss}


def example_batch(agents: int = 3, *, pillars: int = 32, channels: int = 64, size: int = 128) -> Batch:
    """Return one scene: the ego and `agents` others, the last of them too late to count."""

    def agent(index: int, **meta: Any) -> Batch:
        return {
            "bev": torch.randn(1, pillars, size, size),
            "pose": torch.tensor([[3.0 * index, -2.0 * index, 0.1 * index]]),
            "history": [torch.randn(1, channels, 8, 8) for _ in range(index)],
            "meta": {"sensor": "lidar", "beams": 64, "calibration": None, **meta},
        }

    others = {f"car_{i}": agent(i, delay_ms=500 if i == agents else 40 * i) for i in range(1, agents + 1)}
    return {"ego": agent(0, max_delay_ms=200), "agents": others, "labels": None}
