"""roofprof: a per-module roofline profiler for PyTorch.

Which module wastes the machine, and by how much::

    import roofprof

    report = roofprof.profile(model, *args, **kwargs)  # the model's own arguments, whatever they are
    print(report)
"""

from __future__ import annotations

from pathlib import Path

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

from roofprof._C import Ceilings, Coverage, GroupRow, Note, Row  # noqa: E402
from roofprof._fields import fields  # noqa: E402
from roofprof.op_costs import Work, op_cost  # noqa: E402
from roofprof.profiler import RooflineProfiler, count, profile  # noqa: E402
from roofprof.report import Report  # noqa: E402
from roofprof.scopes import scope, work  # noqa: E402

__version__ = _build_info.VERSION

cmake_prefix_path = str(Path(__file__).parent / "share" / "cmake")
"""Where CMake finds this package: ``cmake -DCMAKE_PREFIX_PATH=...``, then ``find_package(roofprof)``."""

__all__ = [
    "Ceilings",
    "Coverage",
    "GroupRow",
    "Note",
    "Report",
    "RooflineProfiler",
    "Row",
    "Work",
    "__version__",
    "cmake_prefix_path",
    "count",
    "fields",
    "op_cost",
    "profile",
    "scope",
    "work",
]
