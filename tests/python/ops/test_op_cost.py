"""Costs of the user's own for operators, in their own libraries and in torch's."""

from __future__ import annotations

import threading

import pytest
import torch
from attributed import Model
from given_roofs import profiler
from torch import nn

import roofprof
from roofprof import _C


@pytest.fixture
def cost():
    """op_cost whose registrations are taken back."""
    names = []

    def register(name):
        names.append(name)
        return roofprof.op_cost(name)

    yield register
    for name in names:
        _C.remove_op_cost(name)


@torch.library.custom_op("own::scaled", mutates_args=())
def scaled(x: torch.Tensor, taps: int, by: float = 2.0) -> torch.Tensor:
    return x * by * 1.0


scaled.register_autograd(lambda _, grad: (own_backward(grad), None, None))


@torch.library.custom_op("own::backward", mutates_args=())
def own_backward(grad: torch.Tensor) -> torch.Tensor:
    return grad * 2.0


@torch.library.custom_op("own::mixed", mutates_args=())
def mixed(
    xs: list[torch.Tensor],
    bias: torch.Tensor | None,
    sizes: list[int],
    scales: list[float],
    mode: str,
    flag: bool,
    *,
    dtype: torch.dtype,
    device: torch.device,
) -> tuple[torch.Tensor, torch.Tensor]:
    return xs[0].to(dtype), xs[1].sum()


X = torch.ones(2, 3)


def x(*shape, **options):
    return torch.ones(shape, **options) if shape or options else X


def test_function_comes_back_unchanged_and_its_work_counts(cost):
    def work_of(x, taps, by):
        return roofprof.Work(macs=x.numel() * taps)

    assert cost("own::scaled")(work_of) is work_of
    report = roofprof.count(lambda: scaled(x(), 5))
    assert report.total.macs == 2 * 3 * 5
    assert report.total.flops == 2 * 2 * 3 * 5
    assert (report.total.read_bytes, report.total.write_bytes) == (24, 24)
    assert list(report.by_operator()) == ["own::scaled"]
    assert not report.coverage.uncosted


def test_a_dict_will_do_and_given_bytes_count_instead_of_the_compulsory_ones(cost):
    cost("own::scaled")(lambda *_: {"flops": 7, "int_ops": 3, "read_bytes": 100, "dtype": torch.bfloat16})
    row = roofprof.count(lambda: scaled(x(), 5)).total
    assert (row.macs, row.flops, row.int_ops, row.read_bytes, row.write_bytes) == (0, 7, 3, 100, 24)
    cost("own::scaled")(lambda *_: roofprof.Work(macs=4, bytes=50, dtype=torch.int8))
    row = roofprof.count(lambda: scaled(x(), 5)).total
    assert (row.macs, row.flops, row.int_ops, row.bytes) == (4, 0, 8, 50)


def test_arguments_arrive_as_the_schema_has_them(cost):
    seen = []

    @cost("own::mixed")
    def _(*args, out, **kwargs):
        seen.append((args, out, kwargs))
        return roofprof.Work()

    a, b = x(2, 3), x(4, dtype=torch.complex64)
    roofprof.count(
        lambda: mixed([a, b], None, [1, 2], [0.5], "fast", flag=True, dtype=torch.float16, device=torch.device("cpu"))
    )
    [((xs, bias, *values), out, keywords)] = seen
    assert [(t.shape, t.dtype, t.numel(), t.dim(), t.element_size(), t.nbytes) for t in xs] == [
        (t.shape, t.dtype, t.numel(), t.dim(), t.element_size(), t.nbytes) for t in (a, b)
    ]
    assert isinstance(xs[0].shape, torch.Size)
    assert (xs[0].size(-1), xs[0].size(), xs[0].ndim) == (3, a.size(), 2)
    assert bias is None
    assert values == [[1, 2], [0.5], "fast", True]
    assert keywords == {"dtype": torch.float16, "device": "cpu"}
    assert [(t.shape, t.dtype) for t in out] == [((2, 3), torch.float16), ((), torch.complex64)]


def test_it_is_requested_once_for_each_shape_and_scalar(cost):
    lookups = []

    @cost("own::scaled")
    def _(x, taps, by, *, out):
        lookups.append((tuple(out.shape), taps, by))
        return roofprof.Work(macs=taps)

    def run():
        for _ in range(10):
            scaled(x(), 5)
        scaled(x(), 6)
        scaled(x(), 6, 0.5)
        scaled(x(4), 6)

    assert roofprof.count(run).total.macs == 10 * 5 + 3 * 6
    assert sorted(lookups) == [((2, 3), 5, 2.0), ((2, 3), 6, 0.5), ((2, 3), 6, 2.0), ((4,), 6, 2.0)]


def test_torchs_own_costs_give_way_even_after_the_op_was_seen(cost):
    model = nn.Linear(4, 2, bias=False)
    run = lambda: model(x(3, 4))  # noqa: E731
    assert roofprof.count(run).total.macs == 24
    cost("aten::linear")(lambda x, weight, bias=None: roofprof.Work(macs=1000))
    assert roofprof.count(run).total.macs == 1000
    cost("aten::linear")(lambda x, weight, bias=None: roofprof.Work(macs=2000))
    assert roofprof.count(run).total.macs == 2000
    _C.remove_op_cost("aten::linear")
    assert roofprof.count(run).total.macs == 24


BAD = {
    "its cost function raised ZeroDivisionError: division by zero": lambda *_: roofprof.Work(macs=1 / 0),
    "its cost function raised TypeError: 42 does not say whether it counts FLOPs or MACs; "
    "return roofprof.Work(flops=...) or Work(macs=...) "
    "(roofprof docs own-ops)": lambda *_: 42,
    "its cost function raised ValueError: macs must be finite and 0 or more, not -1": lambda *_: {"macs": -1},
    "its cost function raised ValueError: causal_macs=2 must not be more than macs=1, the dense ones": lambda *_: {
        "macs": 1,
        "causal_macs": 2,
    },
    "its cost function raised ValueError: flops are floating-point operations, but dtype is torch.int8: give them as "
    "int_ops": lambda *_: {"flops": 1, "dtype": torch.int8},
    "its cost function raised ValueError: give bytes, or read_bytes and write_bytes, not both": lambda *_: {
        "bytes": 1,
        "write_bytes": 1,
    },
}


@pytest.mark.parametrize("reason", BAD)
def test_a_wrong_formula_is_named_and_the_profile_goes_on(cost, reason):
    cost("own::scaled")(BAD[reason])
    report = roofprof.count(Model(lambda m, v: m.after(scaled(v, 1)), after=nn.Linear(3, 2, bias=False)), x())
    assert report.coverage.uncosted == {"own::scaled": 1}
    assert [note for note in report.coverage.notes if "own::scaled" in note] == [f"no cost for own::scaled: {reason}"]
    assert report.row("").incomplete
    assert not report.row("after").incomplete
    assert report.total.macs == 2 * 3 * 2


def test_wrong_registrations_say_so():
    with pytest.raises(TypeError, match="operator's name"):
        roofprof.op_cost(scaled)
    with pytest.raises(ValueError, match="qualified name"):
        roofprof.op_cost("scaled")(lambda *_: roofprof.Work())
    with pytest.raises(TypeError, match="must be a function"):
        roofprof.op_cost("own::scaled")("macs")


def test_what_the_function_dispatches_itself_is_not_observed(cost):
    @cost("own::scaled")
    def _(x, taps, by):
        layer = nn.Linear(64, 64)
        layer(torch.empty(x.shape[0], 64))
        return roofprof.Work(macs=1)

    report = roofprof.count(lambda: scaled(x(), 1))
    assert list(report.by_operator()) == ["own::scaled"]


def test_backward_asks_without_anybody_waiting_for_the_interpreter_lock(cost):
    """Autograd's engine runs without it, while other threads hold it."""

    @cost("own::backward")
    def _(grad):
        return roofprof.Work(macs=grad.numel())

    layer = nn.Linear(3, 3, bias=False)
    model = Model(lambda m, v: scaled(m.layer(v), 1), layer=layer)
    prof = profiler(model)

    def step():
        for _ in range(5):
            model(x()).sum().backward()

    with prof:
        workers = [threading.Thread(target=step) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(timeout=600)
    assert not any(worker.is_alive() for worker in workers)
    group = prof.report().by_module_and_operator()["", "own::backward"]
    assert group.calls == 5 * 4
    assert group.macs == 5 * 4 * 6


def test_what_is_none_in_a_list_is_none_for_a_cost(cost):
    seen = []

    @cost("aten::index_put_")
    def put(x, indices, values, accumulate=False):
        seen.append([index if index is None else tuple(index.shape) for index in indices])
        return roofprof.Work()

    x, index = torch.zeros(4, 6, 2), torch.arange(3)
    roofprof.count(lambda: torch.ops.aten.index_put_(x, [None, index], torch.tensor(1.0)))
    assert seen == [[None, (3,)]]
