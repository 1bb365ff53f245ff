"""``roofprof calibrate``: a device's own measured kernels sharpen its predictions."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from roofprof.cli.shared import (
    CommandError,
    Commands,
    add_width,
    check_files,
    print_result,
    width,
    write_result,
)

if TYPE_CHECKING:
    from roofprof import _report
    from roofprof.calibration.measured_kernels import MeasuredKernels

_DESCRIPTION = """\
Fits the numbers of the prediction to measured kernels of a device, says how well they predict shapes that were held out
of the fit, and writes them with the device's roofs: `roofprof predict r.json --device OUT.json` uses them. A table is a
CSV file of products y = x w^T with the columns m, n, k, dtype and seconds (or ms, us); a report or a trace of
torch.profiler gives the kernels of its ops. docs/prediction.md explains the numbers.
"""


def add_parser(commands: Commands) -> None:
    """Add the command's options."""
    parser = commands.add_parser(
        "calibrate", help="fit predictions of a device to its own measured kernels", description=_DESCRIPTION
    )
    parser.set_defaults(command=run)
    parser.add_argument("roofs", metavar="CARD|FILE.json", help="a card, such as 'RTX 4090', or a file of roofs")
    parser.add_argument(
        "--from",
        dest="sources",
        action="append",
        required=True,
        metavar="FILE",
        help="measured kernels: a table (.csv, .csv.gz), a report, or a trace; repeat the option for several",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the roofs with the fitted numbers to a file")
    add_width(parser)


def run(arguments: argparse.Namespace) -> int:
    """Fit, write and print."""
    from roofprof.calibration.calibrate import calibrated
    from roofprof.predict.options import roofs_of
    from roofprof.roofs import ceilings

    check_files([arguments.roofs, *arguments.sources], arguments.json)
    roofs = roofs_of(arguments.roofs)
    measured = [_kernels_of(Path(source)) for source in arguments.sources]
    names = [
        f"{Path(source).name} ({len(kernels.places)} kernels)"
        for source, kernels in zip(arguments.sources, measured, strict=True)
    ]
    try:
        found = calibrated(roofs, measured, ", ".join(names))
    except ImportError as error:
        raise CommandError(str(error)) from None
    write_result(arguments.json, lambda file: ceilings.save(found, file))
    print_result(_document(found).text(width(arguments)).rstrip("\n"), arguments)
    return 0


def _kernels_of(path: Path) -> MeasuredKernels:
    from roofprof.calibration import measured_kernels
    from roofprof.profiling.imported import from_trace
    from roofprof.render.files import opened
    from roofprof.report.report import Report

    if path.name.endswith((".csv", ".csv.gz")):
        return measured_kernels.of_table(path)
    with opened(path, "a table, a report or a trace of measured kernels") as file:
        is_report = b'"generator"' in file.read(4096)
    report = Report.from_json(path) if is_report else from_trace(path)
    try:
        return measured_kernels.of_report(report)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _document(roofs: _report.Ceilings) -> _report.Document:
    from roofprof import _report

    document = _report.Document()
    document.add_title(f"{roofs.device}, calibrated with {roofs.calibration.source}")
    columns = ["kernels", "shapes", "median error", "90th percentile", "before"]
    document.add_table(
        [_report.TableColumn(name, left=place == 0) for place, name in enumerate(columns)],
        [
            [
                _report.Cell(of.name),
                _report.Cell(str(of.kernels), of.kernels),
                *(
                    _report.Cell(f"{share:.1%}", share)
                    for share in (of.median_error, of.percentile_90, of.median_error_before)
                ),
            ]
            for of in roofs.calibration.classes
        ],
        title="Errors of shapes that were held out of the fit",
    )
    numbers = ", ".join(f"{number.name} = {number.value:g}" for number in roofs.calibration.numbers)
    document.add_paragraph("numbers", numbers)
    document.add_paragraph(
        "columns",
        "median error, 90th percentile: of |predicted / measured - 1|, each half of the shapes predicted by numbers "
        "that were fitted to the other half; before: the median error without a fit; where both are equal, no fit was "
        "better and none is kept",
    )
    return document
