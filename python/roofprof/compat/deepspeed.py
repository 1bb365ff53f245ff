"""DeepSpeed's ``FlopsProfiler`` and ``get_model_profile`` on roofprof's observer.

``from roofprof.compat.deepspeed import FlopsProfiler`` replaces ``deepspeed.profiling.flops_profiler``. The convention
is DeepSpeed's: flops of the forward alone, 2 for a multiply-accumulate, 1 for each bias of a convolution and none for a
linear layer's. For each element norms count 5 (4 without a weight; BatchNorm in eval mode 2 and 1), and activations,
softmax, poolings, interpolations, additions and multiplications 1. Dropout layers count nothing, as in DeepSpeed; the
multiplication of a functional dropout counts as any other. docs/compat.md lists what differs.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from torch import nn

import roofprof
from roofprof.compat._call import (
    as_arguments,
    call_of,
    eager,
    evaluating,
    input_of_shape,
    keywords,
    require_module,
    undone,
    unfused,
    warn_once,
)
from roofprof.compat._deepspeed import (
    Figures,
    aggregated_text,
    bytes_to_string,
    duration_to_string,
    expert_tensor_parallelism_enabled,
    flops_to_string,
    macs_to_string,
    number_to_string,
    params_to_string,
    profile_text,
)
from roofprof.render.files import write_whole

__all__ = [
    "FlopsProfiler",
    "bytes_to_string",
    "duration_to_string",
    "flops_to_string",
    "get_model_profile",
    "macs_to_string",
    "number_to_string",
    "params_to_string",
]

_NOT_STARTED = "FlopsProfiler has no figures: call start_profile() before the forward, and ask before end_profile()"
_FORWARD_ALONE = (
    "deepspeed's total flops and MACs are those of the forward alone, though a backward ran as well: "
    "roofprof.RooflineProfiler(model).run_step(step) counts all phases"
)


class FlopsProfiler:
    """FLOPs, MACs, parameters and latency of the forward calls between :meth:`start_profile` and :meth:`stop_profile`.

    ds_engine: a DeepSpeed engine, whose parallel sizes and timers :meth:`print_model_profile` shows as well.
    recompute_fwd_factor: forwards that each backward runs again, for the rates that need the engine's timers.

    Where the code between start and stop raises, :meth:`end_profile` belongs into a ``finally``.
    """

    def __init__(self, model: nn.Module, ds_engine: Any = None, recompute_fwd_factor: float = 0.0) -> None:
        require_module(model)
        self.model = model
        self.ds_engine = ds_engine
        self.recompute_fwd_factor = recompute_fwd_factor
        self.started = False
        self._observing = contextlib.ExitStack()
        self._block: roofprof.RooflineProfiler | None = None  # its block is open
        self._figures = Figures(model, None)

    # ---- begin and end

    def start_profile(self, ignore_list: Collection[type[nn.Module]] | None = None) -> None:
        """Begin with empty figures.

        ignore_list: exact types of modules whose own work counts for the module above them.
        """
        self.stop_profile()
        self._figures = Figures(self.model, ignore_list)
        self.started = True
        self._observe()

    def stop_profile(self) -> None:
        """Stop observing; the figures stay."""
        if self._block is None:
            return
        block, self._block = self._block, None
        self._observing.close()
        self._figures.add(block.report())

    def reset_profile(self) -> None:
        """Forget the figures up to now."""
        observing = self._block is not None
        self.stop_profile()
        self._figures = self._figures.anew()
        if observing:
            self._observe()

    def end_profile(self) -> None:
        """Stop observing and forget the figures."""
        self.stop_profile()
        self.started = False
        self._figures = self._figures.anew()

    def _observe(self) -> None:
        block = roofprof.RooflineProfiler(self.model, counters="off", ceilings=roofprof.Ceilings())
        with contextlib.ExitStack() as stack:
            stack.enter_context(unfused())
            stack.enter_context(eager())
            stack.enter_context(block)
            stack.enter_context(self._figures.clocks.running())
            self._observing = stack.pop_all()
        self._block = block

    def _profile_call(
        self,
        call: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        ignored: Collection[type[nn.Module]] | None,
    ) -> None:
        """Begin, call and stop. A call of the model itself is counted as it was written, also a compiled one."""
        if call is not self.model:
            self.start_profile(ignored)
            call(*args, **kwargs)
            self.stop_profile()
            return
        self._figures = Figures(self.model, ignored)
        self.started = True
        with unfused(), self._figures.clocks.running():
            report = roofprof.count(self.model, *args, **kwargs)
        self._figures.add(report)

    def _known(self) -> Figures:
        """Return the figures up to now; the observation goes on."""
        if not self.started:
            raise RuntimeError(_NOT_STARTED)
        if self._block is not None:
            self.stop_profile()
            self._observe()
        return self._figures

    # ---- figures

    def get_total_flops(self, as_string: bool = False) -> Any:
        """Return the forward's flops in DeepSpeed's convention, an int; as a string "3.64 G"."""
        figures = self._known()
        if figures.backward_ran:
            warn_once("deepspeed.FlopsProfiler.get_total_flops", _FORWARD_ALONE)
        return _as(number_to_string, figures.flops(self.model), as_string)

    def get_total_macs(self, as_string: bool = False) -> Any:
        """Return the forward's multiply-accumulates, an int; as a string "1.81 GMACs"."""
        figures = self._known()
        if figures.backward_ran:
            warn_once("deepspeed.FlopsProfiler.get_total_macs", _FORWARD_ALONE)
        return _as(macs_to_string, figures.macs(self.model), as_string)

    def get_total_duration(self, as_string: bool = False) -> Any:
        """Return the seconds of the model's forward calls, the device waited for; as a string "12.3 ms"."""
        return _as(duration_to_string, self._known().seconds(self.model), as_string)

    def get_total_params(self, as_string: bool = False) -> Any:
        """Return the parameters on this rank, trained or not, an int; as a string "11.69 M"."""
        return _as(params_to_string, self._known().params(self.model), as_string)

    def is_expert_tensor_parallelism_enabled(self) -> bool:
        """Return True when one of the model's MoE layers has expert tensor parallelism enabled."""
        return expert_tensor_parallelism_enabled(self.model)

    # ---- printed

    def print_model_profile(
        self,
        profile_step: int = 1,
        module_depth: int = -1,
        top_modules: int = 1,
        detailed: bool = True,
        output_file: str | None = None,
    ) -> None:
        """Print the summary, the largest modules, and in detail the model with each module's figures.

        output_file: a path to write to in place of stdout; its folders are made. Nothing is printed before
        :meth:`start_profile` and after :meth:`end_profile`.
        """
        if not self.started:
            return
        figures = self._known()
        self.flops = figures.flops(self.model)
        self.macs = figures.macs(self.model)
        self.params = figures.params(self.model)
        aggregated = aggregated_text(self.model, figures, module_depth, top_modules)
        text = profile_text(
            self.model,
            figures,
            self.ds_engine,
            self.recompute_fwd_factor,
            profile_step,
            aggregated,
            detailed=detailed,
        )
        if not output_file:
            sys.stdout.write(text + "\n")
            return
        Path(output_file).parent.mkdir(parents=True, exist_ok=True)
        write_whole(output_file, f"{text}\n".encode())

    def print_model_aggregated_profile(self, module_depth: int = -1, top_modules: int = 1) -> None:
        """Print the classes of modules with the most parameters, MACs and latency at each depth.

        module_depth: how many depths; -1: all but the innermost. top_modules: how many classes at each.
        """
        text = aggregated_text(self.model, self._known(), module_depth, top_modules) if self.started else _NOT_STARTED
        sys.stdout.write(text + "\n")


def get_model_profile(  # noqa: PLR0913, PLR0917 (the original's parameters)
    model: nn.Module,
    input_shape: tuple[int, ...] | None = None,
    args: Any = (),
    kwargs: Mapping[str, Any] | None = None,
    print_profile: bool = True,
    detailed: bool = True,
    module_depth: int = -1,
    top_modules: int = 1,
    warm_up: int = 1,
    as_string: bool = True,
    output_file: str | None = None,
    ignore_modules: Collection[type[nn.Module]] | None = None,
    mode: str = "forward",
) -> Any:
    """Return (flops, MACs, params) of one call in eval mode: strings ("3.64 G", "1.81 GMACs", "11.69 M"), or ints.

    input_shape: the shape of one tensor, in place of args and kwargs; args may also be a tensor or a dict alone.
    mode: "forward" calls the model, "generate" its ``generate``. warm_up: calls before the one that is profiled, whose
        changes of the model are undone.
    ignore_modules: as ``ignore_list`` of :meth:`FlopsProfiler.start_profile`; the rest is
        :meth:`FlopsProfiler.print_model_profile`'s. Each module's own mode comes back; the model's exception comes
        through.
    """
    require_module(model)
    positional = input_of_shape(model, input_shape) if input_shape is not None else as_arguments(args)
    named = keywords(kwargs)
    if not positional and not named:
        raise ValueError("nothing to call the model with: give input_shape, args or kwargs")
    call = call_of(model, mode)
    profiler = FlopsProfiler(model)
    with evaluating(model):
        with undone(model, positional, named) if warm_up > 0 else contextlib.nullcontext():
            for _ in range(warm_up):
                call(*positional, **named)
        try:
            profiler._profile_call(call, positional, named, ignore_modules)
            totals = profiler.get_total_flops(), profiler.get_total_macs(), profiler.get_total_params()
            if print_profile:
                profiler.print_model_profile(warm_up, module_depth, top_modules, detailed, output_file)
        finally:
            profiler.end_profile()
    if not as_string:
        return totals
    return number_to_string(totals[0]), macs_to_string(totals[1]), params_to_string(totals[2])


def _as(to_string: Callable[[Any], str], value: float, as_string: bool) -> Any:
    return to_string(value) if as_string else value
