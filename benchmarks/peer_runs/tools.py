"""Calls each tool: the same lines for the original and for its replacement in roofprof."""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import importlib.util
import inspect
import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch
from torch import nn

Figures = dict[str, int]
"""Figures by the tool's words: {"MACs": ..., "params": ...}."""

Count = Callable[[ModuleType, Any, tuple[Any, ...], dict[str, Any]], Figures]


@dataclass(frozen=True)
class Tool:
    """An original, and the module of roofprof that takes its place.

    count: f(module, model, args, kwargs), the original's or our module, which have the same functions.
    rescue: what a run that raised this left of its figures on the model, f(model, error's first line).
    """

    name: str
    original: str
    ours: str
    figures: tuple[str, ...]
    count: Count
    distribution: str = ""
    prints: bool = False  # that is what it is for
    is_block: bool = False  # around a call of the user's own, which does what it does
    rescue: Callable[[nn.Module, str], Figures] | None = None

    @property
    def version(self) -> str:
        """Return the original's version; empty if it is not installed."""
        try:
            if importlib.util.find_spec(self.original.partition(".")[0]) is None:
                return ""
            return importlib.metadata.version(self.distribution or self.name)
        except importlib.metadata.PackageNotFoundError:
            return ""

    def load(self, variant: str) -> ModuleType:
        """The module of the "original" or of "ours"."""
        return importlib.import_module(self.original if variant == "original" else self.ours)

    def ask(self, variant: str, model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Figures:
        """The figures of the "original" or of "ours"."""
        return {name: int(value) for name, value in self.count(self.load(variant), model, args, kwargs).items()}


def _given(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Passed on only where there are any: most originals have no such parameter."""
    return {"kwargs": kwargs} if kwargs else {}


def _thop(thop: Any, model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Figures:
    macs, params = thop.profile(model, inputs=args, verbose=False, **_given(kwargs))
    return {"MACs": macs, "params": params}


def _fvcore(fvcore: Any, model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Figures:
    analysis = fvcore.FlopCountAnalysis(model, args, **_given(kwargs))
    analysis.unsupported_ops_warnings(False)
    analysis.uncalled_modules_warnings(False)
    return {"Flops": analysis.total(), "params": fvcore.parameter_count(model)[""]}


def _is_sizes(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return whether sizes alone describe the inputs, as some tools take only sizes."""
    return not kwargs and bool(args) and all(torch.is_tensor(x) and x.dtype == torch.float32 for x in args)


def _is_one_image(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return _is_sizes(args, kwargs) and [(x.dim(), x.shape[0]) for x in args] == [(4, 1)]


def _torchstat(torchstat: Any, model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Figures:
    if _is_one_image(args, kwargs):
        given: tuple[Any, dict[str, Any]] = tuple(args[0].shape[1:]), {}
    else:
        given = None, {"inputs": args, **_given(kwargs)}
    size, others = given
    if hasattr(torchstat, "ModelHook"):  # the original prints, and nothing else
        torchstat.stat(model, size, **others)
        return _left_by_torchstat(model, "")
    rows = torchstat.ModelStat(model, size, **others).rows()
    return {
        "Flops": sum(row.flops for row in rows),
        "MAdd": sum(row.madd for row in rows),
        "params": sum(row.params for row in rows),
    }


def _left_by_torchstat(model: nn.Module, error: str) -> Figures:
    """It fails where it prints, after the call: its figures are in buffers of the layers."""
    if error and "DataFrame" not in error:
        return {}
    leaves = [module for module in model.modules() if not any(True for _ in module.children())]
    buffers = {"Flops": "Flops", "MAdd": "MAdd", "params": "parameter_quantity"}
    return {word: sum(int(getattr(leaf, name).sum()) for leaf in leaves) for word, name in buffers.items()}


def _torchsummary(torchsummary: Any, model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Figures:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        if _is_sizes(args, kwargs):
            torchsummary.summary(model, [tuple(x.shape[1:]) for x in args], device="cpu")
        else:
            torchsummary.summary(model, None, device="cpu", inputs=args, **_given(kwargs))
    total = re.search(r"Total params: ([\d,]+)", out.getvalue())
    if total is None:
        raise ValueError("nothing printed")
    return {"params": int(total[1].replace(",", ""))}


def _torchinfo(torchinfo: Any, model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Figures:
    statistics = torchinfo.summary(
        model, input_data=list(args) if args else kwargs, verbose=0, **(kwargs if args else {})
    )
    return {"mult-adds": statistics.total_mult_adds, "params": statistics.total_params}


def _ptflops(ptflops: Any, model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Figures:
    options: dict[str, Any] = {"as_strings": False, "print_per_layer_stat": False}
    ask = ptflops.get_model_complexity_info
    if _is_one_image(args, kwargs):
        macs, params = ask(model, tuple(args[0].shape[1:]), **options)
    elif len(args) == 1 and torch.is_tensor(args[0]) and not kwargs:  # the figure is that of one row
        macs, params = ask(model, (1,), input_constructor=lambda _: args[0], **options)
        macs = None if macs is None else macs * len(args[0])
    else:  # positional arguments have no way but their names
        named = inspect.signature(model.forward).bind(*args, **kwargs).arguments
        macs, params = ask(model, (1,), input_constructor=lambda _: dict(named), **options)
    if macs is None:
        raise ValueError("returned (None, None)")
    return {"MACs": macs, "params": params}


def _calflops(calflops: Any, model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Figures:
    flops, macs, params = calflops.calculate_flops(
        model, args=list(args), kwargs=dict(kwargs), print_results=False, output_as_string=False
    )
    return {"FLOPs": flops, "MACs": macs, "params": params}


def _deepspeed(deepspeed: Any, model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Figures:
    flops, macs, params = deepspeed.get_model_profile(
        model, args=list(args), kwargs=dict(kwargs), print_profile=False, warm_up=0, as_string=False
    )
    return {"flops": flops, "MACs": macs, "params": params}


def _flop_counter(torch_module: Any, model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Figures:
    with torch_module.FlopCounterMode(display=False) as counter:
        model(*args, **kwargs)
    return {"FLOPs": counter.get_total_flops()}


def _count(roofprof: Any, model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Figures:
    total = roofprof.count(model, *args, **kwargs).total
    return {"MACs": total.macs, "params": total.params}


TOOLS = (
    Tool("thop", "thop", "roofprof.compat.thop", ("MACs", "params"), _thop),
    Tool("fvcore", "fvcore.nn", "roofprof.compat.fvcore", ("Flops", "params"), _fvcore),
    Tool("ptflops", "ptflops", "roofprof.compat.ptflops", ("MACs", "params"), _ptflops),
    Tool("calflops", "calflops", "roofprof.compat.calflops", ("FLOPs", "MACs", "params"), _calflops),
    Tool(
        "deepspeed",
        "deepspeed.profiling.flops_profiler",
        "roofprof.compat.deepspeed",
        ("flops", "MACs", "params"),
        _deepspeed,
    ),
    Tool("torchinfo", "torchinfo", "roofprof.compat.torchinfo", ("mult-adds", "params"), _torchinfo),
    Tool(
        "torchstat",
        "torchstat",
        "roofprof.compat.torchstat",
        ("Flops", "MAdd", "params"),
        _torchstat,
        prints=True,
        rescue=_left_by_torchstat,
    ),
    Tool("torchsummary", "torchsummary", "roofprof.compat.torchsummary", ("params",), _torchsummary, prints=True),
    Tool(
        "flop_counter",
        "torch.utils.flop_counter",
        "roofprof.compat.flop_counter",
        ("FLOPs",),
        _flop_counter,
        distribution="torch",
        is_block=True,
    ),
)

COUNT = Tool("roofprof.count", "roofprof", "roofprof", ("MACs", "params"), _count, distribution="roofprof")
"""Ours alone, in no other tool's convention."""
