"""Nested tensors count by the true sizes of their components: as a loop over the components, and never padded."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from truths import macs_by, observe

import roofprof

pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors"),
]

LENGTHS, WIDTH, HEADS = (3, 5, 2), 8, 2
TOKENS = sum(LENGTHS)
PAIRS = sum(length * length for length in LENGTHS)


def components(*leading):
    """One tensor a sequence: (..., length, width)."""
    return [torch.rand(*leading, length, WIDTH) for length in LENGTHS]


def nested(tensors):
    return torch.nested.nested_tensor(tensors, layout=torch.strided)


@torch.no_grad()
def count(function, *args):
    report = roofprof.count(function, *args)
    assert not report.coverage.uncosted
    return report.total


def figures(total):
    return (total.macs, total.causal_macs, total.flops, total.int_ops)


def self_attention(x):
    return F.scaled_dot_product_attention(x, x, x)


FUNCTIONS = {
    "linear": nn.Linear(WIDTH, 4),
    "relu": torch.relu,
    "softmax": lambda x: torch.softmax(x, -1),
    "layer_norm": nn.LayerNorm(WIDTH),
    "scores": lambda x: torch.matmul(x, x.transpose(-2, -1)),
    "encoder layer": nn.TransformerEncoderLayer(WIDTH, HEADS, 16, batch_first=True).eval(),
}


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_an_op_is_itself_on_each_component(function):
    parts = components()
    whole = count(function, nested(parts))
    apart = [count(function, part[None]) for part in parts]
    assert figures(whole) == tuple(map(sum, zip(*map(figures, apart), strict=True)))
    assert whole.write_bytes == sum(part.write_bytes for part in apart)
    # Parameters are read once, not for each component.
    shared = sum(4 * p.numel() for p in function.parameters()) if isinstance(function, nn.Module) else 0
    assert whole.read_bytes == sum(part.read_bytes for part in apart) - 2 * shared


def test_attention_within_each_sequence():
    whole = count(self_attention, nested(components(HEADS)))
    assert whole.macs == whole.causal_macs == 2 * HEADS * PAIRS * WIDTH
    # Query, key and value are one tensor, read once; scores are not written.
    assert (whole.read_bytes, whole.write_bytes) == (4 * HEADS * TOKENS * WIDTH,) * 2


def test_lengths_tell_calls_apart():
    linear = nn.Linear(WIDTH, 4)
    one, other = nested(components()), nested([torch.rand(length, WIDTH) for length in (4, 5, 2)])
    assert count(lambda: (linear(one), linear(other))).macs == (TOKENS + TOKENS + 1) * WIDTH * 4


def test_backward_of_a_linear_is_twice_its_forward():
    linear, x = nn.Linear(WIDTH, 4), nested(components()).requires_grad_()
    report = observe(linear, lambda: torch.nested.to_padded_tensor(linear(x), 0.0).sum().backward())
    macs = TOKENS * WIDTH * 4
    assert macs_by(report, "phase") == {"forward": macs, "backward": 2 * macs}
    assert not report.coverage.uncosted


# ---- jagged: the ops inside work on all tokens at once


def jagged(tensors):
    return torch.nested.nested_tensor(tensors, layout=torch.jagged)


# torch has no jagged product of a sequence with itself that is as long as the sequence.
JAGGED = {name: function for name, function in FUNCTIONS.items() if name not in {"scores", "encoder layer"}}
JAGGED["covariance"] = lambda x: torch.matmul(x.transpose(-2, -1), x)


@pytest.mark.parametrize("function", JAGGED.values(), ids=JAGGED)
def test_a_jagged_op_is_itself_on_each_component(function):
    parts = components()
    whole, apart = count(function, jagged(parts)), [count(function, part) for part in parts]
    # Integer operations aside: torch may work out lengths.
    assert figures(whole)[:3] == tuple(map(sum, zip(*map(figures, apart), strict=True)))[:3]


def heads(x):
    return x.unflatten(-1, (HEADS, WIDTH // HEADS)).transpose(1, 2)


def test_backward_of_jagged_attention_is_twice_its_forward():
    x = jagged(components()).requires_grad_()
    report = observe(nn.Identity(), lambda: self_attention(heads(x)).values().sum().backward())
    # The reference kernels keep the scores: four products.
    assert macs_by(report, "phase") == {"forward": 2 * PAIRS * WIDTH, "backward": 4 * PAIRS * WIDTH}
    assert not report.coverage.uncosted


def test_where_torch_pads_jagged_tensors_the_padding_is_work():
    # A softmax over the ragged dimension is one of a padded tensor, and back.
    total = count(lambda x: torch.softmax(x, 1), jagged(components()))
    assert total.flops == 5 * len(LENGTHS) * max(LENGTHS) * WIDTH


class Opaque(torch.Tensor):
    """Sized as a jagged tensor, and all that it does is done out of sight."""

    @staticmethod
    def __new__(cls, like):
        return torch.Tensor._make_wrapper_subclass(cls, like.shape, like.stride(), layout=torch.jagged, storage_size=0)

    def __init__(self, like):
        self.like = like

    @classmethod
    def __torch_dispatch__(cls, _function, _types, args=(), _kwargs=None):
        return Opaque(args[0].like)


def test_an_op_of_ragged_size_that_shows_no_work_is_uncosted():
    report = roofprof.count(torch.relu, Opaque(jagged(components())))
    assert report.coverage.uncosted == {"aten::relu": 1}
    assert report.coverage.notes == ["no cost for aten::relu: a size of it is not known"]
