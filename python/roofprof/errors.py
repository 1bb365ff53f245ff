"""The exceptions that roofprof raises for input that it cannot use. It passes on a model's exceptions unchanged."""

from __future__ import annotations


class Error(ValueError):
    """The input cannot be used; the message is one sentence. All others derive from this one."""


class ReportError(Error):
    """The input is not a report of this version, or has content that a report cannot have."""


class TraceError(Error):
    """The input is not a trace of torch.profiler, or cannot be read."""


class NcuError(Error):
    """The input is not what Nsight Compute prints, or does not fit the trace."""


class BudgetError(Error):
    """The input is not a budget, or the report cannot be checked against it."""


class TimingError(Error):
    """The call cannot be timed in the way that was asked for."""
