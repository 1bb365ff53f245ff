"""What ``import roofprof`` gives."""

from __future__ import annotations

import torch  # noqa: F401 - its libraries are loaded before the extension

from roofprof._C import Ceilings, Coverage, GroupRow, Note, Row
from roofprof._fields import fields
from roofprof.op_costs import Work, op_cost
from roofprof.profiler import RooflineProfiler, count, profile
from roofprof.report import Report
from roofprof.scopes import scope, work

__all__ = [
    "Ceilings",
    "Coverage",
    "GroupRow",
    "Note",
    "Report",
    "RooflineProfiler",
    "Row",
    "Work",
    "count",
    "fields",
    "op_cost",
    "profile",
    "scope",
    "work",
]
