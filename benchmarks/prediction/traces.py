"""Judge the prediction on the kernels of recorded programs: models of Hugging Face that ran on an H100.

    python benchmarks/prediction/traces.py --traces FOLDER

The traces are TraceLens's (AMD-AGI/TraceLens, MIT; tests/traces/h100): torch.profiler, eager, in bf16. Kernel times are
compared op by op, without the host. The instructions of elements that are found by their indices, `odd_macs`,
`batched_tiles` and the smallest kernel's time were chosen from them; nothing else is fitted to them.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

import numpy as np

import roofprof
from roofprof import _C
from roofprof.predict.calibration.measured_kernels import of_report

CARD = "H100 SXM"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=Path, required=True, help="the folder that holds tracelens/h100")
    arguments = parser.parse_args()
    roofs, shipped = roofprof.Ceilings.published(CARD), _C.PredictionParameters.shipped()
    by_class: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for path in sorted((arguments.traces / "tracelens" / "h100").glob("*.json.gz")):
        kernels = of_report(roofprof.from_trace(path))
        predicted, measured = np.array(kernels.predicted(roofs, shipped)), np.array(kernels.seconds)
        ratio = predicted.sum() / measured.sum()
        print(f"{path.name.partition('__')[0]:44} {len(measured):5} ops  predicted / measured {ratio:.2f}")
        for name, *pair in zip(kernels.classes, predicted, measured, strict=True):
            by_class[name].append((pair[0], pair[1]))
    for name, pairs in sorted(by_class.items()):
        predicted, measured = np.array(pairs).T
        error = np.abs(predicted / measured - 1)
        print(
            f"{name:20} {len(pairs):5} ops  median {np.median(error):6.1%}  p90 {np.quantile(error, 0.9):6.1%}  "
            f"sum {predicted.sum() / measured.sum():.2f}"
        )


if __name__ == "__main__":
    main()
