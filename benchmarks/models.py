"""The models that the benchmarks run, in plain torch: nothing here knows of any profiler."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class AddChain(nn.Module):
    """Additions of 16 elements one after the other: nothing but the cost of dispatching."""

    def __init__(self, length: int = 2000) -> None:
        super().__init__()
        self.length = length

    def forward(self, x: Tensor) -> Tensor:
        y = x
        for _ in range(self.length):
            y = y + x
        return y


class Repeated(nn.Module):
    """Calls of one function or module with the same input."""

    def __init__(self, call: Callable[[Tensor], Tensor], times: int = 500) -> None:
        super().__init__()
        self.call, self.times = call, times

    def forward(self, x: Tensor) -> Tensor:
        y = x
        for _ in range(self.times):
            y = self.call(x)
        return y


# ---- GPT-2 (small): learned positions, LayerNorm before each part, GELU


class Gpt2Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(self.norm1(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    """GPT-2 small's shape: 12 layers of width 768, 12 heads, 50257 words; the head shares the embedding."""

    def __init__(self, layers: int = 12, width: int = 768, heads: int = 12, vocabulary: int = 50257) -> None:
        super().__init__()
        self.words, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(1024, width)
        self.blocks = nn.ModuleList(Gpt2Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.words.weight

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.words(tokens) + self.positions(torch.arange(tokens.shape[-1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


# ---- Llama 3: rotary positions, grouped queries, RMSNorm, SwiGLU


@dataclass(frozen=True)
class LlamaShape:
    """The sizes that fix a model's work."""

    layers: int
    width: int
    heads: int
    key_heads: int
    hidden: int
    vocabulary: int

    def macs(self, tokens: int) -> int:
        """Multiply-accumulates of one forward over `tokens` tokens, in closed form, attention dense."""
        head = self.width // self.heads
        projections = 2 * self.width * self.width + 2 * self.width * self.key_heads * head
        attention = 2 * tokens * self.width
        layer = projections + attention + 3 * self.width * self.hidden
        return tokens * (self.layers * layer + self.width * self.vocabulary)


LLAMA_3_70B = LlamaShape(layers=80, width=8192, heads=64, key_heads=8, hidden=28672, vocabulary=128256)


def rotate(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    return x * cosine + torch.cat((-second, first), dim=-1) * sine


class LlamaBlock(nn.Module):
    def __init__(self, shape: LlamaShape) -> None:
        super().__init__()
        self.head = shape.width // shape.heads
        self.norm1, self.norm2 = nn.RMSNorm(shape.width), nn.RMSNorm(shape.width)
        self.q = nn.Linear(shape.width, shape.width, bias=False)
        self.k = nn.Linear(shape.width, shape.key_heads * self.head, bias=False)
        self.v = nn.Linear(shape.width, shape.key_heads * self.head, bias=False)
        self.out = nn.Linear(shape.width, shape.width, bias=False)
        self.gate = nn.Linear(shape.width, shape.hidden, bias=False)
        self.up = nn.Linear(shape.width, shape.hidden, bias=False)
        self.down = nn.Linear(shape.hidden, shape.width, bias=False)

    def forward(self, x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        y = self.norm1(x)
        q, k, v = (part(y).unflatten(-1, (-1, self.head)).transpose(1, 2) for part in (self.q, self.k, self.v))
        q, k = rotate(q, cosine, sine), rotate(k, cosine, sine)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.out(attended.transpose(1, 2).flatten(2))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    """A decoder of Llama 3's kind."""

    def __init__(self, shape: LlamaShape) -> None:
        super().__init__()
        self.words = nn.Embedding(shape.vocabulary, shape.width)
        self.blocks = nn.ModuleList(LlamaBlock(shape) for _ in range(shape.layers))
        self.norm = nn.RMSNorm(shape.width)
        self.output = nn.Linear(shape.width, shape.vocabulary, bias=False)
        head = shape.width // shape.heads
        self.register_buffer("frequencies", 500000.0 ** (torch.arange(0, head, 2) / -head), persistent=False)

    def forward(self, tokens: Tensor) -> Tensor:
        positions = torch.arange(tokens.shape[-1], device=tokens.device)
        angles = torch.outer(positions, self.frequencies).repeat(1, 2)
        x = self.words(tokens)
        cosine, sine = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        for block in self.blocks:
            x = block(x, cosine, sine)
        return self.output(self.norm(x))
