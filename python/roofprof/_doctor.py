"""``roofprof doctor``: what measuring on a GPU needs, what of it is here, and what to do about the rest."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, NamedTuple

import torch

from roofprof import _C, _build_info

if TYPE_CHECKING:
    from collections.abc import Iterable


class Finding(NamedTuple):
    """One thing that was looked at; `advice` is empty where nothing needs to be done."""

    what: str
    found: str
    advice: str = ""


def findings() -> list[Finding]:
    """All that was looked at, in this process. Takes a context on the first GPU for as long as it looks."""
    gpu = [Finding(*finding) for finding in _C.doctor()]
    has_gpu = any(finding.what == "cuda:0" for finding in gpu)
    cpu = [] if has_gpu else [Finding("CPU", "profiles of it need nothing more")]
    return [_roofprof(), _torch(has_gpu=has_gpu), *gpu, *_torch_profiler(), *cpu]


def _roofprof() -> Finding:
    return Finding("roofprof", f"{_build_info.VERSION}, built with torch {_build_info.TORCH_VERSION}")


def _torch(*, has_gpu: bool) -> Finding:
    if torch.version.cuda:
        return Finding("torch", f"{torch.__version__}, for CUDA {torch.version.cuda}")
    advice = "install one that was built for CUDA 13 (pip install torch)" if has_gpu else ""
    return Finding("torch", f"{torch.__version__}, built without CUDA", advice)


def _torch_profiler() -> Iterable[Finding]:
    if torch._C._autograd._profiler_enabled():
        yield Finding("torch.profiler", "at work in this process", "end it before roofprof measures on a GPU")


def as_text(found: list[Finding], width: int) -> str:
    """A line for each finding, and below it what to do, wrapped to a width in characters."""
    column = max(len(finding.what) for finding in found) + 2
    lines: list[str] = []
    for what, text, advice in found:
        lines += _wrapped(f"{what:{column}}", text, width)
        lines += _wrapped(f"{'':{column}}-> ", advice, width)
    return "\n".join(lines)


def _wrapped(start: str, text: str, width: int) -> list[str]:
    """No lines for no text; paths and options stay in one piece."""
    return textwrap.wrap(
        text,
        width,
        initial_indent=start,
        subsequent_indent=" " * len(start),
        break_long_words=False,
        break_on_hyphens=False,
    )
