"""FakeTensor: the same counts as real tensors, in the first call of an op and in those that its cache answers."""

import functools
from collections import Counter

import pytest
import torch
from models import LeNet, Llama
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext
from truths import counts, observe

pytestmark = pytest.mark.usefixtures("one_thread")

MODELS = {
    "lenet": (LeNet, lambda: torch.rand(2, 1, 32, 32)),
    "llama": (Llama, lambda: torch.randint(97, (2, 5))),
    "norms": (
        lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.GroupNorm(2, 4), nn.GELU(), nn.LayerNorm(6)),
        lambda: torch.rand(2, 3, 8, 8),
    ),
}


def work(report):
    # Gradients are summed in place, fake ones are not: only the operator's name and its memory differ.
    total = Counter()
    for (module, op), group in report.by_module_and_operator().items():
        total.update({(module, op.removesuffix("_"), name): count for name, count in counts(group).items() if count})
    return total


def step(model, value, training):
    output = model(value)
    if training:
        output.square().mean().backward()


def with_dynamic_batch(mode, value):
    dims = [DimDynamic.DYNAMIC, *[DimDynamic.STATIC] * (value.dim() - 1)]
    return mode.from_tensor(value, symbolic_context=StatelessSymbolicContext(dynamic_sizes=dims))


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_fake_counts_are_real_ones(name, training):
    """Of symbolic sizes by their hints."""
    build, sample = MODELS[name]
    model, value = build().train(training), sample()
    real = observe(model, functools.partial(step, model, value, training))
    modes = FakeTensorMode(), FakeTensorMode(shape_env=ShapeEnv())
    for mode, given in ((modes[0], modes[0].from_tensor(value)), (modes[1], with_dynamic_batch(modes[1], value))):
        assert isinstance(given.shape[0], torch.SymInt) == (mode is modes[1])
        with mode:
            model = build().train(training)
            for _ in range(2):
                found = observe(model, functools.partial(step, model, given, training))
                model.zero_grad()
                assert not found.coverage.uncosted
                assert work(found) == work(real)


def test_fake_tensors_outside_their_mode():
    with FakeTensorMode():
        layer, value = nn.Linear(8, 4), torch.rand(2, 8)
    for _ in range(2):
        total = observe(layer, lambda: layer(value)).total
        assert (total.macs, total.bytes) == (2 * 8 * 4, 4 * (2 * 8 + 8 * 4 + 4 + 2 * 4))


def test_fake_tensors_under_autocast_and_in_vmap():
    with FakeTensorMode(), torch.autocast("cpu", torch.bfloat16), torch.no_grad():
        layer, value = nn.Linear(8, 4, bias=False), torch.rand(2, 8)
        report = observe(layer, lambda: layer(value))
    assert report.total.flops_by_dtype == {"bf16": 2 * 2 * 8 * 4}
    assert report.by_operator()["aten::_to_copy"].bytes == (4 + 2) * (2 * 8 + 8 * 4)
    with FakeTensorMode():
        weight, value = torch.rand(8, 4), torch.rand(5, 2, 8)
        report = observe(None, lambda: torch.func.vmap(lambda one: one @ weight)(value))
    assert report.total.macs == 5 * 2 * 8 * 4


# ---- symbolic sizes


@pytest.mark.parametrize("name", MODELS)
def test_what_is_observed_stays_as_general(name):
    build, sample = MODELS[name]
    value = sample()

    def guards(run):
        mode = FakeTensorMode(shape_env=ShapeEnv())
        symbolic = with_dynamic_batch(mode, value)
        with mode:
            model = build().eval()
            run(lambda: model(symbolic))
        return [str(guard.expr) for guard in mode.shape_env.guards]

    assert guards(lambda call: observe(None, call)) == guards(lambda call: call())


def test_an_expanded_symbolic_dimension_is_held_once():
    mode = FakeTensorMode(shape_env=ShapeEnv())
    with mode:
        batch = with_dynamic_batch(mode, torch.rand(6, 8)).shape[0]
        row = torch.rand(8).expand(batch, 8)
        report = observe(None, lambda: row + 1)
    assert (report.total.read_bytes, report.total.write_bytes) == (4 * 8, 4 * 6 * 8)


def test_sizes_that_nobody_knows_leave_ops_uncosted():
    # How many elements are not zero is a matter of their values.
    with FakeTensorMode(shape_env=ShapeEnv()):
        found = torch.ones(7, 8).nonzero()
        weight = torch.rand(2, 3)
        report = observe(None, lambda: (found.t(), found.float() @ weight))
    assert report.coverage.uncosted == {"aten::_to_copy": 1, "aten::matmul": 1}
    assert all("a size of it is not known" in note for note in report.coverage.notes)
