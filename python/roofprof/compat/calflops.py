"""calflops' ``calculate_flops`` on roofprof's observer: ``from roofprof.compat.calflops import calculate_flops``.

The convention is DeepSpeed's, which calflops took over: of one forward, 2 FLOPs for a multiply-accumulate, 1 for each
bias of a convolution, and a weight for each element of norms, activations, poolings, interpolations, additions and
multiplications. Parameters are those that are trained. docs/compat.md lists what differs.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any

import torch
from torch import nn

import roofprof
from roofprof.compat import _deepspeed as convention
from roofprof.compat._call import (
    as_arguments,
    call_of,
    eager,
    evaluating,
    input_of_shape,
    keywords,
    log_gaps,
    require_module,
    unfused,
    warn_once,
)
from roofprof.compat._deepspeed import (
    bytes_to_string,
    flops_to_string,
    line,
    macs_to_string,
    number_to_string,
    params_to_string,
    share,
    titled,
)
from roofprof.compat._figures import ModuleFigures, printed, trainable_parameters

__all__ = [
    "bytes_to_string",
    "calculate_flops",
    "flops_to_string",
    "generate_transformer_input",
    "macs_to_string",
    "number_to_string",
    "params_to_string",
]

_COUNTS = (
    "calflops writes FLOPS for a count, not a rate, and counts the products and only some other operations: "
    "roofprof.count(model, x).total.flops has them all, and roofprof.profile(model, x) rates"
)
_BACKWARD = (
    "calflops' fwd+bwd is the forward times (1 + compute_bp_factor): "
    "roofprof.RooflineProfiler(model).run_step(step) counts the backward that runs"
)
_NOTATIONS = (
    "Notations:\n"
    "number of parameters (Params), number of multiply-accumulate operations(MACs),\n"
    "number of floating-point operations (FLOPs), floating-point operations per second (FLOPS),\n"
    "fwd FLOPs (model forward propagation FLOPs), bwd FLOPs (model backward propagation FLOPs),\n"
    "default model backpropagation takes {:.2f} times as much computation as forward propagation.\n"
)
_ORDER = (
    "Each module caculated is listed after its name in the following order: \n"
    "params, percentage of total params, MACs, percentage of total MACs, FLOPS, percentage of total FLOPs"
)
_NOTE = (
    "\nNote: 1. A module can have torch.nn.module or torch.nn.functional to compute logits (e.g. CrossEntropyLoss). \n"
    " They are not counted as submodules in calflops and not to be printed out. However they make up the difference "
    "between a parent's MACs and the sum of its submodules'.\n"
    "2. Number of floating-point operations is a theoretical estimation, thus FLOPS computed using that could be "
    "larger than the maximum system throughput.\n"
)


def calculate_flops(  # noqa: PLR0913, PLR0917 (the original's parameters)
    model: nn.Module,
    input_shape: tuple[int, ...] | None = None,
    transformer_tokenizer: Any = None,
    args: Any = (),
    kwargs: Mapping[str, Any] | None = None,
    forward_mode: str = "forward",
    include_backPropagation: bool = False,  # noqa: N803 (the original's name)
    compute_bp_factor: float = 2.0,
    print_results: bool = True,
    print_detailed: bool = True,
    output_as_string: bool = True,
    output_precision: int = 2,
    output_unit: str | None = None,
    ignore_modules: Collection[type[nn.Module]] | None = None,
    is_sparse: bool = False,
) -> Any:
    """Return (FLOPs, MACs, trained parameters) of one call in eval mode: strings ("3.64 GFLOPS", ...), or numbers.

    input_shape: the shape of one tensor, or (batch, tokens) of a language model. transformer_tokenizer: makes the
        tokens, of (1, 128) without a shape. args, kwargs: arguments instead; args may be a tensor or a dict alone.
    forward_mode: "forward" calls the model, "generate" its ``generate``.
    include_backPropagation: results times (1 + compute_bp_factor): an assumption, no backward runs.
    print_results, print_detailed: print the summary, and the model with each module's figures.
    output_unit: "T", "G", "M" or "K" in place of what fits. ignore_modules: exact types whose own work counts for the
        module above them. is_sparse: as newer versions of calflops do, count only parameters that are not 0, and
        multiply each module's work by their share of its own parameters.

    Each module's own mode comes back; the model's own exception comes through.
    """
    require_module(model)
    positional, named = _arguments(model, input_shape, transformer_tokenizer, as_arguments(args), keywords(kwargs))
    if output_as_string or print_results:
        warn_once("calflops.calculate_flops", _COUNTS)
    if include_backPropagation:
        warn_once("calflops.calculate_flops, include_backPropagation", _BACKWARD)
    figures = _Figures(model, ignore_modules, is_sparse=is_sparse)
    with evaluating(model), unfused():
        figures.add(_counted(model, call_of(model, forward_mode), positional, named))
    params, macs, flops = figures.of(model)
    if print_results:
        text = _summary(params, macs, flops, compute_bp_factor, output_unit, output_precision)
        text += _detailed(model, figures, output_precision) if print_detailed else []
        sys.stdout.write("\n".join([*text, "-" * 99]) + "\n")
    factor = 1 + compute_bp_factor if include_backPropagation else 1
    if not output_as_string:
        return flops * factor, macs * factor, params
    return (
        flops_to_string(flops * factor, output_unit, output_precision),
        macs_to_string(macs * factor, output_unit, output_precision),
        params_to_string(params, output_unit, output_precision),
    )


def generate_transformer_input(
    model_tokenizer: Any, input_shape: tuple[int, ...] | None, device: str | torch.device
) -> dict[str, torch.Tensor]:
    """Return the tensors ("input_ids", ...) of an empty text, padded to (batch, tokens), (1, 128) without a shape."""
    batch, tokens = input_shape or (1, 128)
    encoded = model_tokenizer("", add_special_tokens=True)
    length = len(encoded["input_ids"])
    if length > tokens:
        raise ValueError(f"the tokenizer begins and ends a text with {length} tokens, more than the {tokens} asked for")
    rest = tokens - length
    padding: dict[str, list[int]] = {
        "input_ids": [getattr(model_tokenizer, "pad_token_id", None) or 0] * rest,
        "position_ids": list(range(length, tokens)),
    }
    return {
        name: torch.tensor([[*values, *padding.get(name, [0] * rest)]] * batch, dtype=torch.long, device=device)
        for name, values in encoded.items()
        if name in {"input_ids", "attention_mask", "token_type_ids", "position_ids"}
    }


def _arguments(
    model: nn.Module, shape: tuple[int, ...] | None, tokenizer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    given = bool(args or kwargs)
    if given and shape is not None:
        raise ValueError("input_shape makes the input: leave it out, or args and kwargs")
    first = next(model.parameters(), torch.empty(0))
    if given:
        return tuple(_on(first.device, value) for value in args), {
            name: _on(first.device, value) for name, value in kwargs.items()
        }
    if tokenizer is not None:
        if shape is not None and len(shape) != 2:
            raise ValueError(f"the input_shape of a tokenizer's input is (batch, tokens), not {shape!r}")
        return (), generate_transformer_input(tokenizer, shape, first.device)
    if shape is None:
        raise ValueError("nothing to call the model with: give input_shape, transformer_tokenizer, args or kwargs")
    made = input_of_shape(model, shape)
    # A language model of transformers takes the numbers of tokens.
    if getattr(model, "main_input_name", None) == "input_ids":
        return (), {"input_ids": made[0].long()}
    return made, {}


def _on(device: torch.device, value: Any) -> Any:
    return value.to(device) if isinstance(value, torch.Tensor) else value


def _counted(
    model: nn.Module, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> roofprof.Report:
    if call is model:
        report = roofprof.count(model, *args, **kwargs)
    else:
        profiler = roofprof.RooflineProfiler(model, counters="off", ceilings=roofprof.Ceilings())
        with eager(), profiler:
            call(*args, **kwargs)
        report = profiler.report()
    log_gaps(report, logging.getLogger(__name__))
    return report


class _Figures:
    """Trained parameters, MACs and FLOPs of a module together with all modules below it."""

    def __init__(self, model: nn.Module, ignored: Collection[type[nn.Module]] | None, *, is_sparse: bool) -> None:
        self._flops, self._macs = ModuleFigures(model, ignored), ModuleFigures(model, ignored)
        self._is_sparse = is_sparse

    def add(self, report: roofprof.Report) -> None:
        self._flops.add(report, convention.flops)
        self._macs.add(report, convention.macs)

    def of(self, module: nn.Module) -> tuple[int, int, int]:
        if not self._is_sparse:
            return (
                trainable_parameters(self._macs.tree.parameters(module)),
                self._macs.of(module),
                self._flops.of(module),
            )
        params = _stored(module, recurse=True)[0]
        return params, self._macs.of(module, _share_stored), self._flops.of(module, _share_stored)


def _stored(module: nn.Module, *, recurse: bool) -> tuple[int, int]:
    """Return the number of elements of the trained parameters that are not 0, and of all of them."""
    trained = [one for one in module.parameters(recurse) if one.requires_grad]
    return sum(int(one.count_nonzero()) for one in trained), sum(one.numel() for one in trained)


def _share_stored(module: nn.Module) -> float:
    stored, elements = _stored(module, recurse=False)
    return stored / elements if elements else 1.0


def _summary(params: int, macs: int, flops: int, factor: float, unit: str | None, precision: int) -> list[str]:
    return [
        titled("Calculate Flops Results", 37),
        _NOTATIONS.format(factor),
        line("Total Training Params", params_to_string(params)),
        line("fwd MACs", macs_to_string(macs, unit, precision)),
        line("fwd FLOPs", flops_to_string(flops, unit, precision)),
        line("fwd+bwd MACs", macs_to_string(macs * (1 + factor), unit, precision)),
        line("fwd+bwd FLOPs", flops_to_string(flops * (1 + factor), unit, precision)),
    ]


def _detailed(model: nn.Module, figures: _Figures, precision: int) -> list[str]:
    totals = figures.of(model)

    def facts(module: nn.Module) -> list[str]:
        params, macs, flops = figures.of(module)
        return [
            f"{params_to_string(params)} = {share(params, totals[0], precision)} Params",
            f"{macs_to_string(macs)} = {share(macs, totals[1], precision)} MACs",
            f"{flops_to_string(flops)} = {share(flops, totals[2], precision)} FLOPs",
        ]

    return [titled("Detailed Calculated FLOPs Results", 32), _ORDER, _NOTE, printed(model, facts)]
