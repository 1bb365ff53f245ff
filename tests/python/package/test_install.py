"""The installed package as C++ programs find it: `cmake --install` into any prefix, and the wheel."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import torch
from cpp_project import BUILD, ROOT, build, configure, environment, run, tool

from roofprof import _build_info

pytestmark = pytest.mark.integration  # it compiles programs

PROGRAMS = ROOT / "tests" / "install"
TORCH = Path(torch.__file__).parent
PUBLIC = ROOT / "csrc" / "include" / "roofprof"
HEADERS = {path.relative_to(PUBLIC) for path in PUBLIC.rglob("*.h")}


def loaded(program: Path) -> tuple[list[Path], Path]:
    """The libraries of a run of tests/install/main.cpp in the order of search; the one std::filesystem is from."""
    lines = [line.split(" ", 1) for line in run(program).stdout.splitlines()]
    libraries = [Path(path) for kind, path in lines if kind == "library" and path]
    (filesystem,) = (Path(path) for kind, path in lines if kind == "filesystem")
    return libraries, filesystem


@pytest.fixture(scope="module")
def programs(installed, tmp_path_factory):
    """A debug build: it fails to compile where roofprof defines NDEBUG for a program."""
    folder = tmp_path_factory.mktemp("programs")
    configure(PROGRAMS, folder, installed, "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS=-DDEBUG_BUILD")
    build(folder)
    return folder


@pytest.mark.parametrize("name", ["alone", "torch_first", "by_static", "by_shared"])
def test_a_program_finds_roofprof_before_torch(programs, installed, name):
    libraries, filesystem = loaded(programs / name)
    names = [path.name for path in libraries]
    assert names.index("libroofprof_nn.so") < names.index("libtorch_cpu.so")
    assert {"libroofprof.so", "libroofprof_reports.so", "libtorch.so", "libc10.so"} <= set(names)
    assert filesystem.name.startswith("libstdc++.so")  # torch 2.11's has a broken one
    for library in libraries:
        if library.name.startswith("libroofprof"):
            assert library.parent == installed / "lib"
        elif library.name.startswith("libtorch"):
            assert library.parent == TORCH / "lib"


@pytest.fixture
def flags(installed, monkeypatch):
    if shutil.which("pkg-config") is None:
        pytest.skip("there is no pkg-config")
    monkeypatch.setenv("PKG_CONFIG_PATH", str(installed / "lib" / "pkgconfig"))
    return run("pkg-config", "--cflags", "--libs", "roofprof").stdout.split()


# `make clang` builds the examples, which use the API as well.
@pytest.mark.parametrize("compiler", ["g++", pytest.param("clang++", marks=pytest.mark.slow)])
def test_pkg_config_alone_serves_a_program(flags, tmp_path, compiler):
    """The program uses the API as a user would, torch and fmt included, and checks what it gets."""
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler}")
    # What is thrown is caught, though the program hides its own symbols.
    run(compiler, "-fvisibility=hidden", PROGRAMS / "user.cpp", *flags, "-o", tmp_path / "user")
    printed = run(tmp_path / "user").stdout
    assert printed.startswith(f"roofprof {_build_info.VERSION}\n")
    assert printed.count("roofprof  Net on cpu") == 2
    assert "a block of 5 steps: " in printed
    assert "a step on average: " in printed
    assert "ATTENTION" not in printed  # calls of torch's modules are seen: the libraries' order is right
    assert printed.splitlines()[-1].startswith("no published peaks of 'RTX 9999' are known; there are those of ")
    assert run("pkg-config", "--modversion", "roofprof").stdout.strip() == _build_info.VERSION


def test_fmt_included_before_needs_a_definition_that_the_header_names(flags, tmp_path):
    source = tmp_path / "early.cpp"
    source.write_text(
        "#include <fmt/format.h>\n#include <roofprof/fmt.h>\n"
        'void print(const roofprof::Report& report) { fmt::print("{}", report); }\nint main() {}\n'
    )
    refused = run("g++", source, *flags, "-o", tmp_path / "early", check=False)
    assert "fmt was included before: define FMT_HEADER_ONLY for the whole program" in refused.stderr
    run("g++", "-DFMT_HEADER_ONLY", source, *flags, "-o", tmp_path / "early")
    run("g++", "-DROOFPROF_FMT_LINKED", "-c", source, *flags, "-o", tmp_path / "early.o")


def test_a_plugin_is_exact_where_the_library_is_loaded_first(installed, flags, tmp_path):
    """One that was linked without the intercepting library, into a program that knows nothing of torch."""
    flags = [flag for flag in flags if flag != "-lroofprof_nn"]
    run("g++", "-shared", "-fPIC", PROGRAMS / "plugin.cpp", *flags, "-o", tmp_path / "plugin.so")
    run("g++", "-DMAIN", PROGRAMS / "plugin.cpp", "-ldl", "-o", tmp_path / "program")
    program = [tmp_path / "program", tmp_path / "plugin.so"]
    assert "calls of torch::nn modules are not seen" in run(*program).stdout
    first = [f"LD_LIBRARY_PATH={TORCH / 'lib'}", f"LD_PRELOAD={installed / 'lib' / 'libroofprof_nn.so'}"]
    printed = run("env", *first, *program).stdout
    assert "ATTENTION" not in printed
    assert "~" not in printed


def test_only_programs_load_what_stands_before_torch():
    program = "import torch, roofprof, pathlib; print(pathlib.Path('/proc/self/maps').read_text())"
    maps = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert "/libroofprof.so" in maps
    assert "libroofprof_nn" not in maps


@pytest.mark.parametrize(
    ("header", "shown"),
    [
        ("torch/headeronly/version.h", "found torch 2.10.1 in"),
        ("torch/csrc/api/include/torch/version.h", "found torch 2.10.1 in"),
        ("something/else.h", "found no torch"),
    ],
)
def test_another_torch_is_refused_in_a_sentence(installed, tmp_path, header, shown):
    path = tmp_path / "torch" / "include" / header
    path.parent.mkdir(parents=True)
    path.write_text('#define TORCH_VERSION_MAJOR 2\n#define TORCH_VERSION \\\n  "2.10.1"\n')
    other = f"-DROOFPROF_TORCH_DIR={tmp_path / 'torch'}"
    refused = configure(PROGRAMS, tmp_path / "build", installed, other, check=False)
    message = " ".join(refused.stderr.split())
    assert refused.returncode != 0
    assert f"this roofprof was built with torch {_build_info.TORCH_MINOR} and {shown}" in message
    assert "set ROOFPROF_TORCH_DIR" in message


FINDS = """\
cmake_minimum_required(VERSION 3.25)
project(finds LANGUAGES CXX)
foreach(words IN LISTS WORDS)
  unset(roofprof_DIR CACHE)
  separate_arguments(words)
  find_package(roofprof ${words} QUIET)
  message(STATUS "found ${words}: ${roofprof_FOUND}")
endforeach()
find_package(roofprof REQUIRED)
find_package(roofprof ${THEN})
if(roofprof_FOUND OR NOT TARGET roofprof::roofprof)
  message(SEND_ERROR "a component is there, or roofprof is not")
endif()
"""


def test_find_package_takes_versions_ranges_and_no_components(installed, tmp_path):
    major, minor, patch = _build_info.VERSION.split(".")
    here, following = f"{major}.{minor}", f"{major}.{int(minor) + 1}"
    found = [here, f"{here}.{patch} EXACT", f"{here}...<99", f"0.0.1...{here}.{patch}"]
    refused = [f"{here}.99", following, "99", f"0.0.1...<{here}", f"{following}...99", f"{here} COMPONENTS nonsense"]
    (tmp_path / "CMakeLists.txt").write_text(FINDS)

    def configured(then, words=(), **options):
        listed = f"-DWORDS={';'.join(words)}"
        return configure(tmp_path, tmp_path / "build", installed, listed, f"-DTHEN={then};nonsense", **options)

    quiet = configured("QUIET;COMPONENTS", [*found, *refused])
    assert re.findall(r"found .*: (.*)", quiet.stdout) == ["1"] * len(found) + ["0"] * len(refused)
    assert "component" not in quiet.stderr
    shown = "roofprof has no component 'nonsense', nor any other: write find_package(roofprof) without COMPONENTS"
    assert shown in " ".join(configured("COMPONENTS").stderr.split())
    required = configured("REQUIRED;COMPONENTS", check=False)
    assert required.returncode != 0
    assert shown in " ".join(required.stderr.split())


@pytest.mark.skipif(not (BUILD / "CMakeCache.txt").is_file(), reason="would build everything: there is no build folder")
def test_the_wheel_serves_programs_and_takes_the_torch_beside_it(tmp_path):
    settings = tmp_path / "setup.cfg"
    (tmp_path / "base").mkdir()
    settings.write_text(f"[build]\nbuild_base = {tmp_path}/base\n[egg_info]\negg_base = {tmp_path}/base\n")
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "-q", "-w", tmp_path, ROOT],
        env={**environment(), "DIST_EXTRA_CONFIG": str(settings), "ROOFPROF_BUILD_DIR": str(BUILD)},
        check=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    site = tmp_path / "site-packages"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    package = site / "roofprof"
    headers = package / "include" / "roofprof"
    assert {path.relative_to(headers) for path in headers.rglob("*.h")} == HEADERS
    libraries = {"libroofprof.so", "libroofprof_reports.so", "libroofprof_nn.so"}
    assert {path.name for path in (package / "lib").iterdir()} == libraries | {"pkgconfig"}
    assert [path.name for path in site.rglob("*test*")] == ["pytest_plugin.py"]
    pages = {path.name for path in (ROOT / "docs").glob("*.md")}
    assert {path.name for path in (package / "share" / "doc" / "roofprof").iterdir()} == pages

    (site / "torch").symlink_to(TORCH)
    configure(PROGRAMS, tmp_path / "build", package / "share" / "cmake")  # as roofprof.cmake_prefix_path says it
    build(tmp_path / "build", "alone")
    libraries, _ = loaded(tmp_path / "build" / "alone")
    assert package / "lib" / "libroofprof_nn.so" in libraries
    assert site / "torch" / "lib" / "libtorch_cpu.so" in libraries


def test_the_source_tree_can_be_a_part_of_another_project(tmp_path):
    """Configured only: its libraries, and nothing of Python's or of the tests."""
    (tmp_path / "CMakeLists.txt").write_text(
        f"""cmake_minimum_required(VERSION 3.25)
project(whole LANGUAGES CXX)
add_library(core INTERFACE)
add_subdirectory({ROOT} roofprof)
add_executable(program {PROGRAMS}/main.cpp)
target_link_libraries(program PRIVATE {TORCH}/lib/libtorch_cpu.so roofprof::roofprof)
"""
    )
    configure(tmp_path, tmp_path / "build", tmp_path, f"-DROOFPROF_TORCH_DIR={TORCH}")
    ninja = [tool("ninja"), "-C", tmp_path / "build", "-t"]
    targets = run(*ninja, "targets", "all").stdout
    assert "roofprof/libroofprof_nn.so" in targets
    assert "test_core" not in targets
    assert "csrc/python" not in targets
    commands = run(*ninja, "commands", "program").stdout.splitlines()
    (compiled,) = (command for command in commands if "-o CMakeFiles/program.dir" in command)
    assert "-DNDEBUG" not in compiled
    assert commands[-1].index("libroofprof_nn.so") < commands[-1].index("libtorch_cpu.so")
