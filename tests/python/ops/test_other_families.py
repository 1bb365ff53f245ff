"""Work that depends on arguments besides sizes, through torch itself: operations counted by hand.

test_decompositions.py holds pointwise operators, reductions and normalisations.
"""

import pytest
import torch
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
    "gelu, tanh": (lambda: F.gelu(X, approximate="tanh"), 9 * N),
    # normalisation: mean 1, variance 3, scale 1, shift 1; weight and bias
    "layer_norm, weighted": (lambda: F.layer_norm(LINES, (16,), VECTOR, VECTOR), 8 * 96),
    "batch_norm, evaluation": (lambda: F.batch_norm(X, FOUR, POSITIVE), 2 * N),
    # pooling: one operation for each element of each window
    "max_pool2d": (lambda: F.max_pool2d(X, 3, stride=2), 2 * 4 * 9 * 9),
    "avg_pool2d": (lambda: F.avg_pool2d(X, (2, 4)), 2 * 4 * 8 * 8),
    "adaptive_avg_pool2d": (lambda: F.adaptive_avg_pool2d(X, 3), 2 * 4 * (3 + 4 + 3) ** 2),  # rows 0-2, 2-5, 5-7
    # interpolation: 2 x neighbours - 1 for each output
    "bilinear": (lambda: F.interpolate(X, scale_factor=2, mode="bilinear"), 7 * 4 * N),
    "grid_sample": (lambda: F.grid_sample(X, GRID, align_corners=False), 7 * 2 * 4 * 25 + 26 * 2 * 25),
    # losses: per element, the sum 1 more, the mean one division
    "cross_entropy": (lambda: F.cross_entropy(SCORES, LABELS), 5 * 60 + 2 * 6),
    # searches, sorting
    "sort": (lambda: LINES.sort(1), 96 * 4),
    "topk": (lambda: LINES.topk(4, 1), 96 * (1 + 2)),
    "searchsorted": (lambda: torch.searchsorted(VECTOR, LINES), 96 * 5),  # 17 places among 16
    # gathering moves, scattering adds
    "embedding_bag": (lambda: F.embedding_bag(ROWS[None], LINES, mode="sum"), 5 * 16),
    "index_add": (lambda: LINES.index_add(0, ROWS, LINES[:5]), 5 * 16),
    "foreach_norm": (lambda: torch._foreach_norm([LINES, VECTOR]), 2 * (96 + 16) + 2),
    # complex numbers: a product is 6
    "complex product": (lambda: torch.complex(LINES, LINES) * torch.complex(LINES, LINES), 6 * 96),
}


@pytest.mark.parametrize(("call", "flops"), FLOPS.values(), ids=FLOPS)
def test_operations(call, flops):
    with torch.no_grad():
        report = roofprof.count(call)
    assert not report.coverage.uncosted
    assert (report.total.flops, report.total.macs) == (flops, 0)


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
