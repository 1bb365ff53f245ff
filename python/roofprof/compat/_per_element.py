"""Weights for each element that several tools share, of all calls of one operator in one module."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch

from roofprof import GroupRow


class Observed(NamedTuple):
    """All calls of one operator in one module."""

    operator: str  # "aten::conv2d"
    figures: GroupRow  # macs, calls, input_elements, output_elements, ...
    module: torch.nn.Module | None  # whose own op it is; None: of no module


Handle = Callable[[Observed], float]

_NORMS = (
    torch.nn.modules.batchnorm._NormBase,
    torch.nn.LayerNorm,
    torch.nn.GroupNorm,
)


def nothing(_: Observed) -> int:
    """Known, and counted as no work."""
    return 0


def per_input(op: Observed) -> int:
    """1 for each input element."""
    return op.figures.input_elements


def per_output(op: Observed) -> int:
    """1 for each output element."""
    return op.figures.output_elements


def is_affine(op: Observed) -> bool:
    """Whether a norm has a weight."""
    # A functional call does not say; nearly all pass a weight.
    return not isinstance(op.module, _NORMS) or op.module.weight is not None


def statistics_norm(op: Observed) -> int:
    """5 for each element, 4 without a weight: mean, variance and the rest, roughly."""
    return op.figures.input_elements * (5 if is_affine(op) else 4)


def batch_norm(op: Observed) -> int:
    """With running statistics 2 for each element, 1 without a weight; with the batch's own as other norms."""
    # Our own count of the op: 2 for each element where the statistics are given.
    if op.figures.flops > 2 * op.figures.input_elements:
        return statistics_norm(op)
    return op.figures.input_elements * (2 if is_affine(op) else 1)
