"""The device that times are predicted for."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import TypeAlias

from roofprof import _report
from roofprof.roofs.ceilings import load
from roofprof.roofs.published_peaks import names, published

Device: TypeAlias = "str | Path | _report.Ceilings"


def roofs_of(device: Device) -> _report.Ceilings:
    """Return the roofs of a card by its name ("RTX 4090"), of a file of roofs, or the given ones.

    Raises ValueError for a card that is not known, naming those like it; OSError and ValueError for a file.
    """
    if isinstance(device, _report.Ceilings):
        if not device:
            raise ValueError("the ceilings have no roofs: give those of a device, such as Ceilings.load(path)")
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
        raise ValueError(
            f"no card is known as '{device}'; {'near it are' if close else 'there are'} {offered}; "
            "a file of roofs will do too, its name ends in .json"
        ) from None
