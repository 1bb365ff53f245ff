"""``roofprof doctor``: the needs of measuring on a GPU, those that are met, and advice on the rest."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, NamedTuple

from roofprof import _build_info, _report
from roofprof.cli.shared import Commands, add_width, print_text, width

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


def run(arguments: argparse.Namespace) -> int:
    """Print the findings."""
    found = findings()
    as_json = [finding._asdict() for finding in found]
    print_text(
        json.dumps(as_json, indent=2) if arguments.json else document_of(found).text(width(arguments)).rstrip("\n")
    )
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


def document_of(found: Iterable[Finding]) -> _report.Document:
    """Return what is shown: each finding, and the advice below it."""
    document = _report.Document()
    for what, text, advice in found:
        document.add_paragraph(what, text)
        if advice:
            document.add_paragraph("", f"-> {advice}")
    return document
