"""What a compiled prediction fuses, against what the fused kernels must move by hand."""

import pytest
import torch
from on_meta import counted
from torch import nn

ROWS, WIDTH = 2**18, 1024
SIZE = 2 * ROWS * WIDTH  # bytes of a tensor in half
DEVICE = "RTX 4090"


def moved(make, *shape):
    report = counted(make, *(shape or (ROWS, WIDTH)), dtype=torch.float16)
    return report.predict(DEVICE, mode="compiled", autocast=False).total.bytes


class Rms(nn.Module):
    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


class Columns(nn.Module):
    """Statistics of columns: all rows are read before the first result."""

    def forward(self, x):
        return x / torch.linalg.vector_norm(x, dim=0, keepdim=True)


class Gate(nn.Module):
    """A squeeze and excitation: the activation is written, for it is read again after the products."""

    def __init__(self):
        super().__init__()
        self.act, self.pool = nn.SiLU(), nn.AdaptiveAvgPool2d(1)
        self.products = nn.Conv2d(64, 64, 1)

    def forward(self, x):
        x = self.act(x)
        return x * self.products(self.pool(x)).sigmoid()


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.then = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

    def forward(self, x):
        x = x + self.first(x)
        return x + self.then(x)


class Shared(nn.Module):
    """One activation for two norms, between products."""

    def __init__(self):
        super().__init__()
        self.one, self.two, self.three = (nn.Conv2d(64, 64, 1, bias=False) for _ in range(3))
        self.norm, self.again, self.act = nn.BatchNorm2d(64), nn.BatchNorm2d(64), nn.ReLU()

    def forward(self, x):
        x = self.act(self.norm(self.one(x)))
        return self.three(self.act(self.again(self.two(x))))


def test_a_norm_of_rows_reads_and_writes_once_and_one_of_columns_reads_twice():
    assert moved(Rms) == pytest.approx(2 * SIZE, rel=0.01)
    assert moved(Columns) == pytest.approx(3 * SIZE, rel=0.01)


def test_what_a_reduction_took_is_written_where_it_is_read_again():
    image = 2 * 256 * 64 * 56 * 56
    # silu: read and written, its mean in registers; the product: read and written.
    assert moved(Gate, 256, 64, 56, 56) == pytest.approx(4 * image, rel=0.01)


def test_an_activation_that_two_norms_share_is_part_of_both_kernels():
    image = 2 * 256 * 64 * 56 * 56
    assert moved(Shared, 256, 64, 56, 56) == pytest.approx((3 + 2) * 2 * image, rel=0.01)


def test_a_sum_and_the_norm_behind_it_are_one_kernel():
    # Each of the two kernels reads x and writes y, at least; no op is a kernel of its own.
    assert 4 * SIZE * 0.99 < moved(Residual) < 6 * SIZE


def test_convolutions_want_their_channels_last():
    """An H100 took 1.55 / 0.66 times as long with the channels first (tests/data/gpu/h100)."""
    for dtype in (torch.float16, torch.float32):
        report = counted(lambda: nn.Conv2d(256, 256, 3, padding=1), 1024, 256, 56, 56, dtype=dtype)
        first, last = (report.predict("H100 SXM", channels_last=how, mode="graph").total.time for how in (False, True))
        # Without tensor cores the order is no matter.
        assert first / last == pytest.approx(1.55 / 0.66 if dtype == torch.float16 else 1, rel=0.02)
        # Compiled models bring their tensors into that order.
        assert report.predict("H100 SXM", mode="compiled").total.time <= last
