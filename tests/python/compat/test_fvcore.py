"""fvcore's replacement beside fvcore itself, the figures of its manual, and what fvcore refuses or misses."""

from __future__ import annotations

import logging

import pytest
import torch
import torchvision
from models import LeNet
from replaced_layers import Calls
from torch import nn
from torch.nn import functional as F

from roofprof.compat import fvcore as replaced
from roofprof.compat.fvcore import FlopCountAnalysis, activation_count, flop_count, flop_count_str, parameter_count

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("one_thread")]


@pytest.fixture
def fvcore():
    nn_part = pytest.importorskip("fvcore.nn")
    logging.getLogger("fvcore.nn.jit_analysis").setLevel(logging.ERROR)
    return nn_part


def quiet(analysis):
    return analysis.unsupported_ops_warnings(False).uncalled_modules_warnings(False)


def of_lenet():
    return quiet(FlopCountAnalysis(LeNet(), torch.rand(1, 1, 32, 32)))


# ---- the published example

LENET = {"conv1": 48_600, "conv2": 146_016, "fc1": 69_120, "fc2": 10_080, "fc3": 840}


def test_lenet_has_the_published_figures():
    flops = of_lenet()
    assert flops.total() == 274_656
    assert flops.by_operator() == {"conv": 194_616, "linear": 80_040}
    assert flops.by_module() == {"": 274_656} | LENET
    assert {name: flops.total(name) for name in LENET} == LENET
    assert flops.by_module_and_operator()["fc1"] == {"linear": 69_120}


# ---- beside the original


@pytest.mark.parametrize("kind", ["FlopCountAnalysis", "ActivationCountAnalysis"])
@pytest.mark.parametrize(("build", "side"), [(LeNet, (1, 32)), (torchvision.models.mobilenet_v2, (3, 64))])
def test_models_equal_the_original(kind, build, side, fvcore):
    model, x = build().eval(), torch.rand(1, side[0], side[1], side[1])
    theirs, ours = (quiet(getattr(module, kind)(model, x)) for module in (fvcore, replaced))
    for ask in ("total", "by_operator", "by_module", "by_module_and_operator", "unsupported_ops", "uncalled_modules"):
        assert getattr(ours, ask)() == getattr(theirs, ask)(), ask
    assert parameter_count(model) == fvcore.parameter_count(model)
    for name, function in (("flop_count", flop_count), ("activation_count", activation_count)):
        expected = getattr(fvcore, name)(model, (x,))
        assert tuple(map(dict, function(model, (x,)))) == tuple(map(dict, expected))


class Shares(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        self.other = nn.Sequential(self.one[0], nn.Linear(4, 4))
        self.unused = nn.Linear(4, 4)
        self.parts = nn.ModuleList([nn.Linear(4, 4)])

    def forward(self, x):
        return self.parts[0](self.other(self.one(x)))


@pytest.mark.parametrize("mode", ["owner", "caller"])
def test_shared_modules_equal_the_original(mode, fvcore):
    model, x = Shares(), torch.rand(2, 4)
    theirs, ours = (quiet(kind(model, x).ancestor_mode(mode)) for kind in (fvcore.FlopCountAnalysis, FlopCountAnalysis))
    # With "caller" a list is no caller for the original; here it stands between its modules and theirs.
    names = ["", "one", "one.0", "other", "other.0", "other.1"] + (["parts", "parts.0"] if mode == "owner" else [])
    assert [ours.total(name) for name in names] == [theirs.total(name) for name in names]
    assert ours.canonical_module_name("other.0") == theirs.canonical_module_name("other.0") == "one.0"
    assert ours.total("other.0") == 2 * 2 * 16
    assert "unused" in ours.uncalled_modules() and "unused" in theirs.uncalled_modules()


# ---- what the original cannot do


@pytest.mark.parametrize("convert", [torch.jit.script, lambda model: torch.jit.trace(model, torch.rand(1, 3, 64, 64))])
def test_torchscript_equals_its_module(convert):
    # Branches that are joined late: the interpreter's stack is then not empty under an op's inputs.
    model, x = torchvision.models.googlenet(init_weights=False, aux_logits=False).eval(), torch.rand(1, 3, 64, 64)
    plain, converted = quiet(FlopCountAnalysis(model, x)), quiet(FlopCountAnalysis(convert(model), x))
    assert converted.by_operator() == plain.by_operator()
    assert converted.by_module() == plain.by_module()


def test_attention_and_recurrent_layers_are_counted():
    model = Calls(lambda x: F.scaled_dot_product_attention(*3 * [model.lstm(x)[0]]))
    model.lstm = nn.LSTM(8, 8, batch_first=True)
    flops = FlopCountAnalysis(model, torch.rand(2, 5, 8))
    attention = 2 * (2 * 5 * 5 * 8)
    assert flops.by_operator() == {"lstm": 2 * 5 * 4 * 8 * (8 + 8), "scaled_dot_product_attention": attention}
    assert not flops.unsupported_ops()


def test_the_parts_of_a_transformer_layer_have_figures_without_gradients_too(fvcore):
    model, x = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval(), torch.rand(2, 5, 8)
    with torch.no_grad():
        theirs, ours = quiet(fvcore.FlopCountAnalysis(model, x)), quiet(FlopCountAnalysis(model, x))
        # The original takes the attention's own fused path, and sees nothing of it.
        attention = {"linear": 10 * 4 * 8 * 8, "scaled_dot_product_attention": 2 * (2 * 5 * 5 * 8)}
        assert ours.by_operator("self_attn") == attention
        for name in ("linear1", "linear2", "norm1", "norm2"):
            assert ours.total(name) == theirs.total(name) > 0
        assert torch.backends.mha.get_fastpath_enabled()


# ---- handles


def test_handles_count_in_another_way():
    flops, seen = of_lenet(), []
    relus = 6 * 30 * 30 + 16 * 13 * 13 + 120 + 84
    flops.set_op_handle("aten::relu", lambda op: 2 * op.figures.output_elements)
    assert flops.by_operator()["relu"] == 2 * relus
    assert flops.total() == 274_656 + 2 * relus
    assert flops.copy().total() == flops.total()
    flops.set_op_handle(**{"aten::linear": None, "aten::max_pool2d": None})
    assert flops.by_operator() == {"conv": 194_616, "relu": 2 * relus}
    assert not flops.unsupported_ops()
    assert flops.clear_op_handles().total() == 274_656
    flops.set_op_handle("aten::linear", lambda op: seen.append(op.module) or 0).total()
    assert seen == [flops.model.fc1, flops.model.fc2, flops.model.fc3]


def test_wrong_handles_names_and_modes_are_refused():
    flops = FlopCountAnalysis(nn.Linear(2, 2), torch.rand(1, 2))
    for call, error, says in (
        (lambda: flops.set_op_handle("aten::add", lambda inputs, outputs: 0), TypeError, "must take one argument, an"),
        (lambda: flops.set_op_handle("aten::add", 3), TypeError, "a function or None, not a int"),
        (lambda: flops.set_op_handle("aten::add"), TypeError, "pairs"),
        (flops.unsupported_ops, RuntimeError, "nothing is analysed yet"),
        (lambda: flops.total("conv9"), KeyError, "no module 'conv9'"),
        (lambda: flops.ancestor_mode("parent"), ValueError, "there are owner, caller"),
        (lambda: flops.tracer_warnings("some"), ValueError, "there are all, no_tracer_warning, none"),
    ):
        with pytest.raises(error, match=says):
            call()


# ---- as the original behaves


class Counts(nn.Linear):
    calls, fails = 0, False

    def forward(self, x):
        type(self).calls += 1
        if self.fails:
            raise KeyError("mine")
        return super().forward(x)


def test_nothing_runs_before_a_figure_is_requested_and_then_once_but_a_failed_call_is_made_again():
    flops = FlopCountAnalysis(Counts(4, 4), torch.rand(1, 4))
    assert Counts.calls == 0
    assert flops.total() == 16 and flops.by_module() and not flops.unsupported_ops()
    assert Counts.calls == 1
    copied = flops.copy().set_op_handle("aten::linear", None)  # its handles are its own
    assert (flops.total(), copied.total(), Counts.calls) == (16, 0, 2)
    flops = flops.copy()
    flops.model.fails = True
    for _ in range(2):
        with pytest.raises(KeyError, match="mine"):
            flops.total()
    flops.model.fails = False
    assert flops.total() == 16


def test_warnings_are_logged_as_set(caplog):
    flops = FlopCountAnalysis(Shares(), torch.rand(2, 4)).set_op_handle("aten::linear", lambda _: None)
    silent = flops.copy()
    flops.total()
    assert "Unsupported operator aten::linear encountered 4 time(s)" in caplog.text
    assert "never called, so that their figures are 0: unused" in caplog.text
    caplog.clear()
    assert "n/a" in flop_count_str(silent)  # what is printed logs nothing
    quiet(flops.copy()).total()
    assert not caplog.text
