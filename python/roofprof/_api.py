"""The names that ``import roofprof`` gives."""

from __future__ import annotations

import torch  # noqa: F401 - its libraries are loaded before the extension

from roofprof._report import (
    BandwidthCurve,
    Ceilings,
    Collective,
    ComputeCeiling,
    Coverage,
    Field,
    Finding,
    FoldedRow,
    GroupRow,
    KernelRow,
    MemoryCeiling,
    MemoryMoment,
    MemoryRow,
    NetworkCeiling,
    Note,
    Rank,
    Row,
    Siblings,
    StepStatistics,
    TokenPhase,
    UncostedOp,
)
from roofprof.errors import BudgetError, Error, NcuError, ReportError, TimingError, TraceError
from roofprof.figures import fields
from roofprof.latency.measured import Latency
from roofprof.latency.sweep import LatencySweep
from roofprof.manual import Explanation, Explanations, explain
from roofprof.predict.ranking import Ranking
from roofprof.predict.what_if import WhatIf
from roofprof.predicted_sweep import PredictedSweep, predict_sweep
from roofprof.profiling.imported import from_ncu, from_trace, trace_handler
from roofprof.profiling.op_costs import Work, op_cost
from roofprof.profiling.packages import load_package, package_metadata
from roofprof.profiling.profiler import RooflineProfiler, count, profile, time
from roofprof.profiling.scopes import scope, work
from roofprof.report.comparison import Comparison, compare
from roofprof.report.ranks.gather import gather
from roofprof.report.ranks.merge import merge
from roofprof.report.report import Report
from roofprof.report.scaling.scaling import Scaling, scaling

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
    "time",
    "trace_handler",
    "work",
]
