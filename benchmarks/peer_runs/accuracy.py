"""The table of models and tools: the original's figures, roofprof's, and the reasons for differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from peer_runs import isolated, reasons, recorded, subjects
from peer_runs.judging import Verdict, judge
from peer_runs.markdown import refused, table
from peer_runs.tools import COUNT, Tool

NOT_INSTALLED = "not installed"


def facts_of(model_name: str) -> dict[str, Any]:
    """Return the facts in a plain record of the call; run in a new process."""
    torch.set_num_threads(1)
    return reasons.facts(recorded.record(*subjects.build(model_name)))


def figures_of(tool: Tool, variant: str, model_name: str) -> dict[str, int]:
    """Return the tool's figures of the model, or those that a failing tool left on it; run in a new process."""
    torch.set_num_threads(1)
    model, args, kwargs = subjects.build(model_name)
    with torch.no_grad():
        try:
            return tool.ask(variant, model, args, kwargs)
        except Exception as error:
            left = tool.rescue(model, isolated.first_line(error)) if variant == "original" and tool.rescue else {}
            if not left:
                raise
            return left


@dataclass
class Comparison:
    """One tool on one model. error: why the original or ours has no figures."""

    tool: str
    model: str
    original: dict[str, int]
    ours: dict[str, int]
    original_error: str = ""
    ours_error: str = ""
    verdicts: dict[str, Verdict] = field(default_factory=dict)

    @property
    def faults(self) -> list[str]:
        """Return the differences without an explanation."""
        return [f"{self.tool}, {self.model}: {one.words}" for one in self.verdicts.values() if one.is_fault]

    def words(self) -> str:
        """Return the sentence below the table."""
        differences = [refused(self.original_error)] if self.original_error not in {"", NOT_INSTALLED} else []
        differences += [NOT_INSTALLED] if self.original_error == NOT_INSTALLED else []
        differences += dict.fromkeys(one.words for one in self.verdicts.values() if one.words != "equal")
        return "; ".join(differences) or "equal"


def compare(tool: Tool, model_name: str, facts: dict[str, Any], limits: isolated.Limits) -> Comparison:
    """Both variants, each in a process, and the verdict on every figure."""
    original = isolated.Outcome(error=NOT_INSTALLED)
    if tool.version:
        original = isolated.run(figures_of, tool, "original", model_name, limits=limits)
    ours = isolated.run(figures_of, tool, "ours", model_name, limits=limits)
    result = Comparison(tool.name, model_name, original.value or {}, ours.value or {}, original.error, ours.error)
    for figure in tool.figures:
        if original.error == NOT_INSTALLED and ours.succeeded and figure != "params":
            result.verdicts[figure] = Verdict("equal")  # nothing to hold it against: closed forms are of small models
            continue
        result.verdicts[figure] = judge(tool.name, figure, result.original.get(figure), result.ours.get(figure), facts)
    return result


@dataclass
class Truth:
    """Compares roofprof's count with published figures and with the plain record."""

    model: str
    macs: int | None
    params: int | None
    recorded: int
    source: str
    published: str
    is_right: bool


def check_count(model_name: str, facts: dict[str, Any], limits: isolated.Limits) -> Truth:
    """`roofprof.count` against an independent truth."""
    truth = subjects.truth(model_name)
    figures = isolated.run(figures_of, COUNT, "ours", model_name, limits=limits).value or {}
    macs, params = figures.get("MACs"), figures.get("params")
    right = macs == facts["macs"] and params == facts["params"] and truth.agrees(macs or 0, params or 0)
    published = f"{truth.gmacs} G" if truth.gmacs else f"{truth.macs:,}"
    return Truth(model_name, macs, params, facts["macs"], truth.source, published, right)


@dataclass
class Accuracy:
    """All of it, as a run found it."""

    comparisons: list[Comparison]
    truths: list[Truth]

    @property
    def faults(self) -> list[str]:
        """Return what makes the run fail."""
        wrong = [
            f"roofprof.count, {one.model}: {one.macs} MACs, {one.published}" for one in self.truths if not one.is_right
        ]
        return [fault for one in self.comparisons for fault in one.faults] + wrong


def run(tools: Sequence[Tool], models: Sequence[str], limits: isolated.Limits, say: Callable[[str], None]) -> Accuracy:
    """Every tool on every model."""
    result = Accuracy([], [])
    for model_name in models:
        found = isolated.run(facts_of, model_name, limits=limits)
        if not found.succeeded:
            raise RuntimeError(f"{model_name} cannot be run here: {found.error}")
        result.truths.append(check_count(model_name, found.value, limits))
        for tool in tools:
            say(f"accuracy: {model_name}, {tool.name}")
            result.comparisons.append(compare(tool, model_name, found.value, limits))
    return result


# ---- as Markdown


def count_table(accuracy: Accuracy) -> list[str]:
    """`roofprof.count` and the truth."""
    rows = [
        [
            one.model,
            _number(one.macs),
            _number(one.params),
            one.published,
            one.source,
            "right" if one.is_right else "WRONG",
        ]
        for one in accuracy.truths
    ]
    return table(["model", "MACs", "parameters", "MACs elsewhere", "where", ""], rows, right=(1, 2, 3))


def overview(accuracy: Accuracy, tools: Sequence[Tool]) -> list[str]:
    """Return the table of models and tools: the original's first figure as a share of roofprof's."""
    rows = []
    for model in dict.fromkeys(one.model for one in accuracy.comparisons):
        of_model = {one.tool: one for one in accuracy.comparisons if one.model == model}
        rows.append([model, *(_share(of_model[tool.name], tool.figures[0]) for tool in tools)])
    return table(
        ["model", *(f"{tool.name}: {tool.figures[0]}" for tool in tools)], rows, right=range(1, len(tools) + 1)
    )


def _share(one: Comparison, figure: str) -> str:
    if one.original_error == NOT_INSTALLED:
        return NOT_INSTALLED
    original, ours = one.original.get(figure), one.ours.get(figure)
    if original is None:
        return "refused"
    if original == ours:
        return "equal"
    return f"{original / ours:.4f}".rstrip("0") if ours else "-"


def tool_table(accuracy: Accuracy, tool: Tool) -> list[str]:
    """One tool: each figure of the original's and ours."""
    header = [
        "model",
        *(word for figure in tool.figures for word in (figure, "ours")),
        "what the original does otherwise",
    ]
    rows = []
    for one in accuracy.comparisons:
        if one.tool == tool.name:
            cells = [cell for figure in tool.figures for cell in _pair(one, figure)]
            rows.append([one.model, *cells, one.words()])
    return table(header, rows, right=range(1, 1 + 2 * len(tool.figures)))


def _pair(one: Comparison, figure: str) -> tuple[str, str]:
    original, ours = one.original.get(figure), one.ours.get(figure)
    return _number(original), "=" if original == ours and ours is not None else _number(ours)


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"
