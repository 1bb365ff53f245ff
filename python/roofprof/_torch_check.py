"""Imported before the extension is: whether it fits the torch that is there."""

from __future__ import annotations

import torch

from roofprof import _build_info


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


# The extension uses torch's C++ ABI, which changes between minors: better a sentence now than a crash later.
if _minor(torch.__version__) != _build_info.TORCH_MINOR:
    raise ImportError(
        f"roofprof {_build_info.VERSION} was built with torch {_build_info.TORCH_VERSION} and cannot run under torch "
        f"{torch.__version__}: install torch {_build_info.TORCH_MINOR}, or build roofprof again with "
        f"`pip install --no-build-isolation --force-reinstall --no-deps roofprof`"
    )
