"""fvcore's replacement beside fvcore itself, the figures of its manual, and what fvcore refuses or misses."""

from __future__ import annotations

import logging

import pytest
import torch
import torchvision
from models import LeNet
from torch import nn
from torch.nn import functional as F

from roofprof.compat import fvcore as replaced
from roofprof.compat.fvcore import (
    FlopCountAnalysis,
    activation_count,
    flop_count,
    flop_count_str,
    parameter_count,
)

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("one_thread")]


@pytest.fixture
def fvcore():
    nn_part = pytest.importorskip("fvcore.nn")
    logging.getLogger("fvcore.nn.jit_analysis").setLevel(logging.ERROR)
    return nn_part


def quiet(analysis):
    return analysis.unsupported_ops_warnings(False).uncalled_modules_warnings(False)


# ---- the published example

LENET = {"conv1": 48_600, "conv2": 146_016, "fc1": 69_120, "fc2": 10_080, "fc3": 840}


def test_lenet_has_the_published_figures():
    flops = FlopCountAnalysis(LeNet(), torch.rand(1, 1, 32, 32))
    assert flops.total() == 274_656
    assert flops.by_operator() == {"conv": 194_616, "linear": 80_040}
    assert flops.by_module() == {"": 274_656} | LENET
    assert {name: flops.total(name) for name in LENET} == LENET
    assert flops.by_module_and_operator()["fc1"] == {"linear": 69_120}


# ---- beside the original


@pytest.mark.parametrize("kind", ["FlopCountAnalysis", "ActivationCountAnalysis"])
@pytest.mark.parametrize(
    ("build", "side"),
    [(LeNet, (1, 32)), (torchvision.models.mobilenet_v2, (3, 64)), (torchvision.models.resnet18, (3, 64))],
)
def test_models_equal_the_original(kind, build, side, fvcore):
    model, x = build().eval(), torch.rand(1, side[0], side[1], side[1])
    theirs, ours = (quiet(getattr(module, kind)(model, x)) for module in (fvcore, replaced))
    assert ours.total() == theirs.total()
    assert dict(ours.by_operator()) == dict(theirs.by_operator())
    assert ours.by_module() == theirs.by_module()
    assert ours.by_module_and_operator() == theirs.by_module_and_operator()
    assert ours.unsupported_ops() == theirs.unsupported_ops()
    assert ours.uncalled_modules() == theirs.uncalled_modules()


def test_parameters_equal_the_original(fvcore):
    model = torchvision.models.mobilenet_v2()
    assert parameter_count(model) == fvcore.parameter_count(model)


def test_an_einsum_counts_as_the_products_that_it_becomes(fvcore):
    class Contracts(nn.Module):
        def forward(self, x):
            return torch.einsum("bij,bkj->bik", x, x)

    x = torch.rand(3, 6, 8)
    assert fvcore.FlopCountAnalysis(Contracts(), x).by_operator() == {"einsum": 3 * 6 * 6 * 8}
    assert FlopCountAnalysis(Contracts(), x).by_operator() == {"bmm": 3 * 6 * 6 * 8}


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
    theirs = quiet(fvcore.FlopCountAnalysis(model, x).ancestor_mode(mode))
    ours = quiet(FlopCountAnalysis(model, x).ancestor_mode(mode))
    if mode == "owner":
        assert ours.by_module() == theirs.by_module()
    else:  # a list is no caller for the original; here it stands between its modules and theirs
        assert {name: ours.total(name) for name in ("", "one", "one.0", "other", "other.1")} == {
            name: theirs.total(name) for name in ("", "one", "one.0", "other", "other.1")
        }
    assert ours.canonical_module_name("other.0") == theirs.canonical_module_name("other.0") == "one.0"
    assert ours.total("other.0") == theirs.total("other.0") == 2 * 2 * 16
    assert "unused" in ours.uncalled_modules() and "unused" in theirs.uncalled_modules()


def test_old_functions_equal_the_original(fvcore):
    model, x = LeNet(), torch.rand(1, 1, 32, 32)
    for name, ours in (("flop_count", flop_count), ("activation_count", activation_count)):
        theirs = getattr(fvcore, name)(model, (x,))
        assert tuple(map(dict, ours(model, (x,)))) == tuple(map(dict, theirs))


# ---- what the original cannot do


@pytest.mark.parametrize("convert", [torch.jit.script, lambda model: torch.jit.trace(model, torch.rand(1, 3, 64, 64))])
def test_torchscript_equals_its_module(convert):
    # Branches that are joined late: the interpreter's stack is then not empty under an op's inputs.
    model, x = torchvision.models.googlenet(init_weights=False, aux_logits=False).eval(), torch.rand(1, 3, 64, 64)
    plain, converted = quiet(FlopCountAnalysis(model, x)), quiet(FlopCountAnalysis(convert(model), x))
    assert converted.by_operator() == plain.by_operator()
    assert converted.by_module() == plain.by_module()


def test_attention_and_recurrent_layers_are_counted():
    class Attends(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(8, 8, batch_first=True)

        def forward(self, x):
            x, _ = self.lstm(x)
            return F.scaled_dot_product_attention(x, x, x)

    flops = FlopCountAnalysis(Attends(), torch.rand(2, 5, 8))
    assert flops.by_operator() == {
        "lstm": 2 * 5 * 4 * 8 * (8 + 8),
        "scaled_dot_product_attention": 2 * (2 * 5 * 5 * 8),
    }
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
    model, x = LeNet(), torch.rand(1, 1, 32, 32)
    flops = quiet(FlopCountAnalysis(model, x))
    relus = 6 * 30 * 30 + 16 * 13 * 13 + 120 + 84
    flops.set_op_handle("aten::relu", lambda op: 2 * op.figures.output_elements)
    assert flops.by_operator()["relu"] == 2 * relus
    assert flops.total() == 274_656 + 2 * relus
    assert flops.copy().total() == flops.total()
    flops.set_op_handle(**{"aten::linear": None, "aten::max_pool2d": None})
    assert flops.by_operator() == {"conv": 194_616, "relu": 2 * relus}
    assert not flops.unsupported_ops()
    assert flops.clear_op_handles().total() == 274_656


def test_a_handle_is_told_where_it_is():
    seen = []
    flops = FlopCountAnalysis(LeNet(), torch.rand(1, 1, 32, 32))
    flops.set_op_handle("aten::linear", lambda op: seen.append(op.module) or 0).total()
    assert seen == [flops.model.fc1, flops.model.fc2, flops.model.fc3]


def test_a_handle_of_the_originals_kind_is_refused():
    flops = FlopCountAnalysis(LeNet(), torch.rand(1, 1, 32, 32))
    with pytest.raises(TypeError, match=r"'aten::add' must take one argument, an Observed"):
        flops.set_op_handle("aten::add", lambda inputs, outputs: 0)
    with pytest.raises(TypeError, match="a function or None, not a int"):
        flops.set_op_handle("aten::add", 3)
    with pytest.raises(TypeError, match="pairs"):
        flops.set_op_handle("aten::add")


# ---- as the original behaves


def test_nothing_runs_before_a_figure_is_asked_for_and_then_once():
    class Counts(nn.Linear):
        calls = 0

        def forward(self, x):
            type(self).calls += 1
            return super().forward(x)

    flops = FlopCountAnalysis(Counts(4, 4), torch.rand(1, 4))
    with pytest.raises(RuntimeError, match="nothing is analysed yet"):
        flops.unsupported_ops()
    assert Counts.calls == 0
    assert flops.total() == 16 and flops.by_module() and not flops.unsupported_ops()
    assert Counts.calls == 1
    flops.set_op_handle("aten::linear", None)
    assert flops.total() == 0 and Counts.calls == 2


def test_warnings_are_logged_as_set(caplog):
    flops = FlopCountAnalysis(Shares(), torch.rand(2, 4)).set_op_handle("aten::linear", lambda _: None)
    flops.total()
    assert "Unsupported operator aten::linear encountered 4 time(s)" in caplog.text
    assert "never called, so that their figures are 0: unused" in caplog.text
    caplog.clear()
    quiet(flops.copy()).total()
    assert not caplog.text


def test_a_printed_analysis_logs_nothing(caplog):
    flops = FlopCountAnalysis(Shares(), torch.rand(2, 4)).set_op_handle("aten::linear", lambda _: None)
    assert "n/a" in flop_count_str(flops)
    assert not caplog.text


def test_names_and_modes_that_do_not_exist_are_said():
    flops = FlopCountAnalysis(nn.Linear(2, 2), torch.rand(1, 2))
    with pytest.raises(KeyError, match="no module 'conv9'"):
        flops.total("conv9")
    with pytest.raises(ValueError, match="there are owner, caller"):
        flops.ancestor_mode("parent")
    with pytest.raises(ValueError, match="there are all, no_tracer_warning, none"):
        flops.tracer_warnings("some")


def test_a_copys_handles_are_its_own_and_a_failed_call_is_made_again():
    class Fails(nn.Linear):
        fails = True

        def forward(self, x):
            if self.fails:
                raise KeyError("mine")
            return super().forward(x)

    flops = FlopCountAnalysis(Fails(4, 4), torch.rand(1, 4))
    for _ in range(2):
        with pytest.raises(KeyError, match="mine"):
            flops.total()
    flops.model.fails = False
    copied = flops.copy().set_op_handle("aten::linear", None)
    assert (flops.total(), copied.total()) == (16, 0)
