"""``roofprof ops``: what each operator is known to cost."""

from __future__ import annotations

import argparse
import json
from typing import Any

from roofprof.cli.shared import CommandError, Commands, print_text

_DESCRIPTION = """\
Every operator with a cost line: family, name without overload, formula; where a formula is not plain arithmetic, its
source; the arguments besides tensors that it reads. In-place and out= forms are under the plain name. Operators that
torch tags as pointwise or as a reduction need no line: they cost 1 per element of the output or the input. Costs that
were given with op_cost or OpCosts::add are the family "own".
"""


def add_parser(commands: Commands) -> None:
    """Add the command's options."""
    parser = commands.add_parser("ops", help="list what each operator costs", description=_DESCRIPTION)
    parser.set_defaults(command=run)
    parser.add_argument("name", nargs="?", default="", help="only operators with this in their name")
    parser.add_argument("--family", metavar="NAME", help="only one family, such as matmul")
    parser.add_argument("--json", action="store_true", help="print them as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Print the lines that were chosen."""
    from roofprof import _report

    costs = _report.op_costs()
    families = list(dict.fromkeys(cost["family"] for cost in costs))
    if arguments.family and arguments.family not in families:
        raise CommandError(f"'{arguments.family}' is not a family of operators: take one of {', '.join(families)}")
    chosen = [
        cost
        for cost in costs
        if arguments.name in cost["op"] and (not arguments.family or cost["family"] == arguments.family)
    ]
    if not chosen:
        raise CommandError(f"no operator with a cost line has '{arguments.name}' in its name")
    print_text(json.dumps(chosen, indent=2) if arguments.json else _table_of_costs(chosen))
    return 0


def _table_of_costs(costs: list[dict[str, Any]]) -> str:
    """Return a line for each operator; below it, indented, the formula's source and the arguments that it reads."""
    widths = [max(len(cost[column]) for cost in costs) for column in ("family", "op")]
    lines = []
    for cost in costs:
        lines.append(f"{cost['family']:{widths[0]}}  {cost['op']:{widths[1]}}  {' '.join(cost['formula'].split())}")
        notes = [("reads", cost["scalars"].replace(",", ", ")), ("source", cost["source"])]
        lines += [f"{'':{sum(widths) + 4}}{label}: {text}" for label, text in notes if text]
    return "\n".join(lines)
