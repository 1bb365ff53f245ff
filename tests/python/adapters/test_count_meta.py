"""count() where tensors hold no data: on the meta device, fake, or some of both. The user does not have to say so."""

import contextlib
import functools

import pytest
import torch
from models import LeNet
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.nn import functional as F
from truths import layer_macs

import roofprof

pytestmark = pytest.mark.usefixtures("one_thread")

WITH_FAKES = "counted with fake tensors on the CPU, because the call as it stands raised"
LOOKED_AT = "count it with real data"


@pytest.fixture
def lenet_macs(image):
    return layer_macs(LeNet().eval(), image).total()


def notes_of(report):
    return report.coverage.notes


class Padded(nn.Module):
    """Looks at its mask, as models do to save work, but not while they are traced."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 4)
        self.register_buffer("scale", torch.ones(8))
        self.calls, self.last = [], None

    def forward(self, x, mask):
        self.calls.append("called")
        if not isinstance(mask, FakeTensor) and mask.all():
            return self.linear(x)
        self.last = x * self.scale
        return self.linear(self.last.masked_fill(~mask, 0))


PADDED = 2 * 8 * 4  # MACs


def padded_inputs(device=None):
    return torch.ones(2, 8, device=device), torch.ones(2, 8, dtype=torch.bool, device=device)


# ---- the meta device


def test_all_on_meta_is_the_plain_call(lenet_macs):
    report = roofprof.count(LeNet().to("meta"), torch.empty(1, 1, 32, 32, device="meta"))
    assert (report.total.macs, report.device, notes_of(report)) == (lenet_macs, "meta", [])
    with torch.device("meta"):
        report = roofprof.count(LeNet(), torch.rand(1, 1, 32, 32))
        assert (report.total.macs, notes_of(report)) == (lenet_macs, [])
        report = roofprof.count(Padded(), *padded_inputs())
        large = nn.Sequential(nn.Linear(8, 1 << 20), nn.Linear(1 << 20, 1 << 20))  # 4 TiB, which nobody allocates
    assert report.total.macs == PADDED
    assert WITH_FAKES in notes_of(report)[0]
    assert roofprof.count(large, torch.rand(2, 8)).total.macs == 2 * (8 << 20) + 2 * (1 << 40)


@pytest.mark.parametrize("where", ["model", "inputs"])
def test_the_other_half_on_the_cpu(where, image, lenet_macs):
    model, x = (LeNet().to("meta"), image) if where == "model" else (LeNet(), image.to("meta"))
    report = roofprof.count(model, x)
    assert report.total.macs == lenet_macs
    (note,) = notes_of(report)
    assert str(note).startswith(WITH_FAKES)


def test_profile_counts_and_says_why_there_is_no_time(image, lenet_macs):
    report = roofprof.profile(LeNet().to("meta"), image)
    assert report.total.macs == lenet_macs
    assert report.total.time is None
    assert "not timed: tensors on the meta device hold no data" in notes_of(report)


# ---- what is left behind


def test_the_second_call_leaves_nothing():
    model = Padded().to("meta")
    parameters, scale = dict(model.named_parameters()), model.scale
    given, mask = padded_inputs()
    dropout = nn.Sequential(nn.Dropout(), nn.Linear(8, 4)).to("meta")
    state = torch.get_rng_state()
    report = roofprof.count(model, given, mask)
    assert report.total.macs == PADDED
    assert (model.calls, model.last) == ([], None)
    assert dict(model.named_parameters()).keys() == parameters.keys()
    assert all(parameter is parameters[name] for name, parameter in model.named_parameters())
    assert model.scale is scale
    assert given.tolist() == torch.ones(2, 8).tolist()
    roofprof.count(dropout, given)
    assert torch.equal(torch.get_rng_state(), state)
    # Where parts are on the CPU, these stay what they are, too.
    model = Padded().eval()
    model.linear.to("meta")
    x, mask = padded_inputs("meta")
    assert roofprof.count(model, x, mask=mask).total.macs == PADDED
    assert (model.scale.device.type, model.scale.tolist()) == ("cpu", [1] * 8)


def test_the_first_call_s_changes_do_not_count_twice():
    class Cached(Padded):
        def forward(self, x, mask, cache):
            cache.append(x.clone())
            x.add_(1)
            return super().forward(torch.cat(cache), mask)

    model, cache = Cached().to("meta"), [torch.rand(2, 8, device="meta")]
    x, mask = torch.zeros(2, 8, device="meta"), torch.ones(4, 8, dtype=torch.bool, device="meta")
    report = roofprof.count(model, x, mask, cache)
    assert WITH_FAKES in notes_of(report)[0]
    assert report.total.macs == 2 * PADDED
    assert len(cache) == 1

    x = torch.zeros(2, 8)  # on the CPU the first call writes to it before it fails
    report = roofprof.count(model, x, torch.ones(2, 8, dtype=torch.bool), [])
    assert WITH_FAKES in notes_of(report)[0]
    assert x.tolist() == torch.zeros(2, 8).tolist()

    model.forward = lambda x: model.calls.append("called")  # a plain call keeps its changes
    roofprof.count(model, torch.empty(2, 8, device="meta"))
    assert model.calls == ["called"]


def test_training_leaves_no_gradients(image, lenet_macs):
    model = LeNet().to("meta")
    by_phase = roofprof.count(lambda: model(image).sum().backward()).by_phase()
    assert by_phase["forward"].macs == lenet_macs
    # Of the backward's two products per layer, the first layer's input needs none.
    assert by_phase["backward"].macs == 2 * lenet_macs - 30 * 30 * 6 * 9
    assert all(parameter.grad is None for parameter in model.parameters())
    assert image.grad is None


# ---- fake tensors


@pytest.mark.parametrize("inside", [True, False])
def test_a_fake_model(inside, lenet_macs):
    mode = FakeTensorMode()
    with mode:
        model, x = LeNet().eval(), torch.rand(1, 1, 32, 32)
    weight = model.conv1.weight
    with mode if inside else contextlib.nullcontext():
        report = roofprof.count(model, x)
    assert (report.total.macs, notes_of(report), report.total.time) == (lenet_macs, [], None)
    assert model.conv1.weight is weight


class Positions(nn.Module):
    """Makes tensors of its own, which a fake one only takes when they are made in its mode."""

    def __init__(self):
        super().__init__()
        self.norm, self.linear, self.calls = nn.BatchNorm1d(8), nn.Linear(8, 4), 0

    def forward(self, x):
        self.calls += 1
        return self.linear(self.norm(x) + torch.arange(8.0))


def test_a_fake_model_called_outside_its_mode_with_data_and_the_reverse():
    with FakeTensorMode():
        fake_model, fake_x = Positions(), torch.rand(2, 8)
    mean = fake_model.norm.running_mean
    report = roofprof.count(fake_model, torch.rand(2, 8))
    assert report.total.macs == PADDED
    assert notes_of(report) == ["inputs that hold data were taken as fake tensors, as the others are"]
    assert fake_model.calls == 1
    assert fake_model.norm.running_mean is mean
    assert torch._C._len_torch_dispatch_stack() == 0
    model = Positions()
    report = roofprof.count(model, fake_x)
    assert report.total.macs == PADDED
    assert str(notes_of(report)[0]).startswith(WITH_FAKES)
    assert type(model.linear.weight) is nn.Parameter


# ---- what depends on data

DEPENDENT = [
    ("aten::nonzero", lambda x: x[x > 0]),
    ("aten::_unique2", lambda x: x.unique()),
    ("aten::masked_select", lambda x: x.masked_select(x > 0)),
    ("aten::_local_scalar_dense", lambda x: 1 if x.any() else 0),
    ("aten::_local_scalar_dense", lambda x: x.tolist()),
    ("numpy", lambda x: x.numpy()),
]


@pytest.mark.parametrize("kind", ["meta", "fake"])
@pytest.mark.parametrize(("name", "look"), DEPENDENT)
def test_what_needs_data_says_so(name, look, kind):
    with FakeTensorMode() if kind == "fake" else torch.device("meta"):
        x, linear = torch.rand(4, 8), nn.Linear(8, 8)
    with pytest.raises(RuntimeError, match=LOOKED_AT) as raised:
        roofprof.count(lambda: look(linear(x)))
    assert name in str(raised.value)
    report = roofprof.count(lambda: linear(x))  # and nothing is left behind that would disturb the next
    assert report.total.macs == 4 * 8 * 8


# ---- the user's own mistakes


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("kind", [RuntimeError, KeyError])
def test_the_user_s_exception_comes_as_it_was(kind, device):
    mistake, calls = kind("the user's"), []

    def model(x):
        calls.append(x)
        raise mistake

    with pytest.raises(kind) as raised:
        roofprof.count(model, torch.empty(2, device=device))
    assert raised.value is mistake
    assert len(calls) == 1


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_wrong_sizes_are_named_by_torch(device):
    with pytest.raises(RuntimeError, match="size mismatch|must match|must have same reduction dim"):
        roofprof.count(nn.Linear(8, 4).to("meta"), torch.empty(2, 7, device=device))


# ---- other kinds of callables


class ByName(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 4)

    def forward(self, *, words, scale=1.0):
        return {"scores": self.linear(words) * scale}


GLOBAL = torch.rand(2, 8)


@pytest.mark.parametrize("model_on", ["cpu", "meta"])
@pytest.mark.parametrize("input_on", ["cpu", "meta"])
def test_kinds_of_callables(model_on, input_on):
    model, x, given = ByName().to(model_on), torch.rand(2, 8, device=input_on), GLOBAL
    calls = [
        functools.partial(roofprof.count, model, words=x),
        functools.partial(roofprof.count, functools.partial(model, words=x)),
        functools.partial(roofprof.count, lambda: model(words=x)),
        functools.partial(roofprof.count, lambda: model(words=GLOBAL)),
        functools.partial(roofprof.count, lambda batch: model(**batch), {"words": x}),
        functools.partial(roofprof.count, F.linear, x, model.linear.weight),
        functools.partial(roofprof.count, model.forward, words=x),
    ]
    assert [call().total.macs for call in calls] == [PADDED] * len(calls)
    assert x.device.type == input_on
    assert given is GLOBAL


def test_what_a_function_holds_itself_is_named_where_the_model_looks_at_it():
    model = Padded().to("meta")
    x, mask = padded_inputs("meta")
    with pytest.raises(RuntimeError, match=rf"{LOOKED_AT}.*, or pass what it holds itself \(mask, x\) as arguments"):
        roofprof.count(lambda: model(x, mask))
    with pytest.raises(RuntimeError, match=r"\(argument 0 of the partial, argument 1 of the partial\)"):
        roofprof.count(functools.partial(model, x, mask))
    assert model.calls == []
    assert roofprof.count(lambda *tensors: model(*tensors), x, mask).total.macs == PADDED
