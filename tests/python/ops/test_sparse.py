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
    "mm": torch.mm,
    "sparse.mm": torch.sparse.mm,
    "addmm": lambda s, x: torch.addmm(torch.zeros(ROWS, WIDTH), s, x),
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


@formats
def test_a_vector_meets_each_value_once(name):
    assert count(torch.mv, FORMATS[name](), torch.rand(COLUMNS)).macs == VALUES


def test_blocks_are_stored_whole():
    # 2 x 2 blocks that hold a value: of rows 0-1 three, of rows 2-3 one, of rows 4-5 two.
    sparse, x = DENSE.to_sparse_bsr((2, 2)), torch.rand(COLUMNS, WIDTH)
    assert count(lambda s: s @ x, sparse).macs == 6 * 4 * WIDTH


def test_a_batch_adds_up_its_values():
    sparse = torch.stack([DENSE, DENSE.flip(0)]).to_sparse()
    assert count(torch.bmm, sparse, torch.rand(2, COLUMNS, WIDTH)).macs == 2 * VALUES * WIDTH


def test_dense_dimensions_hold_whole_rows():
    # As the gradient of an embedding: three rows of four.
    rows = torch.sparse_coo_tensor([[0, 2, 5]], torch.ones(3, 4), (9, 4))
    total = count(lambda: rows * 2)
    assert (total.flops, total.read_bytes, total.write_bytes) == (12, 48 + 24, 48 + 24)


def test_calls_are_told_apart_by_their_values():
    x = torch.rand(COLUMNS, WIDTH)
    full, half = DENSE.to_sparse(), torch.tril(DENSE).to_sparse()
    values = (VALUES, half._nnz())
    assert values[0] != values[1]
    assert count(lambda: (full @ x, half @ x)).macs == sum(values) * WIDTH


def test_sampled_products():
    sparse = DENSE.to_sparse_csr()
    left, right = torch.rand(ROWS, 3), torch.rand(3, COLUMNS)
    assert count(torch.sparse.sampled_addmm, sparse, left, right).macs == VALUES * 3


@pytest.mark.parametrize(("how", "macs", "others"), [("sum", 1, 0), ("mean", 1, ROWS * WIDTH), ("amax", 0, None)])
def test_reduced_products(how, macs, others):
    total = count(torch.sparse.mm, DENSE.to_sparse_csr(), torch.rand(COLUMNS, WIDTH), how)
    products = VALUES * WIDTH
    assert total.macs == macs * products
    # Extremes multiply and compare, they do not accumulate.
    assert total.flops == 2 * products + (others or 0)


@formats
@pytest.mark.parametrize(
    "function", [lambda s: s * 2, torch.relu, lambda s: s + s, torch.sum], ids=["mul", "relu", "add", "sum"]
)
def test_arithmetic_is_done_on_stored_values(name, function):
    assert count(function, FORMATS[name]()).flops == VALUES


@pytest.mark.parametrize("function", [torch.sparse.softmax, torch.sparse.log_softmax])
def test_softmax(function):
    total = count(function, DENSE.to_sparse(), 1)
    assert (total.flops, total.bytes) == (5 * VALUES, 2 * held("coo"))


@formats
def test_conversions(name):
    made = count(FORMATS[name])
    # Each element is compared with zero.
    assert (made.flops, made.read_bytes, made.write_bytes) == (ROWS * COLUMNS, 4 * ROWS * COLUMNS, held(name))
    back = count(torch.Tensor.to_dense, FORMATS[name]())
    assert (back.flops, back.read_bytes, back.write_bytes) == (0, held(name), 4 * ROWS * COLUMNS)


def test_coalescing_adds_up_what_stands_twice():
    twice = torch.sparse_coo_tensor([[0, 0, 1], [1, 1, 2]], torch.ones(3), (ROWS, COLUMNS))
    total = count(twice.coalesce)
    assert (total.flops, total.int_ops) == (3, 3 * 2)  # three additions, three values sorted
    assert (total.read_bytes, total.write_bytes) == (3 * (4 + 16), 2 * (4 + 16))


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


def test_backward_of_a_coo_product_makes_its_gradient_dense():
    sparse = DENSE.to_sparse().requires_grad_()
    x = torch.rand(COLUMNS, WIDTH, requires_grad=True)
    report = observe(nn.Identity(), lambda: torch.sparse.mm(sparse, x).sum().backward())
    # torch computes grad @ x^T whole, and masks it then.
    backward = VALUES * WIDTH + ROWS * COLUMNS * WIDTH
    assert macs_by(report, "phase") == {"forward": VALUES * WIDTH, "backward": backward}
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


# ---- 2:4 structured: half of each row is kept, and multiplied


def structured(rows=64, contracted=128, dtype=torch.float16):
    options = {"device": "meta", "dtype": dtype}
    return (
        torch.empty(rows, contracted // 2, **options),
        torch.empty(rows, contracted // 16, device="meta", dtype=torch.int16),
        torch.empty(contracted, 32, **options),
    )


def test_structured_products_do_half_the_macs():
    weight, places, x = structured()
    macs = 64 * 128 * 32 // 2
    ops = torch.ops.aten
    assert count(ops._sparse_semi_structured_mm, weight, places, x).macs == macs
    bias = torch.empty(64, device="meta", dtype=torch.float16)
    with_bias = count(ops._sparse_semi_structured_addmm, bias, weight, places, x)
    assert (with_bias.macs, with_bias.flops) == (macs, 2 * macs + 64 * 32)
    linear = count(ops._sparse_semi_structured_linear, x.T, weight, places)
    assert linear.macs == macs
    # The kept half, two bits of place for each value in it, the input; the output.
    assert linear.read_bytes == 2 * 64 * 64 + 64 * 64 // 4 + 2 * 128 * 32
    assert linear.write_bytes == 2 * 64 * 32
    # cuSPARSELt holds values and places in one buffer.
    buffer = torch.empty(64, 128 * 9 // 16, device="meta", dtype=torch.float16)
    assert count(ops._cslt_sparse_mm, buffer, x).macs == macs
