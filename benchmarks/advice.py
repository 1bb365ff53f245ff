"""Measures how much faster models get on a CPU by roofprof's advice: autocast to bf16, channels_last, and both.

Each round runs every variant of a model once, so that what slows the machine for a while slows all of them; a variant's
figure is the median over the rounds of plain time / its time: 2.0 is twice as fast. With one thread, which is the
default, time is that of the processor, which other processes cannot take. `%fp32` is the plain model's share of what
large products of matrices reach here in fp32.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from common import autocast, environment, print_table, seconds
from torch import Tensor, nn
from zoo import all_models

import roofprof


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", help="some of them, with commas between")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--compile", action="store_true", help="torch.compile too (minutes)")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    known = all_models()
    names = options.models.split(",") if options.models else list(known)
    print(environment())
    peak = _peak(options.threads)
    print(f"fp32 {peak / 1e9:.0f} GFLOP/s")
    rows = []
    for name in names:
        speed_ups, plain = _measured(known[name], options.rounds, options)
        share = _floating_operations(*known[name]()) / plain / peak
        ratios = ["-" if math.isnan(value) else f"{value:.2f}" for value in speed_ups.values()]
        rows.append([name, f"{1e3 * plain:.0f}", f"{share:.0%}", *ratios])
        print(f"  {name}: {', '.join(rows[-1][1:])}", flush=True)
    print()
    print_table(["model", "plain ms", "%fp32", *speed_ups], rows)


def _measured(
    make: Callable[[], tuple[nn.Module, Tensor]], rounds: int, options: argparse.Namespace
) -> tuple[dict[str, float], float]:
    """Return how many times as fast each variant is, and the seconds of the plain model."""
    model, given = make()
    last, given_last = make()
    is_image = given.dim() == 4
    variants: dict[str, Callable[[], Any]] = {
        "plain": lambda: model(given),
        "autocast": lambda: autocast(model, given),
    }
    if is_image:
        last, given_last = (thing.to(memory_format=torch.channels_last) for thing in (last, given_last))
        variants["channels_last"] = lambda: last(given_last)
        variants["both"] = lambda: autocast(last, given_last)
    if options.compile:
        compiled = torch.compile(model)
        variants["compile"] = lambda: compiled(given)
    clock = time.process_time if options.threads == 1 else time.perf_counter
    times: dict[str, list[float]] = {name: [] for name in variants}
    with torch.no_grad():
        for call in variants.values():
            call()
        for _ in range(rounds):
            for name, call in variants.items():
                times[name].append(seconds(call, clock))
    ratios = {name: _ratio(times["plain"], taken) for name, taken in times.items() if name != "plain"}
    wanted = ("autocast", "channels_last", "both", *(["compile"] if options.compile else []))
    return {name: ratios.get(name, float("nan")) for name in wanted}, statistics.median(times["plain"])


def _ratio(plain: Sequence[float], taken: Sequence[float]) -> float:
    return statistics.median(a / b for a, b in zip(plain, taken, strict=True))


def _floating_operations(model: nn.Module, given: Tensor) -> int:
    with torch.no_grad():
        return roofprof.count(model, given).total.flops


def _peak(threads: int) -> float:
    """FLOP/s in fp32, of products of matrices that fit a cache; the best of many, as others may run meanwhile."""
    size, calls = 768, 40
    a, b = torch.rand(size, size), torch.rand(size, size)
    clock = time.process_time if threads == 1 else time.perf_counter
    return max(2 * size**3 / seconds(lambda: a @ b, clock) for _ in range(calls))


if __name__ == "__main__":
    main()
