"""Kinds of op, and the colour and shape that each has in every picture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from roofprof import _report

OTHER = "other"
COMPILED = "compiled region"  # the name of the op that torch.compile's code is, too

# Colours are Okabe and Ito's, which the colour-blind tell apart, without yellow and black, which are lost on white or
# on black. Kinds that share one have different shapes.
BLUE, VERMILLION, GREEN, ORANGE = "#0072B2", "#D55E00", "#009E73", "#E69F00"
SKY, PURPLE, GREY = "#56B4E9", "#CC79A7", "#7F7F7F"
STYLES = {
    "convolution": (BLUE, "circle"),
    "vision": (BLUE, "square"),
    COMPILED: (BLUE, "diamond"),
    "matmul": (VERMILLION, "circle"),
    "linalg": (VERMILLION, "square"),
    "sparse": (VERMILLION, "diamond"),
    "quantized": (VERMILLION, "triangle"),
    "attention": (PURPLE, "circle"),
    "recurrent": (PURPLE, "square"),
    "nested": (PURPLE, "diamond"),
    "normalization": (GREEN, "circle"),
    "spectral": (GREEN, "square"),
    "serving": (GREEN, "diamond"),
    "activation": (ORANGE, "circle"),
    "elementwise": (ORANGE, "square"),
    "pooling": (SKY, "circle"),
    "reduction": (SKY, "square"),
    "movement": (GREY, "circle"),
    "indexing": (GREY, "square"),
    "communication": (GREY, "diamond"),
    "own": (GREY, "triangle"),
    OTHER: (GREY, "cross"),
}


def kinds_of(ops: Iterable[str]) -> dict[str, str]:
    """Return the family of each operator's cost, as ``roofprof ops`` lists it: "aten::conv2d" is a "convolution"."""
    # Users' costs come last, so that they do not change the family of torch's own operators.
    families = {cost["op"].partition(".")[0]: cost["family"] for cost in reversed(_report.op_costs())}
    families[COMPILED] = COMPILED
    # A line stands for the in-place form too, as in the search for costs.
    return {op: families.get(op) or families.get(op.removesuffix("_")) or _kind_by_tags(op) for op in ops}


def kinds_of_modules(report: _report.Report, fold_of: Mapping[str, str]) -> dict[str, str]:
    """Return the kind that a module's own ops take most time for; without times, move most bytes for.

    By path; ``fold_of``: modules that are one, by that name. Ops without work (views) have no say: they compute nothing
    that a dot shows.
    """
    groups = [group for group in report.group(["module", "op"]) if group.bytes or group.flops or group.int_ops]
    kinds = kinds_of({group.keys[1] for group in groups})
    weights: dict[str, dict[str, tuple[float, int]]] = {}
    for group in groups:
        of_module = weights.setdefault(fold_of.get(group.keys[0], group.keys[0]), {})
        time, moved = of_module.get(kinds[group.keys[1]], (0.0, 0))
        of_module[kinds[group.keys[1]]] = (time + (group.time or 0), moved + group.bytes)
    return {module: max(found, key=lambda kind: found[kind]) for module, found in weights.items()}


def _kind_by_tags(op: str) -> str:
    """Return the kind of an operator without a line: torch's tags give it."""
    import torch

    namespace, _, name = op.partition("::")
    try:
        packet = getattr(getattr(torch.ops, namespace), name)
        tags = getattr(packet, packet.overloads()[0]).tags
    except (AttributeError, IndexError, RuntimeError):  # the report is of another torch, or the op of no library
        return OTHER
    kinds = {torch.Tag.pointwise: "elementwise", torch.Tag.reduction: "reduction", torch.Tag.view_copy: "movement"}
    return next((kind for tag, kind in kinds.items() if tag in tags), OTHER)
