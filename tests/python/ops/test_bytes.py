"""Compulsory bytes of real calls: each distinct input once as it is held, each output once."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from truths import observe

import roofprof

pytestmark = pytest.mark.usefixtures("one_thread")

ROWS, WIDTH = 100, 8
ROW = 4 * WIDTH
TABLE = ROWS * ROW
FEW = torch.arange(5)
MANY = torch.zeros(1000, dtype=torch.long)


def moved(function, *args):
    """Bytes read and written by one call."""
    report = roofprof.count(function, *args)
    assert not report.coverage.uncosted
    return report.total.read_bytes, report.total.write_bytes


def table():
    return torch.rand(ROWS, WIDTH)


# ---- gathering: min(indices, rows) x row, the indices, the output; never the table

GATHERS = {
    "embedding": lambda t, i: F.embedding(i, t),
    "index_select": lambda t, i: t.index_select(0, i),
    "index": lambda t, i: t[i],
    "gather": lambda t, i: t.gather(0, i[:, None].expand(-1, WIDTH)),
}


@pytest.mark.parametrize("gather", GATHERS.values(), ids=GATHERS)
@pytest.mark.parametrize("indices", [FEW, MANY], ids=["few", "many"])
def test_gathering(gather, indices):
    count = len(indices)
    # More indices than rows read no row twice; which rows they name is not looked at. Expanded ones are held once.
    assert moved(gather, table(), indices) == (min(count, ROWS) * ROW + 8 * count, count * ROW)


# ---- scattering in place: what is touched; its old value where it is combined with the new

UPDATE = torch.ones(5, WIDTH)
EACH = torch.zeros(5, WIDTH, dtype=torch.long)
SCATTERS = {
    # Bytes of indices beside the update, and whether the old value matters.
    "index_put": (lambda t: t.index_put_((FEW,), UPDATE), 40, False),
    "index_put, accumulated": (lambda t: t.index_put_((FEW,), UPDATE, accumulate=True), 40, True),
    "index_add": (lambda t: t.index_add_(0, FEW, UPDATE), 40, True),
    "scatter_add": (lambda t: t.scatter_add_(0, EACH, UPDATE), 320, True),
}


@pytest.mark.parametrize(("scatter", "indices", "combined"), SCATTERS.values(), ids=SCATTERS)
def test_scattering(scatter, indices, combined):
    assert moved(scatter, table()) == (indices + 5 * ROW * (2 if combined else 1), 5 * ROW)


INDICES = 8 * len(FEW)
COLUMN = 4 * ROWS
MASK = torch.arange(ROWS) < 7
ASSIGNMENTS = {
    # x[...] = value: which elements are written; the value, where it is no constant, and the indices are read.
    "rows": ((FEW,), 0.0, INDICES + 4, 5 * ROW),
    "columns": ((slice(None), FEW), 0.0, INDICES + 4, 5 * COLUMN),
    # How many a mask lets through is told by the values; otherwise it can be all.
    "masked rows": ((MASK,), torch.ones(7, WIDTH), ROWS + 7 * ROW, 7 * ROW),
}


@pytest.mark.parametrize(("index", "value", "read", "written"), ASSIGNMENTS.values(), ids=ASSIGNMENTS)
def test_assignment_to_what_is_indexed(index, value, read, written):
    x, value = table(), torch.as_tensor(value)
    report = roofprof.count(x.__setitem__, index, value)
    put = report.by_operator()["aten::index_put_"]
    assert (put.read_bytes, put.write_bytes) == (read, written)


# ---- what is held

HELD = {
    "a slice of a larger storage": (lambda t: t[10:20] * 2, (10 * ROW, 10 * ROW)),
    "one row expanded": (lambda t: t[0].expand(ROWS, WIDTH) + 1, (ROW, TABLE)),
    "one row broadcast": (lambda t: t + t[0], (TABLE + ROW, TABLE)),
    "the same tensor twice": (lambda t: t * t, (TABLE, TABLE)),
    "a Python scalar": (lambda t: t + 1.5, (TABLE, TABLE)),
    "views alone": (lambda t: t.view(-1).unflatten(0, (WIDTH, -1)).T[1:].expand(3, -1, -1), (0, 0)),
}


@pytest.mark.parametrize(("function", "bytes_"), HELD.values(), ids=HELD)
def test_what_is_held(function, bytes_):
    assert moved(function, table()) == bytes_


# ---- in place and out=

OTHER = torch.rand(ROWS, WIDTH)
IN_PLACE = {
    "add_": (lambda t: t.add_(OTHER), (2 * TABLE, TABLE)),
    "mul_ by a number": (lambda t: t.mul_(2), (TABLE, TABLE)),
    "fill_": (lambda t: t.fill_(1), (0, TABLE)),
    "uniform_": (torch.Tensor.uniform_, (0, TABLE)),
    "copy_": (lambda t: t.copy_(OTHER), (TABLE, TABLE)),
    "copy_ into a slice": (lambda t: t[:5].copy_(OTHER[:5]), (5 * ROW, 5 * ROW)),
    "add into out": (lambda t: torch.add(OTHER, OTHER, out=t), (TABLE, TABLE)),
    "mm into out": (lambda t: torch.mm(OTHER, OTHER[:WIDTH], out=t), (TABLE + WIDTH * ROW, TABLE)),
}


@pytest.mark.parametrize(("function", "bytes_"), IN_PLACE.values(), ids=IN_PLACE)
def test_in_place_and_into_out(function, bytes_):
    assert moved(function, table()) == bytes_


def nothing_yet(dtype=torch.float32):
    return torch.empty(0, dtype=dtype)


# torch makes an empty out= tensor as large as the result.
INTO_EMPTY = {
    "add": (lambda t: torch.add(t, OTHER, out=nothing_yet()), (2 * TABLE, TABLE)),
    "arange": (lambda _: torch.arange(10, out=nothing_yet(torch.int64)), (0, 80)),
    "sort": (lambda t: torch.sort(t, out=(nothing_yet(), nothing_yet(torch.int64))), (TABLE, 3 * TABLE)),
}


@pytest.mark.parametrize(("function", "bytes_"), INTO_EMPTY.values(), ids=INTO_EMPTY)
def test_into_an_empty_out(function, bytes_):
    assert moved(function, table()) == bytes_


# ---- copies

COPIES = {
    "clone": (torch.clone, (TABLE, TABLE)),
    "transposed, made contiguous": (lambda t: t.T.contiguous(), (TABLE, TABLE)),
    "contiguous already": (torch.Tensor.contiguous, (0, 0)),
    "to half": (torch.Tensor.half, (TABLE, TABLE // 2)),
    "to what it is": (torch.Tensor.float, (0, 0)),
    "cat": (lambda t: torch.cat([t, t[:5]]), (TABLE + 5 * ROW, TABLE + 5 * ROW)),
}


@pytest.mark.parametrize(("function", "bytes_"), COPIES.values(), ids=COPIES)
def test_copies(function, bytes_):
    assert moved(function, table()) == bytes_


# ---- optimizer steps, per parameter of 4 bytes: tensors read and written

STEPS = {
    # p, g -> p
    "sgd": (torch.optim.SGD, {}, {"foreach": (2, 1), "for-loop": (2, 1), "fused": (2, 1)}),
    # One by one: b * m (1, 1), + g (2, 1), p - lr * b (2, 1). Fused: p, g, b -> p, b.
    "momentum": (
        torch.optim.SGD,
        {"momentum": 0.9},
        {"foreach": (5, 3), "for-loop": (5, 3), "fused": (3, 2)},
    ),
    # m towards g (2, 1); v scaled (1, 1), + g * g (2, 1); sqrt (1, 1), / (1, 1), + eps (1, 1); p + m / d (3, 1).
    # Fused: p, g, m, v -> p, m, v.
    "adam": (torch.optim.Adam, {}, {"foreach": (11, 7), "for-loop": (11, 7), "fused": (4, 3)}),
    # As adam; weight decay scales p (1, 1); the largest v is compared with v (2, 1). Fused one more to read and write.
    "amsgrad": (
        torch.optim.AdamW,
        {"amsgrad": True},
        {"foreach": (14, 9), "for-loop": (14, 9), "fused": (5, 4)},
    ),
}
HOW = {"foreach": {"foreach": True}, "for-loop": {"foreach": False}, "fused": {"fused": True}}


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize(("kind", "options", "tensors"), STEPS.values(), ids=STEPS)
def test_optimizer_steps(how, kind, options, tensors):
    parameters = [nn.Parameter(torch.rand(30, 20)), nn.Parameter(torch.rand(400))]
    optimizer = kind(parameters, lr=0.1, **options, **HOW[how])

    for parameter in parameters:
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()  # the first one makes the state
    report = observe(nn.ParameterList(parameters), optimizer.step)
    row = report.row("(optimizer)")
    read, written = tensors[how]
    # Adam's step counters are a float each: some bytes a parameter tensor, whatever its size.
    counters = 0 if kind is torch.optim.SGD else 16 * len(parameters)
    assert 4 * 1000 * read <= row.read_bytes <= 4 * 1000 * read + counters
    assert 4 * 1000 * written <= row.write_bytes <= 4 * 1000 * written + counters
    assert not report.coverage.uncosted


# ---- published figures, fp16 without allocating anything


def half(*shape):
    return torch.empty(shape, dtype=torch.float16, device="meta")


def total(function, *args):
    report = roofprof.count(function, *args)
    assert not report.coverage.uncosted
    return report.total


@pytest.mark.parametrize(
    ("function", "shapes", "intensity"),
    [
        (F.linear, [(512, 1024), (4096, 1024)], 315),
        (F.linear, [(1, 1024), (4096, 1024)], 1),
        (lambda x: F.max_pool2d(x, 3, stride=1, padding=1), [(16, 64, 56, 56)], 2.25),
        (F.relu, [(16, 64, 56, 56)], 0.25),
    ],
    ids=["linear, batch 512", "linear, batch 1", "max pooling", "relu"],
)
def test_nvidias_intensities(function, shapes, intensity):
    assert total(function, *[half(*shape) for shape in shapes]).intensity == pytest.approx(intensity, rel=0.003)
