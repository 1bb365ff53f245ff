"""Tries what roofprof's findings propose on models on a CPU, and holds what it gains against the stated intervals.

Each model is profiled, and each change that its findings propose and that needs no person is tried: channels_last,
autocast to bf16, a batch 8 times as large, and with --compile torch.compile (20 to 60 s each). Further models have a
fault on purpose that code can mend: fp64, attention op by op, an optimizer that works op by op. Each round runs the
plain model and every trial once, so that what slows the machine for a while slows all of them; a gain is the median
over the rounds of 1 - its time / plain time. With one thread, which is the default, time is that of the processor,
which other processes cannot take. A gain counts as inside the interval if it is no more than --tolerance of the total's
time beyond its ends. The rules' numbers were chosen by the models of even number; `zoo.later_models` came after them.
"""

from __future__ import annotations

import argparse
import copy
import dataclasses
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from common import autocast, environment, print_table, seconds
from torch import Tensor, nn
from zoo import Faulty, Maker, all_models, faulty_models, later_models

import roofprof

# The table says what each rule proposes. A person has to carry out what the other rules propose.
_TRIALS = {
    "channels-last": ("channels_last",),
    "pooling": ("channels_last",),
    "lower-precision": ("autocast",),
    "element-wise": ("compile",),
    "fusion": ("compile",),
    "outside-ops": ("compile",),
    "short-calls": ("compile",),
    "weights-read-again": ("larger batch",),
    "double-precision": ("fp32",),
    "attention-op-by-op": ("fused attention",),
    "optimizer-op-by-op": ("fused=True",),
}
_MENDED = ("fp32", "fused attention", "fused=True")  # tried on models that have the fault on purpose
_LARGER = 8
_MOST_ROUNDS = 50


@dataclasses.dataclass(frozen=True)
class Trial:
    """A change that findings propose: the stated and the measured gain, as shares of the total's time."""

    part: str  # of the models
    model: str
    rules: str
    tried: str
    low: float
    high: float
    gained: float

    def inside(self, tolerance: float) -> bool:
        """Return whether the measured gain lies in the interval."""
        return self.low - tolerance <= self.gained <= self.high + tolerance


def main() -> None:
    """Try the findings of each model, and print what they gained."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", help="some of them, with semicolons between")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=10.0, help="more rounds, up to 50, until they took so long")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tolerance", type=float, default=0.03)
    parser.add_argument("--compile", action="store_true", help="torch.compile too")
    parser.add_argument("--keep", type=Path, required=True, help="a folder of reports and gains; what is there stays")
    parser.add_argument("--show", action="store_true", help="only print what the folder has")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    options.keep.mkdir(parents=True, exist_ok=True)
    known: dict[str, tuple[str, Maker | Faulty]] = {}
    for first, part in enumerate(("of even number", "of odd number")):
        known |= {name: (part, made) for name, made in list(all_models().items())[first::2]}
    known |= {name: ("later", made) for name, made in later_models().items()}
    known |= {name: ("with a fault", made) for name, made in faulty_models().items()}
    print(environment(), flush=True)
    trials: list[Trial] = []
    for name, (part, made) in known.items():
        if options.models and name not in options.models.split(";"):
            continue
        try:
            trials += _tried(part, name, made, options)
        except Exception as error:  # noqa: BLE001
            print(f"  {name}: {error!r}", file=sys.stderr)
    _print(trials, options.tolerance)


def _print(trials: list[Trial], tolerance: float) -> None:
    print_table(
        ["model", "finding", "tried", "stated", "gained", ""],
        [
            [t.model, t.rules, t.tried, f"{t.low:.0%} to {t.high:.0%}", f"{t.gained:.0%}",
             "inside" if t.inside(tolerance) else "outside"]
            for t in trials
        ],
    )  # fmt: skip
    groups = {f"{t.rules}, {t.tried}": [u for u in trials if (u.rules, u.tried) == (t.rules, t.tried)] for t in trials}
    groups |= {part: [t for t in trials if t.part == part] for part in dict.fromkeys(t.part for t in trials)}
    groups["all"] = trials
    for what, some in groups.items():
        print(f"{what}: {sum(t.inside(tolerance) for t in some)} of {len(some)} inside")
    print(f"{len({t.model for t in trials})} models")


def _tried(part: str, name: str, subject: Maker | Faulty, options: argparse.Namespace) -> list[Trial]:
    """Profile the model, and try its findings, if the folder does not have them yet."""
    stem = name.replace(" ", "_").replace(",", "")
    kept, gains = options.keep / f"{stem}.report.json", options.keep / f"{stem}.gains.json"
    faulty = subject if isinstance(subject, Faulty) else None
    made: list[tuple[nn.Module, Tensor]] = []

    def model_and_input() -> tuple[nn.Module, Tensor]:
        if not made:
            made.append(subject.make() if isinstance(subject, Faulty) else subject())
        return made[0]

    if not kept.exists():
        if options.show:
            return []
        _profiled(*model_and_input(), faulty).to_json(kept)
    report = roofprof.Report.from_json(kept)
    stated: dict[str, list[Any]] = {}
    for finding in report.findings:
        for tried in _TRIALS.get(finding.rule, ()):
            stated.setdefault(tried, []).append(finding)
    gained: dict[str, float | None] = json.loads(gains.read_text()) if gains.exists() else {}
    wanted = {faulty.tried} if faulty else set(stated) - set(_MENDED)
    if not options.compile:
        wanted -= {"compile"}
    if not options.show and wanted - set(gained):
        gained |= _gains(*model_and_input(), faulty, wanted - set(gained), options)
        gains.write_text(json.dumps(gained))
    print(f"  {name}: {', '.join(f.rule for f in report.findings) or 'no findings'}; {gained}", flush=True)
    return [
        Trial(
            part,
            name,
            ", ".join(sorted({f.rule for f in findings})),
            tried,
            sum(f.gain_low for f in findings) / report.total.time,
            min(sum(f.gain_high for f in findings) / report.total.time, 1),
            saved,
        )
        for tried, findings in stated.items()
        if (saved := gained.get(tried)) is not None
    ]


def _profiled(model: nn.Module, given: Tensor, faulty: Faulty | None) -> roofprof.Report:
    if faulty and faulty.trains:
        return roofprof.RooflineProfiler(model).run_step(_step(model, given, fused=None))
    with torch.no_grad():
        return roofprof.profile(model, given)


def _gains(
    model: nn.Module, given: Tensor, faulty: Faulty | None, wanted: set[str], options: argparse.Namespace
) -> dict[str, float | None]:
    """Return the share of the plain model's time that each trial saves; None where it cannot be tried."""
    calls = _calls(model, given, faulty, wanted)
    clock = time.process_time if options.threads == 1 else time.perf_counter
    times: dict[str, list[float]] = {name: [] for name in calls}
    with torch.set_grad_enabled(bool(faulty and faulty.trains)):
        for call, _ in calls.values():
            call()
            call()
        begun = time.perf_counter()
        while len(times["plain"]) < options.rounds or (
            time.perf_counter() - begun < options.seconds and len(times["plain"]) < _MOST_ROUNDS
        ):
            for name, (call, rows) in calls.items():
                times[name].append(seconds(call, clock) / rows)
    medians: dict[str, float | None] = dict.fromkeys(wanted)
    for name, taken in times.items():
        medians[name] = statistics.median(1 - a / b for a, b in zip(taken, times["plain"], strict=True))
    return medians


def _calls(
    model: nn.Module, given: Tensor, faulty: Faulty | None, wanted: set[str]
) -> dict[str, tuple[Callable[[], Any], int]]:
    """Return the plain call and those of each trial, with how many times as many rows they have."""
    if faulty:
        mended, other = faulty.mend(model, given)
        if faulty.trains:
            return {
                "plain": (_step(model, given, fused=None), 1),
                faulty.tried: (_step(mended, other, fused=True), 1),
            }
        return {"plain": (lambda: model(given), 1), faulty.tried: (lambda: mended(other), 1)}
    calls: dict[str, tuple[Callable[[], Any], int]] = {"plain": (lambda: model(given), 1)}
    if "channels_last" in wanted and given.dim() == 4:
        last = copy.deepcopy(model).to(memory_format=torch.channels_last)
        images = given.to(memory_format=torch.channels_last)
        calls["channels_last"] = (lambda: last(images), 1)
    if "autocast" in wanted:
        calls["autocast"] = (lambda: autocast(model, given), 1)
    if "compile" in wanted:
        compiled = torch.compile(copy.deepcopy(model))
        calls["compile"] = (lambda: compiled(given), 1)
    if "larger batch" in wanted:
        many = torch.cat([given] * _LARGER)
        calls["larger batch"] = (lambda: model(many), _LARGER)
    return calls


def _step(model: nn.Module, given: Tensor, fused: bool | None) -> Callable[[], None]:
    optimizer = torch.optim.Adam(model.train().parameters(), fused=fused)

    def step() -> None:
        optimizer.zero_grad()
        made = model(given)
        (made if isinstance(made, Tensor) else made[0]).mean().backward()
        optimizer.step()

    return step


if __name__ == "__main__":
    main()
