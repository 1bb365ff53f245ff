"""The arguments that all predictions share: the device that times are predicted for, and the options."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Literal, TypeAlias, TypedDict

from roofprof import _report
from roofprof.errors import Error
from roofprof.predict.host import MEASURED, host_seconds
from roofprof.roofs.ceilings import load
from roofprof.roofs.published_peaks import names, published

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


_KINDS = {str: "word", bool: "truth value, True or False", float: "number"}


class OptionsOfCalls(TypedDict, total=False):
    """The options of predictions for calls of any size."""

    precision: str | None
    bandwidth: float
    peak: float
    autocast: bool
    channels_last: bool
    mode: Literal["eager", "graph", "compiled"]
    host: float | Literal["measured"] | None
    compiled: bool  # mode="compiled"
    ranks: int
    parallel: Literal["ddp", "fsdp", "tp"]


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
    host = given.pop("host", None)
    if host is not None and host != MEASURED and (isinstance(host, bool) or not isinstance(host, (int, float))):
        raise TypeError(f"host is seconds or {MEASURED!r}, not {host!r}")
    seconds = host_seconds() if host == MEASURED else host
    if given.pop("compiled", False) and given.setdefault("mode", "compiled") != "compiled":
        raise Error(f"compiled=True is mode='compiled', and the mode is {given['mode']!r}: give one of them")
    batch = given.get("batch")
    if batch is not None and (isinstance(batch, bool) or not isinstance(batch, int)):
        raise TypeError(f"batch is a whole number, not {batch!r}")
    if batch is not None and batch >= 2**63:
        raise Error(f"batch {batch} is larger than any that there can be")
    _check_kinds(given)
    return _report.PredictionOptions(**given, host_seconds=seconds)  # type: ignore[misc]  # host is not in it


def _check_kinds(given: Options) -> None:
    ranks = given.get("ranks", 1)
    if isinstance(ranks, bool) or not isinstance(ranks, int):
        raise TypeError(f"ranks is a whole number, not {ranks!r}")
    if not 1 <= ranks < 2**31:
        raise Error(f"ranks must be 1 or more, and below {2**31}, not {ranks}")
    kinds = {"mode": str, "parallel": str, "autocast": bool, "channels_last": bool, "bandwidth": float, "peak": float}
    for option, kind in kinds.items():
        value = given.get(option, kind())
        if not isinstance(value, (kind, int) if kind is float else kind):
            raise TypeError(f"{option} is a {_KINDS[kind]}, not {value!r}")


Device: TypeAlias = "str | Path | _report.Ceilings"


def roofs_of(device: Device) -> _report.Ceilings:
    """Return the roofs of a card by its name ("RTX 4090"), of a file of roofs, or the given ones.

    Raises ValueError for a card that is not known, naming those like it; OSError and ValueError for a file.
    """
    if isinstance(device, _report.Ceilings):
        if not device:
            raise Error("the ceilings have no roofs: give those of a device, such as Ceilings.load(path)")
        return device
    if not isinstance(device, (str, Path)):
        raise TypeError(f"a device is a card's name, the path of a file of roofs or Ceilings, not {device!r}")
    if isinstance(device, Path) or device.endswith(".json"):
        return load(device)
    try:
        return published(device)
    except ValueError:
        known = names()
        plain = {name.lower(): name for name in known}
        close = [plain[name] for name in difflib.get_close_matches(device.lower(), plain, n=4, cutoff=0.4)]
        offered = ", ".join(close or known)
        raise Error(
            f"no card is known as '{device}'; {'near it are' if close else 'there are'} {offered}; "
            "a file of roofs will do too, its name ends in .json (roofprof docs predict)"
        ) from None
