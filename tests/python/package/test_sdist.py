"""The sdist: what git tracks and no more, for any torch; a wheel is built from it without a network."""

import email
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from cpp_project import ROOT, environment

from roofprof import _build_info

# What building leaves in the package, none of which may get into an sdist.
IN_THE_PACKAGE = "_C.cpython-311-x86_64-linux-gnu.so _report.pyi _build_info.py include/roofprof/report.h"
IN_THE_PACKAGE += " lib/libroofprof.so share/doc/roofprof/index.md __pycache__/report.cpython-311.pyc"
LEFT_BEHIND = [f"python/roofprof/{name}" for name in IN_THE_PACKAGE.split()]
LEFT_BEHIND += ["tests/python/__pycache__/conftest.cpython-311.pyc", "build/cmake/CMakeCache.txt"]
LEFT_BEHIND += ["dist/roofprof-0.0.1.tar.gz"]
NO_TORCH = """
import importlib.metadata, runpy, sys
real = importlib.metadata.version
def version(name):
    if name == "torch":
        raise importlib.metadata.PackageNotFoundError(name)
    return real(name)
importlib.metadata.version = version
sys.argv = ["setup.py", *sys.argv[1:]]
runpy.run_path("setup.py", run_name="__main__")
"""


def tracked():
    """What git tracks, and what it would once it is added."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("this is no checkout")
    listed = ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    return {name for name in names if name and (ROOT / name).is_file()}


def called(tree, *command, **variables):
    env = {**environment(), **variables}
    return subprocess.run(command, cwd=tree, env=env, capture_output=True, text=True, check=False)


def setup(tree, *arguments, **variables):
    return called(tree, sys.executable, *arguments, **variables)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A copy of the checkout in which something was built."""
    tree = tmp_path_factory.mktemp("checkout")
    for name in tracked():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tree / name)
    for name in LEFT_BEHIND:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).touch()
    return tree


@pytest.fixture(scope="module")
def sdist(checkout, tmp_path_factory):
    """The unpacked sdist."""
    folder = tmp_path_factory.mktemp("sdist")
    made = setup(checkout, "setup.py", "-q", "sdist", "--dist-dir", str(folder))
    assert made.returncode == 0, made.stderr
    (archive,) = folder.glob("*.tar.gz")
    assert archive.name == f"roofprof-{_build_info.VERSION}.tar.gz"
    with tarfile.open(archive) as tar:
        tar.extractall(folder)
    return folder / f"roofprof-{_build_info.VERSION}"


def metadata_of(text):
    return email.message_from_string(text)


def torch_requirements(metadata):
    return [line for line in metadata.get_all("Requires-Dist") if re.match("torch[^a-z_]", line)]


def test_an_sdist_is_what_git_tracks(sdist):
    packed = {str(path.relative_to(sdist)) for path in sdist.rglob("*") if path.is_file()}
    added = {name for name in packed if name.startswith("python/roofprof.egg-info/")} | {"PKG-INFO", "setup.cfg"}
    assert packed - added == tracked()


def test_an_sdist_serves_every_torch_whether_there_is_one_or_not(sdist, checkout, tmp_path):
    metadata = metadata_of((sdist / "PKG-INFO").read_text())
    assert set(torch_requirements(metadata)[0].removeprefix("torch").split(",")) == {">=2.11", "<2.16"}
    assert "requires-dist" in [field.lower() for field in metadata.get_all("Dynamic")]
    made = setup(checkout, "-c", NO_TORCH, "-q", "sdist", "--dist-dir", str(tmp_path))
    assert made.returncode == 0, made.stderr
    refused = setup(checkout, "-c", NO_TORCH, "-q", "build_ext")
    assert refused.returncode == 1
    assert refused.stderr.strip().endswith("has no torch to build against; install it first")


@pytest.mark.parametrize("label", ["", "0", "1"])
def test_a_build_is_for_one_torch_and_says_which_where_requested(sdist, tmp_path, label):
    made = setup(sdist, "setup.py", "-q", "egg_info", "--egg-base", str(tmp_path), ROOFPROF_LABEL_TORCH=label)
    assert made.returncode == 0, made.stderr
    metadata = metadata_of((tmp_path / "roofprof.egg-info" / "PKG-INFO").read_text())
    assert torch_requirements(metadata) == [f"torch=={_build_info.TORCH_MINOR}.*"]
    labelled = f"{_build_info.VERSION}+torch{_build_info.TORCH_MINOR}"
    assert metadata["Version"] == (labelled if label == "1" else _build_info.VERSION)


def without_network():
    """What stands before a command that shall reach nothing; alone, pip is told so as well."""
    cut = ["unshare", "--user", "--map-root-user", "--net"]
    if shutil.which("unshare") and not subprocess.run([*cut, "true"], capture_output=True, check=False).returncode:
        return cut
    return []


def test_an_sdist_is_configured_without_a_network(sdist, tmp_path):
    settings = {"ROOFPROF_BUILD_DIR": str(tmp_path), "PIP_NO_INDEX": "1"}
    command = [*without_network(), sys.executable, "setup.py", "-q", "build_ext", "--configure-only"]
    done = called(sdist, *command, **settings)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "build.ninja").is_file()


@pytest.mark.slow
def test_a_wheel_is_built_from_an_sdist_without_a_network(sdist, tmp_path):
    settings = {
        "ROOFPROF_BUILD_DIR": str(tmp_path / "build"),
        "PIP_NO_INDEX": "1",
        "ROOFPROF_LABEL_TORCH": "1",
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), environment()["PATH"]]),
    }
    pip = [sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "-q", "-w", tmp_path, sdist]
    done = called(tmp_path, *without_network(), *pip, **settings)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    version = f"{_build_info.VERSION}+torch{_build_info.TORCH_MINOR}"
    assert wheel.name.startswith(f"roofprof-{version}-cp3{sys.version_info.minor}-")
    with zipfile.ZipFile(wheel) as archive:
        metadata = metadata_of(archive.read(f"roofprof-{version}.dist-info/METADATA").decode())
        assert metadata["Version"] == version
        assert torch_requirements(metadata) == [f"torch=={_build_info.TORCH_MINOR}.*"]
        archive.extractall(tmp_path / "site")
    count = "roofprof.count(torch.nn.Linear(3, 4), torch.rand(2, 3)).total.macs"
    program = f"import roofprof, torch; print(roofprof.__file__, {count})"
    run = called(tmp_path, sys.executable, "-c", program, PYTHONPATH=str(tmp_path / "site"))
    path, macs = run.stdout.split()
    assert Path(path).is_relative_to(tmp_path / "site")
    assert int(macs) == 2 * 3 * 4
