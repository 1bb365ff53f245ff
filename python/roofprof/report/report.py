"""Reports: what a profile says, printed, written, read back."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roofprof import _report, manual
from roofprof._report import printable
from roofprof.errors import Error, ReportError
from roofprof.figures import KINDS, fields
from roofprof.predict.predicts import Predicts
from roofprof.render.files import read_whole, write_whole
from roofprof.render.plots.plot import notebook_html, plot
from roofprof.render.traces.export import WritesTraces

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

_printed = itertools.count()  # reports so far


def refuse_one_path(reports: Iterable[Report | str | Path]) -> None:
    """Raise TypeError for one path in place of a list: its letters would be taken for files."""
    if isinstance(reports, (str, Path)):
        raise TypeError(f"reports are a list of reports or of files, not one path: [{str(reports)!r}, ...]")


class Report(WritesTraces, Predicts):
    """The per-module roofline table of one profile.

    ``definitions.md`` gives the meaning of every figure. Times are float seconds, bytes and counts integers; a figure
    that was not measured or is not defined is None, never 0.
    """

    def __init__(self, compiled: _report.Report) -> None:
        self._compiled = compiled
        self._explained: bool | None = None  # None: not printed yet
        self._rows: tuple[_report.Row, ...] | None = None

    # ---- the figures

    @property
    def rows(self) -> tuple[_report.Row, ...]:
        """A row for each module in the model's order, ``(outside)`` and ``(optimizer)`` where they did something."""
        if self._rows is None:
            self._rows = tuple(self._compiled.rows)
        return self._rows

    @property
    def parents(self) -> list[int]:
        """The index of each row's parent in :attr:`rows`; -1 for the model and the rows at its level."""
        return self._compiled.parents()

    @property
    def folded_rows(self) -> list[_report.FoldedRow]:
        """The lines of the table's tree: each the mean of the rows that are its ``members``, most of one row."""
        return self._compiled.folded_rows

    @property
    def total(self) -> _report.Row:
        """Everything observed: the model, ``(outside)`` and ``(optimizer)``."""
        return self._compiled.total

    def row(self, path: str) -> _report.Row:
        """Return the row of one module; "" is the model. Raises KeyError, naming the closest paths, for other paths."""
        try:
            return self._compiled.row(path)
        except IndexError as error:
            raise KeyError(str(error)) from None

    @property
    def siblings(self) -> list[_report.Siblings]:
        """Groups of three or more equal modules below one parent, such as a transformer's layers, in the model's order.

        Equal are whole subtrees; times may differ. ``table`` shows each group as one line, the mean of its members.
        """
        return self._compiled.siblings

    @property
    def findings(self) -> list[_report.Finding]:
        """The findings: what wastes time and what to do about it; at most ten, largest gain first (docs/findings.md).

        Empty where no rule clearly holds, and without times or roofs.
        """
        return self._compiled.findings

    def group(self, *keys: str) -> list[_report.GroupRow]:
        """Return sums over ops by any of "phase", "op", "module", "scope", "dtype", "shapes".

        A "scope" is the innermost region that was open, "outer/inner"; "" where none was. Raises ValueError for other
        keys.
        """
        return self._compiled.group(list(keys))

    def by_operator(self) -> dict[str, _report.GroupRow]:
        """Return sums for each operator ("aten::conv2d")."""
        return {group.keys[0]: group for group in self.group("op")}

    def by_module(self) -> dict[str, _report.GroupRow]:
        """Return sums for each module's own ops (children excluded), by path."""
        return {group.keys[0]: group for group in self.group("module")}

    def by_module_and_operator(self) -> dict[tuple[str, str], _report.GroupRow]:
        """Return sums for each operator in each module, children excluded."""
        return {(group.keys[0], group.keys[1]): group for group in self.group("module", "op")}

    def by_phase(self) -> dict[str, _report.GroupRow]:
        """Return sums for forward, backward, recompute and optimizer."""
        return {group.keys[0]: group for group in self.group("phase")}

    @property
    def regions(self) -> list[_report.Row]:
        """A row for each region that :func:`roofprof.scope` opened, outer before inner; empty where none was.

        The figures of all that ran in it; self figures leave the regions inside it out. "(no region)" is last.
        """
        return self._compiled.regions

    def within(self, region: str) -> Report:
        """Return the report of all that ran while a region of that name was open, regions inside it included.

        "inner" is every region of that name, "outer/inner" those directly inside an "outer". Raises KeyError, naming
        the closest, where there is none.
        """
        try:
            return Report(self._compiled.within(region))
        except IndexError as error:
            raise KeyError(str(error)) from None

    @property
    def language_model(self) -> list[_report.TokenPhase]:
        """Prefill and decode, which are recognized by the cache that calls were given; empty where none was."""
        return self._compiled.language_model

    @property
    def mfu(self) -> float | None:
        """Model FLOPs utilization, 0-100: 2 x MACs of forward and backward per second, of the peak (PaLM's MFU)."""
        both = self._compiled.flops_utilization
        return both and both[0]

    @property
    def hfu(self) -> float | None:
        """Hardware FLOPs utilization, 0-100: :attr:`mfu` with the forwards that the backward ran again."""
        both = self._compiled.flops_utilization
        return both and both[1]

    @property
    def kernels(self) -> list[_report.KernelRow]:
        """A row for each kernel, copy or memset of a GPU in one module, op and launch size, longest first.

        On a CPU, a row for each kernel of compiled code, where ``compiled_kernels=True`` asked for them; on a GPU they
        then have the ops and modules of that code. Where there are none, ``why_no_kernels`` says why.
        """
        return self._compiled.kernels

    @property
    def why_no_kernels(self) -> str:
        """The reason why the report lacks kernels, "no kernels: ..."; empty if it has some."""
        return self._compiled.why_no_kernels

    @property
    def memory_at_peak(self) -> list[_report.MemoryRow]:
        """The memory alive at its peak, by category, module and phase, the largest first; empty: not known.

        Rows that are not ``before`` add up to ``total.peak_memory``. ``docs/memory.md`` defines the categories;
        ``table(by="memory")`` says why rows are missing.
        """
        return self._compiled.memory_at_peak

    @property
    def memory_timeline(self) -> list[_report.MemoryMoment]:
        """The most memory during equally many ops, above what was there before; 1,024 moments at most."""
        return self._compiled.memory_timeline

    @property
    def coverage(self) -> _report.Coverage:
        """The parts of the run that the figures leave out."""
        return self._compiled.coverage

    def explain(self, name: str | _report.Note | _report.Finding) -> manual.Explanations:
        """Return what :func:`roofprof.explain` says of a name, and what this report has of it.

        A figure's value in the total, the sentences of a note or rule, an operator's calls and time. Raises ValueError,
        naming the nearest, for a name that nothing has.
        """
        return manual.Explanations(
            dataclasses.replace(
                one, further=(*one.further, *(("here", printable(text)) for text in self._texts_on(one)))
            )
            for one in manual.explain(name)
        )

    def _texts_on(self, about: manual.Explanation) -> list[str]:
        if about.kind == "figure" and about.name in fields.of("row"):
            return [f"{fields.of('row')[about.name].cell(self.total)} in total"] if "row" in about.of else []
        if about.kind == "rule":
            return [finding.text for finding in self.findings if finding.rule == about.name]
        if about.kind == "note":
            return [note.text for note in self.coverage.notes if note.code == about.name]
        group = self.by_operator().get(about.name)
        if about.kind != "operator" or group is None:
            return []
        shown = [fields.of("group")[name] for name in ("calls", "macs", "bytes", "time", "percent_of_roof", "bound")]
        return [", ".join(f"{figure.heading} {figure.cell(group)}" for figure in shown)]

    @property
    def ceilings(self) -> _report.Ceilings:
        """The roofs that the figures are held against; empty for a count."""
        return self._compiled.ceilings

    @property
    def environment(self) -> dict[str, str | int | float]:
        """Versions, device, cores, caches, threads, governor."""
        return self._compiled.environment

    @property
    def model(self) -> str:
        """The model's type."""
        return self._compiled.model

    @property
    def device(self) -> str:
        """The device on which it ran."""
        return self._compiled.device

    @property
    def partial(self) -> bool:
        """True when an exception ended the run or block: the report has only what ran before."""
        return self._compiled.partial

    @property
    def steps(self) -> int | None:
        """The number of steps of a block that ``prof.step()`` marked; None where it marked none.

        Rows and total are those of the whole block: a step's mean is their share, ``total.macs / steps``.
        """
        return self._compiled.steps

    @property
    def step_times(self) -> list[float]:
        """Seconds that each step took by the host's clock, which waits for no device; of the first 10,000.

        From the end of the step before it, or the block's start. Empty where none was marked or nothing was timed.
        """
        return [ns * 1e-9 for ns in self._compiled.step_ns]

    @property
    def step_statistics(self) -> _report.StepStatistics | None:
        """Mean, median, spread ((max - min) / median) and the slowest of :attr:`step_times`; None without them."""
        return self._compiled.step_statistics

    @property
    def run_times(self) -> list[float]:
        """Wall seconds of each timed run under observation."""
        return [ns * 1e-9 for ns in self._compiled.runs_ns]

    @property
    def bare_times(self) -> list[float]:
        """Wall seconds of the same runs without any observer."""
        return [ns * 1e-9 for ns in self._compiled.bare_ns]

    # ---- several ranks

    @property
    def collectives(self) -> list[_report.Collective]:
        """One for each collective in a module, phase, group and size, the longest first; empty: none was called."""
        return self._compiled.collectives

    @property
    def ranks(self) -> list[_report.Rank]:
        """A line for each rank of a merged report (:func:`roofprof.gather`, :func:`roofprof.merge`); else empty."""
        return self._compiled.ranks

    @property
    def missing_ranks(self) -> list[int]:
        """Ranks that were to be merged and whose reports did not come."""
        return self._compiled.missing_ranks

    def report_of(self, rank: int) -> Report:
        """Return the own report of a rank; a merged report keeps those of the slowest and of the median rank.

        Raises IndexError for another rank, naming the two, and ValueError where the report that the file keeps of it
        contradicts itself.
        """
        return Report(self._compiled.report_of_rank(rank))

    # ---- printed

    def table(
        self,
        depth: int | None = None,
        sort: str = "",
        columns: str | Iterable[str] = (),
        by: str = "module",
        width: int = 120,
        limit: int = 0,
        *,
        legend: bool = True,
        expand: bool = False,
    ) -> str:
        """Return the table as text.

        depth: deepest module shown; sort: a column, largest first (default: the model's order); columns: the names of
        those to show, a list or "time, bytes"; by: "module", "scope", "kernel", "rank", "collective", "memory", or keys
        of :meth:`group` in one text, "op, phase"; width in characters; limit: most rows shown, 0 for all; legend:
        whether to say what the columns mean; expand: show each of several equal siblings, in place of one line for all.
        Raises ValueError for an unknown name, listing the known ones, and TypeError for a value that is not a name.
        """
        columns = _checked_options(depth, sort, columns, by, limit)
        return self._compiled.table(depth, sort, columns, by, width, limit, legend, expand=expand)

    def brief(self) -> str:
        """Return what ran, where, the total, the findings, what is not covered and how to see more.

        It has at most 40 lines of plain ASCII, and is the same for the same report.
        """
        return self._compiled.brief()

    def markdown(
        self,
        depth: int | None = None,
        sort: str = "",
        columns: str | Iterable[str] = (),
        by: str = "module",
        limit: int = 0,
    ) -> str:
        """Return heading, findings, rows and coverage as Markdown with tables that GitHub shows.

        The options are those of ``table``; 25 rows are shown where no limit is given.
        """
        columns = _checked_options(depth, sort, columns, by, limit)
        return self._compiled.markdown(depth, sort, columns, by, limit=limit, for_shell=True)

    def __str__(self) -> str:
        """Return the table; with the legend for the first report that is printed in this process, each time it is."""
        if self._explained is None:
            self._explained = next(_printed) == 0
        return self.table(legend=self._explained)

    def __repr__(self) -> str:
        return f"<roofprof.Report of {printable(self.model)} on {printable(self.device)}: {len(self.rows)} rows>"

    # ---- pictures

    def plot(
        self,
        path: str | Path | None = None,
        by: str = "module",
        kind: str = "roofline",
        before: Report | None = None,
        *,
        expand: bool = False,
    ) -> Figure:
        """Draw a picture, as matplotlib's Figure; with a path, write it there, as SVG, PNG or PDF by the suffix.

        by: a dot for each "module" (its own ops, so that no op is in two), "op" or "kernel". kind: "roofline", or
        "time" (docs/outputs.md). before: an earlier report; arrows lead from its dots to this one's. expand: a dot for
        each of several equal siblings, in place of one for all. Raises ValueError for a count, and for what cannot be
        drawn. Needs matplotlib (``pip install roofprof[plot]``).
        """
        if isinstance(before, (str, Path)):
            raise TypeError(f"before is a report, not a file: roofprof.Report.from_json({str(before)!r})")
        earlier = None if before is None else before._compiled
        return plot(self._compiled, path, by, kind, earlier, expand=expand)

    def _repr_html_(self) -> str:
        """Return the HTML for a notebook: the roofline where there is one, and the table. Without scripts."""
        return notebook_html(self._compiled, self.table())

    # ---- written and read

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON's data as Python values."""
        result: dict[str, Any] = json.loads(self._compiled.to_json())
        return result

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the JSON text; with a path, write it there as well, whole or not at all."""
        text = self._compiled.to_json()
        if path is not None:
            write_whole(path, text.encode())
        return text

    def to_csv(self, path: str | Path | None = None, by: str = "module") -> str:
        """Return a line for each row of the table by that, units in the header; see :meth:`table`.

        A text that a spreadsheet would take for a formula has an apostrophe before it.
        With a path it is written there as well, whole or not at all.
        """
        _check_names(by)
        text = self._compiled.to_csv(by)
        if path is not None:
            write_whole(path, text.encode())
        return text

    def to_pandas(self, by: str = "module") -> pandas.DataFrame:
        """Return a DataFrame with the rows and columns of :meth:`to_csv`; a number that is not known is NaN.

        Needs pandas (``pip install roofprof[pandas]``).
        """
        try:
            import pandas
        except ImportError:
            raise ImportError("Report.to_pandas needs pandas: run `pip install pandas`") from None
        _check_names(by)
        kinds = {"module": "row", "scope": "row"}
        figures = fields.of(kinds.get(by, by if by in KINDS else "group")).values()
        numbers = {figure.key for figure in figures if not figure.is_text}
        columns = _report.columns_of_rows(self._compiled, by)
        return pandas.DataFrame(
            {
                # pandas takes a column of only None, or without rows, for numbers only if it is given the dtype.
                name: pandas.Series(column, dtype="float64" if name in numbers and set(column) <= {None} else None)
                for name, column in columns.items()
            }
        )

    def to_html(self, path: str | Path) -> None:
        """Write one HTML file to look at, which needs no network; it is written whole or not at all."""
        from roofprof.render.page import write_page

        write_page(self._compiled, path)

    @staticmethod
    def from_dict(report: dict[str, Any]) -> Report:
        """Return the report in the data of :meth:`to_dict`. Raises ValueError for other data."""
        try:
            return parsed(json.dumps(report))
        except (TypeError, RecursionError) as error:
            raise ReportError(f"not a roofprof report: {error}") from None

    @staticmethod
    def from_json(path: str | Path) -> Report:
        """Return the report in a JSON file, equal to its writer's. Raises OSError or ValueError, naming the file."""
        if isinstance(path, str) and path.lstrip().startswith("{"):
            raise ReportError("Report.from_json reads a file: give its path, not the JSON itself")
        try:
            return parsed(read_whole(path))
        except ValueError as error:
            raise ReportError(f"{path}: {error}") from None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Report) and self._compiled == other._compiled

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_rows": None}

    def __hash__(self) -> int:
        return hash((self.model, self.device, *self._compiled.runs_ns))


def parsed(text: str | bytes) -> Report:
    """Return the report in a JSON text. Raises ValueError for any other text."""
    try:
        return Report(_report.report_from_json(text))
    except RuntimeError as error:
        raise ReportError(str(error)) from None


def _check_names(by: str, sort: str = "") -> None:
    """Raise TypeError for what is not a name."""
    if not (isinstance(by, str) and isinstance(sort, str)):
        raise TypeError(f"by and sort are names such as 'op' and 'time', not by={by!r}, sort={sort!r}")


def _checked_options(depth: int | None, sort: str, columns: str | Iterable[str], by: str, limit: int) -> list[str]:
    """Return the names of the columns. Raises ValueError or TypeError for an option that has a wrong value."""
    columns = [name.strip() for name in columns.split(",")] if isinstance(columns, str) else list(columns)
    if not all(isinstance(number, int) and number >= 0 for number in (depth or 0, limit)):
        raise Error(f"depth and limit must be integers of 0 or more, not depth={depth}, limit={limit}")
    _check_names(by, sort)
    return columns
