"""DeepSpeed's ``FlopsProfiler`` and ``get_model_profile`` on roofprof's observer: docs/compat.md has the convention."""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from torch import nn

import roofprof
from roofprof.compat import _call, _conventions
from roofprof.compat._figures import ForwardClocks, ModuleFigures
from roofprof.compat._table import Columns, of_modules, shown
from roofprof.render.files import write_whole

__all__ = ["FlopsProfiler", "bytes_to_string", "duration_to_string", "flops_to_string", "get_model_profile"]
__all__ += ["macs_to_string", "number_to_string", "params_to_string"]

_NOT_STARTED = "FlopsProfiler has no figures: call start_profile() before the forward, and ask before end_profile()"
_FORWARD_ALONE = (
    "deepspeed's total flops and MACs are those of the forward alone, though a backward ran as well: "
    "roofprof.RooflineProfiler(model).run_step(step) counts all phases"
)

# ---- numbers as DeepSpeed's profiler writes them, and calflops after it

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


# ---- figures


class Figures:
    """The flops, MACs, parameters and seconds of the forward of a module and all modules below it."""

    def __init__(self, model: nn.Module, ignored: Collection[type[nn.Module]] | None = None) -> None:
        self._flops, self._macs = ModuleFigures(model, ignored), ModuleFigures(model, ignored)
        self.flops, self.macs, self.params = self._flops.of, self._macs.of, self._macs.parameters
        self.clocks = ForwardClocks(model)
        self.seconds = self.clocks.of
        self.backward_ran = False

    def add(self, report: roofprof.Report) -> None:
        """Add the forward of one report."""
        self._flops.add(report, _conventions.deepspeed_flops)
        self._macs.add(report, _conventions.macs)
        self.backward_ran |= "backward" in report.by_phase()


class FlopsProfiler:
    """FLOPs, MACs, parameters and latency of the forward calls between :meth:`start_profile` and :meth:`stop_profile`.

    ds_engine, recompute_fwd_factor: change nothing; what is printed is of this rank and of the forward.

    Where the code between start and stop raises, :meth:`end_profile` belongs into a ``finally``.
    """

    def __init__(self, model: nn.Module, ds_engine: Any = None, recompute_fwd_factor: float = 0.0) -> None:
        _call.require_module(model)
        self.model, self.ds_engine, self.recompute_fwd_factor = model, ds_engine, recompute_fwd_factor
        self.started = False
        self._observing = contextlib.ExitStack()
        self._block: roofprof.RooflineProfiler | None = None  # its block is open
        self._begin(None)

    def start_profile(self, ignore_list: Collection[type[nn.Module]] | None = None) -> None:
        """Begin with empty figures.

        ignore_list: exact types of modules whose own work counts for the module above them.
        """
        self.stop_profile()
        self._begin(ignore_list)
        self.started = True
        self._observe()

    def stop_profile(self) -> None:
        """Stop observing; the figures stay."""
        if self._block is not None:
            profiler, self._block = self._block, None
            self._observing.close()
            report = profiler.report()
            self._figures.add(report)
            _call.log_gaps(report, "deepspeed")

    def reset_profile(self) -> None:
        """Forget the figures up to now."""
        observing = self._block is not None
        self.stop_profile()
        self._begin(self._ignored)
        if observing:
            self._observe()

    def end_profile(self) -> None:
        """Stop observing and forget the figures."""
        self.stop_profile()
        self._begin(self._ignored)
        self.started = False

    def _begin(self, ignored: Collection[type[nn.Module]] | None) -> None:
        self._ignored, self._figures = ignored, Figures(self.model, ignored)

    def _observe(self) -> None:
        profiler = _call.block(self.model)
        with contextlib.ExitStack() as stack:
            stack.enter_context(_call.prepared(self.model, training=None))
            stack.enter_context(_call.eager())
            stack.enter_context(profiler)
            stack.enter_context(self._figures.clocks.running())
            self._observing = stack.pop_all()
        self._block = profiler

    def _known(self) -> Figures:
        """Return the figures up to now; the observation goes on."""
        if not self.started:
            raise RuntimeError(_NOT_STARTED)
        if self._block is not None:
            self.stop_profile()
            self._observe()
        return self._figures

    def _total(self, name: str, to_string: Callable[[Any], str], as_string: bool) -> Any:
        figures = self._known()
        if figures.backward_ran and name in {"flops", "macs"}:
            _call.warn_once(f"deepspeed.FlopsProfiler.get_total_{name}", _FORWARD_ALONE)
        value = getattr(figures, name)(self.model)
        return to_string(value) if as_string else value

    def get_total_flops(self, as_string: bool = False) -> Any:
        """Return the forward's flops in DeepSpeed's convention, an int; as a string "3.64 G"."""
        return self._total("flops", number_to_string, as_string)

    def get_total_macs(self, as_string: bool = False) -> Any:
        """Return the forward's multiply-accumulates, an int; as a string "1.81 GMACs"."""
        return self._total("macs", macs_to_string, as_string)

    def get_total_duration(self, as_string: bool = False) -> Any:
        """Return the seconds of the model's forward calls, the device waited for; as a string "12.3 ms"."""
        return self._total("seconds", duration_to_string, as_string)

    def get_total_params(self, as_string: bool = False) -> Any:
        """Return the parameters on this rank, trained or not, an int; as a string "11.69 M"."""
        return self._total("params", params_to_string, as_string)

    def is_expert_tensor_parallelism_enabled(self) -> bool:
        """Return True when one of the model's MoE layers has expert tensor parallelism enabled."""
        kind: Any = getattr(sys.modules.get("deepspeed.moe.layer"), "MoE", ())
        layers = (module for module in self.model.modules() if isinstance(module, kind))
        return any(bool(getattr(layer, "enable_expert_tensor_parallelism", False)) for layer in layers)

    # ---- printed

    def print_model_profile(
        self,
        profile_step: int = 1,
        module_depth: int = -1,
        top_modules: int = 1,
        detailed: bool = True,
        output_file: str | None = None,
    ) -> None:
        """Print the totals, the largest modules, and where ``detailed`` all of them with their figures.

        output_file: a path to write to in place of stdout; its folders are made. Nothing is printed before
        :meth:`start_profile` and after :meth:`end_profile`.
        """
        if not self.started:
            return
        figures = self._known()
        self.flops, self.macs, self.params = (
            each(self.model) for each in (figures.flops, figures.macs, figures.params)
        )
        facts = {"profile step": profile_step, "fwd flops per GPU": number_to_string(self.flops)}
        columns = _columns(figures)
        text = self._aggregated(columns, module_depth, top_modules)
        text += f"\n{of_modules(self.model, columns, facts, all_of=detailed)}\n"
        if output_file:
            Path(output_file).parent.mkdir(parents=True, exist_ok=True)
            write_whole(output_file, text.encode())
        else:
            sys.stdout.write(text)

    def print_model_aggregated_profile(self, module_depth: int = -1, top_modules: int = 1) -> None:
        """Print the classes of modules with the most parameters, MACs and latency at each depth.

        module_depth: how many depths; -1: all but the innermost. top_modules: how many classes at each.
        """
        known = self._aggregated(_columns(self._known()), module_depth, top_modules) if self.started else _NOT_STARTED
        sys.stdout.write(known + "\n")

    def _aggregated(self, columns: Columns, module_depth: int, top_modules: int) -> str:
        sums: dict[int, dict[str, Counter[str]]] = {}  # by depth, column and class
        for path, module in _call.named_places(self.model):
            own = sums.setdefault(path.count(".") + 1 if path else 0, {name: Counter() for name in columns})
            for name, (figure, _) in columns.items():
                own[name][type(module).__name__] += figure(module)  # type: ignore[assignment]
        lines = []
        for depth, own in list(sums.items())[: -1 if module_depth == -1 else module_depth]:
            most = ([f"{kind} {columns[name][1](n)}" for kind, n in own[name].most_common(top_modules)] for name in own)
            lines.append((0, (str(depth), *map(", ".join, most))))
        return shown(("depth", *columns), lines)


def _columns(figures: Figures) -> Columns:
    return {  # each module's figure is asked for once
        "params": (cache(figures.params), params_to_string),
        "MACs": (cache(figures.macs), macs_to_string),
        "fwd flops": (cache(figures.flops), number_to_string),
        "fwd latency": (cache(figures.seconds), duration_to_string),
    }


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
    warm_up: calls before the one that is profiled, whose changes of the model are undone. Each module's own mode comes
        back; the model's exception comes through.
    """
    _call.require_module(model)
    given = _call.positional(args, lists=True) if input_shape is None else _call.input_of_shape(model, input_shape)
    named = dict(kwargs or {})
    if not given and not named:
        raise ValueError("nothing to call the model with: give input_shape, args or kwargs")
    call, profiler = _call.call_of(model, mode), FlopsProfiler(model)
    if warm_up > 0:
        with _call.prepared(model), _call.undone(model, given, named):
            for _ in range(warm_up):
                call(*given, **named)
    profiler._begin(ignore_modules)
    figures = profiler._figures
    figures.add(_call.counted(model, given, named, figures.clocks.running(), call=call, tool="deepspeed"))
    if print_profile:
        profiler.started = True
        profiler.print_model_profile(warm_up, module_depth, top_modules, detailed, output_file)
    totals = figures.flops(model), figures.macs(model), figures.params(model)
    return (
        (number_to_string(totals[0]), macs_to_string(totals[1]), params_to_string(totals[2])) if as_string else totals
    )
