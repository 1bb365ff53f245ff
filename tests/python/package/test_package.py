"""The package as a whole: which torch it was built for, what it says under another, what it offers."""

import ast
import builtins
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
import torch

import roofprof
from roofprof import _C, _build_info, _report


def test_requires_the_torch_that_it_was_built_with():
    minor = ".".join(torch.__version__.split(".")[:2])
    assert minor == _build_info.TORCH_MINOR
    try:
        requirements = metadata.requires("roofprof") or []
    except metadata.PackageNotFoundError:
        pytest.skip("roofprof is not installed, only on the path")
    assert f"torch=={minor}.*" in requirements


def test_import_under_another_torch_says_so_in_a_sentence():
    program = "import torch; torch.__version__ = '2.10.1+cpu'; import roofprof"
    environment = {"PYTHONPATH": str(Path(roofprof.__file__).parents[1])}
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=False)
    assert run.returncode == 1
    last = run.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: roofprof")
    assert _build_info.TORCH_VERSION in last
    assert "2.10.1+cpu" in last


def test_another_torch_is_noticed_before_it_is_loaded(tmp_path):
    (tmp_path / "torch-2.10.1.dist-info").mkdir()
    (tmp_path / "torch-2.10.1.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: torch\nVersion: 2.10.1\n"
    )
    environment = {"PYTHONPATH": f"{tmp_path}:{Path(roofprof.__file__).parents[1]}"}
    program = [sys.executable, "-c", "import roofprof"]
    run = subprocess.run(program, capture_output=True, text=True, env=environment, check=False)
    assert run.returncode == 1
    assert "cannot run under torch 2.10.1: install torch" in run.stderr.strip().splitlines()[-1]


def test_all_public_names_are_there():
    for name in roofprof.__all__:
        assert hasattr(roofprof, name)


def test_cmake_finds_the_package():
    assert (Path(roofprof.cmake_prefix_path) / "roofprof" / "roofprofConfig.cmake").is_file()
    assert (Path(roofprof.__file__).parent / "include" / "roofprof" / "profiler.h").is_file()


def test_the_stubs_name_what_the_extensions_have():
    """All of _report is found in _C too, whose stub says so with a star."""

    def public(thing):
        return {name for name in dir(thing) if not name.startswith("_")}

    assert {name for name in public(_report) if getattr(_C, name) is not getattr(_report, name)} == set()
    for extension, own in ((_report, public(_report)), (_C, public(_C) - public(_report))):
        stub = ast.parse(Path(roofprof.__file__).with_name(f"{extension.__name__.split('.')[-1]}.pyi").read_text())
        classes = {node.name: node for node in stub.body if isinstance(node, ast.ClassDef)}

        def members(node, classes=classes):
            found = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
            found |= {item.target.id for item in node.body if isinstance(item, ast.AnnAssign)}
            return found.union(
                *(
                    members(classes[base.id]) if base.id in classes else public(getattr(builtins, base.id))
                    for base in node.bases
                )
            )

        functions = {node.name for node in stub.body if isinstance(node, ast.FunctionDef)}
        values = {node.target.id for node in stub.body if isinstance(node, ast.AnnAssign)}
        assert own == functions | values | {name for name in classes if not name.startswith("_")}
        for name in classes.keys() & own:
            assert {member for member in members(classes[name]) if not member.startswith("_")} == public(
                getattr(extension, name)
            ), name
