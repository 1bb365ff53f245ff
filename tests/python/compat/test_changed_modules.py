"""Modules that a forward replaces, deletes or adds, and modules that torch's __call__ does not enter, in every tool."""

from functools import partial

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


def by_block(model, x):
    profiler = deepspeed.FlopsProfiler(model)
    profiler.start_profile()
    model(x)
    macs, params = profiler.get_total_macs(), profiler.get_total_params()
    profiler.end_profile()
    return macs, params


def by_count(model, x):
    total = roofprof.count(model, x).row("")
    return total.macs, total.params


# MACs and parameters of one call; None: the tool has none.
TOOLS = {"count": by_count, "deepspeed block": by_block, **replaced_tools.TOOLS}


class Changing(nn.Module):
    def __init__(self, change):
        super().__init__()
        self.layer, self.change = nn.Linear(8, 8, bias=False), change

    def forward(self, value):
        value = self.layer(value) if hasattr(self, "layer") else value
        self.change(self)
        return value


def replace(model):
    model.layer = nn.Identity()


def delete(model):
    if hasattr(model, "layer"):
        del model.layer


def move(model):
    if hasattr(model, "layer"):
        model.moved = model.layer
        del model.layer


def nest(model):
    model.layer = nn.Sequential(model.layer)


@pytest.mark.parametrize("change", [replace, delete, move, nest])
@pytest.mark.parametrize("tool", sorted(TOOLS.keys() - {"torchsummary"}))  # which has no MACs
def test_a_module_that_its_forward_takes_away_is_counted(tool, change):
    macs, params = TOOLS[tool](Changing(change), x())
    assert macs == MACS
    assert params in {PARAMS, None}


def test_rows_keep_the_type_of_what_was_called():
    report = roofprof.count(Changing(replace), x())
    assert [(row.path, row.type, row.params) for row in report.rows] == [
        ("", "Changing", PARAMS),
        ("layer", "Linear", PARAMS),
    ]


class Growing(nn.Module):
    """Builds a part of itself in its first forward."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8, bias=False)

    def forward(self, value):
        if not hasattr(self, "late"):
            self.late = nn.Linear(8, 8, bias=False)
        return self.late(self.layer(value))


@pytest.mark.parametrize("tool", ["count", "thop", "deepspeed", "deepspeed block", "calflops", "ptflops"])
def test_a_module_that_a_forward_adds_is_counted(tool):
    assert TOOLS[tool](Growing(), x()) == (2 * MACS, 2 * PARAMS)


# ---- other doors than torch's __call__


class Own(nn.Module):
    def __call__(self, *args, **kwargs):
        return self.forward(*args, **kwargs)


class OwnLinear(nn.Linear, Own):
    """nn.Linear under a __call__ of its own."""

    __call__ = Own.__call__


OwnLinear.__name__ = "Linear"  # tools print it


class Outer(Own):
    def __init__(self, layer, norm):
        super().__init__()
        self.layer, self.norm = layer, norm

    def forward(self, value):
        return self.norm.forward(self.layer(value))


class TorchsOuter(nn.Module):
    def __init__(self, layer, norm):
        super().__init__()
        self.layer, self.norm = layer, norm

    def forward(self, value):
        return self.norm(self.layer(value))


TorchsOuter.__name__ = "Outer"


def by_torchsummary(model):
    return torchsummary.summary_string(model, (8,))


def lines(model):
    shown = torchinfo.summary(model, input_data=x(), verbose=0, col_names=("output_size", "num_params", "mult_adds"))
    return [(line.class_name, line.depth, line.output_size, line.macs, line.executed) for line in shown.summary_list]


def layers(model):
    return thop.profile(model, (x(),), verbose=False, ret_layer_info=True)


def modules(model):
    return dict(fvcore.FlopCountAnalysis(model, x()).by_module())


def latencies(model):
    profiler = deepspeed.FlopsProfiler(model)
    profiler.start_profile()
    model(x())
    known = profiler._known()
    figures = [(known.flops(one), known.macs(one), known.seconds(one) > 0) for one in model.modules()]
    profiler.end_profile()
    return figures


RULES = {nn.LayerNorm: lambda module, *_: setattr(module, "__flops__", module.__flops__ + 5)}


def with_a_rule(model):
    options = {"print_per_layer_stat": False, "as_strings": False, "custom_modules_hooks": RULES}
    return ptflops.get_model_complexity_info(model, (8,), **options)


@pytest.mark.parametrize(
    "look",
    [
        by_torchsummary,
        lines,
        layers,
        modules,
        latencies,
        with_a_rule,
        *(partial(look, x=x()) for look in TOOLS.values()),
    ],
    ids=["torchsummary's lines", "lines", "layers", "modules", "latencies", "with a rule", *TOOLS],
)
def test_other_doors_give_what_torchs_own_call_gives(look):
    torch.manual_seed(0)
    expected = look(TorchsOuter(nn.Linear(8, 8, bias=False), nn.LayerNorm(8)).eval())
    assert look(Outer(OwnLinear(8, 8, bias=False), nn.LayerNorm(8)).eval()) == expected
