"""``roofprof explain`` and ``roofprof docs``: what a name means, and the pages that say it."""

from __future__ import annotations

import argparse
import dataclasses
import json

from roofprof import manual
from roofprof.cli.shared import Commands, print_text

# ---- explain

_EXPLAIN = """\
What a figure, a note, an operator, a rule of findings, a key of files, an option or a word of reports means:
definition, formula, unit, source, and the page that says more. Figures are called as in Python, JSON or the heading of
a table; operators with or without their namespace; options without their dashes.
"""


def add_explain(commands: Commands) -> None:
    """Add the command's options."""
    parser = commands.add_parser(
        "explain", help="say what a figure, note, operator, rule, key, option or word means", description=_EXPLAIN
    )
    parser.set_defaults(command=_explain)
    parser.add_argument(
        "name",
        nargs="+",
        help="a figure, the code of a note, an operator, a rule of findings, a key, an option, a word",
    )
    parser.add_argument(
        "--all", action="store_true", help="all that a name means, such as a figure of a row and a rank"
    )
    parser.add_argument("--json", action="store_true", help="print all that it means as JSON")


def _explain(arguments: argparse.Namespace) -> int:
    """Print what was asked for, in that order, and then refuse the names that are not known."""
    known: list[manual.Explanations] = []
    refused: list[str] = []
    for name in arguments.name:
        try:
            known.append(manual.explain(name))
        except ValueError as error:
            refused.append(str(error))
    if known:
        as_data = [{**dataclasses.asdict(one), "further": dict(one.further)} for found in known for one in found]
        texts = [str(found) if arguments.all else found.first() for found in known]
        print_text(json.dumps(as_data, indent=2) if arguments.json else "\n\n".join(texts))
    if refused:
        raise ValueError("; ".join(refused))
    return 0


# ---- docs

_DOCS = """\
The pages of the documentation as they were installed. A page's name prints the page; with "#" and a heading in small
letters, that section alone. Without a name it lists them.
"""


def add_docs(commands: Commands) -> None:
    """Add the command's options."""
    parser = commands.add_parser("docs", help="print a page of the documentation", description=_DOCS)
    parser.set_defaults(command=_docs)
    parser.add_argument("page", nargs="?", help="such as definitions, or definitions#roofline")
    parser.add_argument("--json", action="store_true", help="print it as JSON")


def _docs(arguments: argparse.Namespace) -> int:
    """Print the page, or the list of pages."""
    if arguments.page:
        text = manual.page(arguments.page)
        print_text(json.dumps({"page": arguments.page, "text": text}, indent=2) if arguments.json else text)
        return 0
    titles = {name: manual.title(name) for name in manual.pages()}
    width = max(map(len, titles))
    print_text(
        json.dumps(titles, indent=2)
        if arguments.json
        else "\n".join(f"{name:{width}}  {title}" for name, title in titles.items())
    )
    return 0
