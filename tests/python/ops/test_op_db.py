"""torch's own operator database: every operator that stands outermost is costed or free, and its figures can be true.

Which operators stand outermost, and what they call, is read from torch.profiler's tree of events.
"""

import pytest
import torch
from truths import assert_conserved, counts, observe

import roofprof

torch_database = pytest.importorskip(
    "torch.testing._internal.common_methods_invocations",
    reason="torch's operator database, a private module, is not there or lacks a package that it needs",
)
op_db_sweep = pytest.importorskip("op_db_sweep")
FlopCounterMode = pytest.importorskip("torch.utils.flop_counter").FlopCounterMode

pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.filterwarnings("ignore")]

AT_LEAST = 0.9

# Operators that are called outermost while something in them is uncosted. A name that is not left any more fails too.
LEFT = {
    # Of empty matrices nothing is counted inside, so that these are named; of others all is.
    "aten::linalg_matrix_sqrth": "empty matrices",
    "aten::linalg_pinv": "empty matrices",
    "aten::pinverse": "empty matrices",
}

# Operators with a kernel of their own, and without a cost, because that kernel only calls others: each was read.
CALLS_OTHERS = {
    "aten::_embedding_bag_backward": "_embedding_bag_dense_backward",
    "aten::_unsafe_masked_index": "index and where",
    "aten::_unsafe_masked_index_put_accumulate": "index_put",
    "aten::allclose": "isclose and all",
    "aten::binary_cross_entropy_with_logits": "pointwise operators and a sum",
    "aten::block_diag": "zeros, and a copy for each block",
    "aten::dist": "a subtraction and a norm",
    "aten::linalg_matrix_exp": "products and additions of a Taylor polynomial",
    "aten::linalg_matrix_sqrth": "eigh and a product",
    "aten::linalg_pinv": "svd or eigh, and products",
    "aten::linalg_polar": "svd and products",
    "aten::rot90": "flip and transpose",
    "torch_nn::_linear_cross_entropy_batch_chunked": "products and softmax, chunk by chunk",
    "torch_nn::_linear_cross_entropy_batch_chunked_no_reduction": "products and softmax, chunk by chunk",
}

# Composite operators that dispatched nothing inside: they gave their input back, or asked a question.
NOTHING_TO_DO = {
    "aten::alpha_dropout",
    "aten::atleast_1d",
    "aten::atleast_2d",
    "aten::atleast_3d",
    "aten::broadcast_tensors",
    "aten::cartesian_prod",
    "aten::cumprod_backward",
    "aten::dropout",
    "aten::feature_alpha_dropout",
    "aten::feature_dropout",
    "aten::real",
    "aten::resolve_conj",
    "aten::resolve_neg",
    "aten::result_type",
    "aten::to",
}

# Entries that have no sample on the CPU.
NOT_HERE = {
    "torch_ops_aten__flash_attention_forward": "CUDA only",
    "torch_ops_aten__efficient_attention_forward": "CUDA only",
    "nn_functional_batch_norm_without_cudnn": "CUDA only",
    "jiterator_unary": "CUDA only",
    "jiterator_binary": "CUDA only",
    "jiterator_4inputs_with_extra_args": "CUDA only",
    "jiterator_binary_return_by_ref": "CUDA only",
    "jiterator_2inputs_2outputs": "CUDA only",
}

# Entries where torch.utils.flop_counter counts less than our MACs, and why.
NO_FORMULA = "torch has no formula for it"
SEEN_AS_ONE = "torch sees the operator as a whole, which has no formula, and not the products in it"
TORCH_COUNTS_LESS = {
    "__rmatmul__": NO_FORMULA,
    "addbmm": NO_FORMULA,
    "addmv": NO_FORMULA,
    "dot": NO_FORMULA,
    "inner": NO_FORMULA,
    "linalg_matrix_sqrth": SEEN_AS_ONE,
    "linalg_pinv": SEEN_AS_ONE,
    "linalg_pinv_hermitian": SEEN_AS_ONE,
    "linalg_pinv_singular": SEEN_AS_ONE,
    "linalg_polar": SEEN_AS_ONE,
    "linalg_vecdot": NO_FORMULA,
    "matmul": NO_FORMULA,
    "matrix_exp": SEEN_AS_ONE,
    "mv": NO_FORMULA,
    "nn_functional_bilinear": NO_FORMULA,
    "nn_functional_linear_cross_entropy_chunked": SEEN_AS_ONE,
    "nn_functional_linear_cross_entropy_chunked_none": SEEN_AS_ONE,
    "pinverse": SEEN_AS_ONE,
    "sparse_mm_reduce": NO_FORMULA,
    "tensordot": NO_FORMULA,
    "torch__scaled_mm_v2": NO_FORMULA,
    "vdot": NO_FORMULA,
}

# Their memory is allocated and not written.
ALLOCATIONS = {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"}


def newest_torch():
    """The lists above are those of one torch: another has entries and operators that this one does not have."""
    return torch.__version__.startswith("2.15.")


@pytest.fixture(scope="module")
def calls():
    found, without = op_db_sweep.samples(torch_database.op_db)
    assert len(found) > 1500
    if newest_torch() and not torch.cuda.is_available():
        assert without.keys() == NOT_HERE.keys()
    return found


@pytest.fixture(scope="module")
def outermost(calls):
    return op_db_sweep.outermost(calls)


@pytest.fixture(scope="module")
def report(calls):
    return observe(torch.nn.Identity(), lambda: [sample.both() for sample in calls])


@pytest.fixture(scope="module")
def one_by_one(calls):
    """The report of each forward by itself, and what it gave."""
    found = []
    with torch.no_grad():
        for sample in calls:
            outputs = []
            found.append((sample, roofprof.count(lambda: outputs.append(sample.forward())), outputs))  # noqa: B023
    return found


def test_what_stands_outermost_is_costed_or_free(outermost, report):
    uncosted = set(report.coverage.uncosted)
    left = {name for name, inside in outermost.inside.items() if uncosted & {name, *inside}}
    share = 1 - len(left) / len(outermost.inside)
    assert share >= AT_LEAST, f"{share:.1%} of {len(outermost.inside)} operators; uncosted: {sorted(uncosted)}"
    if newest_torch():
        assert left == LEFT.keys(), f"{share:.1%} of {len(outermost.inside)} operators"


def test_nothing_is_lost_on_the_way_through(outermost, report):
    # A kernel whose own work has no cost must be named, also where the small operators around it have one.
    known = report.by_operator().keys() | report.coverage.uncosted.keys()
    through = {name for name in outermost.inside if name not in known and not op_db_sweep.is_composite(name)}
    nothing = outermost.alone - known
    if newest_torch():
        assert through <= CALLS_OTHERS.keys()
        assert nothing == NOTHING_TO_DO
    assert len(through) <= len(CALLS_OTHERS)


def test_what_torch_tags_has_a_cost(report):
    tagged = {torch.Tag.pointwise, torch.Tag.reduction, torch.Tag.view_copy}
    assert not [name for name in report.coverage.uncosted if tagged & op_db_sweep.tags(name)]


def test_views_are_free(report):
    views = {name: group for name, group in report.by_operator().items() if op_db_sweep.is_view(name)}
    assert len(views) > 20
    assert not {name for name, group in views.items() if any(counts(group).values())}


def test_what_is_declared_free_is_free(report):
    free = {cost["op"] for cost in roofprof._C.op_costs() if cost["free"]} & report.by_operator().keys()
    assert {"aten::empty", "aten::_unsafe_view"} <= free
    assert not {name for name in free if any(counts(report.by_operator()[name]).values())}


def test_each_figure_can_be_true(report):
    assert_conserved(report)
    # Nothing saturated, nothing failed.
    assert {note.code for note in report.coverage.notes} <= {"traffic-sampled"}
    for group in report.group("op", "phase", "dtype", "shapes"):
        figures = counts(group)
        assert min(figures.values()) >= 0, group.keys
        assert figures["causal_macs"] <= figures["macs"], group.keys
        assert figures["flops"] + figures["int_ops"] >= 2 * figures["macs"], group.keys
        assert figures["bytes"] == figures["read_bytes"] + figures["write_bytes"], group.keys


def test_what_comes_out_new_was_written(one_by_one):
    wrong = {}
    for sample, report, outputs in one_by_one:
        at_least = new_bytes(outputs, sample.inputs())
        if report.total.write_bytes < at_least and not report.coverage.uncosted:
            wrong[sample.name] = (report.total.write_bytes, at_least)
    assert wrong.keys() == ALLOCATIONS


def new_bytes(outputs, inputs):
    """Of storages that no input has, as many bytes as their largest tensor holds."""
    old = {tensor.untyped_storage().data_ptr() for tensor in inputs if tensor.layout == torch.strided}
    new = {}
    for tensor in op_db_sweep.tensors_in(outputs):
        if tensor.layout != torch.strided or tensor.untyped_storage().data_ptr() in old:
            continue
        held = [1 if stride == 0 else size for size, stride in zip(tensor.shape, tensor.stride(), strict=True)]
        place = tensor.untyped_storage().data_ptr()
        new[place] = max(new.get(place, 0), torch.Size(held).numel() * tensor.element_size())
    return sum(new.values())


def test_contractions_are_as_torch_counts_them(one_by_one):
    less, more, same = set(), {}, 0
    for sample, report, _ in one_by_one:
        with torch.no_grad(), FlopCounterMode(display=False) as counter:
            sample.forward()
        theirs, ours = counter.get_total_flops(), 2 * report.total.macs
        if theirs == ours:
            same += ours > 0
        elif theirs < ours:
            less.add(sample.name)
        else:
            more[sample.name] = (theirs, ours)
    assert not more
    assert same > 50
    if newest_torch():
        assert less == TORCH_COUNTS_LESS.keys()
