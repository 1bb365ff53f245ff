"""``roofprof time``: the latency and throughput of a model's calls, at one batch size or at several."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from roofprof.cli.shared import (
    CommandError,
    Commands,
    add_target_options,
    check_files,
    check_plot,
    files_of,
    print_result,
    say,
    whole_number,
    write_result,
)

if TYPE_CHECKING:
    from roofprof.latency.measured import Latency
    from roofprof.latency.sweep import LatencySweep

T = TypeVar("T")

_DESCRIPTION = """\
Latency is the time of one call; throughput is samples (or tokens) per second: those of a call / the median latency.
Nothing observes the calls. Models are in evaluation mode, and no gradients are kept.
"""


def add_parser(commands: Commands) -> None:
    """Add the command's options."""
    parser = commands.add_parser(
        "time", help="latency and throughput of a model, also over batch sizes", description=_DESCRIPTION
    )
    parser.set_defaults(command=run)
    add_target_options(parser)
    parser.add_argument("--device", default="cpu", help="where to run (default: cpu)")
    parser.add_argument(
        "--warmup", type=whole_number, metavar="N", help="calls that are not timed (default: 50; of ranks: 5)"
    )
    parser.add_argument(
        "--repeat", type=whole_number, metavar="N", help="timed calls (default: 200; of ranks, which make all: 20)"
    )
    parser.add_argument(
        "--seconds",
        type=float,
        metavar="S",
        help="no further call begins after so many seconds (default: 30; of a sweep, all batches together: 120)",
    )
    parser.add_argument(
        "--samples", type=whole_number, metavar="N", help="in one call (default: the leading dimension of the inputs)"
    )
    parser.add_argument("--tokens", type=whole_number, metavar="N", help="in one call, for tokens per second")
    parser.add_argument(
        "--batch",
        metavar="B,B,...|auto",
        help="a sweep over these batch sizes; auto: 1, 2, 4, ... until throughput rises no more, or memory or time "
        "ends. Inputs are repeated or cut along their leading dimension, unless the callable of --inputs takes a batch",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures as JSON")
    parser.add_argument(
        "--plot",
        type=Path,
        metavar="FILE",
        help="draw a sweep, as the suffix says: .png, .svg, .pdf (needs matplotlib)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Time, print and write. The code that times loads torch, so it is imported here: --help needs no torch."""
    from roofprof.latency.sweep import LatencySweep

    batches = _check(arguments)
    timed = _sweep(arguments, batches) if batches else _one(arguments)
    write_result(arguments.json, timed.to_json)
    if arguments.plot and isinstance(timed, LatencySweep):
        timed.plot(arguments.plot)
        say(f"drawn in {arguments.plot}")
    print_result(str(timed), arguments)
    return 0


def _check(arguments: argparse.Namespace) -> str | list[int]:
    """Raise an error for wrong options, before the model is built; return the batches of a sweep, "" for none."""
    from roofprof.cli.profiling import check_device
    from roofprof.latency.plan import Batches, Plan

    check_device(arguments.device)
    check_files([*files_of(arguments.target), *files_of(arguments.inputs)], arguments.json, arguments.plot)
    Plan(arguments.warmup, arguments.repeat, arguments.seconds, arguments.samples, arguments.tokens)
    if arguments.plot and not arguments.batch:
        raise CommandError("--plot draws a sweep over batch sizes: give --batch too, such as --batch auto")
    check_plot(arguments.plot)
    if arguments.batch and arguments.samples:
        raise CommandError("--samples is of one call, and --batch says how many samples calls have: give one of them")
    if arguments.batch in (None, "auto"):
        return arguments.batch or ""
    try:
        batches = [int(size) for size in arguments.batch.split(",")]
    except ValueError:
        raise CommandError(f"--batch takes 'auto' or whole numbers such as 1,2,4, not '{arguments.batch}'") from None
    return Batches(batches).sizes


def _one(arguments: argparse.Namespace) -> Latency:
    from roofprof.cli.profiling import called
    from roofprof.latency.plan import Plan
    from roofprof.latency.timing import time_call
    from roofprof.models.ranks import is_among_ranks
    from roofprof.profiling.profiler import RooflineProfiler

    model, (args, kwargs) = called(arguments)
    profiler = RooflineProfiler(model, device=arguments.device)
    seconds = 30.0 if arguments.seconds is None else arguments.seconds
    limits = Plan(arguments.warmup, arguments.repeat, seconds).limits(among_ranks=is_among_ranks())
    say(
        f"timing {arguments.target} on {arguments.device}: {limits.repeat} calls after {limits.warmup} for warm-up"
        + ("" if limits.seconds is None else f", within {seconds:g} s")
    )
    return _called(
        arguments,
        lambda: time_call(
            profiler._timed(),
            args,
            kwargs,  # the model's, whatever their names
            Plan(arguments.warmup, arguments.repeat, seconds, arguments.samples, arguments.tokens),
        ),
    )


def _sweep(arguments: argparse.Namespace, batches: str | list[int]) -> LatencySweep:
    from roofprof.cli.profiling import called, model_of
    from roofprof.cli.target import arguments_for, call_inputs, load_inputs
    from roofprof.latency.plan import Batches, Plan
    from roofprof.latency.sweeping import time_batches
    from roofprof.profiling.profiler import RooflineProfiler

    function = load_inputs(arguments.inputs) if arguments.inputs and not arguments.input else None
    if function is not None and _takes_a_batch(function):
        args: tuple[Any, ...] = ()
        kwargs: dict[str, Any] = {}
        model = model_of(arguments)
        make = lambda batch: arguments_for(  # noqa: E731
            model, call_inputs(arguments.inputs, function, batch), arguments.target, arguments.inputs
        )
    else:
        model, (args, kwargs) = called(arguments)
        make = None
    profiler = RooflineProfiler(model, device=arguments.device)
    seconds = 120.0 if arguments.seconds is None else arguments.seconds
    say(f"timing {arguments.target} on {arguments.device} at several batch sizes, within {seconds:g} s")
    return _called(
        arguments,
        lambda: time_batches(
            profiler._timed(),
            (args, kwargs),
            Batches(batches),
            make,
            Plan(arguments.warmup, arguments.repeat, seconds, None, arguments.tokens),
        ),
    )


def _called(arguments: argparse.Namespace, time: Callable[[], T]) -> T:
    """Return the result of ``time``; a model's own error gets the target's name."""
    import torch

    from roofprof.errors import TimingError

    try:
        with torch.no_grad():
            return time()
    except (CommandError, TimingError):
        raise
    except Exception as error:
        raise CommandError(f"{arguments.target} raised {type(error).__name__}: {error}") from error


def _takes_a_batch(function: Callable[..., Any]) -> bool:
    """Return True for a function that needs an argument: it makes the inputs of a batch size."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return any(p.default is inspect.Parameter.empty and p.kind in positional for p in parameters)
