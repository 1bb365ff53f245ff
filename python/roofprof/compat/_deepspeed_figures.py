"""The figures of DeepSpeed's profiler for each module: flops, MACs, parameters and the latency of its forward."""

from __future__ import annotations

import logging
from collections.abc import Collection

from torch import nn

import roofprof
from roofprof.compat import _deepspeed_convention as convention
from roofprof.compat._call import log_gaps
from roofprof.compat._forward_clocks import ForwardClocks
from roofprof.compat._module_figures import ModuleFigures


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
        self._flops.add(report, convention.flops)
        self._macs.add(report, convention.macs)
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
        others, experts, _ = parameters_by_expert(module)
        return others + experts


def parameters_by_expert(module: nn.Module) -> tuple[int, int, int]:
    """Return the parameters of no expert, of this rank's experts, of all ranks' experts ("ep_size_4": four ranks)."""
    others = experts = of_all_ranks = 0
    for parameter in module.parameters():
        count = 0 if nn.parameter.is_lazy(parameter) else parameter.numel()
        prefix, _, ranks = str(getattr(parameter, "group_name", "")).rpartition("_")
        if prefix == "ep_size" and ranks.isdecimal() and int(ranks):
            experts += count
            of_all_ranks += count * int(ranks)
        else:
            others += count
    return others, experts, of_all_ranks
