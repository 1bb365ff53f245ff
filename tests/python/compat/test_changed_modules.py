"""Modules that a forward replaces, deletes or adds, and modules that torch's __call__ does not enter, in every tool."""

import pytest
import torch
from torch import nn

import roofprof
from roofprof.compat import calflops, deepspeed, flop_counter, fvcore, ptflops, thop, torchinfo, torchstat, torchsummary

pytestmark = [
    pytest.mark.filterwarnings("ignore::roofprof.compat.ConventionWarning"),
    pytest.mark.filterwarnings("ignore:mods argument"),
]

MACS = PARAMS = 8 * 8  # of one layer on one row


def x():
    return torch.ones(1, 8)


def by_block(model):
    profiler = deepspeed.FlopsProfiler(model)
    profiler.start_profile()
    model(x())
    macs, params = profiler.get_total_macs(), profiler.get_total_params()
    profiler.end_profile()
    return macs, params


def by_ptflops(model):
    return ptflops.get_model_complexity_info(model, (8,), print_per_layer_stat=False, as_strings=False)


def by_torchstat(model):
    rows = torchstat.ModelStat(model, None, 1, inputs=x()).rows()
    return sum(row.flops for row in rows), sum(row.params for row in rows)


def by_flop_counter(model):
    with flop_counter.FlopCounterMode(display=False) as counter:
        model(x())
    return counter.get_total_flops() // 2, None


def by_torchinfo(model):
    shown = torchinfo.summary(model, input_data=x(), verbose=0)
    return shown.total_mult_adds, shown.total_params


def by_count(model):
    total = roofprof.count(model, x()).row("")
    return total.macs, total.params


# MACs and parameters of one call; None: the tool has none.
TOOLS = {
    "count": by_count,
    "thop": lambda model: thop.profile(model, (x(),), verbose=False),
    "deepspeed": lambda model: deepspeed.get_model_profile(model, (1, 8), print_profile=False, as_string=False)[1:],
    "deepspeed block": by_block,
    "calflops": lambda model: calflops.calculate_flops(model, (1, 8), print_results=False, output_as_string=False)[1:],
    "ptflops": by_ptflops,
    "torchinfo": by_torchinfo,
    "torchstat": by_torchstat,
    "fvcore": lambda model: (fvcore.FlopCountAnalysis(model, x()).total(), None),
    "flop_counter": by_flop_counter,
}


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
@pytest.mark.parametrize("tool", TOOLS)
def test_a_module_that_its_forward_takes_away_is_counted(tool, change):
    macs, params = TOOLS[tool](Changing(change))
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
    assert TOOLS[tool](Growing()) == (2 * MACS, 2 * PARAMS)


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
    [by_torchsummary, lines, layers, modules, latencies, with_a_rule, *TOOLS.values()],
    ids=lambda look: look.__name__,
)
def test_other_doors_give_what_torchs_own_call_gives(look):
    torch.manual_seed(0)
    expected = look(TorchsOuter(nn.Linear(8, 8, bias=False), nn.LayerNorm(8)).eval())
    assert look(Outer(OwnLinear(8, 8, bias=False), nn.LayerNorm(8)).eval()) == expected
