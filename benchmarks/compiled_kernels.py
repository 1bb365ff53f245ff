"""Measures what timing each kernel of compiled code costs: resnet18 at 224, against the compiled model.

Calls of the model as the user compiled it and of the code with a range around each kernel, which the profiler observes,
take turns in one run; each is compared with the one before it.
"""

from __future__ import annotations

import argparse
import re
import statistics

import torch
import torchvision
from common import environment

import roofprof


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="profiles (default: 5)")
    parser.add_argument("--threads", type=int, default=1, help="threads of torch (default: 1)")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(environment())
    model = torch.compile(torchvision.models.resnet18().eval())
    image = torch.rand(1, 3, 224, 224)
    ratios = []
    with torch.no_grad():
        for _ in range(options.rounds):
            report = roofprof.RooflineProfiler(model, compiled_kernels=True, repeat=3).run(image)
            (said,) = [note.text for note in report.coverage.notes if note.text.startswith("compiled again")]
            ratios.append(float(re.search(r"took ([\d.]+) times", said)[1]))
            print(said)
    print(f"a call in which kernels are timed takes {statistics.median(ratios):.3f} times the compiled model's")


if __name__ == "__main__":
    main()
