"""A report as one HTML page: sections, then tables and a roofline that scripts lay out from embedded data."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

from roofprof import _report
from roofprof.render.files import write_whole
from roofprof.render.html import page
from roofprof.render.page import sections, tables
from roofprof.render.page.folds import tree_lines
from roofprof.render.page.rooflines import Views, rooflines
from roofprof.render.views.roofline import BY, roofline_view

# The page joins these files, in this order, into one script.
_SCRIPTS = ("dom", "data", "columns", "tree", "grid", "roofline", "main")


def write_page(report: _report.Report, path: str | Path) -> None:
    """Write the file. Raises OSError where it cannot be written."""
    files = resources.files(__package__)
    script = "\n".join(f"// ---- {name}.js\n{files.joinpath(f'{name}.js').read_text('utf-8')}" for name in _SCRIPTS)
    views = _views(report)
    content = page_content(report, views)
    main = sections.main(report, content, why_no_dot=[] if content["rooflines"] else views["module"].about_left_out)
    title = f"{report.model or 'model'} on {report.device}: roofprof"
    write_whole(path, page(title, sections.header(report), main, content, script).encode())


def page_content(report: _report.Report, views: Views | None = None) -> dict[str, Any]:
    """Return what the page's scripts lay out, as plain data."""
    lines = tree_lines(report)
    kinds = {"module": tables.modules(report, lines), "op": tables.ops(report), "kernel": tables.kernels(report)}
    return {"tables": kinds, "rooflines": rooflines(views or _views(report), lines)}


def _views(report: _report.Report) -> Views:
    return {by: roofline_view(report, by) for by in BY}
