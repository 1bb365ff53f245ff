"""DeepSpeed's flops profiler: its convention, figures, words and printed profile."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Collection, Iterable
from typing import Any

from torch import nn

import roofprof
from roofprof.compat import _figures as each
from roofprof.compat._call import log_gaps
from roofprof.compat._figures import ForwardClocks, ModuleFigures, Observed, printed

# ---- the convention of DeepSpeed's profiler, which calflops took over, as data: FLOPs of one operator in one module


def flops(op: Observed) -> int:
    """Return the convention's FLOPs of all calls of an operator in a module."""
    if type(op.module) is nn.Linear:  # torch.func takes its bias apart
        return 2 * op.figures.macs
    name = op.operator.removesuffix("_")
    if name in _FLOPS_BY_OPERATOR:
        return int(_FLOPS_BY_OPERATOR[name](op))
    if "upsample" in name:
        return each.per_output(op)
    products = 2 * op.figures.macs
    return max(products, op.figures.flops) if "conv" in name and products else products


def macs(op: Observed) -> int:
    """Return the multiply-accumulates."""
    return op.figures.macs


def _product_and_sum(op: Observed) -> int:
    return 2 * op.figures.macs + each.per_output(op)


def _recurrent(op: Observed) -> int:
    """Return the flops of a recurrent op: a row of n products has n - 1 additions; biases add two for each gate."""
    units, gates, others, bias = each.recurrence(op)
    return 2 * op.figures.macs + units * (others - 2 * gates + (2 * gates if bias else 0))


_FLOPS_BY_OPERATOR = each.by_operator(
    (each.per_input, [*each.ACTIVATIONS, *each.POOLINGS]),
    (each.batch_norm, each.BATCH_NORMS),
    (each.statistics_norm, [*each.LAYER_NORMS, *each.GROUP_NORMS]),
    (each.relu6, ["hardtanh"]),
    (each.elementwise, ["add", "mul"]),
    (_product_and_sum, ["addmm", "baddbmm"]),
    (_recurrent, each.RECURRENT),
    (each.nothing, ["embedding"]),
)


# ---- the figures of DeepSpeed's profiler for each module: flops, MACs, parameters and the latency of its forward


class Figures:
    """The flops, MACs and seconds of the forward, in DeepSpeed's convention, of a module and all modules below it."""

    def __init__(self, model: nn.Module, ignored: Collection[type[nn.Module]] | None) -> None:
        self._model, self._ignored = model, ignored
        self._flops, self._macs = ModuleFigures(model, ignored), ModuleFigures(model, ignored)
        self.clocks = ForwardClocks(model)
        self.backward_ran = False

    def anew(self) -> Figures:
        """Return empty figures of the same model."""
        return Figures(self._model, self._ignored)

    def add(self, report: roofprof.Report) -> None:
        """Add the forward of one block."""
        self._flops.add(report, flops)
        self._macs.add(report, macs)
        self.backward_ran |= "backward" in report.by_phase()
        log_gaps(report, logging.getLogger("roofprof.compat.deepspeed"))

    def flops(self, module: nn.Module) -> int:
        """Return the flops of the forward in DeepSpeed's convention."""
        return self._flops.of(module)

    def macs(self, module: nn.Module) -> int:
        """Return the multiply-accumulates of the forward."""
        return self._macs.of(module)

    def seconds(self, module: nn.Module) -> float:
        """Return the seconds of the forward, as :class:`ForwardClocks` measures them."""
        return self.clocks.of(module)

    def params(self, module: nn.Module) -> int:
        """Return the number of parameters on this rank, experts' included."""
        others, experts, _ = parameters_by_expert(self._macs.tree.parameters(module))
        return others + experts


def parameters_by_expert(parameters: Iterable[nn.Parameter]) -> tuple[int, int, int]:
    """Return how many are of no expert, of this rank's experts, of all ranks' experts ("ep_size_4": four ranks)."""
    others = experts = of_all_ranks = 0
    for parameter in parameters:
        count = 0 if nn.parameter.is_lazy(parameter) else parameter.numel()
        prefix, _, ranks = str(getattr(parameter, "group_name", "")).rpartition("_")
        if prefix == "ep_size" and ranks.isdecimal() and int(ranks):
            experts += count
            of_all_ranks += count * int(ranks)
        else:
            others += count
    return others, experts, of_all_ranks


# ---- numbers and lines as DeepSpeed's profiler prints them, and calflops after it

_MAGNITUDES = {"T": 1e12, "G": 1e9, "M": 1e6, "K": 1e3, "": 1.0, "m": 1e-3, "u": 1e-6}


def number_to_string(num: float, units: str | None = None, precision: int = 2) -> str:
    """Return a number as "1.82 G", in ``units`` ("T", "G", "M", "K", "m", "u"; any other adds no factor) or in the
    largest that the number reaches.
    """
    if units is None:
        units = next((unit for unit, magnitude in _MAGNITUDES.items() if num >= magnitude), "u") if num else ""
    return f"{round(num / _MAGNITUDES.get(units, 1.0), precision):g} {units}"


def flops_to_string(flops: float, units: str | None = None, precision: int = 2) -> str:
    """Return flops as "1.82 GFLOPS"."""
    return f"{number_to_string(flops, units, precision)}FLOPS"


def macs_to_string(macs: float, units: str | None = None, precision: int = 2) -> str:
    """Return MACs as "1.82 GMACs"."""
    return f"{number_to_string(macs, units, precision)}MACs"


def bytes_to_string(b: float, units: str | None = None, precision: int = 2) -> str:
    """Return bytes as "1.82 GB"."""
    return f"{number_to_string(b, units, precision)}B"


def params_to_string(params_num: float, units: str | None = None, precision: int = 2) -> str:
    """Return a number of parameters as "1.82 B" (billions), or "11.69 M"."""
    units = units.replace("B", "G") if units else units
    return number_to_string(params_num, units, precision).replace("G", "B").strip()


def duration_to_string(duration: float, units: str | None = None, precision: int = 2) -> str:
    """Return seconds as "1.82 ms"."""
    return f"{number_to_string(duration, units, precision)}s"


def line(name: str, value: object) -> str:
    """Return a line of a summary."""
    return f"{name + ': ':<70}  {value!s:<8}"


def titled(title: str, width: int) -> str:
    """Return a rule with a title in its middle."""
    return f"\n{'-' * width} {title} {'-' * width}"


def share(part: float, whole: float, precision: int = 2) -> str:
    """Return a share as "12.5%"."""
    return f"{round(100 * part / whole, precision) if whole else 0:g}%"


# ---- the text of DeepSpeed's profiler: the summary, the largest modules at each depth, the model with its figures

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
    others, _, of_all_ranks = parameters_by_expert(model.parameters())
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
