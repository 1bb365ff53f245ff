"""calflops' ``calculate_flops`` on roofprof's observer: what it counts and what differs stands in docs/compat.md."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

import torch
from torch import nn

from roofprof.compat import _call, deepspeed
from roofprof.compat._table import Columns, of_modules
from roofprof.compat.deepspeed import (
    bytes_to_string,
    flops_to_string,
    macs_to_string,
    number_to_string,
    params_to_string,
)

__all__ = ["bytes_to_string", "calculate_flops", "flops_to_string", "generate_transformer_input", "macs_to_string"]
__all__ += ["number_to_string", "params_to_string"]

_COUNTS = (
    "calflops writes FLOPS for a count, not a rate, and counts the products and only some other operations: "
    "roofprof.count(model, x).total.flops has them all, and roofprof.profile(model, x) rates"
)
_BACKWARD = (
    "calflops' fwd+bwd is the forward times (1 + compute_bp_factor): "
    "roofprof.RooflineProfiler(model).run_step(step) counts the backward that runs"
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
    include_backPropagation: results times (1 + compute_bp_factor): an assumption, no backward runs.
    is_sparse: as newer versions of calflops do, count only parameters that are not 0, and multiply each module's work
        by their share of the module's own parameters. Modules get their modes back; the model's exceptions are raised.
    """
    _call.require_module(model)
    positional = _call.positional(args, lists=True)
    given, named = _arguments(model, input_shape, transformer_tokenizer, positional, kwargs or {})
    if output_as_string or print_results:
        _call.warn_once("calflops.calculate_flops", _COUNTS)
    if include_backPropagation:
        _call.warn_once("calflops.calculate_flops, include_backPropagation", _BACKWARD)
    figures = deepspeed.Figures(model, ignore_modules)
    figures.add(_call.counted(model, given, named, call=_call.call_of(model, forward_mode), tool="calflops"))

    def params_of(module: nn.Module) -> int:
        return _stored(module, recurse=True)[0] if is_sparse else figures.params(module, trainable=True)

    macs_of, flops_of = (partial(each, share=_kept if is_sparse else None) for each in (figures.macs, figures.flops))
    params, macs, flops = params_of(model), macs_of(model), flops_of(model)
    factor, unit = 1 + compute_bp_factor, (output_unit, output_precision)
    if print_results:
        facts = {"Total Training Params": params_to_string(params), "fwd MACs": macs_to_string(macs, *unit)}
        facts |= {"fwd FLOPs": flops_to_string(flops, *unit), "fwd+bwd MACs": macs_to_string(macs * factor, *unit)}
        facts["fwd+bwd FLOPs"] = flops_to_string(flops * factor, *unit)
        columns: Columns = {"Params": (params_of, params_to_string), "MACs": (macs_of, macs_to_string)}
        columns = {**columns, "FLOPs": (flops_of, flops_to_string)}
        table = of_modules(model, columns, facts, digits=output_precision, all_of=print_detailed)
        sys.stdout.write(table + "\n")
    factor = factor if include_backPropagation else 1
    if not output_as_string:
        return flops * factor, macs * factor, params
    return flops_to_string(flops * factor, *unit), macs_to_string(macs * factor, *unit), params_to_string(params, *unit)


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
    model: nn.Module, shape: tuple[int, ...] | None, tokenizer: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    device = next(model.parameters(), torch.empty(0)).device
    if args or kwargs:
        if shape is not None:
            raise ValueError("input_shape makes the input: leave it out, or args and kwargs")
        values = [value.to(device) if isinstance(value, torch.Tensor) else value for value in (*args, *kwargs.values())]
        return tuple(values[: len(args)]), dict(zip(kwargs, values[len(args) :], strict=True))
    if tokenizer is not None:
        if shape is not None and len(shape) != 2:
            raise ValueError(f"the input_shape of a tokenizer's input is (batch, tokens), not {shape!r}")
        return (), generate_transformer_input(tokenizer, shape, device)
    if shape is None:
        raise ValueError("nothing to call the model with: give input_shape, transformer_tokenizer, args or kwargs")
    made = _call.input_of_shape(model, shape)
    # A language model of transformers takes the numbers of tokens.
    return ((), {"input_ids": made[0].long()}) if getattr(model, "main_input_name", None) == "input_ids" else (made, {})


def _stored(module: nn.Module, *, recurse: bool) -> tuple[int, int]:
    """Return the number of elements of the trained parameters that are not 0, and of all of them."""
    trained = [one for one in module.parameters(recurse) if one.requires_grad]
    return sum(int(one.count_nonzero()) for one in trained), sum(one.numel() for one in trained)


def _kept(module: nn.Module) -> float:
    stored, elements = _stored(module, recurse=False)
    return stored / elements if elements else 1.0
