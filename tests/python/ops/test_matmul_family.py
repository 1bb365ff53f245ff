"""Products of matrices, however they are written: MACs against the closed form, forward and backward."""

import pytest
import torch
from torch.nn import functional as F
from truths import observe

import roofprof

pytestmark = pytest.mark.usefixtures("one_thread")


def real(*sizes):
    return torch.rand(sizes, requires_grad=True)


def imaginary(*sizes):
    return torch.rand(sizes, dtype=torch.complex64, requires_grad=True)


# The call, its MACs, and those of the backward: as many again for the gradient of each operand, unless that is an outer
# product or an elementwise one, which contracts nothing.
FAMILY = {
    "mm": (lambda t: torch.mm(t(4, 16), t(16, 8)), 512, 1024),
    "dot": (lambda t: torch.dot(t(16), t(16)), 16, 0),
    "inner": (lambda t: torch.inner(t(4, 16), t(8, 16)), 512, 1024),
    "bmm": (lambda t: torch.bmm(t(3, 4, 16), t(3, 16, 8)), 1536, 3072),
    "addmm": (lambda t: torch.addmm(t(4, 8), t(4, 16), t(16, 8)), 512, 1024),
    "addr": (lambda t: torch.addr(t(4, 8), t(4), t(8)), 0, 2 * 32),
    "baddbmm": (lambda t: torch.baddbmm(t(3, 4, 8), t(3, 4, 16), t(3, 16, 8)), 1536, 3072),
    "matmul, broadcast": (lambda t: t(5, 1, 4, 16) @ t(3, 16, 8), 15 * 512, 30 * 512),
    "matmul, vector left": (lambda t: t(16) @ t(5, 16, 8), 5 * 16 * 8, 5 * 16 * 8),
    "linear": (lambda t: F.linear(t(2, 4, 16), t(8, 16), t(8)), 2 * 512, 4 * 512),
    "bilinear": (lambda t: F.bilinear(t(4, 16), t(4, 8), t(5, 16, 8)), 2560, 3 * 2560),
    "tensordot": (lambda t: torch.tensordot(t(2, 3, 4), t(3, 4, 5), dims=2), 2 * 12 * 5, 4 * 12 * 5),
    # Rows (-2 x, |x|^2, 1) times (y, 1, |y|^2); going back, ratios times y and times x.
    "cdist by products": (lambda t: torch.cdist(t(5, 7), t(30, 7)), 5 * 30 * 9, 2 * 5 * 30 * 7),
    "cdist by differences": (lambda t: torch.cdist(t(5, 7), t(6, 7)), 0, 0),
    # The order that the sizes ask for: (10 x 100 x 5) and (10 x 5 x 50), a textbook's example.
    "multi_dot": (lambda t: torch.linalg.multi_dot([t(10, 100), t(100, 5), t(5, 50)]), 7500, 15000),
    "matrix_power": (lambda t: torch.linalg.matrix_power(t(4, 4), 5), 3 * 64, 6 * 64),
}


@pytest.mark.parametrize(("call", "forward", "backward"), FAMILY.values(), ids=FAMILY)
def test_products(call, forward, backward):
    phases = observe(torch.nn.Identity(), lambda: call(real).sum().backward()).by_phase()
    assert phases["forward"].macs == forward
    assert phases["backward"].macs == backward


ONLY_REAL = {"cdist by products", "cdist by differences", "bilinear"}


@pytest.mark.parametrize("name", sorted(FAMILY.keys() - ONLY_REAL))
def test_complex_products_are_four_real_ones(name):
    call, forward, backward = FAMILY[name]
    phases = observe(torch.nn.Identity(), lambda: call(imaginary).abs().sum().backward()).by_phase()
    assert phases["forward"].macs == 4 * forward
    assert phases["backward"].macs == 4 * backward


# Two operands: one MAC for each point of the space of all their indices, where any index is summed over.
EINSUM = {
    "ij,jk->ik": (((4, 16), (16, 8)), 512),
    "bij,bjk->bik": (((3, 4, 16), (3, 16, 8)), 1536),
    "bhid,bhjd->bhij": (((2, 3, 5, 4), (2, 3, 6, 4)), 2 * 3 * 5 * 6 * 4),
    "ij,j->i": (((4, 16), (16,)), 64),
    "...ij,...jk->...ik": (((5, 1, 4, 16), (3, 16, 8)), 15 * 512),
    # Nothing is summed over: multiplications, no MACs.
    "ij,ij->ij": (((4, 16), (4, 16)), 0),
    # One operand: sums and permutations.
    "ij->j": (((4, 16),), 0),
    # From left to right: (2 x 3 x 4), then (2 x 4 x 5), then (2 x 5 x 6).
    "ij,jk,kl->il": (((2, 3), (3, 4), (4, 5)), 2 * 3 * 4 + 2 * 4 * 5),
    # bilinear: x A first, then its product with y, summed.
    "bi,ij,bj->b": (((3, 4), (4, 5), (3, 5)), 3 * 4 * 5 + 3 * 5),
}


@pytest.mark.parametrize(("equation", "sizes", "macs"), [(name, *case) for name, case in EINSUM.items()], ids=EINSUM)
def test_einsum(equation, sizes, macs):
    operands = [real(*size) for size in sizes]
    assert roofprof.count(lambda: torch.einsum(equation, *operands)).total.macs == macs
    with torch.backends.opt_einsum.flags(enabled=False):  # whatever is installed: from left to right
        assert roofprof.count(lambda: torch.einsum(equation, *operands)).total.macs == macs


def test_eight_bit_floats():
    a, b = torch.rand(32, 64).to(torch.float8_e4m3fn), torch.rand(16, 64).to(torch.float8_e4m3fn).t()
    scale = torch.tensor(1.0)
    report = roofprof.count(lambda: torch._scaled_mm(a, b, scale, scale, out_dtype=torch.bfloat16))
    assert report.by_operator()["aten::_scaled_mm"].macs == report.total.macs == 32 * 64 * 16
    assert report.total.flops_by_dtype["fp8"] >= 2 * 32 * 64 * 16


def test_grouped_products_leave_out_what_lies_beyond_the_last_offset():
    a, b = torch.rand(12, 16, dtype=torch.bfloat16), torch.rand(3, 16, 8, dtype=torch.bfloat16)
    rows = [torch.tensor([2, 5, last], dtype=torch.int32) for last in (7, 9, 12)]
    report = roofprof.count(lambda: [torch._grouped_mm(a, b, offs=offs) for offs in rows])
    assert report.total.macs == (7 + 9 + 12) * 16 * 8
    wide, tall = torch.rand(16, 24, dtype=torch.bfloat16), torch.rand(24, 8, dtype=torch.bfloat16)
    ends = torch.tensor([8, 16], dtype=torch.int32)
    assert roofprof.count(lambda: torch._grouped_mm(wide, tall, offs=ends)).total.macs == 16 * 16 * 8


@pytest.mark.parametrize("scales", [torch.float8_e4m3fn, torch.float8_e8m0fnu])
def test_fp4_is_counted_by_its_values(scales):
    """Two of them share a byte, and torch's sizes are those of the bytes."""
    rows, columns, values = 128, 256, 64
    packed = [torch.empty(size, values // 2, dtype=torch.float4_e2m1fn_x2, device="meta") for size in (rows, columns)]
    factors = [torch.empty(size * 4, dtype=scales, device="meta") for size in (rows, columns)]
    report = roofprof.count(torch._scaled_mm, packed[0], packed[1].t(), *factors, out_dtype=torch.bfloat16)
    assert report.total.macs == rows * columns * values
    assert report.total.int_ops == 0
