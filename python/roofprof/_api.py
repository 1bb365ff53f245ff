"""What ``import roofprof`` gives."""

from __future__ import annotations

import torch  # noqa: F401 - its libraries are loaded before the extension

from roofprof._fields import fields
from roofprof._imported import from_trace, trace_handler
from roofprof._latency.measured import Latency
from roofprof._latency.sweep import Sweep
from roofprof._predicted_sweep import predict_sweep
from roofprof._ranks.gather import gather
from roofprof._ranks.merge import merge
from roofprof._report import Ceilings, Coverage, GroupRow, Note, Row
from roofprof._scaling.scaling import Scaling, scaling
from roofprof.comparison import Comparison, compare
from roofprof.op_costs import Work, op_cost
from roofprof.profiler import RooflineProfiler, count, profile, time
from roofprof.report import Report
from roofprof.scopes import scope, work

__all__ = [
    "Ceilings",
    "Comparison",
    "Coverage",
    "GroupRow",
    "Latency",
    "Note",
    "Report",
    "RooflineProfiler",
    "Row",
    "Scaling",
    "Sweep",
    "Work",
    "compare",
    "count",
    "fields",
    "from_trace",
    "gather",
    "merge",
    "op_cost",
    "predict_sweep",
    "profile",
    "scaling",
    "scope",
    "time",
    "trace_handler",
    "work",
]
