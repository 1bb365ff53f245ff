"""Fit the numbers of python/roofprof/data/prediction.json to published measurements.

    python benchmarks/prediction/fit.py --tables FOLDER --counts FOLDER [--devices "RTX 3090"] --write FILE

Of GPUs, whole models give the numbers of convolutions and of what no table of measured kernels has.

Least squares on log(predicted / measured), robust (beyond 6% an error counts linearly), each number held by a prior:
what is known of such kernels without these measurements. Models that were measured in another form than they are
defined are left out, and so is attention that no kernel takes where torch was older than 2.5: it ran in half then.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import judgement
import numpy as np
from judgement import DATA, Line, Place, Prior, parameters_of, rounded
from measurements import GPUS, JUDGED, TABLES, Case, add_arguments, cases, roofs_of

from roofprof import _C

# of_peak and of_bandwidth of each class, each (expected, spread of its logarithm). None: the model does not use it, or,
# of GPUs, tables of measured kernels have given it (products.py, attention.py, streams.py).
CLASSES: dict[str, tuple[tuple[float, float] | None, tuple[float, float] | None]] = {
    "linear": (None, None),
    "batched_matmul": (None, None),
    "attention": (None, None),
    "unfused_attention": (None, None),
    "conv_pointwise": ((0.85, 0.15), (0.7, 0.2)),
    "conv_spatial": ((0.85, 0.15), (0.6, 0.3)),
    "conv_stem": ((0.6, 0.3), (0.5, 0.3)),
    "conv_grouped": ((0.7, 0.3), (0.5, 0.3)),
    "conv_depthwise": ((0.5, 0.5), (0.6, 0.4)),
    "elementwise": (None, None),
    "row_norm": (None, None),
    "softmax": (None, None),
    "reduction": (None, (0.9, 0.4)),
    "pooling": (None, (0.6, 0.5)),
    "interpolation": (None, (0.7, 0.2)),
    "concatenation": (None, (0.7, 0.4)),
    "copy": (None, (0.7, 0.4)),
    "other": ((0.3, 0.5), (0.4, 0.5)),
}
# Tables of measured kernels have given the intervals of these classes on GPUs.
OF_KERNELS = ("linear", "batched_matmul", "attention", "elementwise", "row_norm", "softmax")
# The numbers of the kind of device, by their paths in the file.
SHARED: dict[tuple[str, ...], tuple[float, float]] = {
    ("convolution", "depth"): (24.0, 0.5),
    ("convolution", "width"): (16.0, 0.5),
    ("convolution", "unaligned"): (0.7, 0.3),
    ("convolution", "depthwise_exponent"): (1.0, 0.3),
    ("streaming", "index_instructions"): (90.0, 0.1),  # of an H100's kernels (traces.py)
    ("streaming", "concatenation_instructions"): (125.0, 0.1),
    ("streaming", "permuted"): (1.3, 0.3),
    ("streaming", "plane_seconds"): (0.4e-6, 1.0),
}

# The numbers of CPUs, whose table was measured with compiled models, without those that only GPU kernels have.
CPU_PEAK, CPU_BANDWIDTH = (0.7, 0.3), (0.7, 0.1)
CPU_ARITHMETIC = [*list(CLASSES)[: list(CLASSES).index("elementwise")], "other"]
CPU_SHARED: dict[tuple[str, ...], tuple[float, float]] = {
    ("product", "depth"): (8.0, 0.7),
    ("product", "width"): (8.0, 0.7),
    ("convolution", "depth"): (8.0, 0.7),
    ("convolution", "width"): (8.0, 0.7),
    ("overlap",): (2.0, 0.1),
    ("cache_share",): (0.5, 0.7),
    ("op_floor",): (4e-6, 0.7),
    ("convolution_floor",): (10e-6, 0.7),
}


def priors(kind: str) -> dict[tuple[Place, ...], Prior]:
    """Return the prior of every number that is fitted."""
    shared = SHARED if kind == "gpu" else CPU_SHARED
    found: dict[tuple[Place, ...], Prior] = {((kind, *path),): prior for path, prior in shared.items()}
    for name, of_gpu in CLASSES.items():
        of_cpu = (CPU_PEAK if name in CPU_ARITHMETIC else None, CPU_BANDWIDTH)
        for key, prior in zip(("of_peak", "of_bandwidth"), of_gpu if kind == "gpu" else of_cpu, strict=True):
            # products.py fits those of products on a GPU.
            if prior and name != ("linear" if kind == "gpu" else "interpolation"):
                found[((kind, "classes", name, key),)] = prior
    return found


def times(of: Sequence[Case], parameters: _C.PredictionParameters) -> np.ndarray:
    """Predicted seconds."""
    return totals(of, parameters)[:, 0]


def totals(of: Sequence[Case], parameters: _C.PredictionParameters) -> np.ndarray:
    """Predicted seconds, and both ends of their intervals."""
    roofs = {device: roofs_of(device) for device in (*TABLES, *JUDGED)}
    return np.array([case.predictor.total(roofs[case.measured.device], parameters)[:3] for case in of])


def is_fitted(case: Case) -> bool:
    """Return whether the numbers are fitted to the case."""
    line = case.measured
    if case.other_form or TABLES[line.device].kind == "cpu":
        return not case.other_form
    seconds = case.predictor.class_seconds(roofs_of(line.device), _C.PredictionParameters.shipped())
    return not (seconds["unfused_attention"] > 0 and line.torch < (2, 5))


def fitted(of: Sequence[Case], file: dict[str, Any]) -> dict[str, Any]:
    """The file with the numbers that suit these measurements best."""
    of = [case for case in of if is_fitted(case)]
    numbers = priors(TABLES[of[0].measured.device].kind)
    seconds = np.array([case.measured.seconds for case in of])
    return judgement.fitted(file, numbers, lambda content: times(of, parameters_of(content)), seconds, robust=0.06)


# ---- intervals

FOLDS = 5
# The spread over devices, which comes on top of that over families of models: widths in logarithms are multiplied by
# it. Found on RTX 3090, from numbers that were fitted to RTX 4090.
OTHER_DEVICE = 1.28


def fold_of(case: Case) -> int:
    """Families are held out as a whole."""
    return zlib.crc32(case.measured.family.encode()) % FOLDS


def held_out_times(of: Sequence[Case], file: dict[str, Any]) -> np.ndarray:
    """Seconds of each model by numbers that were fitted without its family."""
    found = np.zeros(len(of))
    for fold in range(FOLDS):
        parameters = parameters_of(fitted([case for case in of if fold_of(case) != fold], file))
        inside = [number for number, case in enumerate(of) if fold_of(case) == fold]
        found[inside] = times([of[number] for number in inside], parameters)
    return found


def shares_of(of: Sequence[Case], parameters: _C.PredictionParameters) -> np.ndarray:
    """Return the part of each class in each model's predicted time."""
    roofs = {device: roofs_of(device) for device in TABLES}
    rows = [list(case.predictor.class_seconds(roofs[case.measured.device], parameters).values()) for case in of]
    return np.array(rows) / np.sum(rows, axis=1, keepdims=True)


def quantile_widths(shares: np.ndarray, ratios: np.ndarray, quantile: float, held: np.ndarray) -> np.ndarray:
    """Return for each class the factor on the predicted time below which that part of the measured times lies.

    The pinball loss of log(ratio / (shares @ factors)), by gradient descent, held towards one factor for all classes.
    `held` has the logarithms that are known; else NaN.
    """
    everywhere = np.quantile(np.log(ratios), quantile)
    known = ~np.isnan(held)
    logs = np.where(known, held, everywhere)
    for step in range(3000):
        factors = np.exp(logs)
        bound = shares @ factors
        over = np.log(ratios) > np.log(bound)
        slope = np.where(over, -quantile, 1 - quantile) / bound
        gradient = factors * (shares.T @ slope) / len(ratios) + 0.02 * (logs - everywhere)
        logs -= np.where(known, 0, 0.3 / (1 + step / 300) * gradient)
    # No class's time is known better than to 3%.
    return np.minimum(logs, -0.03) if quantile < 0.5 else np.maximum(logs, 0.03)


def with_intervals(of: Sequence[Case], file: dict[str, Any]) -> dict[str, Any]:
    """The file with `low` and `high` of each class, for intervals of 80% on devices that were not fitted to."""
    of = [case for case in of if is_fitted(case)]
    ratios = np.array([case.measured.seconds for case in of]) / held_out_times(of, file)
    shares = shares_of(of, parameters_of(file))
    content = copy.deepcopy(file)
    kind = TABLES[of[0].measured.device].kind
    classes = content["parameters"][kind]["classes"]
    for key, quantile in (("low", 0.1), ("high", 0.9)):
        held = [
            math.log(place[key]) / OTHER_DEVICE if kind == "gpu" and place["name"] in OF_KERNELS else math.nan
            for place in classes
        ]
        widths = quantile_widths(shares, ratios, quantile, np.array(held)) * OTHER_DEVICE
        for place, width in zip(classes, np.exp(widths), strict=True):
            if kind == "cpu" or place["name"] not in OF_KERNELS:
                place[key] = rounded(width)
    return content


# ---- errors


def judged(tables: Path, file: dict[str, Any], counts: Path) -> Iterator[Line]:
    """Yield the errors on each table: each GPU with the numbers that the other one gives, the rest as shipped.

    A table of training is there as well (RTX 3090, torch 1.12). Its steps were not counted.
    """
    of = {device: cases(tables, counts, device) for device in (*TABLES, *JUDGED)}
    for device, rows in of.items():
        others = [case for other in GPUS if other != device for case in of[other]]
        shipped = totals(rows, parameters_of(file))
        unseen = totals(rows, parameters_of(fitted(others, file))) if device in GPUS else None
        yield Line(
            "timm" + (f", {device}" if device in JUDGED else ", compiled in fp32" if device not in GPUS else ""),
            JUDGED[device].card if device in JUDGED else device,
            [case.measured.family for case in rows],
            np.array([case.measured.seconds for case in rows]),
            np.array([case.roofline(counts) for case in rows]),
            shipped[:, 0],
            shipped[:, 1:] / shipped[:, :1],
            None if unseen is None else unseen[:, 0],
            None if unseen is None else unseen[:, 1:] / unseen[:, :1],
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser)
    parser.add_argument("--devices", nargs="+", choices=[*TABLES], default=[*TABLES], help="whose tables to fit to")
    parser.add_argument("--write", type=Path, required=True, help="the file with the numbers that were found")
    arguments = parser.parse_args()
    file = json.loads(DATA.read_text())
    for kind in ("gpu", "cpu"):
        devices = [device for device in arguments.devices if TABLES[device].kind == kind]
        of = [case for device in devices for case in cases(arguments.tables, arguments.counts, device)]
        if of:
            print(f"{kind}: {len(of)} measurements on {', '.join(devices)}")
            file = with_intervals(of, fitted(of, file))
    arguments.write.write_text(json.dumps(file, indent=1) + "\n")


if __name__ == "__main__":
    main()
