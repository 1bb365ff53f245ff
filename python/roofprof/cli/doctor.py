"""``roofprof doctor``: what measuring on a GPU needs, what is there, and what to do about the rest."""

from __future__ import annotations

import argparse
import json
import textwrap
from typing import TYPE_CHECKING, NamedTuple

from roofprof import _build_info
from roofprof.cli.shared import Commands, add_debug, add_width, print_text, width

if TYPE_CHECKING:
    from collections.abc import Iterable


_DESCRIPTION = """\
What measuring on a GPU needs, each thing after those that it depends on: what was found and, behind an arrow, what to
do if something is missing. Nothing is measured, and a machine without a GPU is no error.
"""


def add_parser(commands: Commands) -> None:
    """Add the command's options."""
    parser = commands.add_parser(
        "doctor", help="say what measuring on a GPU needs, and what is missing here", description=_DESCRIPTION
    )
    parser.set_defaults(command=run)
    add_width(parser)
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    add_debug(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print what was found."""
    found = findings()
    as_json = [finding._asdict() for finding in found]
    print_text(json.dumps(as_json, indent=2) if arguments.json else as_text(found, width(arguments)))
    return 0


class Finding(NamedTuple):
    """One thing that was looked at; `advice` is empty where nothing needs to be done."""

    what: str
    found: str
    advice: str = ""


def findings() -> list[Finding]:
    """Return all findings, in this process. Holds a context on the first GPU while it looks."""
    from roofprof import _C

    gpu = [Finding(*finding) for finding in _C.doctor()]
    has_gpu = any(finding.what == "cuda:0" for finding in gpu)
    cpu = [] if has_gpu else [Finding("CPU", "profiles of it need nothing more")]
    return [_roofprof(), _torch(has_gpu=has_gpu), *gpu, *_torch_profiler(), *cpu]


def _roofprof() -> Finding:
    return Finding("roofprof", f"{_build_info.VERSION}, built with torch {_build_info.TORCH_VERSION}")


def _torch(*, has_gpu: bool) -> Finding:
    import torch

    if torch.version.cuda:
        return Finding("torch", f"{torch.__version__}, for CUDA {torch.version.cuda}")
    advice = "install one that was built for CUDA 13 (pip install torch)" if has_gpu else ""
    return Finding("torch", f"{torch.__version__}, built without CUDA", advice)


def _torch_profiler() -> Iterable[Finding]:
    import torch

    if torch._C._autograd._profiler_enabled():
        yield Finding("torch.profiler", "at work in this process", "end it before roofprof measures on a GPU")


def as_text(found: list[Finding], columns: int) -> str:
    """Return a line for each finding, and below it what to do, wrapped to so many columns."""
    column = max(len(finding.what) for finding in found) + 2
    lines: list[str] = []
    for what, text, advice in found:
        lines += _wrapped(f"{what:{column}}", text, columns)
        lines += _wrapped(f"{'':{column}}-> ", advice, columns)
    return "\n".join(lines)


def _wrapped(start: str, text: str, columns: int) -> list[str]:
    """No lines for no text; paths and options stay in one piece."""
    return textwrap.wrap(
        text,
        columns,
        initial_indent=start,
        subsequent_indent=" " * len(start),
        break_long_words=False,
        break_on_hyphens=False,
    )
