"""What holds for every replacement: what it takes, that it leaves nothing behind, that it says its convention once."""

import inspect
import re
import subprocess
import sys
import warnings
from operator import attrgetter
from pathlib import Path

import pytest
import torch
from replaced_layers import Calls
from replaced_tools import TOOLS, by_ptflops, original
from replacements import Raises, TakesADict, nothing_left_on, parameters, small_cnn
from torch import nn

from roofprof import compat
from roofprof.compat import (
    ConventionWarning,
    _call,
    calflops,
    deepspeed,
    flop_counter,
    fvcore,
    ptflops,
    thop,
    torchinfo,
    torchstat,
    torchsummary,
)

pytestmark = [
    pytest.mark.integration,
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.filterwarnings("ignore::roofprof.compat.ConventionWarning"),
]


every_tool = pytest.mark.parametrize("tool", TOOLS)
# Beside the MACs of layers these count their biases.
WITH_BIASES = {"ptflops", "torchinfo"}


def test_every_tool_is_here_and_imports_no_original():
    assert TOOLS.keys() == {path.stem for path in Path(compat.__file__).parent.glob("[a-z]*.py")}
    code = (
        "import sys, roofprof; assert 'roofprof.compat' not in sys.modules; "
        f"from roofprof.compat import {', '.join(TOOLS)}; assert not {set(TOOLS)} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@every_tool
def test_dicts_keywords_and_dataclasses(tool):
    batch, macs = {"points": torch.rand(3, 8), "name": "left"}, 3 * 8 * 16 + (3 * 16 if tool in WITH_BIASES else 0)
    expected = [macs, macs + 3 * 16 * 5] if tool != "torchsummary" else [None, None]
    calls = [TOOLS[tool](TakesADict(), batch), TOOLS[tool](TakesADict(), batch, scale=torch.rand(16, 5))]
    assert [found[0] for found in calls] == expected


@pytest.mark.parametrize(
    "tool", sorted(TOOLS.keys() - {"torchinfo", "torchstat"})
)  # whose rules are those of layers' types
@pytest.mark.parametrize("convert", [torch.jit.script, lambda model: torch.jit.trace(model, torch.rand(1, 3, 9, 9))])
def test_torchscript_equals_its_module(tool, convert):
    model, x = small_cnn().eval(), torch.rand(1, 3, 9, 9)
    assert TOOLS[tool](convert(model), x) == TOOLS[tool](model, x)


@every_tool
def test_the_model_is_as_it_was_also_where_it_raises(tool):
    model, raises = nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4), nn.Dropout()), Raises()
    model[1].eval()
    raises.layer.eval()
    random = torch.get_rng_state()
    if tool != "flop_counter":  # a block, in which the model is called
        with nothing_left_on(model):
            TOOLS[tool](model, torch.ones(1, 3, 4, 4))
        assert torch.equal(torch.get_rng_state(), random)
        assert all(parameter.grad is None for parameter in model.parameters())
        with pytest.raises(TypeError, match=r"a torch\.nn\.Module is needed, not a function"):
            TOOLS[tool](lambda x: x, torch.ones(1, 4))
    with nothing_left_on(raises), pytest.raises(KeyError, match="mine"):
        TOOLS[tool](raises, torch.ones(2, 4))


class Attends(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(8, 24, bias=False)

    def forward(self, x):
        return nn.functional.scaled_dot_product_attention(*self.qkv(x).chunk(3, -1))


SHARED = nn.Linear(4, 4, bias=False)
# A model, its input of one sample, and its MACs. Each of these is 0 or wrong in some of the originals.
WORK = {
    "attention": (Attends(), (1, 5, 8), 5 * 8 * 24 + 2 * 5 * 5 * 8),
    "a product that broadcasts": (Calls(lambda x: x @ torch.rand(5, 4, 2)), (1, 3, 4), 5 * 3 * 4 * 2),
    "einsum": (Calls(lambda x: torch.einsum("bij,jk->bik", x, torch.rand(4, 2))), (1, 3, 4), 3 * 4 * 2),
    "a transposed convolution": (nn.ConvTranspose2d(4, 6, 3, stride=2, bias=False), (1, 4, 5, 5), 25 * 4 * 6 * 9),
    "a module in two places": (nn.Sequential(nn.Sequential(SHARED), nn.Sequential(SHARED)), (1, 4), 2 * 16),
}


@pytest.mark.parametrize("work", WORK)
@pytest.mark.parametrize("tool", sorted(TOOLS.keys() - {"torchsummary"}))
def test_work_that_originals_miss_is_counted(tool, work):
    model, shape, macs = WORK[work]
    assert TOOLS[tool](model, torch.rand(shape))[0] == macs


LAYER = nn.Linear(4, 5)
REFUSED = [
    (lambda: deepspeed.get_model_profile(LAYER), ValueError, "give input_shape, args or kwargs"),
    (lambda: deepspeed.get_model_profile(LAYER, 3), TypeError, "a shape is a tuple of at least one size, not 3"),
    (lambda: calflops.calculate_flops(LAYER, (1, 4), args=[1]), ValueError, "leave it out, or args and kwargs"),
    (lambda: calflops.calculate_flops(LAYER), ValueError, "give input_shape, transformer_tokenizer, args or kwargs"),
    (lambda: calflops.calculate_flops(LAYER, (3,), len), ValueError, r"is \(batch, tokens\), not \(3,\)"),
    (lambda: ptflops.get_model_complexity_info(LAYER, 3), TypeError, "a shape is a tuple of at least one size, not 3"),
    (lambda: ptflops.get_model_complexity_info(LAYER, (4,), backend="jax"), ValueError, "'jax' is not a valid"),
    (lambda: torchstat.stat(LAYER, None), ValueError, "give input_size, or None for it and inputs or kwargs"),
    (lambda: torchstat.stat(LAYER, (0,)), ValueError, "must be the sizes of one sample"),
    (lambda: torchstat.stat(LAYER, (4,), 2), ValueError, "query_granularity must be 1"),
    (lambda: torchsummary.summary(LAYER, None), ValueError, "give input_size, or None for it and inputs or kwargs"),
    (lambda: torchsummary.summary(LAYER, (0,)), ValueError, "must be the sizes of one sample"),
    (lambda: torchsummary.summary(LAYER, (4,), -1, "meta"), ValueError, "device must be 'cuda' or 'cpu'"),
]


@pytest.mark.parametrize(("call", "error", "says"), REFUSED)
def test_what_makes_no_sense_is_refused(call, error, says):
    with pytest.raises(error, match=says):
        call()


DEEPSPEED, CALFLOPS = "deepspeed.profiling.flops_profiler.profiler", "calflops.flops_counter"
STRINGS = [f"{what}_to_string" for what in ("number", "flops", "macs", "bytes", "params", "duration")]
METHODS = ["__init__", "start_profile", "stop_profile", "reset_profile", "end_profile", "print_model_profile"]
METHODS += [f"get_total_{what}" for what in ("flops", "macs", "params", "duration")]
METHODS += ["print_model_aggregated_profile", "is_expert_tensor_parallelism_enabled"]
METHODS_OF_TORCH = ("__init__", "get_total_flops", "get_flop_counts", "get_unsupported_ops", "get_table")
# Ours, the original's module, and names in both.
SIGNATURES = [
    (deepspeed, DEEPSPEED, ["get_model_profile", *STRINGS, *(f"FlopsProfiler.{name}" for name in METHODS)]),
    (calflops, CALFLOPS, ["calculate_flops", "generate_transformer_input"]),
    (ptflops, "ptflops", ["get_model_complexity_info", "flops_to_string", "params_to_string"]),
    (flop_counter, "torch.utils.flop_counter", [f"FlopCounterMode.{name}" for name in METHODS_OF_TORCH]),
    (torchinfo, "torchinfo", ["summary"]),
    (torchstat, "torchstat", ["stat", "ModelStat"]),
    (torchsummary, "torchsummary.torchsummary", ["summary"]),
]
# ptflops' default streams and backends are objects of its own; calflops' newer versions have is_sparse as well.
NOT_COMPARED = {"ost", "backend", "is_sparse"}


@pytest.mark.parametrize(("ours", "theirs", "name"), [(*each[:2], name) for each in SIGNATURES for name in each[2]])
def test_signatures_begin_with_the_originals(ours, theirs, name):
    mine, expected = (
        [one for one in parameters(attrgetter(name)(module)) if one[0] not in NOT_COMPARED]
        for module in (ours, original(theirs))
    )
    assert mine[: len(expected)] == expected
    assert all(kind is inspect.Parameter.KEYWORD_ONLY for _, kind, _ in mine[len(expected) :])


# By those of a tool's functions that give or print its words.
CONVENTIONS = {
    "FLOPS for a count, not a rate": lambda: calflops.calculate_flops(LAYER, (1, 4), print_results=False),
    "roofprof.count(model, x).total.macs": lambda: by_ptflops(LAYER, torch.rand(1, 4)),
    "mult-adds are MACs and one addition": lambda: torchinfo.summary(LAYER, (1, 4), verbose=0),
    "peak_memory": lambda: torchsummary.summary(LAYER, (4,)),
    "multiply-accumulates Flops": lambda: torchstat.stat(nn.Sequential(LAYER), (4,)),
}


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_the_convention_is_reported_once(convention, monkeypatch):
    monkeypatch.setattr(_call, "_warned", set())
    with pytest.warns(ConventionWarning, match=re.escape(convention)):
        CONVENTIONS[convention]()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CONVENTIONS[convention]()


def in_a_flop_counter(model, x):
    with flop_counter.FlopCounterMode():
        model(x)


TORCHSTATS_COLUMNS = (
    "module name input shape output shape params memory(MB) MAdd Flops MemRead(B) MemWrite(B) duration[%] MemR+W(B)"
)
# What prints, the tool's columns, and the line of Linear(4, 5) on three rows: 60 MACs, 25 parameters, 15 outputs.
PRINTED = {
    "thop": (lambda model, x: thop.profile(model, (x,), report_missing=True), "module rule", "MACs"),
    "fvcore": (
        lambda model, x: fvcore.flop_count_table(fvcore.FlopCountAnalysis(model, x), show_param_shapes=False),
        "module #parameters #flops",
        "25 60",
    ),
    "fvcore's str": (
        lambda model, x: fvcore.flop_count_str(
            fvcore.FlopCountAnalysis(model, x), fvcore.ActivationCountAnalysis(model, x)
        ),
        "module #params #flops #acts",
        "25 60 15",
    ),
    "fvcore's parameters": (
        lambda model, x: fvcore.parameter_count_table(model, 1),
        "name #elements or shape",
        "25",
    ),
    "deepspeed": (
        lambda model, x: deepspeed.get_model_profile(model, args=x),
        "module params % params MACs % MACs fwd flops % fwd flops fwd latency % fwd latency",
        "25 100% 60 MACs 100% 120 88.89%",
    ),
    "calflops": (
        lambda model, x: calflops.calculate_flops(model, args=x),
        "module Params % Params MACs % MACs FLOPs % FLOPs",
        "25 100% 60 MACs 100% 120 FLOPS 88.89%",
    ),
    "ptflops": (
        lambda model, x: ptflops.get_model_complexity_info(model, (4,)),
        "module Params % Params MACs % MACs",
        "25 100% 25.0 Mac 83.333%",  # of one row, with biases
    ),
    "ptflops, aten": (
        lambda model, x: ptflops.get_model_complexity_info(model, (4,), backend="aten"),
        "Module operator MACs",
        "aten.addmm 25 Mac",
    ),
    "torchinfo": (
        lambda model, x: torchinfo.summary(model, (3, 4), col_names=("output_size", "num_params", "mult_adds")),
        "Layer (type:depth-idx) Output Shape Param # Mult-Adds",
        "1-1 [3, 5] 25 75",
    ),
    "torchstat": (
        lambda model, x: torchstat.stat(model, (4,)),
        TORCHSTATS_COLUMNS,
        "4 5 25 0.00 35 20 116 20",
    ),
    "torchsummary": (
        lambda model, x: torchsummary.summary(model, (4,)),
        "Layer (type) Output Shape Param #",
        "[-1, 5] 25",
    ),
    "flop_counter": (in_a_flop_counter, "Module FLOP % Total", "120 100%"),
}


@pytest.mark.parametrize("tool", PRINTED)
def test_what_is_printed_is_a_table_under_the_tools_columns(tool, capsys):
    prints, columns, cells = PRINTED[tool]
    returned = prints(nn.Sequential(nn.Linear(4, 5), nn.ReLU()), torch.rand(3, 4))
    text = returned if isinstance(returned, str) else capsys.readouterr().out
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert columns in lines
    assert any(line.endswith(cells) or f"{cells} " in line for line in lines[lines.index(columns) :])
