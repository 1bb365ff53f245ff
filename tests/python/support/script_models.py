"""Models that TorchScript can take, each with what its modules do written out."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import roofprof


class Convolved(nn.Module):
    """Two convolutions, of which the second halves the image."""

    def __init__(self, channels: int):
        super().__init__()
        self.first = nn.Conv2d(channels, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.second = nn.Conv2d(8, 8, 3, stride=2, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(F.relu(self.norm(self.first(x))))


class Fusion(nn.Module):
    """Several agents' images in a dict, encoded, warped by affine poses, fused by attention, decoded by heads."""

    def __init__(self):
        super().__init__()
        self.encoder = Convolved(3)
        self.query = nn.Linear(8, 8)
        self.heads = nn.ModuleDict({"score": nn.Conv2d(8, 2, 1), "box": nn.Conv2d(8, 7, 1)})

    def forward(self, batch: dict[str, Tensor], mask: Tensor | None = None) -> dict[str, Tensor]:
        images, poses = batch["images"], batch["poses"]
        agents = self.encoder(images)
        grid = F.affine_grid(poses, list(agents.shape), align_corners=False)
        warped = F.grid_sample(agents, grid, align_corners=False)
        tokens = warped.flatten(2).permute(2, 0, 1)
        scores = torch.matmul(self.query(tokens), tokens.transpose(1, 2))
        if mask is not None:
            scores = scores.masked_fill(mask, -1e9)
        fused = torch.matmul(scores.softmax(-1), tokens)[:, 0].t().reshape(1, 8, agents.size(2), agents.size(3))
        return {name: head(fused) for name, head in self.heads.items()}


def batch_of(agents: int = 3) -> dict[str, Tensor]:
    poses = torch.eye(2, 3).expand(agents, 2, 3).contiguous()
    return {"images": torch.rand(agents, 3, 16, 16), "poses": poses}


class Block(nn.Module):
    """Attention and a feed-forward network, as transformers have them."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads, self.head_width = heads, width // heads  # traced code would divide tensors
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def attend(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, -1, self.head_width).transpose(1, 2).chunk(3, 1)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attend(self.norm_1(x))
        return x + self.mlp(self.norm_2(x))


class Transformer(nn.Module):
    """A small language model with tied embeddings."""

    def __init__(self, width: int = 32, depth: int = 2):
        super().__init__()
        self.embedding = nn.Embedding(50, width)
        self.blocks = nn.ModuleList([Block(width, 4) for _ in range(depth)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 50, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def scaled(x: Tensor, factor: float) -> Tensor:
    """A free function: its work is its caller's."""
    return x * factor + 1.0


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x).relu()

    def twice(self, x: Tensor) -> Tensor:
        return self.linear(self.linear(x)) * 2.0


class Calls(nn.Module):
    """Loops over one module, methods beside forward, free functions, one module under two names and parents."""

    def __init__(self):
        super().__init__()
        self.inner = Inner()
        self.alias = self.inner
        self.holder = nn.Sequential(self.inner, nn.Tanh())
        self.final = nn.Linear(8, 4)

    def forward(self, x: Tensor, times: int = 3) -> Tensor:
        for _ in range(times):
            x = self.inner(x)
        x = self.alias(x)
        x = scaled(self.inner.twice(x), 0.5)
        return self.final(self.holder(x))


class Lists(nn.Module):
    """Two lists, whose modules have the same names."""

    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList([nn.Linear(8, 8) for _ in range(2)])
        self.up = nn.ModuleList([nn.Linear(8, 8) for _ in range(2)])

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.down:
            x = layer(x)
        for layer in self.up:
            x = layer(x)
        return x


class Forks(nn.Module):
    """Branches on other threads: a module, a method, a function."""

    def __init__(self):
        super().__init__()
        self.left = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
        self.right = Inner()
        self.join = nn.Linear(16, 2)

    def forward(self, x: Tensor) -> Tensor:
        left = torch.jit.fork(self.left, x)
        other = torch.jit.fork(scaled, x, 0.5)
        right = self.right(x)
        return self.join(torch.cat([torch.jit.wait(left), right], 1)) + torch.jit.wait(other).sum()


class Kinds(nn.Module):
    """Inputs of all kinds, and a list and a tuple as outputs."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(
        self,
        pair: tuple[Tensor, Tensor],
        many: list[Tensor],
        scale: float | None = None,
    ) -> tuple[list[Tensor], Tensor]:
        total = pair[0] + pair[1]
        return [self.linear(one) for one in many], total if scale is None else total * scale


class Recurrent(nn.Module):
    """Its modules' forward is overloaded."""

    def __init__(self):
        super().__init__()
        self.lstm, self.attention = nn.LSTM(8, 8, 2), nn.MultiheadAttention(8, 2)

    def forward(self, x: Tensor) -> Tensor:
        x, _ = self.lstm(x)
        return self.attention(x, x, x)[0]


def scripted(model: nn.Module, *_: object) -> torch.jit.ScriptModule:
    return torch.jit.script(model)


def figures(report: roofprof.Report) -> dict[str, tuple[object, ...]]:
    """All that must be equal, by module, but for the sizes that traced code reads out of tensors."""
    sizes = {
        group.keys[0]: group.bytes
        for group in report.group("module", "op")
        if group.keys[1] == "aten::_local_scalar_dense"
    }
    return {
        row.path: (row.type, row.calls, row.params, row.macs, row.flops, row.self_bytes - sizes.get(row.path, 0))
        for row in report.rows
    }
