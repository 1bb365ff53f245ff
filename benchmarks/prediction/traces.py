"""Judge the prediction on the kernels of recorded programs: models of Hugging Face that ran on an H100.

    python benchmarks/prediction/traces.py --traces FOLDER

The traces are TraceLens's (AMD-AGI/TraceLens, MIT; tests/traces/h100): torch.profiler, eager, in bf16. Kernel times are
compared op by op, without the host. The instructions of elements that are found by their indices, `odd_macs`,
`batched_tiles` and the smallest kernel's time were chosen from them; nothing else is fitted to them.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import judgement
import numpy as np
from judgement import DATA, Line, op_rooflines, parameters_of

import roofprof
from roofprof.calibration.measured_kernels import of_report

CARD = "H100 SXM"


def judged(traces: Path, file: dict[str, Any]) -> Iterator[Line]:
    """Yield the error of each trace's sum, and those on the ops of each class."""
    roofs, parameters = roofprof.Ceilings.published(CARD), parameters_of(file)
    by_class: dict[str, list[np.ndarray]] = defaultdict(list)
    for path in sorted((traces / "tracelens" / "h100").glob("*.json.gz")):
        report = roofprof.from_trace(path)
        ops, kernels = report.to_dict()["ops"], of_report(report)
        roofline = op_rooflines(roofs, ops)
        margins = kernels.predictor.op_margins(roofs, parameters)
        rows = np.array(
            [
                (seconds, roofline[place], predicted, *margins[place])
                for seconds, place, predicted in zip(
                    kernels.seconds, kernels.places, kernels.predicted(roofs, parameters), strict=True
                )
            ]
        )
        for name, row in zip(kernels.classes, rows, strict=True):
            by_class[name].append(row)
        name = path.name.partition("__")[0].partition("_")[2]
        seconds, roof, predicted, *_ = rows.sum(axis=0, keepdims=True).T
        limits = rows[:, 2] @ rows[:, 3:] / predicted  # as if all erred the same way
        yield Line(f"sum of {name}", CARD, [name], seconds, roof, predicted, limits[None], kernels=len(rows))
    for name, of_class in sorted(by_class.items()):
        rows = np.array(of_class)
        yield Line(f"recorded {name}", CARD, [""] * len(rows), *rows.T[:3], rows[:, 3:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=Path, required=True, help="the folder that holds tracelens/h100")
    arguments = parser.parse_args()
    judgement.say(judged(arguments.traces, json.loads(DATA.read_text())))


if __name__ == "__main__":
    main()
