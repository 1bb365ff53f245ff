"""roofprof: a per-module roofline profiler for PyTorch.

Which module wastes the machine, and by how much::

    import roofprof

    report = roofprof.profile(model, *args, **kwargs)  # the model's own arguments, whatever they are
    print(report)
"""

# ruff: noqa: F403, F405 - the names are those of _api

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from roofprof import _build_info, _torch_check  # noqa: F401 - said at once where torch does not fit

if TYPE_CHECKING:
    from roofprof._api import *

__version__ = _build_info.VERSION

cmake_prefix_path = str(Path(__file__).parent / "share" / "cmake")
"""The folder for CMake to find this package: ``cmake -DCMAKE_PREFIX_PATH=...``, then ``find_package(roofprof)``."""

__all__ = [
    "BandwidthCurve",
    "BudgetError",
    "Ceilings",
    "Collective",
    "Comparison",
    "ComputeCeiling",
    "Coverage",
    "Error",
    "Explanation",
    "Explanations",
    "Field",
    "Finding",
    "FoldedRow",
    "GroupRow",
    "KernelRow",
    "Latency",
    "LatencySweep",
    "MemoryCeiling",
    "MemoryMoment",
    "MemoryRow",
    "NcuError",
    "NetworkCeiling",
    "Note",
    "PredictedSweep",
    "Rank",
    "Ranking",
    "Report",
    "ReportError",
    "RooflineProfiler",
    "Row",
    "Scaling",
    "Siblings",
    "StepStatistics",
    "TimingError",
    "TokenPhase",
    "TraceError",
    "UncostedOp",
    "WhatIf",
    "Work",
    "__version__",
    "cmake_prefix_path",
    "compare",
    "count",
    "explain",
    "fields",
    "from_ncu",
    "from_trace",
    "gather",
    "load_package",
    "merge",
    "op_cost",
    "package_metadata",
    "predict_sweep",
    "profile",
    "scaling",
    "scope",
    "trace_handler",
    "work",
]

_FOR_IPYTHON = {"load_ipython_extension", "unload_ipython_extension"}  # what %load_ext roofprof looks for
_NOT_STARRED = {"time"}  # `from roofprof import *` leaves Python's own module of that name alone
_FOR_USERS = {"budget", "callbacks", "compat", "errors"}  # modules

if not TYPE_CHECKING:  # a module with __getattr__ would have every name for a type checker

    def __getattr__(name: str) -> object:
        """Load the rest, and torch with it, when it is first asked for: the shell answers many commands without."""
        if name in __all__ or name in _NOT_STARRED:
            api = importlib.import_module("roofprof._api")
            globals().update({public: getattr(api, public) for public in api.__all__})
            return globals()[name]
        if name in _FOR_IPYTHON:
            return getattr(importlib.import_module("roofprof.notebook"), name)
        if name == "_C":
            importlib.import_module("torch")  # whose libraries the extension takes
        elif name.startswith("_") or importlib.util.find_spec(f"roofprof.{name}") is None:
            raise AttributeError(f"module 'roofprof' has no attribute '{name}'")
        return importlib.import_module(f"roofprof.{name}")

    def __dir__() -> list[str]:
        own = (name for name in globals() if name.startswith("__"))
        return sorted({*own, *__all__, *_NOT_STARRED, *_FOR_USERS})

    if "torch" in sys.modules:  # nothing is left to save, and an unfit torch is reported at once
        __getattr__("profile")
