"""The part of a report that is of several ranks: their collectives, and what merged reports have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roofprof import _report

if TYPE_CHECKING:
    from typing_extensions import Self


class OfRanks:
    """The ranks of a merged report, and their communication."""

    _compiled: _report.Report

    @property
    def collectives(self) -> list[_report.Collective]:
        """One for each collective in a module, phase, group and size, the longest first; empty: none was called."""
        return self._compiled.collectives

    @property
    def ranks(self) -> list[_report.Rank]:
        """A line for each rank of a merged report (:func:`roofprof.gather`, :func:`roofprof.merge`); else empty."""
        return self._compiled.ranks

    def report_of(self, rank: int) -> Self:
        """Return the own report of a rank; a merged report keeps those of the slowest and of the median rank.

        Raises IndexError for another rank, naming the two, and ValueError where the report that the file keeps of it
        cannot be read.
        """
        try:
            return type(self)(self._compiled.report_of_rank(rank))  # type: ignore[call-arg]
        except RuntimeError as error:
            raise ValueError(f"cannot read the report of rank {rank} that the merged one keeps: {error}") from None

    @property
    def missing_ranks(self) -> list[int]:
        """Ranks that were to be merged and whose reports did not come."""
        return self._compiled.missing_ranks
