"""What ``roofprof profile`` does once its options are read."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import torch

from roofprof import Note, RooflineProfiler, ceilings, count
from roofprof.cli.loss import given_loss, load_loss, loss_of
from roofprof.cli.shared import CommandError, check_output, complain, output, say
from roofprof.cli.target import call_inputs, load_model, make_input, moved, parse_dtype
from roofprof.report import Report


def run(arguments: argparse.Namespace) -> int:
    """Profile, and give what ran even where the model raised."""
    _check(arguments)
    loss = load_loss(arguments.loss) if arguments.loss else None
    device = arguments.device
    dtype = parse_dtype(arguments.dtype) if arguments.dtype else None
    args, kwargs = _inputs(arguments, dtype or torch.float32, device)
    model = load_model(arguments.target, arguments.args, device)
    if isinstance(model, torch.nn.Module):
        model = moved(model, arguments.target, device, dtype)
        if not isinstance(model, torch.fx.GraphModule):  # an exported one keeps the mode that it was traced in
            model = model.train(arguments.train)
    if arguments.count:
        return output(_counted(model, arguments.target, args, kwargs), arguments)
    say(f"profiling {arguments.target} on {device}")
    profiler = RooflineProfiler(
        model,
        warmup=arguments.warmup,
        repeat=arguments.repeat,
        device=device,
        counters=arguments.counters,
        ceilings=arguments.ceilings,
    )
    try:
        with torch.set_grad_enabled(arguments.train):
            if arguments.train:
                step = _training_step(profiler, model, loss, arguments.loss)
                report = profiler.run_step(step, *args, **kwargs)
            else:
                report = profiler.run(*args, **kwargs)
    except CommandError:
        raise
    except Exception as error:
        output(profiler.report(), arguments)
        code = complain(CommandError(f"{arguments.target} raised {type(error).__name__}: {error}"))
        if arguments.debug:
            raise
        return code
    return output(report, arguments)


def _check(arguments: argparse.Namespace) -> None:
    """Whatever can be said to be wrong before the model is built."""
    check_output(arguments)
    if arguments.warmup < 0 or (arguments.repeat is not None and arguments.repeat < 1):
        raise CommandError("--warmup must be 0 or more and --repeat 1 or more")
    if arguments.count and arguments.train:
        raise CommandError("give either --count or --train, not both: --count makes one call without a backward")
    if arguments.loss and not arguments.train:
        raise CommandError("--loss is for --train, which goes back from it; give both or neither")
    try:
        torch.zeros(1, device=arguments.device)
    except (RuntimeError, AssertionError) as error:
        raise CommandError(f"device '{arguments.device}' cannot be used here: {str(error).splitlines()[0]}") from error
    if arguments.ceilings:
        ceilings.load(arguments.ceilings)


def _inputs(arguments: argparse.Namespace, dtype: torch.dtype, device: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if arguments.inputs and arguments.input:
        raise CommandError("give either --input or --inputs, not both")
    if arguments.inputs:
        return call_inputs(arguments.inputs)
    return tuple(make_input(text, dtype, device) for text in arguments.input or []), {}


def _counted(model: Callable[..., Any], target: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Report:
    try:
        with torch.no_grad():
            return count(model, *args, **kwargs)
    except Exception as error:
        raise CommandError(f"{target} raised {type(error).__name__}: {error}") from error


def _training_step(
    profiler: RooflineProfiler, model: Callable[..., Any], loss: Callable[[Any], Any] | None, named: str
) -> Callable[..., None]:
    """A step of a training loop around the model, without an optimizer; the first one notes which loss it is."""
    parameters = list(model.parameters()) if isinstance(model, torch.nn.Module) else []

    def step(*args: Any, **kwargs: Any) -> None:
        for parameter in parameters:
            parameter.grad = None  # as optimizer.zero_grad() does
        output = model(*args, **kwargs)
        value, which = loss_of(output) if loss is None else given_loss(loss, named, output)
        value.backward()  # type: ignore[no-untyped-call]
        profiler._note(Note("loss", f"each call is a training step, forward and backward; its loss is {which}"))

    return step
