"""torchstat's ``stat`` on roofprof's observer: ``from roofprof.compat.torchstat import stat``.

The convention is torchstat's, whose words are not the usual ones:

==================  ==================================================================================================
column              meaning
==================  ==================================================================================================
MAdd                multiplications and additions of a convolution (2 for each MAC, the bias being the first addition)
                    and of a linear layer without its bias; 4 for each element of a BatchNorm2d
Flops               multiply-accumulates, and one more for each bias of a convolution; elements of other layers
memory(MB)          what the layers return and their parameters, in MiB
MemRead, MemWrite   bytes of inputs with parameters, and of outputs; once for each sample
duration[%]         the layer's share of the time of all rows
==================  ==================================================================================================

It differs where torchstat is wrong or stops:

==============================================  ==================================  =================================
what the model does                             torchstat                           here
==============================================  ==================================  =================================
any model, with today's NumPy and pandas        AttributeError                      works
layers it has no rule for                       0                                   their MACs: 2 MAdd and 1 of Flops
attention, ``@``, functional calls              no row                              a row of the module, with its MACs
a layer that is called twice                    its last call                       all of its calls
inputs of other than three dimensions, batches  refused                             counted
memory(MB)                                      0.0.7: outputs alone                parameters as well, on request not
tied parameters                                 once for each layer                 once
a frozen layer's parameters                     not read                            read
parameters of a container itself                no row                              a row of the container
Upsample                                        one channel                         all channels
total of MemRead and MemWrite                   those of the last row               the sums
granularity above 1                             TypeError                           sums of the modules inside
after the call                                  buffers and calls of classes stay   the model is left as it was
==============================================  ==================================  =================================

Layers without a rule and without MACs count 0, as in torchstat; a line below the table names them.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from roofprof.compat._call import keywords, positional, random_tensor, require_module, warn_once
from roofprof.compat._torchstat_rows import Layers, StatRow
from roofprof.compat._torchstat_table import report_format

__all__ = ["ModelStat", "StatRow", "report_format", "stat"]


class ModelStat:
    """The rows of one call of a model in eval mode without gradients.

    input_size: the shape of one sample, to which a batch of 1 is added. query_granularity: 1 for each layer; n for
    modules with n levels in them, and next to these modules with fewer levels.
    inputs: in place of the size, a tuple of positional arguments or the one argument, with ``kwargs``.
    parameter_memory: whether memory(MB) has the parameters; torchstat 0.0.7 leaves them out.

    Raises TypeError or ValueError for arguments that make no sense, and whatever the model raises.
    """

    def __init__(
        self,
        model: nn.Module,
        input_size: Sequence[int] | None,
        query_granularity: int = 1,
        *,
        inputs: Any = None,
        kwargs: Mapping[str, Any] | None = None,
        parameter_memory: bool = True,
    ) -> None:
        require_module(model)
        if (input_size is None) == (inputs is None and not kwargs):
            raise ValueError("give input_size, or None for it and inputs or kwargs")
        if input_size is not None and not all(isinstance(size, int) and size > 0 for size in input_size):
            raise ValueError(f"input_size must be the sizes of one sample, such as (3, 224, 224), not {input_size!r}")
        if not isinstance(query_granularity, int) or query_granularity < 1:
            raise ValueError(f"query_granularity must be 1 or more, not {query_granularity!r}")
        self._model = model
        self._size = input_size
        self._granularity = query_granularity
        self._inputs = () if inputs is None else positional(inputs)
        self._kwargs = keywords(kwargs)
        self._parameter_memory = parameter_memory

    def rows(self) -> list[StatRow]:
        """Return the table's rows. Each call profiles the model again."""
        return self._layers().rows(self._granularity, parameter_memory=self._parameter_memory)

    def _layers(self) -> Layers:
        args = self._inputs
        if self._size is not None:
            parameter = next((p for p in self._model.parameters() if p.is_floating_point()), torch.empty(0))
            args = (random_tensor((1, *self._size), parameter.device, parameter.dtype),)
        return Layers(self._model, args, self._kwargs)

    def show_report(self) -> None:
        """Print the table."""
        layers = self._layers()
        rows = layers.rows(self._granularity, parameter_memory=self._parameter_memory)
        sys.stdout.write(report_format(rows, layers.without_rule) + "\n")


def stat(
    model: nn.Module,
    input_size: Sequence[int] | None,
    query_granularity: int = 1,
    *,
    inputs: Any = None,
    kwargs: Mapping[str, Any] | None = None,
    parameter_memory: bool = True,
) -> None:
    """Print the table of :class:`ModelStat`, whose arguments these are; its ``rows()`` are the figures."""
    warn_once(
        "torchstat",
        "torchstat calls multiplications and additions MAdd and multiply-accumulates Flops; "
        "roofprof.count(model, ...).total has both as flops and macs",
    )
    ModelStat(
        model, input_size, query_granularity, inputs=inputs, kwargs=kwargs, parameter_memory=parameter_memory
    ).show_report()
