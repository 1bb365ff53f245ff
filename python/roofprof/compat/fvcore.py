"""``fvcore.nn``'s FLOP counting on roofprof's observer: ``from roofprof.compat.fvcore import FlopCountAnalysis``.

The convention is fvcore's: one FLOP for a multiply-accumulate, its names of operators, and for normalisation,
upsampling and adaptive pooling its weights for each element (:mod:`roofprof.compat._fvcore_convention` is the table).
Differences:

==============================================  ==================================  =============================
what the model does                             fvcore                              here
==============================================  ==================================  =============================
attention, LSTM and GRU, quantised products     0, listed as unsupported            their MACs, by operator
``@`` of batches that broadcast                 one operand's batch only            the MACs that are done
einsum                                          NumPy's estimate                    its products' MACs, as bmm
inputs: a dict, keyword arguments               refused                             as the model takes them
outputs: a dataclass, None, anything            refused                             never looked at
TorchScript modules                             refused                             one row, all their work in it
handles of your own                             take TorchScript's values           take an ``Observed``
BatchNorm in training mode                      its statistics move on              the model is left as it was
==============================================  ==================================  =============================

A linear layer is ``linear`` as in fvcore under today's torch, and answers to ``addmm`` too, as under the torch that
fvcore's manual shows.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

import torch

from roofprof.compat import _fvcore_convention as convention
from roofprof.compat._fvcore_analysis import Analysis, OperatorCounter
from roofprof.compat._fvcore_tables import flop_count_str, flop_count_table, parameter_count, parameter_count_table
from roofprof.compat._per_element import Handle, Observed

__all__ = [
    "ActivationCountAnalysis",
    "FlopCountAnalysis",
    "Handle",
    "Observed",
    "OperatorCounter",
    "activation_count",
    "flop_count",
    "flop_count_str",
    "flop_count_table",
    "parameter_count",
    "parameter_count_table",
]


class FlopCountAnalysis(Analysis):
    """FLOPs of one call ``model(*inputs, **kwargs)`` in fvcore's convention, made when first asked for.

    inputs: a tuple of positional arguments; anything else (a tensor, a dict, a list) is the one argument.
    kwargs: keyword arguments, which fvcore does not have.
    """

    _default_handles = convention.FLOPS_BY_OPERATOR

    def _count(self, op: Observed) -> float | None:
        if op.figures.macs:
            return op.figures.macs
        does_nothing = not (op.figures.flops or op.figures.int_ops or op.figures.incomplete)
        return 0 if does_nothing or op.operator in convention.IGNORED else None


class ActivationCountAnalysis(Analysis):
    """Elements that convolutions, linear layers and products return in one call, as fvcore counts activations.

    inputs and kwargs: as for :class:`FlopCountAnalysis`.
    """

    _default_handles = convention.ACTIVATIONS_BY_OPERATOR

    def _count(self, op: Observed) -> float | None:
        if op.figures.macs:  # also where fvcore has no handle: attention, recurrent layers
            return op.figures.output_elements
        does_nothing = not (op.figures.flops or op.figures.int_ops or op.figures.incomplete)
        return 0 if does_nothing or op.operator in convention.IGNORED else None


def flop_count(
    model: torch.nn.Module, inputs: Any, supported_ops: Mapping[str, Handle | None] | None = None
) -> tuple[defaultdict[str, float], Counter[str]]:
    """Return GFLOPs by operator, and the calls of unsupported operators."""
    return _scaled(FlopCountAnalysis(model, inputs), supported_ops, 1e9)


def activation_count(
    model: torch.nn.Module, inputs: Any, supported_ops: Mapping[str, Handle | None] | None = None
) -> tuple[defaultdict[str, float], Counter[str]]:
    """Return millions of activations by operator, and the calls of unsupported operators."""
    return _scaled(ActivationCountAnalysis(model, inputs), supported_ops, 1e6)


def _scaled(
    analysis: Analysis, supported_ops: Mapping[str, Handle | None] | None, unit: float
) -> tuple[defaultdict[str, float], Counter[str]]:
    analysis.set_op_handle(**(supported_ops or {}))
    counts = analysis.by_operator()
    return defaultdict(float, {name: count / unit for name, count in counts.items()}), analysis.unsupported_ops()
