"""Fits the predictions of a device to kernels measured on it, and stores the numbers with its roofs."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roofprof import _report
from roofprof.calibration.least_squares import fitted
from roofprof.calibration.measured_kernels import MeasuredKernels
from roofprof.errors import Error

if TYPE_CHECKING:
    import numpy as np

_DATA = Path(__file__).parents[1] / "data" / "prediction.json"
_SPREAD = 0.3  # of the logarithm of a number, which is expected to be that of the device's architecture
_FEWEST = 8  # shapes of a class that say something about it
_DOUBTFUL = 0.5  # a median error of what was held out: no device is that far from its architecture
_FURTHEST = 6.0  # times a number as it is expected, either way
_FOLDS = 2  # in turn, one is held out
_VECTOR = ("achieved.vector", "achieved.vector_picojoules", "vector_product.load", "vector_product.prologue")
# The numbers that the kernels of each class say something about, those of one architecture among them. A class that is
# not here has its share of the bandwidth.
_NUMBERS: Mapping[str, Sequence[str]] = {
    "linear in fp32": _VECTOR,
    "batched_matmul in fp32": _VECTOR,
    "linear": (
        "linear.of_bandwidth",
        "achieved.product.launch",
        "achieved.product.of_peak",
        "product.tile_side",
        "product.byte_latency",
        "product.split",
        "product.tile_latency",
        "product.exposed_output",
        "product.overlap",
    ),
}


@dataclass(frozen=True)
class _Kernels:
    """The measured kernels of one class."""

    name: str
    of: tuple[tuple[MeasuredKernels, list[int]], ...]  # with the places of the class in its lists
    shapes: list[str]
    seconds: np.ndarray

    def predicted(self, roofs: _report.Ceilings) -> np.ndarray:
        import numpy as np

        found = []
        for of, chosen in self.of:
            seconds = of.predicted(roofs, _report.PredictionParameters.shipped())
            found += [seconds[i] for i in chosen]
        return np.array(found)


def calibrated(roofs: _report.Ceilings, measured: Sequence[MeasuredKernels], source: str) -> _report.Ceilings:
    """Return the roofs with the numbers that suit the device's own kernels best, and how well these predict others.

    source: what was measured, in words. A class whose fit predicts held-out shapes no better stays as it is. Raises
    ValueError, one sentence, where no class of ops has kernels of at least eight shapes, where no fit is better, or
    where the roofs are those of a CPU; ImportError without numpy.
    """
    try:
        import numpy as np
    except ImportError:
        raise ImportError("a calibration needs numpy: pip install roofprof[calibrate]") from None
    levels = {level.level for level in roofs.memory}
    if not roofs.facts.compute_capability and ("L3" in levels or (roofs.curve.points and "host link" not in levels)):
        raise Error(
            f"the roofs of '{roofs.device}' are those of a CPU: calibrations are of GPUs "
            "(roofprof docs predict#calibration)"
        )
    plain = _with(roofs, {}, [], "")
    classes = [kernels for kernels in _by_class(measured) if len(set(kernels.shapes)) >= _FEWEST]
    if not classes:
        raise Error(f"no class of ops was measured with {_FEWEST} shapes or more: nothing can be fitted")
    numbers: dict[str, float] = {}
    judged = []
    for kernels in classes:
        seconds = kernels.seconds
        fold = np.array([zlib.crc32(shape.encode()) % _FOLDS for shape in kernels.shapes])
        unfitted = kernels.predicted(plain)
        held_out = unfitted.copy()
        for out in range(_FOLDS):
            if 0 < np.sum(fold == out) < len(fold):
                found = _fit(plain, kernels, fold != out, numbers)
                held_out[fold == out] = kernels.predicted(_with(plain, found, [], source))[fold == out]
        before, error = np.abs(unfitted / seconds - 1), np.abs(held_out / seconds - 1)
        if np.median(error) > _DOUBTFUL:
            raise Error(_doubtful(f"half of the {kernels.name} kernels are off by {np.median(error):.0%}", roofs))
        if np.median(error) < np.median(before):
            numbers = _fit(plain, kernels, np.full(len(seconds), True), numbers)
            low, high = np.quantile(seconds / held_out, (0.1, 0.9))
            interval = "vector_product" if _NUMBERS.get(kernels.name) is _VECTOR else kernels.name
            numbers[f"{interval}.low"] = float(f"{min(low, 0.99):.3g}")
            numbers[f"{interval}.high"] = float(f"{max(high, 1.01):.3g}")
        else:
            error = before
        judged.append(
            {
                "name": kernels.name,
                "kernels": len(set(kernels.shapes)),
                "median_error": float(np.median(error)),
                "percentile_90": float(np.quantile(error, 0.9)),
                "median_error_before": float(np.median(before)),
            }
        )
    if not numbers:
        raise Error("no fit predicts shapes that were held out better than the prediction does without one")
    return _with(roofs, numbers, judged, source)


def _by_class(measured: Sequence[MeasuredKernels]) -> list[_Kernels]:
    import numpy as np

    found = []
    for name in sorted({name for of in measured for name in of.classes}):
        chosen = [(of, [i for i, of_class in enumerate(of.classes) if of_class == name]) for of in measured]
        shapes = [of.shapes[i] for of, places in chosen for i in places]
        seconds = np.array([of.seconds[i] for of, places in chosen for i in places])
        found.append(_Kernels(name, tuple(chosen), shapes, seconds))
    return found


def _fit(
    roofs: _report.Ceilings, kernels: _Kernels, chosen: np.ndarray, known: Mapping[str, float]
) -> dict[str, float]:
    """Return the known numbers and those that suit the chosen kernels."""
    capability = roofs.facts.compute_capability
    names = [
        name
        for name in _NUMBERS.get(kernels.name, (f"{kernels.name}.of_bandwidth",))
        if name not in known and _shipped(name, capability) > 0
    ]
    if not names:
        return dict(known)
    priors = [(_shipped(name, capability), _SPREAD) for name in names]

    def predicted(values: list[float]) -> np.ndarray:
        trial = _with(roofs, {**known, **dict(zip(names, values, strict=True))}, [], "a trial")
        seconds: np.ndarray = kernels.predicted(trial)[chosen]
        return seconds

    found = fitted(predicted, kernels.seconds[chosen], priors)
    for name, value, (expected, _) in zip(names, found, priors, strict=True):
        if not 1 / _FURTHEST < value / expected < _FURTHEST:
            raise Error(_doubtful(f"{name} would be {value:g} in place of {expected:g}", roofs))
    return {**known, **dict(zip(names, found, strict=True))}


def _doubtful(why: str, roofs: _report.Ceilings) -> str:
    return f"with a fit {why}: these are no times of {roofs.device}, or they have another unit than their column says"


def _with(
    roofs: _report.Ceilings, numbers: Mapping[str, float], classes: list[dict[str, Any]], source: str
) -> _report.Ceilings:
    content = roofs.to_dict()
    content.pop("calibration", None)
    if numbers:
        listed = [{"name": name, "value": value} for name, value in numbers.items()]
        content["calibration"] = {"source": source, "numbers": listed, "classes": classes}
    return _report.ceilings_from_dict(content)


@cache
def _file() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(_DATA.read_text())["parameters"]
    return content


def _shipped(name: str, capability: str) -> float:
    """Return a number as it is without a calibration."""
    first, *rest = name.split(".")
    place: Any = _file()["gpu"]
    if first == "achieved":
        of_architecture = [one for one in _file()["achieved"] if one["compute_capability"] == capability]
        place = of_architecture[0] if of_architecture else _file()["achieved"][0]
    elif first in {one["name"] for one in place["classes"]}:
        place = next(one for one in place["classes"] if one["name"] == first)
    else:
        place = place[first]
    for key in rest:
        place = place[key]
    return float(place)
