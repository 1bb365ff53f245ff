"""Published measurements of timm's models, and roofprof's counts of the same models on the meta device.

The measurements are tables of huggingface/pytorch-image-models, folder results/ (Apache-2.0): inference under autocast
in fp16, NCHW, eager. A table names a model, an image size, a batch and the time of a step. Counting all takes about 20
minutes on two cores; counts are kept in a folder::

    python benchmarks/prediction/measurements.py --tables FOLDER --counts build/timm-counts
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import multiprocessing
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from judgement import op_rooflines

from roofprof import _C


@dataclass(frozen=True)
class Table:
    """A device's table: who ran it, and how."""

    file: str
    torch: tuple[int, int]
    kind: str = "gpu"  # of device
    card: str = ""  # if not the table's name
    options: tuple[tuple[str, Any], ...] = ()  # of the prediction, from a count in half with any batch

    def prediction(self, batch: int) -> _C.PredictionOptions:
        """Return the options with which a line is predicted."""
        options = dict(self.options)
        return _C.PredictionOptions(**options, **({"batch": batch} if options else {}))


TABLES = {
    "RTX 3090": Table("benchmark-infer-amp-nchw-pt240-cu124-rtx3090.csv", (2, 4)),
    "RTX 4090": Table("benchmark-infer-amp-nchw-pt291-cu128-4090.csv", (2, 9)),
    "Core i9-10940X": Table(
        "benchmark-infer-fp32-nchw-pt240-cpu-i9_10940x-dynamo.csv",
        (2, 4),
        "cpu",
        options=(("precision", "fp32"), ("mode", "compiled")),
    ),
}
GPUS = [name for name, table in TABLES.items() if table.kind == "gpu"]
# These are judged; only the shares of convolutions with their channels last are fitted to one of them.
JUDGED = {
    "compiled": Table(
        "benchmark-infer-amp-nchw-pt291-cu128-4090-dynamo.csv",
        (2, 9),
        card="RTX 4090",
        options=(("mode", "compiled"),),
    ),
    "torch 2.4": Table(
        "benchmark-infer-amp-nchw-pt240-cu124-rtx4090.csv", (2, 4), card="RTX 4090", options=(("mode", "eager"),)
    ),
    "channels-last": Table(
        "benchmark-infer-amp-nhwc-pt240-cu124-rtx4090.csv", (2, 4), card="RTX 4090", options=(("channels_last", True),)
    ),
}


def roofs_of(device: str) -> _C.Ceilings:
    """The published roofs.

    Of the processor: 14 cores x 64 FLOPs of AVX-512 a cycle x 3.1 GHz, and four channels of DDR4-2933.
    """
    table = _table(device)
    if table.kind == "gpu":
        return _C.published_ceilings(table.card or device)
    source = {"source": "given", "method": "Intel's specification of the i9-10940X", "date": "", "spread": None}

    def level(name: str, rate: float, capacity: int) -> dict[str, Any]:
        return {"level": name, "bytes_per_second": rate, "capacity_bytes": capacity, "provenance": source}

    return _C.ceilings_from_dict(
        {
            "device": device,
            "compute": [{"dtype": "fp32", "operations_per_second": 14 * 64 * 3.1e9, "provenance": source}],
            "memory": [level("L3", 4e11, 20_185_088), level("DRAM", 4 * 8 * 2.933e9, 0)],
        }
    )


def _table(name: str) -> Table:
    return TABLES[name] if name in TABLES else JUDGED[name]


@dataclass(frozen=True)
class Measured:
    """One line of a table."""

    device: str
    torch: tuple[int, int]
    model: str
    size: int  # of the image
    batch: int
    seconds: float  # of a step
    params: float  # millions

    @property
    def key(self) -> str:
        """Return the key of the line's count."""
        return f"{self.model}__{self.size}__{self.batch}"

    @property
    def family(self) -> str:
        """The leading letters of its name: "resnet" of "resnet50d", "vit" of "vit_base_patch16_224"."""
        match = re.match(r"[a-z]+", self.model)
        return match.group(0) if match else self.model


def measured(tables: Path, device: str) -> list[Measured]:
    """All lines of a device's table."""
    table = _table(device)
    with (tables / table.file).open(newline="") as file:
        return [
            Measured(
                device,
                table.torch,
                line["model"],
                int(line["infer_img_size"]),
                int(line["infer_batch_size"]),
                float(line["infer_step_time"]) / 1e3,
                float(line["param_count"]),
            )
            for line in csv.DictReader(file)
        ]


@dataclass(frozen=True)
class Case:
    """A measurement and the count of its model."""

    measured: Measured
    predictor: _C.Predictor
    params: float  # millions that were counted

    @property
    def other_form(self) -> bool:
        """Return whether the measured model had its branches merged into one, unlike its definition."""
        least, most = 0.015, 0.02 * self.measured.params
        return self.params - self.measured.params > least or self.measured.params - self.params > most

    def roofline(self, counts: Path) -> float:
        """Return the sum over all ops of max(operations / peak, bytes / bandwidth)."""
        file, device = _count_file(counts, self.measured), self.measured.device
        batch = int(file.name.removesuffix(".json.gz").rpartition("__")[2])
        return self.measured.batch / batch * _roofline_of(file, _table(device).card or device)


@cache
def _roofline_of(file: Path, device: str) -> float:
    ops = json.loads(gzip.decompress(file.read_bytes()))["ops"]
    size = 2 if _table(device).kind == "cpu" else 1  # counted in half
    return float(op_rooflines(roofs_of(device), ops, size).sum())


def cases(tables: Path, counts: Path, device: str) -> list[Case]:
    """The measurements of a device's table, of models that were counted."""
    found = []
    for line in measured(tables, device):
        if not _count_file(counts, line).exists():
            continue
        report = _C.report_from_json(gzip.decompress(_count_file(counts, line).read_bytes()))
        options = _table(device).prediction(line.batch)
        found.append(Case(line, _C.Predictor(report, options), report.total.params / 1e6))
    return found


def _count_file(counts: Path, line: Measured) -> Path:
    """Return the file of the count: of the measured batch if the prediction does not change the batch, else of any."""
    if not _table(line.device).options:
        return counts / f"{line.key}.json.gz"
    files = sorted(counts.glob(f"{line.model}__{line.size}__*.json.gz"))
    return files[0] if files else counts / f"{line.key}.json.gz"


# ---- counting


def _made(name: str, **options: Any) -> Any:
    import timm
    import torch

    try:
        with torch.device("meta"):
            return timm.create_model(name, **options).eval().half()
    except (NotImplementedError, RuntimeError, ValueError, TypeError):  # weights that are computed from others
        return timm.create_model(name, **options).eval().half().to("meta")


def _count(wanted: tuple[str, list[tuple[int, int]], Path]) -> str:
    import torch

    import roofprof

    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    name, sizes, counts = wanted
    model = _made(name)
    for size, batch in sizes:
        images = torch.empty(batch, 3, size, size, device="meta", dtype=torch.half)
        with torch.no_grad():
            try:
                report = roofprof.count(model, images)
            except (AssertionError, RuntimeError):  # made for images of one size
                report = roofprof.count(_made(name, img_size=size), images)
        path = counts / f"{name}__{size}__{batch}.json.gz"
        path.write_bytes(gzip.compress(report.to_json().encode(), compresslevel=3))
    return name


def _missing(tables: Path, counts: Path) -> Iterator[tuple[str, list[tuple[int, int]], Path]]:
    wanted: dict[str, set[tuple[int, int]]] = {}
    for device in GPUS:
        for line in measured(tables, device):
            if not (counts / f"{line.key}.json.gz").exists():
                wanted.setdefault(line.model, set()).add((line.size, line.batch))
    for name, sizes in sorted(wanted.items()):
        yield name, sorted(sizes), counts


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tables", type=Path, required=True, help="the folder with the published tables")
    parser.add_argument("--counts", type=Path, default=Path("build/timm-counts"), help="where counts are kept")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser)
    arguments = parser.parse_args()
    arguments.counts.mkdir(parents=True, exist_ok=True)
    with multiprocessing.get_context("spawn").Pool() as pool:
        for done, name in enumerate(pool.imap_unordered(_count, _missing(arguments.tables, arguments.counts)), 1):
            print(done, name, flush=True)


if __name__ == "__main__":
    main()
