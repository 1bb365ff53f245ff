"""Writes the type stubs of the extension modules in a built package: python write_stubs.py python/roofprof.

pybind11-stubgen reads the signatures that pybind11 makes of the bindings: what a stub lacks is added there.
"""

from __future__ import annotations

import inspect
import sys
import typing
from pathlib import Path

import pybind11_stubgen


def resolve_annotations(extension: object) -> None:
    """Replace annotations that are text, of what Python adds to the classes, by what they mean where they stand."""
    for of in vars(extension).values():
        for added in vars(of).values() if inspect.isclass(of) else ():
            function = getattr(added, "__func__", added)
            if inspect.isfunction(function):
                function.__annotations__ = typing.get_type_hints(function)


def main() -> None:
    """Write them."""
    folder = Path(sys.argv[1]).resolve().parent
    sys.path.insert(0, str(folder))
    import torch  # noqa: F401 (_C needs its libraries)

    import roofprof.roofs.ceilings  # noqa: F401 (gives Ceilings its methods)
    from roofprof import _C, _report

    for extension in (_report, _C):
        resolve_annotations(extension)
        pybind11_stubgen.main([extension.__name__, "--output-dir", str(folder)])


if __name__ == "__main__":
    main()
