"""The text of DeepSpeed's profiler: the summary, the largest modules at each depth, the model with its figures."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from torch import nn

from roofprof.compat._deepspeed_figures import Figures, parameters_by_expert
from roofprof.compat._deepspeed_text import (
    duration_to_string,
    flops_to_string,
    line,
    macs_to_string,
    number_to_string,
    params_to_string,
    share,
    titled,
)
from roofprof.compat._module_figures import printed

_NOTATIONS = (
    "Notations:\n"
    "data parallel size (dp_size), model parallel size(mp_size),\n"
    "number of parameters (params), number of multiply-accumulate operations(MACs),\n"
    "number of floating-point operations (flops), floating-point operations per second (FLOPS),\n"
    "fwd latency (forward propagation latency), bwd latency (backward propagation latency),\n"
    "step (weights update latency), iter latency (sum of fwd, bwd and step latency)\n"
)
_ORDER = (
    "Each module profile is listed after its name in the following order: \n"
    "params, percentage of total params, MACs, percentage of total MACs, fwd latency, percentage of total fwd latency, "
    "fwd FLOPS"
)
_NOTE = (
    "\nNote: 1. A module can have torch.nn.module or torch.nn.functional to compute logits (e.g. CrossEntropyLoss). "
    "They are not counted as submodules, thus not to be printed out. However they make up the difference between a "
    "parent's MACs (or latency) and the sum of its submodules'.\n"
    "2. Number of floating-point operations is a theoretical estimation, thus FLOPS computed using that could be "
    "larger than the maximum system throughput.\n"
    "3. The fwd latency listed in the top module's profile is directly captured at the module forward function in "
    "PyTorch, thus it's less than the fwd latency shown above which is captured in DeepSpeed.\n"
)


def profile_text(
    model: nn.Module,
    figures: Figures,
    engine: Any,
    recompute_fwd_factor: float,
    profile_step: int,
    aggregated: str,
    *,
    detailed: bool,
) -> str:
    """Return the whole text, without its last line feed."""
    lines = [titled("DeepSpeed Flops Profiler", 26), f"Profile Summary at step {profile_step}:", _NOTATIONS]
    lines += _engine_lines(model, engine) if engine else []
    lines += _parameter_lines(model, figures, engine)
    lines += _work_lines(model, figures, engine, recompute_fwd_factor)
    lines += [titled("Aggregated Profile per GPU", 29), aggregated]
    if detailed:
        lines += [titled("Detailed Profile per GPU", 30), _ORDER, _NOTE, printed(model, _facts_of(model, figures))]
    return "\n".join([*lines, "-" * 78])


def aggregated_text(model: nn.Module, figures: Figures, module_depth: int, top_modules: int) -> str:
    """Return the classes with the largest sums at each depth above ``module_depth``; -1: the innermost one."""
    by_depth: list[dict[str, list[float]]] = []
    _gather(model, figures, 0, by_depth)
    depth = len(by_depth) - 1 if module_depth == -1 else min(module_depth, len(by_depth))
    lines = [f"Top {top_modules} modules in terms of params, MACs or fwd latency at different model depths:"]
    for at in range(depth):
        lines.append(f"depth {at}:")
        for name, i, to_string in (
            ("params      ", 1, params_to_string),
            ("MACs        ", 0, macs_to_string),
            ("fwd latency ", 2, duration_to_string),
        ):
            largest = sorted(by_depth[at].items(), key=lambda item: item[1][i], reverse=True)[:top_modules]
            shown = {kind: to_string(sums[i]) for kind, sums in largest}
            lines.append(f"    {name}- {shown}")
    return "\n".join(lines)


def _gather(module: nn.Module, figures: Figures, depth: int, by_depth: list[dict[str, list[float]]]) -> None:
    if depth == len(by_depth):
        by_depth.append({})
    sums = by_depth[depth].setdefault(type(module).__name__, [0, 0, 0])
    for i, value in enumerate((figures.macs(module), figures.params(module), figures.seconds(module))):
        sums[i] += value
    for child in module.children():
        _gather(child, figures, depth + 1, by_depth)


def _facts_of(model: nn.Module, figures: Figures) -> Callable[[nn.Module], list[str]]:
    params, macs, seconds = figures.params(model), figures.macs(model), figures.seconds(model)

    def facts(module: nn.Module) -> list[str]:
        own = figures.params(module), figures.macs(module), figures.seconds(module)
        return [
            f"{params_to_string(own[0])} = {share(own[0], params)} Params",
            f"{macs_to_string(own[1])} = {share(own[1], macs)} MACs",
            f"{duration_to_string(own[2])} = {share(own[2], seconds)} latency",
            flops_to_string(round(figures.flops(module) / own[2], 2) if own[2] else 0),
        ]

    return facts


def _engine_lines(model: nn.Module, engine: Any) -> list[str]:
    data_parallel = engine.dp_world_size
    if data_parallel is None:  # sequence parallelism has one group for both
        data_parallel = engine.seq_dp_world_size
    lines = [
        line("world size", engine.world_size),
        line("data parallel size", data_parallel),
        line("model parallel size", engine.mp_world_size),
        line("batch size per GPU", engine.train_micro_batch_size_per_gpu()),
    ]
    if engine.has_moe_layers:
        lines.append(line("expert tensor parallelism enabled", _expert_tensor_parallelism(model, engine) > 1))
    return lines


def _parameter_lines(model: nn.Module, figures: Figures, engine: Any) -> list[str]:
    others, _, of_all_ranks = parameters_by_expert(model)
    others *= engine.mp_world_size if engine else 1
    of_all_ranks *= _expert_tensor_parallelism(model, engine) if engine and engine.has_moe_layers else 0
    lines = [line("params per GPU", params_to_string(figures.params(model)))]
    if not of_all_ranks:
        return [*lines, line("params of model = params per GPU * mp_size", params_to_string(others))]
    return [
        *lines,
        line("params of model", params_to_string(others + of_all_ranks)),
        line("   non-expert params of model", params_to_string(others)),
        line("   expert params of model", params_to_string(of_all_ranks)),
    ]


def _expert_tensor_parallelism(model: nn.Module, engine: Any) -> int:
    return int(engine.mp_world_size) if expert_tensor_parallelism_enabled(model) else 1


def expert_tensor_parallelism_enabled(model: nn.Module) -> bool:
    """Return True when a DeepSpeed MoE layer of the model has expert tensor parallelism enabled."""
    deepspeed_moe = sys.modules.get("deepspeed.moe.layer")
    kind: Any = getattr(deepspeed_moe, "MoE", ())
    layers = (module for module in model.modules() if isinstance(module, kind))
    return any(bool(getattr(layer, "enable_expert_tensor_parallelism", False)) for layer in layers)


def _work_lines(model: nn.Module, figures: Figures, engine: Any, recompute_fwd_factor: float) -> list[str]:
    flops, seconds = figures.flops(model), figures.seconds(model)
    times = engine.timers if engine and engine.wall_clock_breakdown() else None
    forward = times("fwd").elapsed(False) / 1000 if times else seconds
    lines = [
        line("fwd MACs per GPU", macs_to_string(figures.macs(model))),
        line("fwd flops per GPU", number_to_string(flops)),
        line(
            "fwd flops of model = fwd flops per GPU * mp_size",
            number_to_string(flops * (engine.mp_world_size if engine else 1)),
        ),
        line("fwd latency", duration_to_string(forward)),
        line("fwd FLOPS per GPU = fwd flops per GPU / fwd latency", _rate(flops, forward)),
    ]
    if times is None:
        return lines
    factor = 2 + recompute_fwd_factor
    backward, step = (times(name).elapsed(False) / 1000 for name in ("bwd", "step"))
    iteration = forward + backward + step
    samples = engine.train_micro_batch_size_per_gpu() * engine.world_size
    both = f"{factor + 1:g} * fwd flops per GPU"
    return [
        *lines,
        line("bwd latency", duration_to_string(backward)),
        line(f"bwd FLOPS per GPU = {factor:g} * fwd flops per GPU / bwd latency", _rate(factor * flops, backward)),
        line(f"fwd+bwd FLOPS per GPU = {both} / (fwd+bwd latency)", _rate((factor + 1) * flops, forward + backward)),
        line("step latency", duration_to_string(step)),
        line("iter latency", duration_to_string(iteration)),
        line(f"FLOPS per GPU = {both} / iter latency", _rate((factor + 1) * flops, iteration)),
        line("samples/second", round(samples / iteration, 2) if iteration else "n/a"),
    ]


def _rate(flops: float, seconds: float) -> str:
    return flops_to_string(flops / seconds) if seconds else "n/a"
