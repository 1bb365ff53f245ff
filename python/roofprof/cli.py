"""The ``roofprof`` command. What is wrong is said in one sentence and exit code 2; ``--debug`` shows the traceback."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from roofprof import _C, RooflineProfiler, __version__, _doctor, ceilings, published_peaks
from roofprof._arguments import tensors_in
from roofprof._target import TargetError, call_inputs, load_model, make_input, parse_dtype
from roofprof.report import Report

_EPILOG = """\
examples:
  roofprof profile torchvision.models:resnet50 --input 1x3x224x224 --json r.json
  roofprof profile my_model.py:build --inputs my_model.py:example_batch
  roofprof show r.json --by op --sort time
  roofprof ceilings --device cuda
  roofprof ops softmax --family normalization
  roofprof doctor
"""

_OPS = """\
Every operator with a cost line: family, name without overload, formula; where a formula is not plain arithmetic, its
source; the arguments besides tensors that it reads. In-place and out= forms are under the plain name. Operators that
torch tags as pointwise or as a reduction need no line: they cost 1 per element of the output or the input. Costs that
were given with op_cost or OpCosts::add are the family "own".
"""

_DOCTOR = """\
What measuring on a GPU needs, in the order in which one thing needs the other: what was found, and behind an arrow what
to do where something is missing. Nothing is measured, and a machine without a GPU is no error.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 0, 2 where something was wrong, 130 when interrupted."""
    arguments = _parser().parse_args(argv)
    command: Callable[[argparse.Namespace], int] = arguments.command
    try:
        code = command(arguments)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of our output went away (head): what is left goes nowhere, silently
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (TargetError, ValueError, OSError) as error:
        return _complain(error, arguments)
    except KeyboardInterrupt:
        print("roofprof: interrupted", file=sys.stderr)
        return 130
    return code


def _complain(error: BaseException, arguments: argparse.Namespace) -> int:
    if arguments.debug:
        raise error
    print(f"roofprof: {' '.join(str(error).split()) or type(error).__name__}", file=sys.stderr)
    return 2


# ---- commands


def _profile(arguments: argparse.Namespace) -> int:
    device = arguments.device
    try:
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise TargetError(f"device '{device}' cannot be used here: {str(error).splitlines()[0]}") from error
    dtype = parse_dtype(arguments.dtype) if arguments.dtype else None
    roofs = ceilings.load(arguments.ceilings) if arguments.ceilings else None
    model = load_model(arguments.target)
    args, kwargs = _inputs(arguments, dtype or torch.float32, device)
    if isinstance(model, torch.nn.Module):
        model = model.to(device=device, dtype=dtype)
        if not isinstance(model, torch.fx.GraphModule):  # an exported one keeps the mode that it was traced in
            model = model.train(arguments.train)
    _say(f"profiling {arguments.target} on {device}")
    profiler = RooflineProfiler(
        model,
        warmup=arguments.warmup,
        repeat=arguments.repeat,
        device=device,
        counters=arguments.counters,
        ceilings=roofs,
    )
    try:
        with torch.set_grad_enabled(arguments.train):
            if arguments.train:
                report = _train_step(profiler, model, args, kwargs, arguments.warmup)
            else:
                report = profiler.run(*args, **kwargs)
    except Exception as error:
        _output(profiler.report(), arguments)
        message = f"{arguments.target} raised {type(error).__name__}: {error}"
        _complain(TargetError(message), argparse.Namespace(debug=False))
        if arguments.debug:
            raise
        return 2
    _output(report, arguments)
    return 0


def _inputs(arguments: argparse.Namespace, dtype: torch.dtype, device: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if arguments.inputs and arguments.input:
        raise TargetError("give either --input or --inputs, not both")
    if arguments.inputs:
        return call_inputs(arguments.inputs)
    return tuple(make_input(text, dtype, device) for text in arguments.input or []), {}


def _train_step(
    profiler: RooflineProfiler, model: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], warmup: int
) -> Report:
    """Forward and backward, once under observation after plain ones for warm-up."""

    def step() -> None:
        loss_of(model(*args, **kwargs)).backward()  # type: ignore[no-untyped-call]

    # What raises here raises again below, where the profiler keeps what ran before.
    with contextlib.suppress(Exception):
        for _ in range(warmup):
            step()
    with profiler:
        step()
    return profiler.report()


def loss_of(output: Any) -> torch.Tensor:
    """The loss that the output holds under that name, else the sum of its floating-point tensors."""
    named = output.get("loss") if isinstance(output, dict) else getattr(output, "loss", None)
    if isinstance(named, torch.Tensor):
        return named
    parts = [tensor.sum() for tensor in tensors_in(output) if tensor.requires_grad]
    if not parts:
        raise TargetError("--train needs an output that depends on parameters; this model's output needs no gradient")
    return torch.stack([part.float() for part in parts]).sum()


def _show(arguments: argparse.Namespace) -> int:
    _output(Report.from_json(arguments.report), arguments)
    return 0


def _ceilings(arguments: argparse.Namespace) -> int:
    if arguments.published == "":
        print("\n".join(published_peaks.names()))
        return 0
    if arguments.published:
        roofs, beside = published_peaks.published(arguments.published), None
    else:
        roofs = ceilings.for_device(arguments.device, _say, again=arguments.again)
        beside = published_peaks.published_for(arguments.device)
    if arguments.json:
        ceilings.save(roofs, arguments.json)
        _say(f"written to {arguments.json}")
    print(roofs.table(_width(arguments), beside), end="")
    return 0


def _ops(arguments: argparse.Namespace) -> int:
    costs = _C.op_costs()
    families = list(dict.fromkeys(cost["family"] for cost in costs))
    if arguments.family and arguments.family not in families:
        raise TargetError(f"there is no family '{arguments.family}': take one of {', '.join(families)}")
    chosen = [
        cost
        for cost in costs
        if arguments.name in cost["op"] and (not arguments.family or cost["family"] == arguments.family)
    ]
    if not chosen:
        raise TargetError(f"no operator with a cost line has '{arguments.name}' in its name")
    print(json.dumps(chosen, indent=2) if arguments.json else _table_of_costs(chosen))
    return 0


def _table_of_costs(costs: list[dict[str, Any]]) -> str:
    """A line for each operator; below it, indented, where the formula comes from and which arguments it reads."""
    widths = [max(len(cost[column]) for cost in costs) for column in ("family", "op")]
    lines = []
    for cost in costs:
        lines.append(f"{cost['family']:{widths[0]}}  {cost['op']:{widths[1]}}  {' '.join(cost['formula'].split())}")
        notes = [("reads", cost["scalars"].replace(",", ", ")), ("source", cost["source"])]
        lines += [f"{'':{sum(widths) + 4}}{label}: {text}" for label, text in notes if text]
    return "\n".join(lines)


def _examine(arguments: argparse.Namespace) -> int:
    found = _doctor.findings()
    as_json = [finding._asdict() for finding in found]
    print(json.dumps(as_json, indent=2) if arguments.json else _doctor.as_text(found, _width(arguments)))
    return 0


# ---- shared


def _output(report: Report, arguments: argparse.Namespace) -> None:
    # A wrong choice of columns must not cost the profile: files first.
    if arguments.json:
        report.to_json(arguments.json)
        _say(f"written to {arguments.json}")
    if arguments.csv:
        report.to_csv(arguments.csv, by="kernel" if arguments.by == "kernel" else "module")
        _say(f"written to {arguments.csv}")
    columns = [name.strip() for name in arguments.columns.split(",")] if arguments.columns else []
    print(
        report.table(
            depth=arguments.depth,
            sort=arguments.sort,
            columns=columns,
            by=arguments.by,
            width=_width(arguments),
            limit=arguments.limit,
        )
    )


def _width(arguments: argparse.Namespace) -> int:
    terminal = shutil.get_terminal_size((120, 0)).columns if sys.stdout.isatty() else 120
    return max(arguments.width or terminal, 60)


def _say(line: str) -> None:
    """Progress, apart from the result on stdout."""
    print(f"roofprof: {line}", file=sys.stderr, flush=True)


# ---- the parser


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="roofprof",
        description="Which module wastes the machine, and by how much: a per-module roofline table of a PyTorch model.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"roofprof {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    profile = commands.add_parser("profile", help="profile a model", description=_profile.__doc__)
    profile.set_defaults(command=_profile)
    profile.add_argument(
        "target",
        help="package.module:callable, file.py:callable (a module, or what makes one), or a TorchScript or .pt2 file",
    )
    profile.add_argument(
        "--input",
        action="append",
        metavar="SHAPE",
        help="one positional input, such as 1x3x224x224 or 1x128:int64; again for the next",
    )
    profile.add_argument(
        "--inputs",
        metavar="FILE.py:CALLABLE",
        help="a callable that returns the inputs: one value, a tuple, or (tuple, dict of keywords)",
    )
    profile.add_argument(
        "--dtype",
        help="dtype of the model's parameters and of the inputs of --input (default: as the model is; float32)",
    )
    profile.add_argument("--device", default="cpu", help="where to run (default: cpu)")
    profile.add_argument("--train", action="store_true", help="training mode, forward and backward")
    profile.add_argument("--warmup", type=int, default=3, metavar="N", help="calls that are not timed (default: 3)")
    profile.add_argument("--repeat", type=int, metavar="N", help="timed calls (default: at most 10 or 5 seconds)")
    profile.add_argument(
        "--counters",
        default="auto",
        choices=["auto", "off", "modules", "flops"],
        help="of a GPU: bytes by kernel (auto), by module, with executed FLOPs (flops), or none (off)",
    )
    profile.add_argument("--ceilings", type=Path, metavar="FILE", help="roofs to use instead of this machine's own")
    _add_output_options(profile)

    show = commands.add_parser("show", help="print a report's JSON file as a table")
    show.set_defaults(command=_show)
    show.add_argument("report", type=Path, help="a file that --json or Report.to_json wrote")
    _add_output_options(show)

    roofs = commands.add_parser(
        "ceilings", help="measure the roofs of this machine, or show them; of a GPU beside the published ones"
    )
    roofs.set_defaults(command=_ceilings)
    roofs.add_argument("--device", default="cpu", help="which device, such as cuda or cuda:1 (default: cpu)")
    roofs.add_argument(
        "--published",
        nargs="?",
        const="",
        metavar="CARD",
        help="the published peaks of a card, such as 'RTX 4090', instead; without a name: which cards are known",
    )
    roofs.add_argument("--again", action="store_true", help="measure even where they are known already")
    roofs.add_argument("--json", type=Path, metavar="FILE", help="write them to a file, for profile --ceilings")
    roofs.add_argument("--width", type=int, metavar="N", help="characters (default: the terminal's, else 120)")
    roofs.add_argument("--debug", action="store_true", help="show the traceback of an error")

    listing = commands.add_parser("ops", help="list what each operator is known to cost", description=_OPS)
    listing.set_defaults(command=_ops)
    listing.add_argument("name", nargs="?", default="", help="only operators with this in their name")
    listing.add_argument("--family", metavar="NAME", help="only one family, such as matmul")
    listing.add_argument("--json", action="store_true", help="print them as JSON")
    listing.add_argument("--debug", action="store_true", help="show the traceback of an error")

    doctor = commands.add_parser("doctor", help="say what measuring on a GPU would need here", description=_DOCTOR)
    doctor.set_defaults(command=_examine)
    doctor.add_argument("--width", type=int, metavar="N", help="characters (default: the terminal's, else 120)")
    doctor.add_argument("--json", action="store_true", help="print it as JSON")
    doctor.add_argument("--debug", action="store_true", help="show the traceback of an error")
    return parser


def _add_output_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--depth", type=int, metavar="N", help="deepest module shown")
    parser.add_argument(
        "--sort", default="", metavar="COLUMN", help="largest first by that column (default: the model's order)"
    )
    parser.add_argument("--columns", metavar="A,B,...", help="which columns to show")
    parser.add_argument(
        "--by", choices=("module", "op", "kernel"), default="module", help="a row for each module, operator or kernel"
    )
    parser.add_argument("--limit", type=int, default=0, metavar="N", help="most rows shown")
    parser.add_argument("--width", type=int, metavar="N", help="characters (default: the terminal's, else 120)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the report as JSON")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write its rows, or its kernels, as CSV")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
