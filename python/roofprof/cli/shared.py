"""The helpers that the commands share: errors of one sentence, options and width of the output, written files."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from roofprof._report import printable, printable_lines
from roofprof.cli.parser import Parser, near
from roofprof.render.files import read_stream, real, why_not_writable, write_whole

if TYPE_CHECKING:
    from roofprof.report.report import Report

# Nothing here loads torch: options, help and what reads reports have no time for it.

Commands: TypeAlias = "argparse._SubParsersAction[Parser]"


DASH = Path("-")  # in place of a file: the standard input, or output
_STDIN = "standard input"


class CommandError(Exception):
    """An error in one sentence: the fault, its place and the advice. The cause is the exception behind it, if any."""


def rank_of_environment() -> int | None:
    """Return the rank that torchrun, or a launcher like it, gave this process; None where it has none."""
    text, size = os.environ.get("RANK", ""), os.environ.get("WORLD_SIZE", "")
    if not text:
        return None
    ranks = _whole_number(size) if size else None
    rank = _whole_number(text)
    if rank is None or (size and (ranks is None or rank >= ranks)):
        of = f" and WORLD_SIZE is {size[:40]!r}" if size else ""
        raise CommandError(
            f"RANK is {text[:40]!r}{of}: a rank is a whole number from 0 to one less than the number of ranks; set "
            "both as torchrun does, or neither"
        )
    return rank


def _whole_number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def complain(error: BaseException) -> int:
    """Print the error in one line, and return the exit code."""
    say(" ".join(_sentence(error).split()) or type(error).__name__)
    return 2


def _sentence(error: BaseException) -> str:
    # Python's own begin with a number that helps nobody: "[Errno 2] No such file or directory: 'r.json'".
    if isinstance(error, OSError) and error.strerror:
        return f"{os.fsdecode(error.filename)}: {error.strerror}" if error.filename else error.strerror
    return str(error)


def with_article(name: str) -> str:
    """Return the name with its article: "an int", "a str"."""
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


# All that the commands print goes through say and print_text: names of files and of models are in it.


def say(line: str) -> None:
    """Print progress or an error, apart from the result on stdout."""
    print(f"roofprof: {printable(line)}", file=sys.stderr, flush=True)


_NARROWEST = 60  # characters of a line


def width(arguments: argparse.Namespace) -> int:
    """Return the number of characters that a line may have; 0: as many as it takes."""
    if arguments.width == 0:
        return 0
    terminal = shutil.get_terminal_size((120, 0)).columns if sys.stdout.isatty() else 120
    return max(arguments.width or terminal, _NARROWEST)


def check_output(arguments: argparse.Namespace, read: Iterable[str | Path | None], *also: Path | None) -> None:
    """Raise CommandError or ValueError for output options that cannot be met, before there is a report to lose.

    read: the files that the command reads. also: the files that it writes besides --json and --csv.
    """
    check_files(read, arguments.json, arguments.csv, *also)
    from roofprof import _report
    from roofprof.report.report import Report

    table(Report(_report.Report()), arguments)  # names of columns


def check_files(read: Iterable[str | Path | None], *written: Path | None) -> None:
    """Raise CommandError where a file cannot be written, or is read too, or is to be written twice.

    Every command calls this before it reads anything. ``read`` may have other names than files': a card's, a module's.
    """
    kept = {_inode(path) for path in read if path} - {None}
    new = set()
    for path in written:
        if path is None:
            continue
        _check_can_be_written(path)
        inode = None if path == DASH else _inode(path)
        if inode in kept:
            raise CommandError(f"'{path}' is read by this command and would be lost: give the output another name")
        if inode is None and path != DASH and path.exists():  # a pipe or a device, which holds nothing
            continue
        if (inode or real(path)) in new:
            raise CommandError(f"'{path}' is named for two outputs: give each a file of its own")
        new.add(inode or real(path))


def _inode(path: str | Path) -> tuple[int, int] | None:
    """Return the device and number that all names of a file share; None for a pipe, a device or a missing file."""
    try:
        about = os.fstat(sys.stdin.fileno()) if str(path) == str(DASH) else Path(path).stat()
    except (OSError, ValueError):  # a stream of another kind has no number
        return None
    return (about.st_dev, about.st_ino) if stat.S_ISREG(about.st_mode) else None


def files_of(target: str | None) -> list[str]:
    """Return where the file of a target may be: ``file.py:name``, ``package.module:name``, a saved model, a module."""
    if not target:
        return []
    place = target.rpartition(":")[0] or target
    module = place.replace(".", "/")
    return [target, place, f"{module}.py", f"{module}/__init__.py", f"{module}/__main__.py"]


def files_of_environment() -> list[str | None]:
    """Return the files that variables name in place of a measurement."""
    return [os.environ.get(name) for name in ("ROOFPROF_CEILINGS", "ROOFPROF_REPLAY_DEVICE")]


def _check_can_be_written(path: Path) -> None:
    """Raise CommandError where a file cannot be made or replaced."""
    if path == DASH:
        return
    if why := why_not_writable(path):
        raise CommandError(f"cannot write '{path}': {why}")


def check_plot(path: Path | None) -> None:
    """Raise CommandError where --plot names a file that cannot be drawn."""
    if path is not None and path.suffix.lower() not in {".png", ".svg", ".pdf"}:
        raise CommandError(f"cannot draw '{path}': a plot's file ends in .svg, .png or .pdf")
    if path is not None and importlib.util.find_spec("matplotlib") is None:
        raise CommandError("--plot needs matplotlib: run `pip install roofprof[plot]`")


def output(report: Report, arguments: argparse.Namespace, text: str | None = None) -> int:
    """Write the requested files, print the text (None: the table), and return the exit code."""
    code = write_files(report, arguments)
    print_result(table(report, arguments) if text is None else text, arguments)
    return code


def write_files(report: Report, arguments: argparse.Namespace) -> int:
    """Write the requested files. If one cannot be written, say so, keep the report elsewhere and return 2."""
    files: list[tuple[Path | None, Callable[[Path], object]]] = [
        (arguments.json, report.to_json),
        (arguments.csv, lambda path: report.to_csv(path, by=arguments.by)),
    ]
    code = 0
    for path, write in files:
        try:
            write_result(path, write)
        except OSError as error:
            code = complain(CommandError(f"{_sentence(error)}; {_kept_where(report)}"))
    return code


def _kept_where(report: Report) -> str:
    try:
        return f"the report is kept as JSON in {_kept(report)}"
    except OSError as error:
        return f"nor could the report be kept elsewhere: {_sentence(error)}"


def _kept(report: Report) -> str:
    handle, name = tempfile.mkstemp(prefix="roofprof-", suffix=".json")  # readable for its owner alone
    os.close(handle)
    try:
        report.to_json(name)
    except OSError:
        Path(name).unlink()
        raise
    return name


def write_result(path: Path | None, write: Callable[[Path], object]) -> None:
    """Have ``write`` write a file, if there is one to write, and say so; "-" is the standard output."""
    if path is None:
        return
    if path != DASH:
        write(path)
        say(f"written to {path}")
        return
    with tempfile.TemporaryDirectory(prefix="roofprof-") as folder:
        write(Path(folder) / "result")
        content = (Path(folder) / "result").read_bytes()
    if sys.stdout.isatty():  # which would act on what the names in it contain
        print_text(content.decode().rstrip("\n"))
        return
    with _printing():
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()


def write_json(path: Path | None, schema: str, content: dict[str, Any]) -> None:
    """Write the content as JSON, behind the schema's name and version, and say so, as :func:`write_result` does."""
    from roofprof.render.results import json_text, with_schema

    text = json_text(with_schema(f"roofprof.{schema}", content))
    write_result(path, lambda file: write_whole(file, text.encode()))


def print_result(text: str, arguments: argparse.Namespace) -> None:
    """Print the result as text, if the standard output is not for what --json, --csv or --html asks for."""
    if DASH not in (getattr(arguments, option, None) for option in ("json", "csv", "html")):
        print_text(text)


def read_report(path: Path) -> Report:
    """Return the report of a file; "-" is the standard input. Raises OSError or ValueError, which name it."""
    from roofprof.report.report import Report, parsed

    if path != DASH:
        return Report.from_json(path)
    try:
        return parsed(read_stream(sys.stdin.buffer))
    except OSError as error:
        error.filename = _STDIN
        raise
    except ValueError as error:
        raise ValueError(f"{_STDIN}: {error}") from None


def read_stdin(reports: Iterable[Path]) -> list[Report | Path]:
    """Return these files, and in place of the standard input its report. Raises as :func:`read_report` does."""
    return [read_report(path) if path == DASH else path for path in reports]


def beside(report: Path, suffix: str) -> Path:
    """Return the file that is named as a report's, with another suffix."""
    if report == DASH:
        raise CommandError("the report comes from the standard input: name the file to write with -o")
    return report.with_suffix(suffix)


def check_dash(*paths: Path | None) -> None:
    """Raise CommandError where more than one of these is the standard input, which has one report."""
    if paths.count(DASH) > 1:
        raise CommandError("'-' is the standard input, which has one report: name a file for the other")


def table(report: Report, arguments: argparse.Namespace) -> str:
    """Return the report's table by the options. Raises ValueError for an unknown name."""
    columns = [printable(name).strip() for name in arguments.columns.split(",")] if arguments.columns else []
    return report._compiled.table(
        arguments.depth,
        printable(arguments.sort),
        columns,
        arguments.by,
        width(arguments),
        arguments.limit,
        arguments.legend,
        for_shell=True,
        expand=arguments.expand,
    )


def print_text(text: str) -> None:
    """Print the result; characters that the output's encoding lacks as the nearest of ASCII."""
    text = printable_lines(text)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = text.translate(_ASCII).encode("ascii", "replace").decode("ascii")
    with _printing():
        print(text, flush=True)


@contextlib.contextmanager
def _printing() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:  # its reader went away (head)
        discard_stdout()
    except OSError as error:
        discard_stdout()
        raise CommandError(f"cannot write to the standard output: {error.strerror}") from error


def discard_stdout() -> None:
    """Send the rest of the output nowhere, silently: Python would try to write it again at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def open_closed_streams() -> None:
    """Open to nowhere the streams that the caller closed: Python has None there, and a file would get their number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115


_ASCII = str.maketrans({"─": "-", "µ": "u", "…": "..."})


# ---- options

# Tables of other things than groups of ops, and the keys of groups, as Report.group takes them.
_KINDS = ("module", "scope", "kernel", "rank", "collective", "memory")
_KEYS = ("op", "phase", "dtype", "shapes")
TABLES = (*_KINDS, *_KEYS)


def table_kind(text: str) -> str:
    """Return what --by names, if there is such a table."""
    keys = [key.strip() for key in text.split(",")]
    known = TABLES if len(keys) == 1 else (*_KEYS, "module", "scope")
    for key in keys:
        if key not in known:
            raise argparse.ArgumentTypeError(f"'{key}' is not known{near(key, known)}")
    return ",".join(keys)


def whole_number(text: str) -> int:
    """Return an option's value, of 0 or more; a value larger than any sensible count is refused."""
    try:
        value = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is no whole number") from None
    if not 0 <= value < 2**31:
        raise argparse.ArgumentTypeError(f"{text} is {'too large' if value > 0 else 'less than 0'}")
    return value


def add_trust(parser: argparse.ArgumentParser) -> None:
    """Add the option without which no saved model is loaded."""
    parser.add_argument(
        "--trust",
        action="store_true",
        help="load the target's TorchScript or .pt2 file, which runs what is in it with your rights",
    )


def add_target_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that name the target and its inputs; :mod:`roofprof.cli.profiling` loads it."""
    parser.add_argument(
        "target",
        help="package.module:callable or file.py:callable (a module, or what makes one); or, with --trust, a "
        "TorchScript or .pt2 file",
    )
    add_trust(parser)
    parser.add_argument(
        "--args",
        metavar="ARGS",
        help="what the target is called with, as Python literals, such as '\"resnet50\", num_classes=10'",
    )
    inputs = parser.add_mutually_exclusive_group()
    inputs.add_argument(
        "--input",
        action="append",
        metavar="SHAPE",
        help="one positional input, such as 1x3x224x224 or 1x128:int64; repeat the option for further inputs",
    )
    inputs.add_argument(
        "--inputs",
        metavar="FILE.py:CALLABLE",
        help="a callable that returns the inputs: one value, a tuple, (tuple, dict of keywords), or a dict, which is "
        "keywords where they fit the model's parameters, else the one input",
    )
    parser.add_argument(
        "--dtype",
        help="dtype of the model's parameters and of --input's tensors (default: the model's own; float32)",
    )


def add_report(parser: argparse.ArgumentParser) -> None:
    """Add the report that a command reads."""
    parser.add_argument("report", type=Path, help="a file that --json or Report.to_json wrote; - is the standard input")


def add_json(parser: argparse.ArgumentParser, what: str) -> None:
    """Add the option that :func:`write_json` reads."""
    parser.add_argument("--json", type=Path, metavar="FILE", help=f"write {what} as JSON; - prints it, and no text")


def add_report_options(parser: argparse.ArgumentParser, *also_json: str) -> None:
    """Add the options of the shown part of a report, and of the written files. also_json: other names of --json."""
    parser.add_argument(
        "--depth",
        type=whole_number,
        metavar="N",
        help="deepest module shown (0: the model alone; default: as fits 60 rows)",
    )
    parser.add_argument(
        "--sort", default="", metavar="COLUMN", help="largest first by that column (default: the model's order)"
    )
    parser.add_argument("--columns", metavar="A,B,...", help="which columns to show")
    parser.add_argument(
        "--by",
        type=table_kind,
        default="module",
        metavar="KIND",
        help=f"what has a row: {', '.join(_KINDS)}, or a group of ops by {', '.join(_KEYS)} or several of these "
        "('op,phase')",
    )
    parser.add_argument(
        "--limit",
        type=whole_number,
        default=0,
        metavar="N",
        help="largest number of rows shown (default, and 0: 60; of modules with --depth all)",
    )
    parser.add_argument(
        "--expand", action="store_true", help="a row for each of several equal siblings, not one for all"
    )
    parser.add_argument("--no-legend", dest="legend", action="store_false", help="leave out what the columns mean")
    add_width(parser)
    parser.add_argument(
        "--json", *also_json, type=Path, metavar="FILE", help="write the report as JSON; - prints it, and no table"
    )
    parser.add_argument(
        "--csv", type=Path, metavar="FILE", help="write the rows of that table as CSV; - prints it, and no table"
    )


def _width(text: str) -> int:
    value = whole_number(text)
    if value != 0 and value < _NARROWEST:
        raise argparse.ArgumentTypeError(f"must be {_NARROWEST} or more, or 0 for lines of any length, not {value}")
    return value


def add_width(parser: argparse.ArgumentParser) -> None:
    """Add the option that :func:`width` reads."""
    parser.add_argument(
        "--width",
        type=_width,
        metavar="N",
        help="characters, 60 or more; 0: as many as it takes (default: the terminal's, else 120)",
    )
