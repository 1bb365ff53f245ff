"""Sparse tensors count by the values they store: a product has as many MACs as values meet columns."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from truths import macs_by, observe

import roofprof

pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.filterwarnings("ignore:Sparse"),
]

ROWS, COLUMNS, WIDTH = 6, 8, 5
DENSE = torch.zeros(ROWS, COLUMNS)
DENSE[[0, 0, 1, 3, 4, 5], [1, 6, 2, 2, 7, 0]] = torch.arange(1.0, 7.0)
VALUES = 6
# Row and column of each value; offsets of 6 rows (8 columns) and a place for each value.
INDEX_BYTES = {"coo": 2 * VALUES * 8, "csr": (7 + VALUES) * 8, "csc": (9 + VALUES) * 8}
FORMATS = {"coo": DENSE.to_sparse, "csr": DENSE.to_sparse_csr, "csc": DENSE.to_sparse_csc}
formats = pytest.mark.parametrize("name", FORMATS)


def count(function, *args):
    report = roofprof.count(function, *args)
    assert not report.coverage.uncosted
    return report.total


def held(name, values=VALUES):
    assert values == VALUES
    return 4 * values + INDEX_BYTES[name]


PRODUCTS = {
    "matmul": lambda s, x: s @ x,
    "transposed": lambda s, x: x.T @ s.transpose(0, 1),
    "linear": lambda s, x: F.linear(x.T, s),
}


@formats
@pytest.mark.parametrize("product", PRODUCTS.values(), ids=PRODUCTS)
def test_a_product_multiplies_stored_values(name, product):
    sparse, x = FORMATS[name](), torch.rand(COLUMNS, WIDTH)
    total = count(product, sparse, x)
    assert total.macs == VALUES * WIDTH
    assert total.macs * (ROWS * COLUMNS) == count(product, DENSE, x).macs * VALUES


@formats
def test_bytes_are_values_and_indices(name):
    total = count(lambda s, x: s @ x, FORMATS[name](), torch.rand(COLUMNS, WIDTH))
    assert total.read_bytes == held(name) + 4 * COLUMNS * WIDTH
    assert total.write_bytes == 4 * ROWS * WIDTH


def test_calls_are_distinguished_by_their_values():
    x = torch.rand(COLUMNS, WIDTH)
    full, half = DENSE.to_sparse(), torch.tril(DENSE).to_sparse()
    values = (VALUES, half._nnz())
    assert values[0] != values[1]
    assert count(lambda: (full @ x, half @ x)).macs == sum(values) * WIDTH


def test_what_two_sparse_tensors_multiply_is_not_known():
    for name in ("coo", "csr"):
        sparse = FORMATS[name]()
        report = roofprof.count(lambda s: s @ s.transpose(0, 1).to_sparse(layout=s.layout), sparse)
        assert "aten::matmul" in report.coverage.uncosted
        assert report.total.macs == 0
        assert any("where their values lie" in note for note in report.coverage.notes)


# ---- backward


def test_backward_of_a_csr_product_is_twice_its_forward():
    sparse = DENSE.to_sparse_csr().requires_grad_()
    x = torch.rand(COLUMNS, WIDTH, requires_grad=True)
    report = observe(nn.Identity(), lambda: torch.sparse.mm(sparse, x).sum().backward())
    assert macs_by(report, "phase") == {"forward": VALUES * WIDTH, "backward": 2 * VALUES * WIDTH}
    assert not report.coverage.uncosted


def test_a_step_along_a_sparse_gradient_touches_its_rows():
    table = nn.Embedding(1000, 4, sparse=True)
    optimizer = torch.optim.SGD(table.parameters(), lr=0.1)

    def step():
        table(torch.tensor([3, 7, 9])).sum().backward()
        optimizer.step()

    report = observe(table, step)
    row = report.row("(optimizer)")
    # Three rows of four floats are read, with their gradient and its three indices, and written.
    assert (row.flops, row.read_bytes, row.write_bytes) == (12, 48 + 48 + 24, 48)
    assert not report.coverage.uncosted
