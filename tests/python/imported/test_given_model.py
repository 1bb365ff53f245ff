"""A model that is given with its trace names rows and fills parameters where it is the one that was recorded, only."""

import pytest
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

import roofprof


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        return x + self.layer(self.norm(x))


class Net(nn.Module):
    def __init__(self, widths=(16, 32)):
        super().__init__()
        self.blocks = nn.ModuleList(Block(width) for width in widths)
        self.up = nn.Linear(*widths)

    def forward(self, x):
        return self.blocks[1](self.up(self.blocks[0](x)))


def read(call, model, inputs, **options):
    """The report of a trace of the call."""
    settings = {"record_shapes": True, "with_stack": True} | options
    with profile(activities=[ProfilerActivity.CPU], **settings) as profiler, torch.no_grad():
        call()
    return roofprof.from_trace(profiler, model, inputs)


def why_not(report):
    """The note that says why the model was not taken; None where it was."""
    return next((note.text for note in report.coverage.notes if note.code == "model-not-aligned"), None)


def params_of(report):
    return {row.path: row.params for row in report.rows if row.path != "(outside)"}


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (lambda: Block(16), "Block_0 is called in Net_0, which calls other modules too"),
        (lambda: Net((16, 16)), "up (Linear) has a parameter of 16x16 in the model"),
        (nn.Tanh, "the trace has no call of a Tanh, but of Net_0"),
    ],
    ids=["a part", "another size", "another class"],
)
def test_what_is_not_the_model_is_refused(other, why):
    """Rows are those without a model, and the note says what differs first and what to give."""
    net, images = Net(), torch.ones(4, 16)
    report = read(lambda: net(images), other(), images)
    text = why_not(report)
    assert why in text
    assert "give the model that was recorded, as a whole" in text
    assert report.row("").type == "Net"
    assert report.row("").macs == 4 * (16 * 16 + 16 * 32 + 32 * 32)
    assert report.row("Block_0.Linear_0").macs == 4 * 16 * 16
    assert set(params_of(report).values()) == {None}


class SelfAttention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.MultiheadAttention(width, 2, batch_first=True)

    def forward(self, x):
        return self.inner(x, x, x)[0]


LEAVES = {
    "Linear": (lambda n: nn.Linear(n, 8), (4,)),
    "Conv2d": (lambda n: nn.Conv2d(n, 8, 3), (4, 10, 10)),
    "ConvTranspose2d": (lambda n: nn.ConvTranspose2d(n, 8, 3), (4, 10, 10)),
    "LayerNorm": (nn.LayerNorm, (4,)),
    "BatchNorm2d": (nn.BatchNorm2d, (4, 10, 10)),
    "GroupNorm": (lambda n: nn.GroupNorm(2, n), (4, 10, 10)),
    "PReLU": (nn.PReLU, (4, 10)),
    "LSTM": (lambda n: nn.LSTM(n, 8, batch_first=True), (10, 4)),
    "MultiheadAttention": (SelfAttention, (10, 4)),
}


@pytest.mark.parametrize("name", LEAVES)
def test_sizes_of_parameters_are_those_that_were_recorded(name):
    """The same classes with other sizes have no figures here; another batch, the same modules, are taken."""
    make, shape = LEAVES[name]
    recorded, other = nn.Sequential(make(4)), nn.Sequential(make(8))
    images = torch.ones(3, *shape)
    report = read(lambda: recorded(images), nn.Sequential(make(4)), torch.ones(5, *shape))
    assert why_not(report) is None
    assert report.row("0").params == sum(parameter.numel() for parameter in recorded.parameters())
    report = read(lambda: recorded(images), other, torch.ones(3, *(8 if size == 4 else size for size in shape)))
    assert "in the model, and" in why_not(report)
    assert set(params_of(report).values()) == {None}


class Unused(nn.Module):
    """Parameters that no op reads, that are read transposed, in part, and without a call of their module."""

    def __init__(self):
        super().__init__()
        self.never = nn.Parameter(torch.ones(77))
        self.turned = nn.Parameter(torch.ones(4, 9))
        self.positions = nn.Parameter(torch.ones(1, 50, 9))
        self.not_called = nn.Linear(9, 5)

    def forward(self, x):
        y = x @ self.turned + self.positions[:, : x.shape[1]]
        return nn.functional.linear(y, self.not_called.weight) @ y.transpose(1, 2).new_ones(5, 2)


def test_parameters_that_are_read_in_other_ways_are_no_difference():
    model, x = Unused(), torch.ones(2, 6, 4)
    report = read(lambda: model(x), Unused(), x)
    assert why_not(report) is None
    assert report.row("").params == sum(parameter.numel() for parameter in model.parameters())
