"""The roofs of a machine: measured, kept, loaded; those that were published stand in published_peaks.

A file of roofs is JSON: ``{"schema_version": 1, "ceilings": {device, compute, memory}, "notes": [...]}``.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from roofprof import _C
from roofprof.published_peaks import published

SCHEMA_VERSION = 1

Progress = Callable[[str], None]


def measure(device: str = "cpu", progress: Progress | None = None) -> _C.Ceilings:
    """Measure the roofs of a device ("cpu", "cuda:0"); takes about ten seconds, and at most twenty.

    ``progress`` is called with a line for each thing being measured, and with the notes on what was left out or looks
    odd. Raises ValueError for a device that cannot be measured.
    """
    ceilings, notes = measure_with_notes(device, progress)
    _tell_notes(notes, progress)
    return ceilings


def measure_with_notes(device: str = "cpu", progress: Progress | None = None) -> tuple[_C.Ceilings, list[str]]:
    """As :func:`measure`, with the notes beside the roofs."""
    return _C.measure_ceilings(_named(device), progress)


def for_device(device: str = "cpu", progress: Progress | None = None, *, again: bool = False) -> _C.Ceilings:
    """The roofs of this machine: measured when first needed, later read from the cache.

    They are kept for each host, device, number of threads and torch version, those of a GPU for each GPU, driver, power
    limit and highest clocks too, in a folder that the environment variable ROOFPROF_CACHE_DIR names, else in
    ``~/.cache/roofprof``. Without ``progress`` a measurement reports to stderr.
    ``again`` measures even where they are known, and keeps the new ones: after a measurement on a busy machine.
    """
    progress = progress or _to_stderr
    ceilings, notes, is_new = _cached_or_measured(device, progress, again=again)
    if is_new:
        _tell_notes(notes, progress)
    return ceilings


def for_device_with_notes(
    device: str = "cpu", progress: Progress | None = None, *, again: bool = False
) -> tuple[_C.Ceilings, list[str]]:
    """As :func:`for_device`, with the notes of the measurement beside the roofs."""
    ceilings, notes, _ = _cached_or_measured(device, progress or _to_stderr, again=again)
    return ceilings, notes


def load(path: str | os.PathLike[str]) -> _C.Ceilings:
    """The roofs in a file. Raises ValueError, naming the file and what is wrong with it, where it cannot be used."""
    return _load_with_notes(Path(path))[0]


def save(ceilings: _C.Ceilings, path: str | os.PathLike[str]) -> None:
    """Write roofs to a file, whole or not at all. Raises OSError naming the file."""
    _save_with_notes(ceilings, [], Path(path))


# ---- files


def _load_with_notes(path: Path) -> tuple[_C.Ceilings, list[str]]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"roofs cannot be read from {path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path} holds no roofs: it is not a text file") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} holds no roofs: it is not JSON ({error})") from None
    try:
        return _read(content)
    except KeyError as error:
        raise ValueError(f"{path} holds no roofs: {error.args[0]!r} is missing") from None
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"{path} holds no roofs: {error}") from None


def _read(content: object) -> tuple[_C.Ceilings, list[str]]:
    if not isinstance(content, dict):
        raise TypeError("its outermost value is not an object")
    version = content["schema_version"]
    if version != SCHEMA_VERSION:
        raise ValueError(f"its schema_version is {version!r}, and this roofprof reads {SCHEMA_VERSION}")
    roofs = content["ceilings"]
    if not isinstance(roofs, dict):
        raise TypeError("'ceilings' is not an object")
    for key in ("compute", "memory"):
        if not isinstance(roofs[key], list) or not all(isinstance(item, dict) for item in roofs[key]):
            raise TypeError(f"'{key}' is not a list of objects")
    ceilings = _C.ceilings_from_dict(roofs)
    for peak in ceilings.compute:
        # The extension files every name that it does not know under "other".
        if peak.dtype == "other":
            raise ValueError("a dtype under 'compute' is not one that roofprof knows")
        _check(peak.operations_per_second, f"operations_per_second of {peak.dtype}")
    for level in ceilings.memory:
        _check(level.bytes_per_second, f"bytes_per_second of {level.level}")
    return ceilings, [str(note) for note in content.get("notes", [])]


def _check(rate: float, name: str) -> None:
    if not (math.isfinite(rate) and rate > 0):
        raise ValueError(f"{name} is {rate:g}, not a positive number")


def _save_with_notes(ceilings: _C.Ceilings, notes: list[str], path: Path, **more: object) -> None:
    content = {"schema_version": SCHEMA_VERSION, **more, "ceilings": ceilings.to_dict(), "notes": notes}
    text = json.dumps(content, indent=2) + "\n"
    try:
        _write_whole(path, text)
    except OSError as error:
        raise OSError(error.errno, f"roofs cannot be written: {error.strerror or error}", str(path)) from None


def _write_whole(path: Path, text: str) -> None:
    if path.exists() and not path.is_file():  # a pipe or /dev/stdout has no second name to write under
        path.write_text(text, encoding="utf-8")
        return
    # Beside the file, as a rename is whole within one file system only.
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


# ---- the cache


def cache_dir() -> Path:
    """Where measured roofs are kept between runs."""
    named = os.environ.get("ROOFPROF_CACHE_DIR")
    if named:
        return Path(named)
    # The XDG rule: what is not absolute does not count.
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else Path("~/.cache").expanduser()) / "roofprof"


def _cached_or_measured(device: str, progress: Progress, *, again: bool) -> tuple[_C.Ceilings, list[str], bool]:
    """The roofs, the notes on them, and whether they were measured just now."""
    key = _key(_named(device))
    path = _cache_path(key)
    remarks: list[str] = []
    if path.exists() and not again:
        try:
            return *_load_with_notes(path), False
        except ValueError as error:
            remarks.append(f"the roofs were measured again, as those kept could not be used: {error}")

    ceilings, notes = measure_with_notes(device, progress)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _save_with_notes(ceilings, notes, path, measured_on=key)
    except OSError as error:
        remarks.append(f"the roofs were not kept for the next run: {error}")
    return ceilings, remarks + notes, True


def _key(device: str) -> dict[str, Any]:
    """Everything that measured roofs depend on and that can change without anyone measuring again."""
    everywhere = {
        # Machines of a cloud or a cluster share names and home folders: the processor tells them apart.
        "host": platform.node(),
        "processor": _processor(),
        "device": device,
        "torch": torch.__version__,
        "roofprof_schema": SCHEMA_VERSION,
    }
    return everywhere | (_key_of_gpu(device) if device.startswith("cuda") else _key_of_cpu())


def _key_of_cpu() -> dict[str, Any]:
    return {
        "cpus": len(os.sched_getaffinity(0)),
        "simd": torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
    }


# Of a GPU's environment; what changes from moment to moment is left out.
_GPU_FACTS = (
    "gpu_device",
    "gpu_uuid",
    "gpu_pci_bus_id",
    "gpu_driver",
    "gpu_driver_cuda",
    "torch_cuda",
    "gpu_sm_count",
    "gpu_max_sm_clock_hz",
    "gpu_max_memory_clock_hz",
    "gpu_power_limit_watts",
    "gpu_ecc",
    "gpu_mig",
    "gpu_max_pcie_generation",
    "gpu_max_pcie_width",
)


def _key_of_gpu(device: str) -> dict[str, Any]:
    facts = dict(_C.gpu_environment(device))
    return {name: facts[name] for name in _GPU_FACTS if name in facts}


def _processor() -> str:
    facts: dict[str, Any] = dict(_C.cpu_environment())
    return str(facts.get("device", platform.machine()))


def _cache_path(key: dict[str, Any]) -> Path:
    digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:12]
    device = "".join(letter if letter.isalnum() else "-" for letter in str(key["device"]))
    threads = f"{key['threads']}-threads-" if "threads" in key else ""
    return cache_dir() / f"ceilings-{device}-{threads}{digest}.json"


def _named(device: str) -> str:
    """The device with the index that tells it from others: none for the CPU, the current one's for a GPU."""
    if device.startswith("cpu:"):
        return "cpu"
    if device == "cuda" and torch.cuda.is_available():
        return f"cuda:{torch.cuda.current_device()}"
    return device


def _to_stderr(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def _tell_notes(notes: list[str], progress: Progress | None) -> None:
    if progress is not None:
        for note in notes:
            progress(f"roofs of this machine: {note}")


# Users look for these on the class: roofprof.Ceilings.measure(), .published("RTX 4090"), .load(path); roofs.save(path).
_C.Ceilings.measure = staticmethod(measure)  # type: ignore[method-assign]
_C.Ceilings.published = staticmethod(published)  # type: ignore[method-assign]
_C.Ceilings.load = staticmethod(load)  # type: ignore[method-assign]
_C.Ceilings.save = save  # type: ignore[method-assign, assignment]
