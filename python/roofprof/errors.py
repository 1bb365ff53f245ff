"""The exceptions that roofprof raises about what it was given. What a model raises comes through as it is."""

from __future__ import annotations


class Error(ValueError):
    """What was given cannot be used, in one sentence: the base of all others."""


class ReportError(Error):
    """It is no report of this version, or holds what no report holds."""


class TraceError(Error):
    """It is no trace of torch.profiler, or one that cannot be read."""


class NcuError(Error):
    """It is not what Nsight Compute prints, or does not fit the trace."""


class BudgetError(Error):
    """It is no budget, or one that the report cannot be held against."""


class TimingError(Error):
    """The call cannot be timed so."""
