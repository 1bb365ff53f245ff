"""Builds roofprof by driving its CMake build, the only description of it; pyproject.toml holds what is static."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import os
import re
import shlex
import shutil
import site
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import setuptools
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
PACKAGE = ROOT / "python" / "roofprof"

# Without build isolation nothing else checks this (Python's venv brings 65), and the error would speak of licences.
if int(setuptools.__version__.split(".")[0]) < 77:
    raise SystemExit(f"roofprof: setuptools {setuptools.__version__} is too old; pip install 'setuptools>=77'")


def torch_version() -> str | None:
    """Of the torch that a build here would be for."""
    try:
        return importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return None


def torch_minor() -> str | None:
    """One build serves one torch minor: libtorch's C++ interface changes between them. An sdist serves all of them."""
    version = None if "sdist" in sys.argv else torch_version()
    return version and ".".join(version.split(".")[:2])


def project_version() -> str:
    """The version that C++ programs see; with ROOFPROF_LABEL_TORCH=1 a wheel's says the torch, as 0.1.0+torch2.15."""
    header = (ROOT / "csrc" / "include" / "roofprof" / "version.h").read_text()
    version = ".".join(re.findall(r"^#define ROOFPROF_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)$", header, re.MULTILINE))
    labelled = torch_minor() and os.environ.get("ROOFPROF_LABEL_TORCH", "") not in {"", "0"}
    return f"{version}+torch{torch_minor()}" if labelled else version


def torch_requirement() -> str:
    """The minor that is built against; where nothing is built, all that can be."""
    if torch_minor():
        return f"torch=={torch_minor()}.*"
    return re.search(r'"(torch[<>=][^"]+)"', (ROOT / "pyproject.toml").read_text())[1]


def tool(name: str, folder: str) -> str:
    """The program that pip brought as a build requirement, else the one on the PATH."""
    if importlib.util.find_spec(name):
        found = shutil.which(name, path=getattr(importlib.import_module(name), folder, None))
        if found:
            return found
    found = shutil.which(name)
    if not found:
        raise SystemExit(f"roofprof: {name} is needed to build; `pip install {name}` or install it from your system")
    return found


def torch_is_throwaway() -> bool:
    """Whether torch lives in pip's isolated build environment, gone (and with it every cached path) after the build."""
    spec = importlib.util.find_spec("torch")
    folders = [*site.getsitepackages(), site.getusersitepackages()]
    return not any(Path(spec.origin).is_relative_to(folder) for folder in folders)


def configured_for_this_python(folder: Path) -> bool:
    """Whether the folder is of use: CMake keeps the first Python's headers, whatever Python it is told later."""
    cache = folder / "CMakeCache.txt"
    found = re.search(r"^Python_EXECUTABLE:\w+=(.+)$", cache.read_text(), re.MULTILINE) if cache.exists() else None
    if not found:
        return False
    before, now = Path(found[1]), Path(sys.executable)  # .venv/bin/python and .venv/bin/python3 are one
    return before.parent == now.parent and before.resolve() == now.resolve()


class BuildWithCMake(build_ext):
    """Configures, builds and installs into the package's folder: a wheel's, or python/roofprof when editable."""

    user_options: ClassVar = [
        *build_ext.user_options,
        ("configure-only", None, "stop after writing compile_commands.json"),
    ]
    boolean_options: ClassVar = [*build_ext.boolean_options, "configure-only"]

    def initialize_options(self) -> None:
        super().initialize_options()
        self.configure_only = False

    def run(self) -> None:
        if not torch_version():
            raise SystemExit(f"roofprof: {sys.executable} has no torch to build against; install it first")
        # A folder that stays makes the next build one of seconds; a throw-away torch has nothing to come back to.
        throwaway = torch_is_throwaway()
        folder = Path(self.build_temp if throwaway else os.environ.get("ROOFPROF_BUILD_DIR", ROOT / "build" / "cmake"))
        new = throwaway or not configured_for_this_python(folder)
        cmake = tool("cmake", "CMAKE_BIN_DIR")

        configure = [cmake, "-S", ROOT, "-B", folder, f"-DPython_EXECUTABLE={sys.executable}"]
        if new:
            ninja = tool("ninja", "BIN_DIR")
            configure += ["--fresh", "-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}"]
            configure += ["-DROOFPROF_TESTS=OFF", "-DCMAKE_INSTALL_MESSAGE=LAZY"]
        self.step("configuring", *configure, *shlex.split(os.environ.get("CMAKE_ARGS", "")))
        if self.configure_only:
            return

        # By name: a developer's folder may have the tests switched on, and a wheel has no use for them.
        jobs = os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL") or os.cpu_count()
        self.step("building", cmake, "--build", folder, "--parallel", jobs, "--target", "roofprof_package")

        package = PACKAGE if self.inplace or self.editable_mode else Path(self.build_lib) / "roofprof"
        self.step("installing", cmake, "--install", folder, "--prefix", package.resolve())
        if importlib.util.find_spec("pybind11_stubgen"):
            self.step("writing type stubs", sys.executable, ROOT / "cmake" / "write_stubs.py", package)
        else:
            print("roofprof: no type stubs are written without pybind11-stubgen", flush=True)

    @staticmethod
    def step(what: str, *command: object) -> None:
        print(f"roofprof: {what}", flush=True)
        if subprocess.run([str(part) for part in command], check=False).returncode:
            raise SystemExit(f"roofprof: {what} failed; the reason is above")


setup(
    version=project_version(),
    install_requires=[torch_requirement(), "tqdm>=4.60,<5", "tomli>=2,<3; python_version < '3.11'"],
    ext_modules=[Extension("roofprof._C", sources=[]), Extension("roofprof._report", sources=[])],
    cmdclass={"build_ext": BuildWithCMake},
)
