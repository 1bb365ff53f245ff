"""Small models that several tests share, in plain torch."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

# Of torchvision's classification models, those that every run takes; the rest are marked slow.
ONE_OF_EACH_KIND = {
    "convnext_tiny",
    "efficientnet_b0",
    "googlenet",
    "inception_v3",
    "maxvit_t",
    "mobilenet_v2",
    "regnet_y_400mf",
    "resnet18",
    "shufflenet_v2_x1_0",
    "squeezenet1_1",
    "swin_t",
    "vit_b_16",
}


def vision(name):
    """Return a function that makes a model of torchvision's, which is imported then: not every run has it."""

    def make():
        import torchvision

        return torchvision.models.get_model(name, weights=None)

    return make


def named(models, *integrations):
    """Return the names of models as a test's parameters; those that need a package of integrations have the mark."""
    return [pytest.param(name, marks=pytest.mark.integration) if name in integrations else name for name in models]


class LeNet(nn.Module):
    """Two convolutions and three linear layers, for one image of 1x32x32."""

    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 6, 3), nn.Conv2d(6, 16, 3)
        self.fc1, self.fc2, self.fc3 = nn.Linear(576, 120), nn.Linear(120, 84), nn.Linear(84, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = F.relu(self.fc1(x.flatten(1)))
        return self.fc3(F.relu(self.fc2(x)))


class ResNet(nn.Module):
    """Convolutions with batch norms, one around a shortcut with a convolution of its own, for images of 3 channels."""

    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.conv2, self.bn2 = nn.Conv2d(8, 16, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(16)
        self.shortcut = nn.Sequential(nn.Conv2d(8, 16, 1, stride=2, bias=False), nn.BatchNorm2d(16))
        self.pool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(16, 10)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.relu(self.bn2(self.conv2(x)) + self.shortcut(x))
        return self.fc(self.pool(x).flatten(1))


class Residual(nn.Module):
    """x + f(x) twice: gradients meet, so that the engine itself adds them up."""

    def __init__(self, width=8):
        super().__init__()
        self.first, self.second = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        x = x + torch.tanh(self.first(x))
        return x + torch.tanh(self.second(x))


# ---- decoders


class Gpt2Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        q, k, v = self.qkv(self.norm1(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    """GPT-2's plan in small: learned positions, LayerNorm first, GELU, the head shares the embedding."""

    def __init__(self, layers=2, width=32, heads=4, vocabulary=97, longest=64):
        super().__init__()
        self.words, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(longest, width)
        self.blocks = nn.ModuleList(Gpt2Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.words.weight

    def forward(self, tokens):
        x = self.words(tokens) + self.positions(torch.arange(tokens.shape[-1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class LlamaBlock(nn.Module):
    """Grouped queries, rotary positions, SwiGLU."""

    def __init__(self, width, heads, key_heads, hidden):
        super().__init__()
        self.head = width // heads
        self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
        self.q, self.out = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.k, self.v = (nn.Linear(width, key_heads * self.head, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(width, hidden, bias=False) for _ in range(2))
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x, cos, sin):
        y = self.norm1(x)
        q, k, v = (part(y).unflatten(-1, (-1, self.head)).transpose(1, 2) for part in (self.q, self.k, self.v))
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.out(attended.transpose(1, 2).flatten(2))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


def rotate(x, cos, sin):
    left, right = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-right, left), dim=-1) * sin


class Llama(nn.Module):
    def __init__(self, layers=2, width=32, heads=4, key_heads=2, hidden=88, vocabulary=97):
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(LlamaBlock(width, heads, key_heads, hidden) for _ in range(layers))
        self.norm = nn.RMSNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.register_buffer("frequencies", 10000.0 ** (-torch.arange(0, width // heads, 2) / (width // heads)))

    def forward(self, tokens):
        angles = torch.outer(torch.arange(tokens.shape[-1], device=tokens.device), self.frequencies).repeat(1, 2)
        x, cos, sin = self.words(tokens), angles.cos(), angles.sin()
        for block in self.blocks:
            x = block(x, cos, sin)
        return self.head(self.norm(x))


class Product(torch.autograd.Function):
    """x W, with everything in one method, as functions were first written."""

    @staticmethod
    def forward(ctx, value, weight):
        ctx.save_for_backward(value, weight)
        return value @ weight

    @staticmethod
    def backward(ctx, gradient):
        value, weight = ctx.saved_tensors
        return gradient @ weight.T, value.T @ gradient
