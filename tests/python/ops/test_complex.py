"""Complex numbers: a MAC is four real ones, an addition two real ones, a multiplication six operations."""

import pytest
import torch

import roofprof

pytestmark = pytest.mark.usefixtures("one_thread")

LEFT, RIGHT = (torch.rand(shape, dtype=torch.complex64) for shape in ((4, 16), (16, 8)))


def count(function, *args):
    report = roofprof.count(function, *args)
    assert not report.coverage.uncosted
    return report.total


@pytest.mark.parametrize(
    "product",
    [torch.mm, torch.matmul, lambda x, y: torch.einsum("ij,jk->ik", x, y), lambda x, y: torch.bmm(x[None], y[None])],
    ids=["mm", "matmul", "einsum", "bmm"],
)
@pytest.mark.parametrize(("dtype", "component"), [(torch.complex64, "fp32"), (torch.complex128, "fp64")], ids=str)
def test_products(product, dtype, component):
    total = count(product, LEFT.to(dtype), RIGHT.to(dtype))
    macs = 4 * 16 * 8
    assert (total.macs, total.flops_by_dtype) == (4 * macs, {component: 8 * macs})
    assert total.bytes == dtype.itemsize * (LEFT.numel() + RIGHT.numel() + 4 * 8)


@pytest.mark.parametrize(
    ("function", "each"),
    [
        (lambda x: x + x.flip(0), 2),
        (lambda x: x - x.flip(0), 2),
        (lambda x: -x, 2),
        (lambda x: x * x.flip(0), 6),
        (lambda x: x * torch.ones(16), 2),
        (lambda x: x / x.flip(0), 11),  # product with the conjugate 6, squared magnitude 3, two divisions
        (lambda x: x / torch.ones(16), 2),
        (torch.abs, 1),  # one function of a complex number, as exp and the like
        (torch.exp, 1),
        (torch.Tensor.conj, 0),
        (torch.Tensor.clone, 0),
    ],
    ids=["add", "sub", "neg", "mul", "mul by real", "div", "div by real", "abs", "exp", "conj", "clone"],
)
def test_elementwise(function, each):
    assert count(function, LEFT).flops == each * LEFT.numel()


def test_bias_of_a_complex_linear_is_two_additions():
    bias = torch.rand(8, dtype=torch.complex64)
    total = count(torch.nn.functional.linear, LEFT, RIGHT.T, bias)
    assert total.flops == 8 * 4 * 16 * 8 + 2 * 4 * 8
