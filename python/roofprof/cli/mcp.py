"""``roofprof mcp``: the reports of a folder, for agents."""

from __future__ import annotations

import argparse

from roofprof.cli.shared import CommandError, Commands, print_text

_DESCRIPTION = """\
Serves the reports in a folder to agents, by the Model Context Protocol on the standard input and output: what there is,
rows, kernels, comparisons, predictions, explanations and pages. It reads no file outside of the folder and follows no
links. It runs a model only if --allow-run names it, as `roofprof profile` takes it; its report is a new file there.
"""


def add_parser(commands: Commands) -> None:
    """Add the command's options."""
    parser = commands.add_parser("mcp", help="serve a folder's reports to agents (MCP)", description=_DESCRIPTION)
    parser.set_defaults(command=run)
    parser.add_argument("folder", help="where the reports are, at any depth")
    parser.add_argument(
        "--allow-run",
        action="append",
        default=[],
        metavar="TARGET",
        help="a model that agents may have profiled, with its options: 'my_model.py:build --dtype bfloat16'; "
        "repeat the option for further ones",
    )
    parser.add_argument("--json", action="store_true", help="print the tools as JSON, and serve nothing")


def run(arguments: argparse.Namespace) -> int:
    """Serve until the standard input ends."""
    try:
        import mcp  # noqa: F401 - it may not be installed
    except ModuleNotFoundError as error:
        if error.name != "mcp":
            raise
        raise CommandError("roofprof mcp needs the package mcp: run `pip install 'roofprof[mcp]'`") from None
    from roofprof.agents.folder import Folder
    from roofprof.agents.server import Server
    from roofprof.agents.tools import Tools

    server = Server(Tools(Folder(arguments.folder), arguments.allow_run))
    if arguments.json:
        print_text(server.described())
    else:
        server.run()
    return 0
