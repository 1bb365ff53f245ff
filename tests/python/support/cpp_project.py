"""roofprof as C++ programs meet it: installed into some folder, found by CMake on a machine without a CUDA toolkit."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import roofprof

ROOT = Path(__file__).resolve().parents[3]
# What setup.py and `make test` build in.
BUILD = Path(os.environ.get("ROOFPROF_BUILD_DIR", ROOT / "build" / "cmake"))
WITHOUT_TORCH_CONFIG = [f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in ("Torch", "CUDA", "CUDAToolkit")]


def tool(name: str) -> str:
    """pip's, as the Makefile takes it, else the system's."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    found = shutil.which(name, path=path)
    assert found, f"{name} is not installed"
    return found


def environment() -> dict[str, str]:
    """This one's, with no CUDA toolkit in sight and no help for the loader."""
    hidden = {"LD_LIBRARY_PATH", "LD_PRELOAD", "LIBRARY_PATH", "CPATH", "CUDA_PATH", "CMAKE_PREFIX_PATH"}
    variables = {name: value for name, value in os.environ.items() if name not in hidden}
    folders = [folder for folder in variables["PATH"].split(os.pathsep) if not (Path(folder) / "nvcc").exists()]
    return {**variables, "PATH": os.pathsep.join(folders), "CUDA_HOME": "/nonexistent", "CUDACXX": "/nonexistent/nvcc"}


def run(*command: object, check: bool = True) -> subprocess.CompletedProcess[str]:
    """The command in that environment; with `check`, one that fails shows what it said."""
    words = [str(word) for word in command]
    done = subprocess.run(words, env=environment(), capture_output=True, text=True, check=False)
    assert not check or done.returncode == 0, f"{' '.join(words)}\n{done.stdout}\n{done.stderr}"
    return done


def install(prefix: Path) -> None:
    """`cmake --install`; without the build folder, the package's own files, which are laid out alike."""
    if (BUILD / "cmake_install.cmake").is_file():
        run(tool("cmake"), "--install", BUILD, "--prefix", prefix)
        return
    for folder in ("include", "lib", "share"):
        shutil.copytree(Path(roofprof.__file__).parent / folder, prefix / folder)


def configure(
    source: Path, folder: Path, prefix: Path, *options: str, check: bool = True
) -> subprocess.CompletedProcess[str]:
    """Configures a project that finds roofprof in `prefix`, and never torch's own CMake config."""
    generator = ["-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={tool('ninja')}"]
    found = [f"-DCMAKE_PREFIX_PATH={prefix}", *WITHOUT_TORCH_CONFIG]
    return run(tool("cmake"), "-S", source, "-B", folder, *generator, *found, *options, check=check)


def build(folder: Path, *targets: str) -> None:
    run(tool("cmake"), "--build", folder, *(["--target", *targets] if targets else []))
