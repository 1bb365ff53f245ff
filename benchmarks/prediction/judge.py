"""Judges the prediction on published measurements.

    python benchmarks/prediction/judge.py --tables FOLDER --counts FOLDER

Each GPU is left out in turn: the numbers and the intervals are fitted to the other one alone. Then families of models
are held out, on one device at a time. All models of a table count, also those that were measured in another form.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from fit import DATA, fitted, held_out_times, parameters_of, times, with_intervals
from measurements import GPUS, TABLES, Case, add_arguments, cases, roofs_of

from roofprof import _C


def ranks(values: np.ndarray) -> np.ndarray:
    return np.argsort(np.argsort(values))


def figures(predicted: np.ndarray, measured: np.ndarray) -> str:
    """Errors are |predicted / measured - 1|; the correlation is Spearman's."""
    error = np.abs(predicted / measured - 1)
    correlation = np.corrcoef(ranks(predicted), ranks(measured))[0, 1]
    return (
        f"{np.median(error):6.1%} {np.quantile(error, 0.9):6.1%} {correlation:6.3f} "
        f"{np.median(predicted / measured):7.3f}"
    )


def covered(of: Sequence[Case], parameters: _C.PredictionParameters) -> float:
    """The part of the measured times that lies inside its interval."""
    roofs = roofs_of(of[0].measured.device)
    inside = 0
    for case in of:
        _, low, high, _ = case.predictor.total(roofs, parameters)
        inside += low <= case.measured.seconds <= high
    return inside / len(of)


def by_family(of: Sequence[Case], predicted: np.ndarray) -> None:
    """Predicted over measured, the families with most models first."""
    ratios: dict[str, list[float]] = defaultdict(list)
    for case, seconds in zip(of, predicted, strict=True):
        ratios[case.measured.family].append(seconds / case.measured.seconds)
    print(f"\n{'family':16} models  median   lowest  highest   (predicted / measured)")
    for family, values in sorted(ratios.items(), key=lambda pair: -len(pair[1]))[:25]:
        print(f"{family:16} {len(values):6} {np.median(values):7.2f} {min(values):8.2f} {max(values):8.2f}")


def worst(of: Sequence[Case], predicted: np.ndarray) -> None:
    """One line for each model; other sizes of it are left out."""
    seen: set[str] = set()
    print(f"\n{'worst':32} predicted / measured")
    ratio = predicted / np.array([case.measured.seconds for case in of])
    for place in np.argsort(-np.abs(np.log(ratio))):
        case = of[place]
        if case.measured.family in seen:
            continue
        seen.add(case.measured.family)
        remark = "measured in another form" if case.other_form else ""
        print(f"{case.measured.model:32} {ratio[place]:8.2f}  {remark}")
        if len(seen) == 10:
            return


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser)
    arguments = parser.parse_args()
    file = json.loads(DATA.read_text())
    of = {device: cases(arguments.tables, arguments.counts, device) for device in TABLES}
    seconds = {device: np.array([case.measured.seconds for case in of[device]]) for device in TABLES}
    print(f"{'left out':16} {'fitted to':12} models  median    p90   rank  pred/meas  inside 80%")
    for device in GPUS:
        other = next(name for name in GPUS if name != device)
        found = parameters_of(with_intervals(of[other], fitted(of[other], file, say=lambda _: None)))
        predicted = times(of[device], found)
        row = figures(predicted, seconds[device])
        print(f"{device:16} {other:12} {len(predicted):6}  {row} {covered(of[device], found):11.1%}", flush=True)
        by_family(of[device], predicted)
        worst(of[device], predicted)
        print()
    for device in TABLES:
        row = figures(held_out_times(of[device], file), seconds[device])
        print(f"{'its families':16} {device:14} {len(of[device]):4}  {row}")
    shipped = _C.PredictionParameters.shipped()
    for device in TABLES:
        row = figures(times(of[device], shipped), seconds[device])
        print(f"{'nothing':16} {'all':12} {len(of[device]):6}  {row} {covered(of[device], shipped):11.1%}  {device}")
    scaled(of)


def scaled(of: dict[str, list[Case]]) -> None:
    """Print how well one card's measurements, times one number, predict the other's: the floor without any model."""
    per_sample = [
        {(c.measured.model, c.measured.size): c.measured.seconds / c.measured.batch for c in of[device]}
        for device in GPUS
    ]
    both = [key for key in per_sample[0] if key in per_sample[1]]
    ratio = np.array([per_sample[0][key] / per_sample[1][key] for key in both])
    ratio /= np.median(ratio)
    print(f"\n{GPUS[0]}'s times x one number for {GPUS[1]}'s, {len(both)} models: {figures(ratio, np.ones(len(both)))}")


if __name__ == "__main__":
    main()
