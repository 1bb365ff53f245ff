"""What is dispatched on tensors without data in a call that has some: shapes and graphs, and no work of the call."""

import pytest
import torch
import torch._dynamo  # first imported inside of a call it would compile the hooks
from attributed import Model
from torch import nn
from torch._higher_order_ops.map import map as map_over
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

import roofprof

pytestmark = pytest.mark.usefixtures("nothing_compiled")

ROWS, SIZE = 4, 8
LINEAR = ROWS * SIZE * SIZE  # MACs


def on_fakes(model, value):
    with FakeTensorMode() as mode:
        fake = mode.from_tensor(value)
        fake @ torch.empty(SIZE, 100 * SIZE)
    return model.layer(value)


def on_meta(model, value):
    shape = (value.to("meta") @ torch.randn(SIZE, SIZE, device="meta")).shape
    return model.layer(value).reshape(shape)


def exported(model, value):
    torch.export.export(model.layer, (value,))
    return model.layer(value)


def traced(model, value):
    make_fx(lambda given: given @ given.t(), tracing_mode="fake")(value)
    return model.layer(value)


def branch(model, value):
    def other(given, weight, bias):
        return given * weight.sum() + bias

    taken = value.sum() > -1e9
    return torch.cond(taken, nn.functional.linear, other, (value, model.layer.weight, model.layer.bias))


def mapped(model, value):
    return map_over(lambda row, weight: torch.mv(weight, row), value, model.layer.weight)


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("way", [on_fakes, on_meta, exported, traced, branch, mapped])
def test_a_call_that_has_data_counts_what_it_computes(way, grad):
    model = Model(way, layer=nn.Linear(SIZE, SIZE)).requires_grad_(grad)
    value = torch.rand(ROWS, SIZE, requires_grad=grad)
    for _ in range(2):  # the first call may trace what the second one finds
        report = roofprof.count(model, value)
        assert report.total.macs == LINEAR
        assert not report.total.incomplete
        assert not report.coverage.uncosted
    if way is on_meta:
        (note,) = [note for note in report.coverage.notes if note.code == "traced-meanwhile"]
        # to (which copies), randn and the product
        assert note.text.startswith("3 operator calls on tensors without data")


# ---- what runs without data is counted as ever


def linear_on(device):
    return nn.Linear(SIZE, SIZE, device=device)(torch.empty(ROWS, SIZE, device=device))


def linear_on_fakes():
    with FakeTensorMode():
        return linear_on("cpu")


@pytest.mark.parametrize("call", [lambda: linear_on("meta"), linear_on_fakes])
def test_without_any_data_all_is_work(call):
    report = roofprof.count(call)
    assert report.total.macs == LINEAR
    assert "traced-meanwhile" not in {note.code for note in report.coverage.notes}
