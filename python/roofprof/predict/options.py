"""The options that all predictions of a time share."""

from __future__ import annotations

from typing import TypedDict

from roofprof import _report

_SHORT = {
    "float64": "fp64",
    "double": "fp64",
    "float32": "fp32",
    "float": "fp32",
    "float16": "fp16",
    "half": "fp16",
    "bfloat16": "bf16",
    "float8": "fp8",
}


class OptionsOfCalls(TypedDict, total=False):
    """The options of predictions for calls of any size."""

    precision: str | None
    bandwidth: float
    peak: float
    autocast: bool
    compiled: bool


class Options(OptionsOfCalls, total=False):
    """The options of :meth:`roofprof.Report.predict`."""

    batch: int | None


def compiled_options(options: Options) -> _report.PredictionOptions:
    """Return the extension's options. Raises TypeError and ValueError for values that are not options."""
    known = (*OptionsOfCalls.__annotations__, "batch")
    for name in options:
        if name not in known:
            raise TypeError(f"a prediction has no option '{name}'; it has {', '.join(known)}")
    given: Options = {**options}
    precision = given.get("precision")
    if precision is not None:
        # torch.float16 is as good as its name.
        name = str(precision).removeprefix("torch.").lower()
        given["precision"] = _SHORT.get(name, name)
    batch = given.get("batch")
    if batch is not None and (isinstance(batch, bool) or not isinstance(batch, int)):
        raise TypeError(f"batch is a whole number, not {batch!r}")
    if batch is not None and batch >= 2**63:
        raise ValueError(f"batch {batch} is larger than any that there can be")
    return _report.PredictionOptions(**given)
