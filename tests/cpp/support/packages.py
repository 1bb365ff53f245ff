"""Write the packages of tests/cpp/run/profiler/package_test.cpp into a folder: `python packages.py FOLDER`."""

import sys
from pathlib import Path

import torch
from torch import nn

try:
    import roofprof
except ImportError:
    sys.exit(77)  # what ctest calls skipped

folder = Path(sys.argv[1])
with torch.no_grad():
    model = nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 8))
    program = torch.export.export(model, (torch.rand(4, 16),))
    for name, metadata in (("plain", {}), ("counted", roofprof.package_metadata(program))):
        torch._inductor.aoti_compile_and_package(
            program, package_path=str(folder / f"{name}.pt2"), inductor_configs={"aot_inductor.metadata": metadata}
        )
