"""fvcore's two ways to print an analysis, and its count of parameters."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import torch

from roofprof.compat._fvcore_analysis import Analysis

_SCALES = ((1e14, 1e15, "P"), (1e11, 1e12, "T"), (1e8, 1e9, "G"), (1e5, 1e6, "M"), (1e2, 1e3, "K"))

_NOT_AVAILABLE = "N/A: the module was never called as a module; what it did is counted in its parents"

# Columns of one row: a missing one is blank and, unlike "", never merged with a figure.
Cells = dict[str, str]


def parameter_count(model: torch.nn.Module) -> defaultdict[str, int]:
    """Return parameters by the name of each parameter and of each module above it; "" is the model. Ties count once."""
    counts: defaultdict[str, int] = defaultdict(int)
    for name, parameter in model.named_parameters():
        parts = name.split(".")
        for depth in range(len(parts) + 1):
            counts[".".join(parts[:depth])] += parameter.numel()
    return counts


def parameter_count_table(model: torch.nn.Module, max_depth: int = 3) -> str:
    """Return the parameters of modules, and the shapes of parameters, down to ``max_depth`` names."""
    counts = parameter_count(model)
    shapes = _shapes(model)
    rows = [["model", _rounded(counts.pop("", 0))]]

    def add(prefix: str, depth: int) -> None:
        if depth >= max_depth:
            return
        for name in _children(counts, prefix):
            indent = " " * (depth + 1)
            rows.append([indent + name, indent + (shapes.get(name) or _rounded(counts[name]))])
            add(name + ".", depth + 1)

    add("", 0)
    return _pipe_table(["name", "#elements or shape"], rows)


def flop_count_table(
    flops: Analysis, max_depth: int = 3, activations: Analysis | None = None, show_param_shapes: bool = True
) -> str:
    """Return parameters and FLOPs of each module as a table, without empty rows.

    max_depth: deepest module shown; activations: an analysis whose figures make a further column; show_param_shapes:
    whether parameters have rows of their own.
    """
    first = "#parameters" + (" or shape" if show_param_shapes else "")
    columns = _silenced({"#flops": flops} | ({} if activations is None else {"#activations": activations}))
    kept = _without_zeros(
        {first: parameter_count(flops.model)} | {name: one.by_module() for name, one in columns.items()}
    )
    cells = {path: {name: human(value) for name, value in row.items()} for path, row in kept.items()}
    for column, analysis in columns.items():
        for path in analysis.uncalled_modules() & cells.keys():
            cells[path][column] = ""
    for name, shape in _shapes(flops.model).items():
        if show_param_shapes and name in cells:
            cells[name][first] = shape
        else:
            cells.pop(name, None)
    return _pipe_table(["module", first, *columns], _tree_rows(cells, [first, *columns], max_depth))


def flop_count_str(flops: Analysis, activations: Analysis | None = None) -> str:
    """Return the model as ``str(model)`` prints it, with parameters and FLOPs of each module that has any."""
    parameters = parameter_count(flops.model)
    columns = _silenced({"#flops": flops} | ({} if activations is None else {"#acts": activations}))

    def figures(path: str, shown: set[str]) -> str:
        values = {"#params": parameters.get(path, 0)} | {
            name: analysis.by_module().get(path, 0) for name, analysis in columns.items()
        }
        if path and path not in shown and not any(values.values()):
            return ""
        texts = {name: human(value, 2) for name, value in values.items()}
        texts |= {name: "N/A" for name, analysis in columns.items() if path in analysis.uncalled_modules()}
        return ", ".join(f"{name}: {text}" for name, text in texts.items())

    uncalled = set[str]().union(*(analysis.uncalled_modules() for analysis in columns.values()))

    def text_of(module: torch.nn.Module, path: str) -> str:
        extra = [*module.extra_repr().splitlines(), *filter(None, [figures(path, uncalled)])]
        children = [
            f"({name}): " + text_of(child, f"{path}.{name}" if path else name).replace("\n", "\n  ")
            for name, child in module._modules.items()
            if child is not None
        ]
        lines = extra + children
        inside = extra[0] if len(extra) == 1 and not children else "".join(f"\n  {line}" for line in lines)
        name: str = module._get_name()  # type: ignore[no-untyped-call]
        return f"{name}({inside}" + ("\n)" if inside.startswith("\n") else ")")

    text = text_of(flops.model, "")
    return f"{_NOT_AVAILABLE}\n{text}" if "N/A" in text else text


def _silenced(analyses: dict[str, Analysis]) -> dict[str, Analysis]:
    """Switch off the warnings of analyses that are printed: fvcore logs no more of them either."""
    for analysis in analyses.values():
        analysis.unsupported_ops_warnings(False).uncalled_modules_warnings(False).tracer_warnings("none")
    return analyses


def human(value: float, digits: int = 3) -> str:
    """Return a number such as ``11.641M``, with at most ``digits`` decimals; a scale begins at 100 of the one below."""
    for beyond, unit, letter in _SCALES:
        if abs(value) > beyond:
            return f"{value / unit:.{digits}f}".rstrip("0").rstrip(".") + letter
    return str(value)


def _rounded(count: int) -> str:
    for beyond, unit, letter in _SCALES[2:]:
        if count > beyond:
            return f"{count / unit:.1f}{letter}"
    return str(count)


def _shapes(model: torch.nn.Module) -> dict[str, str]:
    return {name: str(tuple(parameter.shape)) for name, parameter in model.named_parameters()}


def _children(names: Iterable[str], prefix: str) -> list[str]:
    level = prefix.count(".")
    return [name for name in names if name and name.count(".") == level and name.startswith(prefix)]


def _without_zeros(columns: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """Return the rows by path, in order of appearance, of the model and of each module with a figure at or below it."""
    rows: dict[str, dict[str, float]] = {}
    for column, values in columns.items():
        for path, value in values.items():
            rows.setdefault(path, {})[column] = value
    kept = {""}
    for path, row in rows.items():
        if any(row.values()):
            parts = path.split(".")
            kept |= {".".join(parts[:depth]) for depth in range(1, len(parts) + 1)}
    return {path: row for path, row in rows.items() if path in kept}


def _tree_rows(cells: dict[str, Cells], columns: Sequence[str], max_depth: int) -> list[list[str]]:
    rows: list[list[str]] = []
    top, figures = _merged("", cells)
    hidden = top + "." if top else ""

    def add(name: str, figures: Cells, depth: int) -> None:
        indent = " " * depth
        rows.append([indent + name, *(indent + figures[column] if column in figures else "" for column in columns)])

    def fill(prefix: str, depth: int) -> None:
        if depth > max_depth:
            return
        for child in _children(cells, prefix):
            path, figures = _merged(child, cells)
            add(path.removeprefix(hidden), figures, depth)
            fill(path + ".", depth + 1)

    add(top or "model", figures, 0)
    fill(hidden, 1)
    return rows


def _merged(path: str, cells: Mapping[str, Cells]) -> tuple[str, Cells]:
    """Return the row that a module shares with only children that say the same, with the last one's path."""
    figures = cells[path]
    while True:
        children = _children(cells, path + "." if path else "")
        if len(children) != 1 or cells[children[0]].keys() != figures.keys():
            return path, figures
        child = cells[children[0]]
        if any(child[column] != text for column, text in figures.items() if text and child[column]):
            return path, figures
        path, figures = children[0], {column: text or child[column] for column, text in figures.items()}


def _pipe_table(header: list[str], rows: list[list[str]]) -> str:
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
    lines = [[cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in [header, *rows]]
    rule = "|" + "|".join(":" + "-" * (width + 1) for width in widths) + "|"
    text = ["| " + " | ".join(line) + " |" for line in lines]
    return "\n".join([text[0], rule, *text[1:]])
