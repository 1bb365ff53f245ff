"""``roofprof predict --sweep``, by its old name ``roofprof sweep``: predictions over batch and sequence sizes."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

from roofprof.cli.predict import add_prediction_options, prediction_options
from roofprof.cli.shared import (
    CommandError,
    Commands,
    add_debug,
    add_target_options,
    add_width,
    check_files,
    files_of,
    print_result,
    width,
    write_result,
)

_DESCRIPTION = """\
Time, throughput and memory by batch and sequence length, predicted for a device that need not be there: the model is
counted on the meta device at each size. In --input, B stands for the batch and S for the sequence length: Bx3x224x224,
BxS:int64. Where no B stands, the leading dimension is the batch. A callable of --inputs gets batch and sequence.
"""


def add_parser(commands: Commands) -> None:
    """Add the command's options."""
    parser = commands.add_parser("sweep", prog="roofprof predict --sweep", description=_DESCRIPTION)
    parser.set_defaults(command=run)
    add_target_options(parser)
    parser.add_argument("--device", required=True, metavar="CARD|FILE.json", help="for which device: 'RTX 4090'")
    parser.add_argument(
        "--batch", default="1,2,4,8,16,32,64,128,256", metavar="B,B,...", help="batch sizes (default: %(default)s)"
    )
    parser.add_argument("--sequence", metavar="S,S,...", help="sequence lengths, in place of S in --input")
    add_prediction_options(parser)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures as JSON")
    add_width(parser)
    add_debug(parser)


def run(arguments: argparse.Namespace) -> int:
    """Count at each size, predict and print."""
    batches = _numbers("--batch", arguments.batch)
    sequences = _numbers("--sequence", arguments.sequence) if arguments.sequence else []
    check_files([*files_of(arguments.target), *files_of(arguments.inputs), arguments.device], arguments.json)
    if bool(arguments.inputs) == bool(arguments.input):
        raise CommandError("give --input or --inputs, one of both: what a call gets")
    from roofprof.cli.profiling import model_of
    from roofprof.predict.sweep import predict_sweep
    from roofprof.predict.target import roofs_of

    roofs = roofs_of(arguments.device)
    made_on_meta = argparse.Namespace(**{**vars(arguments), "device": "meta"})
    model = model_of(made_on_meta)
    try:
        sweep = predict_sweep(
            model,
            _maker(made_on_meta, has_sequences=bool(sequences)),
            roofs,
            batches,
            sequences,
            **prediction_options(arguments),
        )
    except (CommandError, ValueError):
        raise
    except Exception as error:
        raise CommandError(f"{arguments.target} raised {type(error).__name__}: {error}") from error
    write_result(arguments.json, sweep.to_json)
    print_result(sweep.table(width(arguments)), arguments)
    return 0


def _numbers(option: str, text: str) -> list[int]:
    try:
        numbers = [int(number) for number in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 1:
        raise CommandError(f"{option} takes whole numbers above 0 such as 1,2,4, not '{text}'")
    return numbers


def _maker(arguments: argparse.Namespace, *, has_sequences: bool) -> Any:
    """Return the callable that makes the arguments of a call, on the meta device."""
    import torch

    from roofprof.cli.target import call_inputs, load_inputs, make_input, parse_dtype

    if arguments.inputs:
        function = load_inputs(arguments.inputs)

        def called(batch: int, *sequence: int) -> Any:
            with torch.device("meta"):
                return call_inputs(arguments.inputs, lambda _: function(batch, *sequence), batch)

        return called
    dtype = parse_dtype(arguments.dtype) if arguments.dtype else torch.float32
    shapes = arguments.input
    if has_sequences and not any(re.search(r"(^|x)S(x|:|$)", shape) for shape in shapes):
        raise CommandError("--sequence is put in the place of S in --input, such as --input BxS:int64; there is none")

    if not has_sequences and any(re.search(r"(^|x)S(x|:|$)", shape) for shape in shapes):
        raise CommandError(
            "--input has S for the sequence length: say which with --sequence, such as --sequence 128,512"
        )

    def made(batch: int, sequence: int = 0) -> Any:
        return tuple(make_input(_sized(shape, batch, sequence), dtype, "meta") for shape in shapes)

    return made


def _sized(shape: str, batch: int, sequence: int) -> str:
    sizes, colon, dtype = shape.partition(":")
    parts = sizes.split("x")
    if "B" not in parts:
        parts[0] = "B"
    known = {"B": str(batch), "S": str(sequence)}
    return "x".join(known.get(part, part) for part in parts) + colon + dtype
