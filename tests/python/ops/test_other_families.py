"""One call of each other kind of work, through torch itself: operations counted by hand for its sizes.

The tables' own tests give each line its arguments; here it is torch that does.
"""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import roofprof

pytestmark = pytest.mark.usefixtures("one_thread")

N = 2 * 4 * 8 * 8
X, LINES, SCORES = torch.rand(2, 4, 8, 8), torch.rand(6, 16), torch.rand(6, 10)
LABELS, ROWS = torch.zeros(6, dtype=torch.long), torch.zeros(5, dtype=torch.long)
VECTOR, FOUR = torch.rand(16), torch.rand(4)
POSITIVE = FOUR + 1
GRID = torch.rand(2, 5, 5, 2)

FLOPS = {
    # activations: per element
    "relu": (lambda: F.relu(X), N),
    "sigmoid": (lambda: torch.sigmoid(X), 4 * N),
    "silu": (lambda: F.silu(X), 5 * N),
    "gelu": (lambda: F.gelu(X), 5 * N),
    "gelu, tanh": (lambda: F.gelu(X, approximate="tanh"), 9 * N),
    "leaky_relu": (lambda: F.leaky_relu(X), 2 * N),
    "dropout off": (lambda: F.dropout(X, training=False), 0),
    # softmax: maximum, subtraction, exp, sum, division
    "softmax": (lambda: X.softmax(1), 5 * N),
    "log_softmax": (lambda: X.log_softmax(1), 5 * N),
    # normalisation: mean 1, variance 3, scale 1, shift 1; weight and bias
    "layer_norm": (lambda: F.layer_norm(LINES, (16,)), 6 * 96),
    "layer_norm, weighted": (lambda: F.layer_norm(LINES, (16,), VECTOR, VECTOR), 8 * 96),
    "group_norm": (lambda: F.group_norm(X, 2), 6 * N),
    "batch_norm, evaluation": (lambda: F.batch_norm(X, FOUR, POSITIVE), 2 * N),
    "batch_norm, training": (lambda: F.batch_norm(X, None, None, training=True), 6 * N),
    # pooling: one operation for each element of each window
    "max_pool2d": (lambda: F.max_pool2d(X, 3, stride=2), 2 * 4 * 9 * 9),
    "avg_pool2d": (lambda: F.avg_pool2d(X, (2, 4)), 2 * 4 * 8 * 8),
    "adaptive_avg_pool2d": (lambda: F.adaptive_avg_pool2d(X, 3), 2 * 4 * (3 + 4 + 3) ** 2),  # rows 0-2, 2-5, 5-7
    # interpolation: 2 x neighbours - 1 for each output
    "nearest": (lambda: F.interpolate(X, scale_factor=2), 0),
    "bilinear": (lambda: F.interpolate(X, scale_factor=2, mode="bilinear"), 7 * 4 * N),
    "bicubic": (lambda: F.interpolate(X, scale_factor=2, mode="bicubic"), 31 * 4 * N),
    "grid_sample": (lambda: F.grid_sample(X, GRID, align_corners=False), 7 * 2 * 4 * 25 + 26 * 2 * 25),
    "grid_sample, nearest": (lambda: F.grid_sample(X, GRID, mode="nearest", align_corners=False), 14 * 2 * 25),
    # losses: per element, the sum 1 more, the mean one division
    "mse_loss": (lambda: F.mse_loss(LINES, LINES * 1), 96 + 3 * 96 + 1),
    "mse_loss, none": (lambda: F.mse_loss(LINES, LINES, reduction="none"), 2 * 96),
    "cross_entropy": (lambda: F.cross_entropy(SCORES, LABELS), 5 * 60 + 2 * 6),
    # sums, searches, sorting
    "sum": (lambda: X.sum((2, 3)), N),
    "mean": (lambda: X.mean((2, 3)), N + 8),
    "var": (lambda: LINES.var(1), 4 * 96 + 2 * 6),
    "argmax": (lambda: LINES.argmax(1), 96),
    "cumsum": (lambda: LINES.cumsum(1), 96),
    "sort": (lambda: LINES.sort(1), 96 * 4),
    "topk": (lambda: LINES.topk(4, 1), 96 * (1 + 2)),
    "searchsorted": (lambda: torch.searchsorted(VECTOR, LINES), 96 * 5),  # 17 places among 16
    # gathering moves, scattering adds
    "embedding": (lambda: F.embedding(ROWS, LINES), 0),
    "embedding_bag": (lambda: F.embedding_bag(ROWS[None], LINES, mode="sum"), 5 * 16),
    "gather": (lambda: LINES.gather(1, LABELS[:, None]), 0),
    "index_add": (lambda: LINES.index_add(0, ROWS, LINES[:5]), 5 * 16),
    "scatter_add": (lambda: LINES.scatter_add(1, LABELS[:, None], LINES), 6),
    # lists
    "foreach_add": (lambda: torch._foreach_add([LINES, VECTOR], 1.0), 96 + 16),
    "foreach_norm": (lambda: torch._foreach_norm([LINES, VECTOR]), 2 * (96 + 16) + 2),
    # complex numbers: a sum is 2, a product 6
    "complex sum": (lambda: torch.complex(LINES, LINES) + torch.complex(LINES, LINES), 2 * 96),
    "complex product": (lambda: torch.complex(LINES, LINES) * torch.complex(LINES, LINES), 6 * 96),
}


@pytest.mark.parametrize(("call", "flops"), FLOPS.values(), ids=FLOPS)
def test_operations(call, flops):
    with torch.no_grad():
        report = roofprof.count(call)
    assert not report.coverage.uncosted
    assert (report.total.flops, report.total.macs) == (flops, 0)


@pytest.mark.parametrize(
    ("build", "per_parameter"),
    [
        # x - lr * g; by add_ one operation, whose factor is not looked at
        (lambda p: torch.optim.SGD(p, lr=0.1, foreach=False), 1),
        (lambda p: torch.optim.SGD(p, lr=0.1, fused=True), 2),
        # m = b m + (1 - b) g: 3; v = b v + (1 - b) g g: 4; root, correction, eps: 3; x - step * m / that: 3; decay: 1
        (lambda p: torch.optim.AdamW(p, fused=True), 14),
        (lambda p: torch.optim.Adam(p, fused=True), 13),
    ],
    ids=["sgd", "sgd fused", "adamw fused", "adam fused"],
)
def test_optimizer_steps(build, per_parameter):
    model = nn.Linear(64, 32, bias=False)
    optimizer = build(model.parameters())
    model.weight.grad = torch.rand_like(model.weight)
    optimizer.step()  # the first one also makes the buffers
    profiler = roofprof.RooflineProfiler(model, ceilings=roofprof.Ceilings())
    with profiler:
        optimizer.step()
    report = profiler.report()
    assert not report.coverage.uncosted
    # The step itself counts its calls, one addition for each parameter tensor.
    assert report.total.flops == pytest.approx(per_parameter * 64 * 32, abs=1)


@pytest.mark.parametrize(
    ("compute", "dtype"),
    [
        (lambda x: x * 2.5, "fp32"),
        (lambda x: x + 0.5, "fp32"),
        (lambda x: x / 2.5, "fp32"),
        (lambda x: (x > 0) * 2.5, "fp32"),
        (lambda x: x.half() * 2.5, "fp16"),
        (lambda x: x.double() * 2.5, "fp64"),
        (lambda x: x * torch.tensor(2.5), "fp32"),
        (lambda x: x * 2, "int64"),
    ],
)
def test_a_python_number_computes_in_the_type_that_torch_makes_of_it(compute, dtype):
    x = torch.arange(4)
    by_op = roofprof.count(compute, x).by_operator()
    operator = next(row for name, row in by_op.items() if name in {"aten::mul", "aten::add", "aten::div"})
    assert operator.operations_by_dtype == {dtype: 4}
