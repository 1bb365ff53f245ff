"""The package as a whole: which torch it was built for, what it says under another, what it offers."""

import re
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


def test_another_torch_is_noticed_before_it_is_loaded(tmp_path):
    (tmp_path / "torch-2.10.1.dist-info").mkdir()
    (tmp_path / "torch-2.10.1.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: torch\nVersion: 2.10.1\n"
    )
    here = str(Path(roofprof.__file__).parents[1])
    for path, program, says in (
        (here, "import torch; torch.__version__ = '2.10.1+cpu'; import roofprof", "torch 2.10.1+cpu"),
        (f"{tmp_path}:{here}", "import roofprof", "cannot run under torch 2.10.1: install torch"),
    ):
        command, environment = [sys.executable, "-c", program], {"PYTHONPATH": path}
        run = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        assert run.returncode == 1
        last = run.stderr.strip().splitlines()[-1]
        assert last.startswith("ImportError: roofprof")
        assert _build_info.TORCH_MINOR in last
        assert says in last


def test_all_public_names_are_there():
    for name in roofprof.__all__:
        assert hasattr(roofprof, name)


def test_cmake_finds_the_package():
    assert (Path(roofprof.cmake_prefix_path) / "roofprof" / "roofprofConfig.cmake").is_file()
    assert (Path(roofprof.__file__).parent / "include" / "roofprof" / "profiler.h").is_file()


def test_all_of_report_is_found_in_c():
    """Which has a stub of its own that says so."""
    names = [name for name in dir(_report) if not name.startswith("_")]
    assert [name for name in names if getattr(_C, name) is not getattr(_report, name)] == []


@pytest.mark.parametrize("extension", [_report, _C])
def test_signatures_name_types_of_python(extension):
    """The type stubs are made of them: what is bound later than a signature that names it has its C++ name there."""
    classes = [one for one in vars(extension).values() if isinstance(one, type)]
    members = [getattr(member, "fget", member) for of in (extension, *classes) for member in vars(of).values()]
    texts = [member.__doc__ for member in members if isinstance(member.__doc__, str)]
    signatures = [line for text in texts for line in re.findall(r"^(?:\d+\. )?\w*\(.*\) -> .*$", text, re.MULTILINE)]
    assert len(signatures) > 100
    assert [line for line in signatures if "::" in line] == []
