"""Modules that a forward replaces, deletes or adds, and modules that torch's __call__ does not enter, in every tool."""

import pytest
import replaced_tools
import torch
from torch import nn

import roofprof
from roofprof.compat import deepspeed, fvcore, ptflops, thop, torchinfo, torchsummary

pytestmark = [
    pytest.mark.filterwarnings("ignore::roofprof.compat.ConventionWarning"),
    pytest.mark.filterwarnings("ignore:mods argument"),
]

MACS = PARAMS = 8 * 8  # of one layer on one row


def x():
    return torch.ones(1, 8)


def profiled(model):
    profiler = deepspeed.FlopsProfiler(model)
    profiler.start_profile()
    model(x())
    return profiler


def by_block(model, x):
    profiler = profiled(model)
    macs, params = profiler.get_total_macs(), profiler.get_total_params()
    profiler.end_profile()
    return macs, params


def by_count(model, x):
    total = roofprof.count(model, x).row("")
    return total.macs, total.params


# MACs and parameters of one call; None: the tool has none.
TOOLS = {"count": by_count, "deepspeed block": by_block, **replaced_tools.TOOLS}


class Changing(nn.Module):
    """A forward that changes the model after its layer, or builds a part of it."""

    def __init__(self, change):
        super().__init__()
        self.layer, self.change = nn.Linear(8, 8, bias=False), change

    def forward(self, value):
        value = self.layer(value) if hasattr(self, "layer") else value
        self.change(self)
        return self.late(value) if hasattr(self, "late") else value


def replace(model):
    model.layer = nn.Identity()


def move(model):
    if hasattr(model, "layer"):
        model.moved = model.layer
        del model.layer


def nest(model):
    model.layer = nn.Sequential(model.layer)


def add(model):
    if not hasattr(model, "late"):
        model.late = nn.Linear(8, 8, bias=False)


@pytest.mark.parametrize("change", [replace, move, nest])
@pytest.mark.parametrize("tool", sorted(TOOLS.keys() - {"torchsummary"}))  # which has no MACs
def test_a_module_that_its_forward_takes_away_is_counted(tool, change):
    macs, params = TOOLS[tool](Changing(change), x())
    assert macs == MACS
    assert params in {PARAMS, None}


@pytest.mark.parametrize("tool", ["count", "thop", "deepspeed", "deepspeed block", "calflops", "ptflops"])
def test_a_module_that_a_forward_adds_is_counted(tool):
    assert TOOLS[tool](Changing(add), x()) == (2 * MACS, 2 * PARAMS)


def test_rows_keep_the_type_of_what_was_called():
    rows = roofprof.count(Changing(replace), x()).rows
    assert [(row.path, row.type, row.params) for row in rows] == [("", "Changing", PARAMS), ("layer", "Linear", PARAMS)]


# ---- other calls than torch's __call__


class TorchsOuter(nn.Module):
    def __init__(self, layer, norm):
        super().__init__()
        self.layer, self.norm = layer, norm

    def forward(self, value):
        return self.norm(self.layer(value))


class Outer(TorchsOuter):
    """Under a __call__ of its own, and one module's forward called by name."""

    def __call__(self, *args):
        return self.forward(*args)

    def forward(self, value):
        return self.norm.forward(self.layer(value))


class OwnLinear(nn.Linear):
    def __call__(self, *args):
        return self.forward(*args)


OwnLinear.__name__, TorchsOuter.__name__ = "Linear", "Outer"  # tools print them


def lines(model):
    shown = torchinfo.summary(model, input_data=x(), verbose=0, col_names=("output_size", "num_params", "mult_adds"))
    return [(line.class_name, line.depth, line.output_size, line.macs, line.executed) for line in shown.summary_list]


def latencies(model):
    profiler = profiled(model)
    known = profiler._known()
    figures = [(known.flops(one), known.macs(one), known.seconds(one) > 0) for one in model.modules()]
    profiler.end_profile()
    return figures


def with_a_rule(model):
    rules = {nn.LayerNorm: lambda module, *_: setattr(module, "__flops__", module.__flops__ + 5)}
    options = {"print_per_layer_stat": False, "as_strings": False, "custom_modules_hooks": rules}
    return ptflops.get_model_complexity_info(model, (8,), **options)


LOOKS = {
    "torchsummary's lines": lambda model: torchsummary.summary_string(model, (8,)),
    "torchinfo's lines": lines,
    "thop's layers": lambda model: thop.profile(model, (x(),), verbose=False, ret_layer_info=True),
    "fvcore's modules": lambda model: dict(fvcore.FlopCountAnalysis(model, x()).by_module()),
    "deepspeed's latencies": latencies,
    "ptflops with a rule": with_a_rule,
    "count": lambda model: by_count(model, x()),
    "flop_counter": lambda model: TOOLS["flop_counter"](model, x()),
}


@pytest.mark.parametrize("look", LOOKS)
def test_other_calls_give_what_torchs_own_call_gives(look):
    torch.manual_seed(0)
    expected = LOOKS[look](TorchsOuter(nn.Linear(8, 8, bias=False), nn.LayerNorm(8)).eval())
    assert LOOKS[look](Outer(OwnLinear(8, 8, bias=False), nn.LayerNorm(8)).eval()) == expected
