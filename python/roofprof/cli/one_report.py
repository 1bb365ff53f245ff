"""``roofprof show``, ``html``, ``plot`` and ``trace``: a report's file as a table, a page, a picture or a trace."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roofprof.cli.shared import (
    CommandError,
    Commands,
    add_json,
    add_report,
    add_report_options,
    beside,
    check_dash,
    check_files,
    check_output,
    output,
    read_report,
    say,
    write_json,
)

if TYPE_CHECKING:
    from roofprof.render.views.roofline import RooflineView
    from roofprof.report.report import Report

# ---- show

_SHOW = """\
Prints the table of a report, with other columns, order or depth than when it was made; or its rows as CSV. With --brief
it prints what matters in at most 40 lines of ASCII; with --format md it prints Markdown for a pull request.
"""


def add_show(commands: Commands) -> None:
    """Add the command's options."""
    parser = commands.add_parser("show", help="print a report's JSON file as a table", description=_SHOW)
    parser.set_defaults(command=_show)
    add_report(parser)
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument(
        "--brief", action="store_true", help="total, findings and coverage in at most 40 lines, and no table"
    )
    forms.add_argument(
        "--format",
        choices=("text", "md"),
        default="text",
        help="md: Markdown with tables that GitHub shows",
    )
    parser.add_argument("--budget", type=Path, metavar="FILE", help="with --format md: limits, and which are broken")
    parser.add_argument("--baseline", type=Path, metavar="FILE", help="the report that '<= 1.05 base' is relative to")
    add_report_options(parser)


def _show(arguments: argparse.Namespace) -> int:
    """Read the file, and print it."""
    if (arguments.budget or arguments.baseline) and arguments.format == "text":
        raise CommandError("--budget and --baseline need --format md; 'roofprof check' says it as text")
    check_dash(arguments.report, arguments.baseline)
    check_output(arguments, [arguments.report, arguments.budget, arguments.baseline])
    report = read_report(arguments.report)
    if arguments.brief:
        return output(report, arguments, report.brief())
    if arguments.format == "md":
        return output(report, arguments, _markdown(report, arguments))
    return output(report, arguments)


def _markdown(report: Report, arguments: argparse.Namespace) -> str:
    """Return the report as Markdown, with the verdict on its budget first."""
    verdict = ""
    if arguments.budget:
        from roofprof.budget import Budget

        baseline = read_report(arguments.baseline) if arguments.baseline else None
        outcome = Budget.load(arguments.budget).check(report, baseline)
        verdict = f"### Budget: {'kept' if outcome.kept else 'broken'}\n\n{outcome.document().markdown()}\n"
    columns = arguments.columns or ()
    return verdict + report.markdown(arguments.depth, arguments.sort, columns, by=arguments.by, limit=arguments.limit)


# ---- html

_HTML = """\
One file that opens from disk without a network: the roofline, and the tree of modules, ops and kernels to sort, filter
and fold; the roofs and where they come from; what is not covered.
"""


def add_html(commands: Commands) -> None:
    """Add the command's options."""
    parser = commands.add_parser("html", help="write a report's JSON file as one HTML page", description=_HTML)
    parser.set_defaults(command=_html)
    add_report(parser)
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="the page (default: REPORT with .html)")
    add_json(parser, "what the page shows")


def _html(arguments: argparse.Namespace) -> int:
    """Read the file, and write the page."""
    path: Path = arguments.output or beside(arguments.report, ".html")
    check_files([arguments.report], path, arguments.json)

    report = read_report(arguments.report)
    report.to_html(path)
    say(f"written to {path}")
    if arguments.json:
        from roofprof.render.page import page_content

        write_json(arguments.json, "page", page_content(report._compiled))
    return 0


# ---- plot

_PLOT = """\
A report as a picture, SVG, PNG or PDF by the file's suffix. The roofline has FLOP/s over FLOPs per byte under the roofs
of the machine; "--kind time" has the time that the bytes need over the time that the FLOPs need.
"""


def add_plot(commands: Commands) -> None:
    """Add the command's options."""
    parser = commands.add_parser("plot", help="draw a report's JSON file as a roofline", description=_PLOT)
    parser.set_defaults(command=_plot)
    add_report(parser)
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="the picture's file (default: the report's name with .svg)"
    )
    parser.add_argument(
        "--by", choices=("module", "op", "kernel"), default="module", help="a dot for each module, operator or kernel"
    )
    parser.add_argument("--kind", choices=("roofline", "time"), default="roofline", help="which plot")
    parser.add_argument("--before", type=Path, metavar="REPORT", help="an earlier report: arrows lead from its dots")
    parser.add_argument(
        "--expand", action="store_true", help="a dot for each of several equal siblings, in place of one for all"
    )
    add_json(parser, "the dots and roofs")


def _data_of(view: RooflineView) -> dict[str, Any]:
    """Return the content of a roofline as JSON has it; a dot's row is in the report, at its places."""
    data = dataclasses.asdict(view)
    for dot in data["dots"]:
        del dot["row"]
    return data


def _plot(arguments: argparse.Namespace) -> int:
    """Read the reports, and draw."""
    from roofprof.render.plots.plot import check, views_of

    path = arguments.output or beside(arguments.report, ".svg")
    check_dash(arguments.report, arguments.before)
    check_files([arguments.report, arguments.before], path, arguments.json)
    check(path, arguments.by, arguments.kind)
    report = read_report(arguments.report)
    before = read_report(arguments.before) if arguments.before else None
    try:
        report.plot(path, by=arguments.by, kind=arguments.kind, before=before, expand=arguments.expand)
    except ImportError as error:
        raise CommandError(str(error)) from error
    say(f"written to {path}")
    if arguments.json:
        compiled_before = None if before is None else before._compiled
        views = views_of(report._compiled, arguments.by, compiled_before, expand=arguments.expand)
        drawn, earlier = (_data_of(view) if view else None for view in views)
        write_json(arguments.json, "roofline", {"report": drawn, "before": earlier})
    return 0


# ---- trace

FORMATS = (
    ".json or .json.gz: for Perfetto; .speedscope.json: for speedscope; .folded: time by module as folded stacks, for "
    "flame graphs"
)

_TRACE = f"""\
A report in the format that the file's suffix asks for ({FORMATS}). Folded stacks are made of any report with times; the
others need its events: "roofprof profile --json" keeps up to 10,000 of a call on the CPU, "profile --trace" and
RooflineProfiler(keep_events=True) keep all.
"""


def add_trace(commands: Commands) -> None:
    """Add the command's options."""
    parser = commands.add_parser(
        "trace", help="write a report's JSON file as a trace or folded stacks", description=_TRACE
    )
    parser.set_defaults(command=_trace)
    add_report(parser)
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help=FORMATS)
    add_json(parser, "the time of each module, nested,")


def _trace(arguments: argparse.Namespace) -> int:
    """Read the file, and write the trace."""
    from roofprof.render.traces.export import writer_for

    check_files([arguments.report], arguments.output, arguments.json)
    write = writer_for(arguments.output)
    report = read_report(arguments.report)
    write(report, arguments.output)
    say(f"written to {arguments.output}")
    if arguments.json:
        from roofprof.render.traces.time_tree import nested, time_tree

        write_json(arguments.json, "time_tree", {"unit": "nanoseconds", "modules": nested(time_tree(report._compiled))})
    return 0
