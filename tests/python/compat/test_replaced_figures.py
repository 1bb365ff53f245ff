"""What each tool counts of layers, functions and models, beside the tool itself."""

from __future__ import annotations

import pytest
import replaced_tools
import torch
import torchvision
from replaced_layers import FUNCTIONS, LAYERS, Calls, function, layer
from replacements import RESIDUALS, elements_after, nothing_left_on
from torch import nn

from roofprof.compat import calflops, deepspeed, fvcore, ptflops, thop

pytestmark = [
    pytest.mark.integration,
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.filterwarnings("ignore::roofprof.compat.ConventionWarning"),
]

UPSAMPLING = {"nearest", "linear up", "bilinear", "bicubic", "trilinear", "interpolate"}
RECURRENT = {"rnn", "gru", "gru both ways", "lstm", "rnn cell", "gru cell", "lstm cell"}


def by_thop(module, model, x):
    return module.profile(model, (x,), verbose=False)[0]


def by_fvcore(module, model, x):
    analysis = module.FlopCountAnalysis(model, (x,))
    return analysis.by_module_and_operator()


def by_ptflops(module, model, x):
    # The original counts activations and poolings of modules twice with it.
    functional = {"count_functional": isinstance(model, Calls)}
    options = {"print_per_layer_stat": False, "as_strings": False, "backend_specific_config": functional}
    return module.get_model_complexity_info(model, (1,), input_constructor=lambda _: x[:1], **options)


def by_calflops(module, model, x):
    if not list(model.parameters()):  # the original stops at those
        model = nn.Sequential(model, nn.PReLU())
    return module.calculate_flops(model, args=[x], print_results=False, output_as_string=False)


def by_deepspeed(module, model, x):
    return module.get_model_profile(model, args=[x], print_profile=False, as_string=False)


# The original's module, ours, how it is asked, and what differs as docs/compat.md says.
TOOLS = {
    "thop": ("thop", thop, by_thop, {"transposed", "grouped transposed", *FUNCTIONS}),
    "fvcore": ("fvcore.nn", fvcore, by_fvcore, {*RECURRENT, "baddbmm", "attention"}),
    "ptflops": ("ptflops", ptflops, by_ptflops, {"SiLU", "softmax module", "bilinear", "attention", "baddbmm"}),
    "calflops": (
        "calflops.flops_counter",
        calflops,
        by_calflops,
        {"grouped transposed", *RECURRENT, *UPSAMPLING, "bmm", "mm", "attention", "ReLU6", "maximum with indices"},
    ),
    "deepspeed": (
        "deepspeed.profiling.flops_profiler.profiler",
        deepspeed,
        by_deepspeed,
        {*RECURRENT, "ReLU6", "interpolate"},
    ),
}


@pytest.fixture
def original(request):
    return replaced_tools.original(TOOLS[request.getfixturevalue("tool")][0])


CASES = [
    (tool, kind, name)
    for tool, (_, _, _, unlike) in TOOLS.items()
    for kind, names in (("module", LAYERS), ("function", FUNCTIONS))
    for name in names
    if name not in unlike and f"{name} {kind}" not in unlike
]


@pytest.mark.parametrize(("tool", "kind", "name"), CASES)
def test_layers_and_functions_equal_the_original(tool, kind, name, original):
    _, ours, ask, _ = TOOLS[tool]
    model, x = layer(name) if kind == "module" else function(name)
    assert ask(ours, model, x) == ask(original, model, x)


@pytest.mark.parametrize("tool", ["calflops", "deepspeed"])
@pytest.mark.parametrize("name", sorted(RECURRENT))
def test_recurrent_layers_have_the_originals_flops_and_macs_besides(tool, name, original):
    _, ours, ask, _ = TOOLS[tool]
    model, x = layer(name)
    flops, macs, params = ask(ours, model, x)
    assert (flops, 0, params) == ask(original, model, x)
    weights = sum(weight.numel() for path, weight in model.named_parameters() if "weight" in path)
    assert macs == weights * x.numel() // 3


@pytest.mark.parametrize("tool", ["calflops", "deepspeed", "ptflops"])
@pytest.mark.parametrize("name", RESIDUALS)
def test_models_equal_the_original_but_for_additions_and_relu6(tool, name, original):
    _, ours, ask, _ = TOOLS[tool]
    model, x = getattr(torchvision.models, name)(), torch.rand(2, 3, 64, 64)
    with nothing_left_on(model):
        first, *others = ask(ours, model, x)
    missed = 2 * RESIDUALS[name] + elements_after(model, x, {nn.ReLU6})
    if tool == "ptflops":  # of one image; its functional pooling is not counted
        missed = RESIDUALS[name] + (1280 * 2 * 2 if name == "mobilenet_v2" else 0)
    assert (first - missed, *others) == ask(original, model, x)


@pytest.mark.parametrize("tool", ["thop"])  # fvcore's are held by module and operator
@pytest.mark.parametrize("name", ["resnet50", "mobilenet_v2"])
@pytest.mark.usefixtures("uninitialised")
def test_models_equal_the_original(tool, name, original):
    _, ours, ask, _ = TOOLS[tool]
    model, x = getattr(torchvision.models, name)().eval(), torch.rand(1, 3, 224, 224)
    assert ask(ours, model, x) == ask(original, model, x)
