"""AOTInductor packages whose work is known: counts written at their export, or those of the exported program."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from roofprof.models import packages
from roofprof.profiling.profiler import count_program

if TYPE_CHECKING:
    import torch


def package_metadata(program: torch.export.ExportedProgram) -> dict[str, str]:
    """Return what a package needs in its metadata so that profiles of it have the work of the program's modules.

    Give ``torch._inductor.aoti_compile_and_package`` the ``inductor_configs={"aot_inductor.metadata": ...}`` with it.
    The work is that of one call with the program's example inputs. Raises ValueError where the program has
    none, and TypeError where it is not a program.
    """
    import torch

    if not isinstance(program, torch.export.ExportedProgram):
        raise TypeError(f"package_metadata takes what torch.export.export returns, not a {type(program).__name__}")
    return {packages.KEY: packages.counted(program, count_program)}


def load_package(
    path: str | Path, program: torch.export.ExportedProgram | None = None, *, model_name: str = "model"
) -> Any:
    """Return what ``torch._inductor.aoti_load_package(path)`` returns, and remember the program that it came from.

    Then the work of a call is counted for its own inputs. program: None for the one in the package, if there is one.
    Raises ValueError, one sentence, where the file is not a package for a device of this machine.
    """
    return packages.load(Path(path), model_name, program, count_program)
