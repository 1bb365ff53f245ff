"""Traced and scripted models cost what they cost in Python."""

import pytest
import torch
from models import Gpt2, LeNet, Llama
from torch import nn
from truths import counts

import roofprof

pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore:.*torch.jit.*:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning"),
]


class Product(nn.Module):
    """The bias comes first: while the product runs, the interpreter still holds it."""

    def __init__(self):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.rand(32, 96)), nn.Parameter(torch.rand(96))

    def forward(self, x):
        return torch.addmm(self.bias, x, self.weight)


class Stacked(nn.Module):
    """Values wait on the interpreter's stack while others are made."""

    def forward(self, a, b, c):
        return torch.cat([a, torch.mm(b, c).relu()]) + torch.bmm(b[None], c[None]).sum()


def versions(model, *inputs):
    with torch.no_grad():
        return [torch.jit.trace(model, inputs), torch.jit.script(model)]


def test_what_lies_on_the_interpreter_s_stack_is_no_input():
    for compiled in versions(Product().eval(), torch.rand(20, 32)):
        for _ in range(3):  # the interpreter optimises the graph after a while
            report = roofprof.count(compiled, torch.rand(20, 32))
            assert report.total.macs == 20 * 32 * 96
            assert report.total.flops == 2 * 20 * 32 * 96 + 20 * 96


def test_values_that_wait_are_not_counted():
    inputs = torch.rand(3, 7), torch.rand(5, 4), torch.rand(4, 7)
    model = Stacked()
    expected = counts(roofprof.count(model, *inputs).total)
    assert expected["macs"] == 2 * 5 * 4 * 7
    for compiled in versions(model, *inputs):
        for _ in range(3):
            assert counts(roofprof.count(compiled, *inputs).total) == expected


@pytest.mark.parametrize("kind", [LeNet, Gpt2, Llama])
def test_traced_models(kind):
    model = kind().eval()
    given = torch.rand(1, 1, 32, 32) if kind is LeNet else torch.randint(97, (2, 10))
    with torch.no_grad():
        expected = roofprof.count(model, given).total
        traced = torch.jit.trace(model, given)
        for _ in range(3):
            found = roofprof.count(traced, given).total
            assert (found.macs, found.causal_macs) == (expected.macs, expected.causal_macs)
