"""Measures how long predicting a report with 10,000 ops takes: for 40 devices, and as a whole report for one."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch
from torch import nn

import roofprof
from roofprof.roofs.published_peaks import names

LAYERS, REPEATS = 2_500, 5


def median_of(call: Callable[[], object]) -> float:
    seconds = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds)


def main() -> None:
    layers = [
        layer
        for width in range(LAYERS)
        for layer in (nn.Linear(64, 64), nn.GELU(), nn.LayerNorm(64), nn.Softmax(-1 - width % 2))
    ]
    with torch.device("meta"), torch.no_grad():
        report = roofprof.count(nn.Sequential(*layers), torch.zeros(8, 64))
    ops = len(report.to_dict()["ops"])
    devices = names()[:40]
    print(f"{ops} ops, medians of {REPEATS}")
    print(f"{len(devices)} devices, by time:  {median_of(lambda: report.predict_all(devices)):.3f} s")
    print(f"one device, a whole report: {median_of(lambda: report.predict('RTX 4090')):.3f} s")


if __name__ == "__main__":
    main()
