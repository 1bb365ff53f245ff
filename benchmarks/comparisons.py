"""How often does `roofprof compare` call a change where there is none, and does it find one where there is?

Profiles a model in separate processes, one after the other, and compares each of the reports with each other: nothing
was changed, so a comparison that calls any module faster or slower is a false alarm. For the power, further processes
run the model with one module made slower by a share of its time; those are compared with all of the others.

    .venv/bin/python benchmarks/comparisons.py FOLDER --processes 16 --slowed 4

Reports that are in the folder already are not made again.
"""

from __future__ import annotations

import argparse
import itertools
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import torch
import torchvision
from common import environment, print_table

import roofprof

SLOWED = "layer2.0.conv1"  # its share of the time is a few percent


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, help="where the reports are kept")
    parser.add_argument("--model", default="resnet18")
    parser.add_argument("--size", type=int, default=64, help="of the image")
    parser.add_argument("--repeat", type=int, default=10)
    parser.add_argument("--processes", type=int, default=12)
    parser.add_argument("--slowed", type=int, default=4, help="how many processes have a slower module")
    parser.add_argument("--by", type=float, default=0.2, help="how much slower it is")
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--slow", type=float, default=0, help=argparse.SUPPRESS)
    return parser.parse_args()


def slow_down(module: torch.nn.Module, share: float) -> None:
    """Its forward takes that share longer."""
    forward = module.forward

    def slower(*args: torch.Tensor, **kwargs: torch.Tensor) -> torch.Tensor:
        begin = time.perf_counter()
        result = forward(*args, **kwargs)
        end = time.perf_counter()
        while time.perf_counter() < end + share * (end - begin):
            pass
        return result

    module.forward = slower


def profile_once(given: argparse.Namespace) -> None:
    torch.manual_seed(0)
    model = getattr(torchvision.models, given.model)().eval()
    if given.slow:
        slow_down(model.get_submodule(SLOWED), given.slow)
    with torch.no_grad():
        report = roofprof.RooflineProfiler(model, repeat=given.repeat).run(torch.rand(1, 3, given.size, given.size))
    report.to_json(given.one)


def reports(given: argparse.Namespace, name: str, count: int, slow: float) -> list[roofprof.Report]:
    """Return the reports of `count` processes; those that do not exist yet are made."""
    found = []
    for index in range(count):
        path = given.folder / f"{name}{index:02}.json"
        if not path.exists():
            call = [sys.executable, __file__, str(given.folder), "--one", str(path), "--slow", str(slow)]
            call += ["--model", given.model, "--size", str(given.size), "--repeat", str(given.repeat)]
            subprocess.run(call, check=True, env={"ROOFPROF_CEILINGS": "off", **os.environ})  # noqa: S603 - ourselves
        found.append(roofprof.Report.from_json(path))
    return found


def called(comparison: roofprof.Comparison) -> list[str]:
    rows = [comparison.total, *comparison.modules]
    return [row.path for row in rows if row.verdict in {"faster", "slower"}]


def main() -> None:
    given = options()
    if given.one:
        profile_once(given)
        return
    given.folder.mkdir(parents=True, exist_ok=True)
    same = reports(given, "same", given.processes, 0)
    slowed = reports(given, "slowed", given.slowed, given.by)
    print(environment())
    spreads = sorted(100 * (report.total.time_spread or 0) for report in same)
    times = sorted(1e3 * (report.total.time or 0) for report in same)
    busy = sum(any(note.code == "machine-busy" for note in report.coverage.notes) for report in same)
    print(
        f"{given.model}, 1x3x{given.size}x{given.size}, {given.repeat} repeats, {len(same)} processes: "
        f"{times[0]:.2f} to {times[-1]:.2f} ms, spread within one {spreads[0]:.1f} to {spreads[-1]:.1f}%, "
        f"{busy} on a busy machine"
    )
    alarms: Counter[str] = Counter()
    with_alarm = tested = 0
    pairs = list(itertools.combinations(same, 2))
    for before, after in pairs:
        comparison = roofprof.compare(before, after)
        tested += comparison.total.p is not None
        alarms.update(names := called(comparison))
        with_alarm += bool(names)
    found = others = slowed_tested = 0
    for before, after in itertools.product(same, slowed):
        comparison = roofprof.compare(before, after)
        slowed_tested += comparison.total.p is not None
        verdicts = {row.path: row.verdict for row in comparison.modules}
        found += verdicts[SLOWED] == "slower"
        above = {SLOWED.rpartition(".")[0], SLOWED.partition(".")[0], "", "total", SLOWED}
        others += any(path not in above for path in called(comparison))
    print_table(
        ("comparisons", "pairs", "tested", "with a call", "share"),
        [
            (
                "nothing changed: false alarms",
                str(len(pairs)),
                str(tested),
                str(with_alarm),
                share(with_alarm, len(pairs)),
            ),
            (
                f"{SLOWED} {given.by:.0%} slower: found",
                str(n := len(same) * len(slowed)),
                str(slowed_tested),
                str(found),
                share(found, n),
            ),
            ("  another module called", str(n), str(slowed_tested), str(others), share(others, n)),
        ],
    )
    if alarms:
        print(
            "called where nothing changed:", ", ".join(f"{path or '(model)'} {n}x" for path, n in alarms.most_common(8))
        )


def share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "n/a"


if __name__ == "__main__":
    main()
