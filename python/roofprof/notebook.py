"""``%load_ext roofprof``: the magics ``%%roofprof`` and ``%roofprof`` of IPython and Jupyter."""

from __future__ import annotations

import argparse
import ast
import keyword
import re
from typing import TYPE_CHECKING, Any

from roofprof.cli.shared import (
    CommandError,
    add_report_options,
    check_output,
    files_of_environment,
    say,
    table,
    whole_number,
    write_files,
)

try:
    from IPython.core.error import UsageError
    from IPython.core.magic import no_var_expand, output_can_be_silenced
    from IPython.core.magic_arguments import MagicArgumentParser
except ImportError:
    raise ImportError("the magics need IPython: run `pip install 'roofprof[notebook]'`") from None

if TYPE_CHECKING:
    from roofprof.profiling.script.window import Window
    from roofprof.report.report import Report

_DESCRIPTION = """\
Profiles the torch.nn module that does the work in a cell, or in a statement after the options: that with the most time
in calls from outside of all modules. What is profiled lasts from its first call to the end of the cell, so it has the
backward and the optimizer too; a step lasts from one call to the next. The report is shown, and kept in a variable.

    %%roofprof                     the whole cell below it
    %roofprof --by op model(x)     one statement; its value is the line's
"""


def load_ipython_extension(ipython: Any) -> None:
    """Give the shell its magics; ``%load_ext roofprof`` calls this."""
    magic = _Magic(ipython)

    def roofprof(line: str, cell: str | None = None, local_ns: dict[str, Any] | None = None) -> Any:
        __tracebackhide__ = True
        return magic.run(line, cell, local_ns)

    roofprof.__doc__ = magic.parser.format_help()
    roofprof.needs_local_scope = True  # type: ignore[attr-defined] # a line's statement is in the function around it
    ipython.register_magic_function(output_can_be_silenced(no_var_expand(roofprof)), "line_cell", "roofprof")


def unload_ipython_extension(ipython: Any) -> None:
    """Take them away; ``%unload_ext roofprof`` calls this."""
    for kind in ("line", "cell"):
        ipython.magics_manager.magics[kind].pop("roofprof", None)


def _parser() -> argparse.ArgumentParser:
    # IPython writes the usage's first % itself; two stand for one.
    usage = "roofprof [OPTIONS] STATEMENT\n  %%%%roofprof [OPTIONS]"
    parser: argparse.ArgumentParser = MagicArgumentParser("roofprof", description=_DESCRIPTION, usage=usage)
    parser.add_argument("--model", metavar="NAME", help="a variable, a class, or Class[1], its second object")
    parser.add_argument("--skip", type=whole_number, metavar="N", help="calls before those that are profiled")
    parser.add_argument("--steps", type=whole_number, metavar="N", help="how many are profiled (default: all)")
    parser.add_argument(
        "-o", "--output", default="_roofprof", metavar="NAME", help="the report's variable (default: _roofprof)"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="keep the report and show nothing")
    add_report_options(parser)
    return parser


# A word of the options: quotes hold spaces together, as in a shell.
_WORD = re.compile(r"""(?:"[^"]*"|'[^']*'|\S)+""")
_QUOTED = re.compile(r"""(["'])(.*?)\1""")


def _split(parser: argparse.ArgumentParser, line: str) -> tuple[list[str], str]:
    """Return the options, and the statement after them as it was written."""
    rest, options = line.strip(), []
    while rest.startswith("-"):
        action = parser._option_string_actions.get(rest.split(maxsplit=1)[0])
        for _ in range(1 if action is None or action.nargs == 0 else 2):  # the option, and perhaps its value
            if word := _WORD.match(rest):
                options.append(_QUOTED.sub(r"\2", word[0]))
                rest = rest[word.end() :].lstrip()
    return options, rest


class _Magic:
    """The magics of one shell."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._running = False
        self.parser = _parser()

    def run(self, line: str, cell: str | None, local_ns: dict[str, Any] | None) -> Any:
        """Run the cell, or else the line's statement; show and keep the report, and return its last value."""
        __tracebackhide__ = True
        arguments, statement = self._arguments(line)
        if cell is None and not statement:
            raise UsageError("roofprof: a statement is missing, as in %roofprof model(x); a cell has two: %%roofprof")
        if cell is not None and statement:
            raise UsageError(f"roofprof: '{statement}' stands after %%roofprof, whose cell begins in the next line")
        if self._running:
            raise UsageError("roofprof: this cell is profiled already, and profilers do not nest: take one away")
        code = self._compiled(statement if cell is None else cell, 0 if cell is None else 1)
        from roofprof.profiling.script.window import Window

        window = Window(arguments.model, arguments.skip, arguments.steps, whole=True, variables=self._shell.user_ns)
        self._shell.user_ns[arguments.output] = None  # no earlier report is taken for this one's
        self._running = True
        try:
            with window:
                value = self._executed(code, local_ns)
        except BaseException:
            if self._keep(window, arguments) is not None:
                say(f"what ran before the exception is in the variable {arguments.output}")
            raise
        finally:
            self._running = False
        report = self._keep(window, arguments)
        if report is None:
            from roofprof.profiling.script.window import why_nothing

            say(why_nothing(window, arguments.skip))
        else:
            self._show(report, window, arguments)
        return value

    def _arguments(self, line: str) -> tuple[argparse.Namespace, str]:
        options, statement = _split(self.parser, line)
        arguments = self.parser.parse_args(options)
        name = arguments.output
        if not name.isidentifier() or keyword.iskeyword(name):
            raise UsageError(f"roofprof: -o names a variable, and '{name}' cannot be one")
        if arguments.steps == 0:
            raise UsageError("roofprof: --steps must be 1 or more")
        import torch

        from roofprof.profiling.profiler import count

        try:
            check_output(arguments, files_of_environment())
            count(torch.nn.Identity(), torch.zeros(1))  # refused inside of another profiler: the cell would be, too
        except (CommandError, ValueError, OSError, RuntimeError) as error:
            raise UsageError(f"roofprof: {str(error).removeprefix('roofprof: ')}") from None
        return arguments, statement

    # ---- the user's code

    def _compiled(self, source: str, lines_above: int) -> list[Any]:
        """Return the cell's code, and that of its last expression, whose value is the cell's. Raises SyntaxError."""
        shell = self._shell
        text = "\n" * lines_above + shell.transform_cell(source)  # lines are counted as the user sees them
        name = shell.compile.cache(text, shell.displayhook.prompt_count)
        tree = shell.transform_ast(shell.compile.ast_parse(text, filename=name))
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        parts = [shell.compile(tree, name, "exec")]
        if last is not None:
            parts.append(shell.compile(ast.Expression(last.value), name, "eval"))
        return parts

    def _executed(self, code: list[Any], local_ns: dict[str, Any] | None) -> Any:
        __tracebackhide__ = True
        value = None
        for part in code:
            value = eval(part, self._shell.user_ns, local_ns)  # noqa: S307 - as the shell would
        return value

    # ---- the report

    def _keep(self, window: Window, arguments: argparse.Namespace) -> Report | None:
        """Keep the report in its variable and files, and return it; None where nothing was profiled."""
        report = window.report()
        if report is not None:
            self._shell.user_ns[arguments.output] = report
            write_files(report, arguments)
        return report

    def _show(self, report: Report, window: Window, arguments: argparse.Namespace) -> None:
        from roofprof.profiling.script.calls import named
        from roofprof.render.plots.plot import notebook_html

        requested = arguments.skip is not None or arguments.steps is not None
        if window.profiled < window.calls and not requested:
            say(f"profiled {window.profiled} of {window.calls} calls of {report.model}")
        if others := window.others():
            say(f"{named(others)} ran in the cell too, in (outside) where at all: --model chooses another module")
        if arguments.quiet:
            return
        text = table(report, arguments)
        shown = {"text/plain": text}
        if "text/html" in self._shell.display_formatter.active_types:  # no terminal
            shown["text/html"] = notebook_html(report._compiled, text)
        self._shell.display_pub.publish(shown)
