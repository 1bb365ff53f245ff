#!/usr/bin/env python3
"""Builds a wheel for each torch minor and Python asked for, from an sdist and without a network, and tests each wheel
where there is neither the source tree nor a build tool. Wheels stay in --into; what else is made goes again.

    .ci/wheels.py                                   all of torch 2.11 to 2.15 that pip can get, with this Python
    .ci/wheels.py --torch 2.11 2.15 --python python3.10 python3.12
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SUPPORTED = ["2.11", "2.12", "2.13", "2.14", "2.15"]
# What every part of the extension takes part in; minutes, and few packages beside torch.
TESTS = [
    "package/test_package.py",
    "observe/test_attribution.py",
    "observe/test_bystanders.py",
    "adapters/test_torchscript.py",
    "adapters/test_fake_tensors.py",
    "ops/test_matmul_family.py",
    "run/test_profiler.py",
    "run/test_blocks.py",
    "run/test_memory_of_modules.py",
    "report/test_printed.py",
]


class FailedError(Exception):
    """A step that ended badly; its text is the table's cell."""


@dataclass
class Result:
    """One line of the table."""

    torch: str
    python: str
    built: str = "-"
    tested: str = "-"
    seconds: float = 0


def step(what: str, log: Path, *command: object, **variables: str) -> str:
    """What the command printed; it is also in the log."""
    print(f"  {what}", flush=True)
    words = [str(word) for word in command]
    done = subprocess.run(
        words,
        env={**os.environ, **variables},
        cwd=log.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    with log.open("a") as file:
        file.write(f"$ {' '.join(words)}\n{done.stdout}\n")
    if done.returncode:
        print(*done.stdout.splitlines()[-25:], sep="\n", flush=True)
        last = next((line for line in reversed(done.stdout.splitlines()) if line.strip()), "")
        raise FailedError(f"{what} failed: {last.strip()}")
    return done.stdout


def requirements(list_of: str) -> list[str]:
    """A list of pyproject.toml, one requirement a line."""
    text = (ROOT / "pyproject.toml").read_text()
    found = re.search(rf"^{list_of} = \[\n(.*?)^\]", text, re.MULTILINE | re.DOTALL)
    return re.findall(r'^  "(.*)",$', found[1], re.MULTILINE)


def without_network() -> list[str]:
    """What stands before a command that must not reach anything, where the system lets that be."""
    cut = ["unshare", "--user", "--map-root-user", "--net"]
    works = shutil.which("unshare") and not subprocess.run([*cut, "true"], capture_output=True, check=False).returncode
    return cut if works else []


def sdist_of(tree: Path, folder: Path, python: Path, tools: Path, log: Path) -> Path:
    """The unpacked sdist of the tree."""
    made = folder / "sdist"
    build = [python, "-m", "build", "--sdist", "--no-isolation", "--skip-dependency-check"]
    step("sdist", log, *build, "--outdir", made, tree, PYTHONPATH=str(tools))
    (archive,) = made.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        tar.extractall(folder)  # noqa: S202 - our own, made a line above
    return folder / archive.name.removesuffix(".tar.gz")


def assumes(wheel: Path, folder: Path) -> str:
    """The newest versions of the system's libraries that the wheel's libraries ask for."""
    newest: dict[str, tuple[int, ...]] = {}
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if not name.endswith(".so"):
                continue
            library = archive.extract(name, folder)
            symbols = subprocess.run(["objdump", "-T", library], capture_output=True, text=True, check=False).stdout
            for kind, version in re.findall(r"\((GLIBC|GLIBCXX|CXXABI)_([0-9.]+)\)", symbols):
                newest[kind] = max(newest.get(kind, (0,)), tuple(int(part) for part in version.split(".")))
    return ", ".join(f"{kind} {'.'.join(map(str, version))}" for kind, version in sorted(newest.items()))


def build_and_test(minor: str, interpreter: str, into: Path, folder: Path) -> Result:
    """One cell of the matrix, in a folder of its own."""
    begin = time.monotonic()
    result = Result(minor, interpreter)
    log = folder / "log.txt"
    try:
        environment = folder / "venv"
        step("venv", log, interpreter, "-m", "venv", environment)
        python = environment / "bin" / "python"
        result.python = step("Python", log, python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])").strip()
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        step(f"torch {minor}", log, *pip, f"torch=={minor}.*")
        # In a folder beside it, so that the environment stays one that a user may have.
        tools = folder / "tools"
        needed = [line for line in requirements("requires") if not line.startswith("torch")]
        step("build requirements", log, *pip, "--target", tools, "build", *needed)

        tree = sdist_of(ROOT, folder, python, tools, log)
        build = [python, "-m", "build", "--wheel", "--no-isolation", "--skip-dependency-check", "--outdir", folder]
        variables = {"PYTHONPATH": str(tools), "ROOFPROF_LABEL_TORCH": "1", "PIP_NO_INDEX": "1"}
        at = time.monotonic()
        step("wheel", log, *without_network(), *build, tree, **variables)
        result.built = f"{time.monotonic() - at:.0f} s"
        (wheel,) = folder.glob("*.whl")
        print(f"  {wheel.name} needs {assumes(wheel, folder / 'libraries')}", flush=True)
        into.mkdir(parents=True, exist_ok=True)
        shutil.copy(wheel, into)
        shutil.rmtree(tools)
        step("wheel and test requirements", log, *pip, wheel, *requirements("test"))

        # From the unpacked sdist, whose tests need nothing that was left out of it; its package goes out of the way.
        shutil.rmtree(tree / "python")
        shutil.rmtree(tree / "build")
        tests = [tree / "tests" / "python" / test for test in TESTS]
        said = step(
            "tests", log, python, "-m", "pytest", "-q", "-m", "not slow and not integration", "--rootdir", tree, *tests
        )
        result.tested = said.strip().splitlines()[-1].strip("= ")
    except FailedError as failure:
        if result.built == "-":
            result.built = str(failure)
        else:
            result.tested = str(failure)
        shutil.copy(log, into.parent / f"wheels-{minor}-{Path(interpreter).name}.log")
    result.seconds = time.monotonic() - begin
    return result


def main() -> int:
    """The exit status: 1 where a wheel was not built, or its tests failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", nargs="+", default=SUPPORTED, metavar="2.N", help="torch minors")
    parser.add_argument("--python", nargs="+", default=[sys.executable], help="interpreters")
    parser.add_argument("--into", type=Path, default=ROOT / "dist", help="folder for the wheels")
    options = parser.parse_args()
    into = options.into.resolve()
    into.parent.mkdir(parents=True, exist_ok=True)
    results = []
    for interpreter in options.python:
        for minor in options.torch:
            print(f"torch {minor}, {interpreter}", flush=True)
            with tempfile.TemporaryDirectory(prefix="wheels-") as folder:
                results.append(build_and_test(minor, interpreter, into, Path(folder)))
    print(f"\n{'torch':<6} {'python':<7} {'seconds':>7}  built; tested")
    for result in results:
        print(f"{result.torch:<6} {result.python:<7} {result.seconds:>7.0f}  {result.built}; {result.tested}")
    return int(any("passed" not in result.tested or "failed" in result.tested for result in results))


if __name__ == "__main__":
    raise SystemExit(main())
