"""The pytest fixture ``roofprof``: budgets in tests. Loads neither torch nor roofprof before a test asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from roofprof import Report


class Roofprof:
    """The object that the fixture returns."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def profile(self, model: Any, /, *args: Any, **kwargs: Any) -> Report:
        """Return ``roofprof.profile``'s report, with times."""
        from roofprof import profile

        return profile(model, *args, **kwargs)

    def count(self, model: Any, /, *args: Any, **kwargs: Any) -> Report:
        """Return ``roofprof.count``'s report of one call, without times."""
        from roofprof import count

        return count(model, *args, **kwargs)

    def check(
        self,
        model: Any,
        /,
        *args: Any,
        budget: str | Path | Mapping[str, Any],
        baseline: str | Path | Report | None = None,
        **kwargs: Any,
    ) -> Report:
        """Profile the model, and fail the test where that breaks a limit; a report is checked as it is.

        budget, baseline: files, from pytest's root folder on; or a dict such as ``{"total": {"time": "<= 20 ms"}}``,
        and a report. Returns the report. Raises AssertionError that lists the broken limits, BudgetError for what is
        wrong with the budget, TypeError for a model's arguments together with a report.
        """
        __tracebackhide__ = True
        from roofprof import Report
        from roofprof.budget import Budget
        from roofprof.latency.times_calls import refuse_collisions

        named = [name for name, value in (("budget", budget), ("baseline", baseline)) if value is not None]
        refuse_collisions(model, args, dict.fromkeys(named), named, "check()")
        # Budget errors are raised before the model runs.
        limits = Budget.of(budget) if isinstance(budget, Mapping) else Budget.load(self._root / budget)
        before = baseline if isinstance(baseline, Report | None) else Report.from_json(self._root / baseline)
        if isinstance(model, Report) and (args or kwargs):
            raise TypeError("check(report, ...) takes no arguments of a model: the report is of a call that was made")
        report = model if isinstance(model, Report) else self.profile(model, *args, **kwargs)
        outcome = limits.check(report, before)
        if not outcome.kept:
            raise AssertionError(str(outcome))
        return report


@pytest.fixture(name="roofprof")
def _roofprof(request: pytest.FixtureRequest) -> Roofprof:
    """Check budgets in tests: ``roofprof.check(model, x, budget="budget.toml")``."""
    return Roofprof(request.config.rootpath)
