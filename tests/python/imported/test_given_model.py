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
    ("other", "x", "why"),
    [
        (lambda: Block(16), torch.ones(4, 16), "Block_0 is called in Net_0, which calls other modules too"),
        (lambda: nn.Linear(3, 3), torch.ones(4, 3), "the model (Linear) has a parameter of 3x3 in the model"),
        (lambda: nn.LayerNorm(16), torch.ones(4, 16), "LayerNorm_0 is called in Block_0"),
        (lambda: Net((16, 16)), torch.ones(4, 16), "up (Linear) has a parameter of 16x16 in the model"),
        (nn.Tanh, torch.ones(4, 16), "the trace has no call of a Tanh, but of Net_0"),
    ],
    ids=["a part", "other sizes", "the smallest part", "one other size", "another class"],
)
def test_what_is_not_the_model_is_refused(other, x, why):
    """Rows are those without a model, and the note says what differs first and what to give."""
    net, images = Net(), torch.ones(4, 16)
    report = read(lambda: net(images), other(), x)
    text = why_not(report)
    assert why in text
    assert "give the model that was recorded, as a whole" in text
    assert report.row("").type == "Net"
    assert report.row("").macs == 4 * (16 * 16 + 16 * 32 + 32 * 32)
    assert report.row("Block_0.Linear_0").macs == 4 * 16 * 16
    assert set(params_of(report).values()) == {None}


LEAVES = {
    "Linear": (lambda n, **more: nn.Linear(n, 8, **more), (4,)),
    "Conv1d": (lambda n, **more: nn.Conv1d(n, 8, 3, **more), (4, 10)),
    "Conv2d": (lambda n, **more: nn.Conv2d(n, 8, 3, **more), (4, 10, 10)),
    "ConvTranspose2d": (lambda n, **more: nn.ConvTranspose2d(n, 8, 3, **more), (4, 10, 10)),
    "LayerNorm": (lambda n, **more: nn.LayerNorm(n, **more), (4,)),
    "BatchNorm2d": (lambda n, **more: nn.BatchNorm2d(n, **more), (4, 10, 10)),
    "GroupNorm": (lambda n, **more: nn.GroupNorm(2, n, **more), (4, 10, 10)),
    "PReLU": (lambda n, **more: nn.PReLU(n, **more), (4, 10)),
    "LSTM": (lambda n, **more: nn.LSTM(n, 8, batch_first=True, **more), (10, 4)),
    "MultiheadAttention": (lambda n, **more: SelfAttention(n, **more), (10, 4)),
}


class SelfAttention(nn.Module):
    def __init__(self, width, **more):
        super().__init__()
        self.inner = nn.MultiheadAttention(width, 2, batch_first=True, **more)

    def forward(self, x):
        return self.inner(x, x, x)[0]


def wider(shape):
    """The shape with 8 in place of 4."""
    return tuple(8 if size == 4 else size for size in shape)


@pytest.mark.parametrize("name", LEAVES)
def test_sizes_of_parameters_are_those_that_were_recorded(name):
    """The same classes with other sizes have no figures here; another batch, the same modules, are taken."""
    make, shape = LEAVES[name]
    recorded, other = nn.Sequential(make(4)), nn.Sequential(make(8))
    images = torch.ones(3, *shape)
    report = read(lambda: recorded(images), nn.Sequential(make(4)), torch.ones(5, *shape))
    assert why_not(report) is None
    assert report.row("0").params == sum(parameter.numel() for parameter in recorded.parameters())
    report = read(lambda: recorded(images), other, torch.ones(3, *wider(shape)))
    assert "in the model, and" in why_not(report)
    assert set(params_of(report).values()) == {None}


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("name", ["Linear", "Conv1d", "Conv2d", "ConvTranspose2d"])
def test_a_bias_that_was_not_recorded(name, given):
    make, shape = LEAVES[name]
    recorded, other = nn.Sequential(make(4, bias=not given)), nn.Sequential(make(4, bias=given))
    images = torch.ones(3, *shape)
    assert why_not(read(lambda: recorded(images), recorded, images)) is None
    assert why_not(read(lambda: recorded(images), other, images)) is not None


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


class Frames(nn.Module):
    """Splits a clip into pieces, with a position for each frame of one: a longer one is stretched."""

    def __init__(self, frames):
        super().__init__()
        self.positions = nn.Parameter(torch.ones(1, frames, 6))
        self.frames = frames
        self.layer = nn.Linear(6, 6)

    def forward(self, clip):
        given = nn.functional.interpolate(self.positions.transpose(1, 2), size=clip.shape[1])
        return self.layer((clip + given.transpose(1, 2)).reshape(-1, self.frames, 6))


def test_a_model_that_splits_the_same_inputs_otherwise_is_another():
    """A tensor of the parameter's sizes is in the trace, and it is not the parameter."""
    recorded, clip = Frames(2), torch.ones(3, 8, 6)
    report = read(lambda: recorded(clip), Frames(8), clip)
    assert "layer (Linear) calls aten::linear of 3x8x6, 6x6, 6 in the model, and Linear_0 of the trace of 12x2x6" in (
        why_not(report)
    )
    assert "both got inputs of 3x8x6" in why_not(report)
    assert set(params_of(report).values()) == {None}
    assert why_not(read(lambda: recorded(clip), Frames(2), clip)) is None
    assert why_not(read(lambda: recorded(clip), Frames(2), torch.ones(5, 8, 6))) is None  # another batch


class Routed(nn.Module):
    """Data decide how many rows its layer gets."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(x[x[:, 0] > 0])


def test_data_may_decide_the_first_size():
    model, x = Routed(), torch.ones(6, 4)
    x[2:, 0] = -1
    report = read(lambda: model(x), Routed(), torch.ones(6, 4))
    assert why_not(report) is None
    assert report.row("layer").params == 20


def test_two_modules_of_one_form_are_two():
    """Which of them is the given one cannot be told: no row has the figures of both."""
    first, second, x = nn.Linear(4, 8), nn.Linear(4, 8), torch.ones(3, 4)

    def both():
        first(x)
        second(x)

    report = read(both, first, x)
    assert "Linear_0 and Linear_1 of the trace both fit" in why_not(report)
    assert {row.path: row.macs for row in report.rows if row.macs and row.path} == dict.fromkeys(
        ("Linear_0", "Linear_1"), 3 * 4 * 8
    )


def test_a_call_of_a_part_before_the_whole():
    """The same module, called outside of the model too, has both calls, as in a live profile."""
    model, x = nn.Sequential(nn.Linear(16, 16), nn.Linear(16, 16)), torch.ones(4, 16)

    def call():
        model[0](x)
        model(x)

    report = read(call, model, x)
    assert why_not(report) is None
    assert {row.path: row.calls for row in report.rows if row.path != "(outside)"} == {"": 1, "0": 2, "1": 1}


def test_other_modules_stand_outside():
    """A wrapper around the model and a loss behind it: rows of the model have the figures of a live profile."""
    model, loss, x = nn.Sequential(nn.Linear(16, 4)), nn.MSELoss(), torch.ones(4, 16)
    profiler = roofprof.RooflineProfiler(model)
    with profiler, torch.no_grad():
        loss(model(x), torch.zeros(4, 4))
    live = profiler.report()

    class Wrapper(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = model

        def forward(self, x):
            return self.inner(x) * 2

    around = Wrapper()
    report = read(lambda: loss(around(x), torch.zeros(4, 4)), model, x)
    assert why_not(report) is None
    for path in ("", "0"):
        assert report.row(path).macs == live.row(path).macs == 4 * 16 * 4
        assert report.row(path).flops == live.row(path).flops
    assert report.row("(outside).Wrapper_0").flops == 4 * 4
    assert report.row("(outside).MSELoss_0").flops == live.row("(outside)").flops


def test_without_shapes_sizes_are_not_compared_and_the_note_says_so():
    model, x = nn.Sequential(nn.Linear(16, 4)), torch.ones(4, 16)
    report = read(lambda: model(x), model, x, record_shapes=False)
    assert why_not(report) is None
    (text,) = [note.text for note in report.coverage.notes if note.code == "trace-lacks"]
    assert "nor whether its modules have the sizes of the given model's" in text
