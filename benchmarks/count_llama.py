"""Counting a model that fits nowhere: Llama 3 70B's shape on the meta device, one sequence of 2048 tokens.

Every round runs the plain forward, `roofprof.count` and torch's flop_counter one after the other.
"""

from __future__ import annotations

import argparse
import statistics

import torch
from common import environment, paired_ratio, print_table, rss_megabytes, seconds
from models import LLAMA_3_70B, Llama
from torch.utils.flop_counter import FlopCounterMode

import roofprof

TOKENS = 2048


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    torch.set_num_threads(1)
    before = rss_megabytes()
    with torch.device("meta"):
        model = Llama(LLAMA_3_70B).to(torch.bfloat16).eval()
        tokens = torch.zeros(1, TOKENS, dtype=torch.long)
    macs: dict[str, int] = {}

    def plain() -> None:
        model(tokens)

    def roofprof_count() -> None:
        macs["roofprof.count"] = roofprof.count(model, tokens).total.macs

    def flop_counter() -> None:
        with FlopCounterMode(display=False) as counter:
            model(tokens)
        macs["torch flop_counter"] = counter.get_total_flops() // 2

    calls = {"plain forward": plain, "roofprof.count": roofprof_count, "torch flop_counter": flop_counter}
    times: dict[str, list[float]] = {name: [] for name in calls}
    with torch.no_grad():
        for call in calls.values():
            call()  # the first call of each pays for imports and caches
        for _ in range(options.rounds):
            for name, call in calls.items():
                times[name].append(seconds(call))

    expected = LLAMA_3_70B.macs(TOKENS)
    print(environment())
    print(f"\nLlama 3 70B's shape on meta, {TOKENS} tokens, {options.rounds} rounds")
    rows = []
    for name, taken in times.items():
        ratio = paired_ratio(taken, times["plain forward"])
        found = macs.get(name)
        figure = "" if found is None else f"{found / 1e12:.6f}"
        rows.append([name, f"{statistics.median(taken):.3f}", f"{ratio:.3f}", figure])
    rows.append(["closed form", "", "", f"{expected / 1e12:.6f}"])
    print_table(["", "s", "ratio", "TMACs"], rows)
    print(f"memory: {before:.0f} MB after the imports, {rss_megabytes():.0f} MB at the end")
    if macs["roofprof.count"] != expected:
        raise SystemExit(f"roofprof counts {macs['roofprof.count']} MACs, the closed form says {expected}")


if __name__ == "__main__":
    main()
