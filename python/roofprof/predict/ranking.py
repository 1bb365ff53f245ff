"""One model on many devices: a table sorted by predicted time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from roofprof import _report
from roofprof.figures import cell, fields
from roofprof.predict.options import Device, Options, compiled_options, roofs_of
from roofprof.render.results import StoredResult
from roofprof.roofs.published_peaks import names

_COLUMNS = (
    ("device", True, 0),
    ("time", False, 0),
    ("low", False, 3),
    ("high", False, 3),
    ("per s", False, 0),
    ("per J", False, 2),
    ("TDP", False, 4),
    ("compute", False, 1),
    ("memory", True, 5),
)
_MIN_NAME = 24  # characters of a device's name, or of its file's


@dataclass(frozen=True)
class RankedDevice:
    """A device and what is predicted for it. Seconds, joules and bytes; None: not known."""

    device: str
    time: float
    time_low: float
    time_high: float
    throughput: float  # samples a second; calls, where the batch is not known
    throughput_per_watt: float | None  # of the TDP: samples per joule
    tdp: float | None  # W
    compute_bound: float  # 0-1: the part of the time of ops whose arithmetic takes longer than their bytes
    memory_needed: int | None  # weights, and activations where they are known; None: a trace has no weights
    memory: int | None  # of the device

    @property
    def fits(self) -> bool | None:
        """True if the device's memory holds the call; None if either size is not known."""
        return None if self.memory is None or self.memory_needed is None else self.memory_needed <= self.memory


@dataclass(frozen=True, repr=False)
class Ranking(StoredResult):
    """Devices by predicted time, the shortest first, and those that nothing could be predicted for."""

    SCHEMA: ClassVar[str] = "roofprof.ranking"

    model: str
    prediction: str  # the options
    batch: int | None
    devices: tuple[RankedDevice, ...]
    left_out: tuple[str, ...]  # "RTX 3070: why"

    def __getitem__(self, place: int) -> RankedDevice:
        return self.devices[place]

    def __len__(self) -> int:
        return len(self.devices)

    def document(self) -> _report.Document:
        """Return what is shown, as data: a row for each device, what the columns mean, and who was left out."""
        document = _report.Document()
        batch = f", batch {self.batch}" if self.batch else ""
        document.add_title(f"predicted times of {self.model}: {self.prediction}{batch}")
        columns = [
            _report.TableColumn(heading, left, 0 if rank else _MIN_NAME, rank) for heading, left, rank in _COLUMNS
        ]
        document.add_table(columns, [_cells(device) for device in self.devices], title="Devices")
        thing = "samples" if self.batch else "calls"
        document.add_paragraph(
            "columns",
            f"time: of what was counted; low, high: 80% of whole models take between these; per s: {thing} a second; "
            f"per J: {thing} a second and watt of TDP; compute: part of the time in ops whose arithmetic takes longer "
            "than their bytes; memory: weights and activations, and what the device has",
        )
        for place, line in enumerate(self.left_out):
            document.add_paragraph("" if place else "left out", line)
        return document

    def _about(self) -> str:
        return f"{len(self)} devices for {self.model}"


def _cells(device: RankedDevice) -> Sequence[_report.Cell]:
    memory = fields["bytes"].text(device.memory_needed)
    if device.memory is not None:
        memory += f" of {fields['bytes'].text(device.memory)}" + (": does not fit" if device.fits is False else "")
    return (
        _report.Cell(device.device),
        cell("time", device.time),
        cell("time", device.time_low),
        cell("time", device.time_high),
        cell("achieved_flops", device.throughput),
        cell("achieved_flops", device.throughput_per_watt),
        _report.Cell("n/a" if device.tdp is None else f"{device.tdp:g}W", device.tdp),
        cell("percent_of_roof", 100 * device.compute_bound),
        _report.Cell(memory, device.memory_needed),
    )


def ranked(report: _report.Report, devices: Iterable[Device], options: Options) -> Ranking:
    """Return the predictions for :meth:`Predicts.predict_all`."""
    given = [devices] if isinstance(devices, (str, Path, _report.Ceilings)) else list(devices)
    predictor = _report.Predictor(report, compiled_options(options))
    parameters = _report.PredictionParameters.shipped()
    weights, activations = predictor.memory
    needed = None if report.total.param_bytes is None else weights + (activations or 0)
    found, left_out = [], []
    for device in given or names():
        roofs = roofs_of(device)
        try:
            time, low, high, compute_bound = predictor.total(roofs, parameters)
        except ValueError as error:
            if given:
                raise
            left_out.append(f"{roofs.device}: {error}")
            continue
        facts = roofs.facts
        throughput = (predictor.batch or 1) * predictor.steps / time
        found.append(
            RankedDevice(
                device=roofs.device,
                time=time,
                time_low=low,
                time_high=high,
                throughput=throughput,
                throughput_per_watt=throughput / facts.tdp_watts if facts.tdp_watts else None,
                tdp=facts.tdp_watts or None,
                compute_bound=compute_bound / time,
                memory_needed=needed,
                memory=facts.memory_bytes or None,
            )
        )
    found.sort(key=lambda device: device.time)
    return Ranking(report.model, predictor.words, predictor.batch, tuple(found), tuple(left_out))
