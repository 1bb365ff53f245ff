"""Counts instructions under valgrind's callgrind: roofprof's own, torch's and others', for each op, call and block.

Such counts hardly vary from run to run and do not depend on what else the machine does. `--record` writes those that
tests/python/observe/test_instructions.py holds later ones against.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("ROOFPROF_BUILD_DIR", ROOT / "build" / "cmake")) / "tests" / "cpp"
OPS = BUILD / "instructions_of_ops"
REQUESTS = BUILD / "libinstructions_requests.so"
RECORD = Path(__file__).with_name("recorded.json")

Counts = dict[str, dict[str, float]]  # by what was done: instructions each time, by whose they are


def why_not() -> str:
    """Return why nothing can be counted here; "" where it can."""
    if shutil.which("valgrind") is None:
        return "valgrind is not installed"
    if not (OPS.exists() and REQUESTS.exists()):
        return f"{OPS.name} is not built: `make cpp-tests` builds it where valgrind's header is"
    return ""


def counted() -> Counts:
    """Return the instructions of everything that both programs do."""
    return {**_counted_in(str(OPS)), **_counted_in(sys.executable, str(Path(__file__).with_name("calls.py")), REQUESTS)}


def circumstances() -> dict[str, str]:
    """Return what the counts depend on besides the code: the compiler that built it, and torch's headers in it."""
    about = subprocess.run([OPS, "--about"], capture_output=True, text=True, check=True).stdout  # noqa: S603
    return dict(line.split(": ", 1) for line in about.splitlines())


def _counted_in(*command: object) -> Counts:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "callgrind"
        valgrind = ["valgrind", "--tool=callgrind", "--instr-atstart=no", "--compress-strings=no"]
        valgrind.append(f"--callgrind-out-file={out}")
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "PYTHONHASHSEED": "0"}
        done = subprocess.run(  # noqa: S603 (our own programs)
            [*valgrind, *command], env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise RuntimeError(f"{command[0]} failed under callgrind:\n{done.stdout}\n{done.stderr}")
        times = {name: int(count) for name, count in re.findall(r"^(.*): (\d+)$", done.stdout, re.MULTILINE)}
        dumps = [_dump(path) for path in Path(folder).glob("callgrind.*")]  # what ran after the last has no number
    return {
        name: {whose: count / times[name] for whose, count in dump.items()}
        for name, dump in sorted(dumps, key=lambda named: list(times).index(named[0]))
    }


def _dump(path: Path) -> tuple[str, Counter[str]]:
    """Return the name in a file of callgrind's, and the instructions by whose object file they are in."""
    name = ""
    counts = Counter[str]()
    whose, calls = "", False
    with path.open() as lines:
        for line in lines:
            if line.startswith("desc: Trigger: Client Request: "):
                name = line.split(": ", 3)[3].strip()
            elif line.startswith("ob="):
                whose = _whose(Path(line.removeprefix("ob=").strip()))
            elif line.startswith("calls="):
                calls = True  # the next line is what was called, which has lines of its own
            elif line[:1] in "+-*0123456789":
                if not calls:
                    counts[whose] += int(line.split()[1])
                calls = False
    return name, counts


def _whose(file: Path) -> str:
    if file.name.startswith("libroofprof") or file.parent.name == "roofprof":
        return "roofprof"
    if "torch" in file.parts:
        return "torch"
    if "python" in file.name:
        return "python"
    return "system"  # memory, threads' own variables, the C++ library


def main() -> None:
    """Print what was counted, beside what is recorded."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", action="store_true", help="write the counts to recorded.json")
    options = parser.parse_args()
    if reason := why_not():
        parser.exit(1, f"{reason}\n")
    recorded = json.loads(RECORD.read_text())["roofprof"] if RECORD.exists() else {}
    counts = counted()
    whose = ("roofprof", "torch", "python", "system")
    print(f"{'instructions each time':42}" + "".join(f"{name:>11}" for name in (*whose, "all", "recorded")))
    for name, by_whose in counts.items():
        figures = [by_whose.get(each, 0) for each in whose]
        shown = [*figures, sum(figures), *([recorded[name]] if name in recorded else [])]
        print(f"{name:42}" + "".join(f"{figure:11,.0f}" for figure in shown))
    if options.record:
        ours = {name: round(of["roofprof"]) for name, of in counts.items() if "roofprof" in of and "plain" not in name}
        RECORD.write_text(json.dumps({**circumstances(), "roofprof": ours}, indent=2) + "\n")


if __name__ == "__main__":
    main()
