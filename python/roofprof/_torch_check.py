"""A check that the extension fits the installed torch, without loading torch, which takes seconds."""

from __future__ import annotations

import sys
from importlib import metadata

from roofprof import _build_info


def _torch_version() -> str | None:
    if "torch" in sys.modules:
        return str(sys.modules["torch"].__version__)
    try:
        return metadata.version("torch")
    except metadata.PackageNotFoundError:  # the import of torch reports that
        return None


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


# The extension uses torch's C++ ABI, which changes between minors: better a sentence now than a crash later.
_version = _torch_version()
if _version is not None and _minor(_version) != _build_info.TORCH_MINOR:
    raise ImportError(
        f"roofprof {_build_info.VERSION} was built with torch {_build_info.TORCH_VERSION} and cannot run under torch "
        f"{_version}: install torch {_build_info.TORCH_MINOR}, or build roofprof again with "
        f"`pip install --no-build-isolation --force-reinstall --no-deps roofprof`"
    )
