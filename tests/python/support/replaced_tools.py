"""Every replacement of another tool asked in one way, and the tools themselves where they are installed."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import logging
import sys
import types

import pytest

from roofprof.compat import calflops, deepspeed, flop_counter, fvcore, ptflops, thop, torchinfo, torchstat, torchsummary


def by_deepspeed(model, x, **kwargs):
    return deepspeed.get_model_profile(model, args=[x], kwargs=kwargs, print_profile=False, as_string=False)[1:]


def by_calflops(model, x, **kwargs):
    return calflops.calculate_flops(model, args=[x], kwargs=kwargs, print_results=False, output_as_string=False)[1:]


def by_ptflops(model, x, **kwargs):
    given = {"batch": x, **kwargs} if isinstance(x, dict) else x
    options = {"print_per_layer_stat": False, "as_strings": False, "input_constructor": lambda _: given}
    return ptflops.get_model_complexity_info(model, (1,), **options)


def by_flop_counter(model, x, **kwargs):
    with flop_counter.FlopCounterMode(display=False) as counter:
        model(x, **kwargs)
    return counter.get_total_flops() // 2, None


def by_torchinfo(model, x, **kwargs):
    found = torchinfo.summary(model, input_data=[x], verbose=0, **kwargs)
    return found.total_mult_adds, found.total_params


def by_torchstat(model, x, **kwargs):
    rows = torchstat.ModelStat(model, None, 1, inputs=x, kwargs=kwargs).rows()
    return sum(row.flops for row in rows), sum(row.params for row in rows)


# MACs and parameters of one call; None: the tool has none.
TOOLS = {
    "thop": lambda model, x, **kwargs: thop.profile(model, (x,), kwargs=kwargs, verbose=False),
    "fvcore": lambda model, x, **kwargs: (fvcore.FlopCountAnalysis(model, (x,), kwargs).total(), None),
    "deepspeed": by_deepspeed,
    "calflops": by_calflops,
    "ptflops": by_ptflops,
    "torchinfo": by_torchinfo,
    "torchstat": by_torchstat,
    "torchsummary": lambda model, x, **kwargs: (
        None,
        torchsummary.summary_string(model, None, inputs=x, kwargs=kwargs)[1][0],
    ),
    "flop_counter": by_flop_counter,
}


@functools.cache
def original(name):
    """The tool's own module; the test is skipped without it."""
    logging.getLogger("fvcore.nn.jit_analysis").setLevel(logging.ERROR)
    package = name.partition(".")[0]
    spec = importlib.util.find_spec(package)
    if spec is None:
        pytest.skip(f"{package} is not installed")
    if package == "calflops":  # it imports accelerate as well, for models from the hub
        sys.modules[package] = types.ModuleType(package)
        sys.modules[package].__path__ = list(spec.submodule_search_locations)
    module = importlib.import_module(name)
    for each in [each for each in sys.modules if each.partition(".")[0] == "calflops"]:
        del sys.modules[each]
    return module
