"""The work of ``roofprof profile`` once its options are read: the model, its inputs and its loss."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable
from typing import Any

import torch

from roofprof._report import Note
from roofprof.cli.shared import (
    CommandError,
    check_output,
    complain,
    files_of,
    files_of_environment,
    output,
    say,
    with_article,
)
from roofprof.cli.target import (
    arguments_for,
    call_inputs,
    load_inputs,
    load_model,
    load_object,
    make_input,
    moved,
    parse_dtype,
    signature_of,
)
from roofprof.latency.batches import Arguments
from roofprof.profiling.profiler import RooflineProfiler, count
from roofprof.render.traces.export import needs_events, writer_for
from roofprof.report.report import Report
from roofprof.roofs import ceilings
from roofprof.state.state_roots import tensors_in


def run(arguments: argparse.Namespace) -> int:
    """Profile, and show the part that ran even where the model raised."""
    _check(arguments)
    loss = load_loss(arguments.loss) if arguments.loss else None
    device = arguments.device
    model, (args, kwargs) = called(arguments, train=arguments.train)
    if arguments.count:
        return output(_counted(model, arguments.target, args, kwargs), arguments)
    say(f"profiling {arguments.target} on {device}")
    for_trace = arguments.trace is not None and needs_events(arguments.trace)
    profiler = RooflineProfiler(
        model,
        warmup=arguments.warmup,
        repeat=arguments.repeat,
        device=device,
        counters=arguments.counters,
        ceilings=arguments.ceilings,
        compiled_kernels=arguments.compiled_kernels,
        keep_events=for_trace or _may_have_few_events(arguments, model),
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
        report = profiler.report()
        # If nothing ran, as with an input of the wrong shape, only users who asked for files get a report.
        if report.by_operator() or arguments.json or arguments.csv or arguments.trace:
            _output(report, arguments)
        code = complain(CommandError(_what_was_raised(arguments.target, error)))
        if arguments.debug:
            raise
        return code
    return _output(report if for_trace else _with_few_events(report), arguments)


# ---- the events that --json keeps for `roofprof trace`

_FEW = 10_000  # half a megabyte


def _may_have_few_events(arguments: argparse.Namespace, model: Callable[..., Any]) -> bool:
    """Return False where events would make a large file, or change how calls are timed, as on a GPU."""
    modules = model.modules() if isinstance(model, torch.nn.Module) else ()
    on_cpu = torch.device(arguments.device).type == "cpu"
    return arguments.json is not None and on_cpu and sum(1 for _ in modules) < _FEW


def _with_few_events(report: Report) -> Report:
    """Return the report without its events where it has many."""
    calls = sum(group.calls for group in report.group("op")) + sum(row.calls or 0 for row in report.rows)
    if calls <= _FEW:
        return report
    without = report.to_dict()
    return Report.from_dict(without) if without.pop("events", None) else report


def _output(report: Report, arguments: argparse.Namespace) -> int:
    """Write and print the requested output; if the trace cannot be made or written, report that and give the rest."""
    code = 0
    if arguments.trace:
        try:
            writer_for(arguments.trace)(report, arguments.trace)
            say(f"written to {arguments.trace}")
        except (OSError, ValueError) as error:
            code = complain(error)
    return output(report, arguments) or code


def _check(arguments: argparse.Namespace) -> None:
    """Raise an error for options that are wrong, as far as that shows before the model is built."""
    read = [path for named in (arguments.target, arguments.inputs, arguments.loss) for path in files_of(named)]
    check_output(arguments, [*read, arguments.ceilings, *files_of_environment()], arguments.trace)
    if arguments.trace:
        writer_for(arguments.trace)
    for option, wanted in (("--trace", arguments.trace), ("--compiled-kernels", arguments.compiled_kernels)):
        if wanted and (arguments.count or arguments.repeat == 0):
            raise CommandError(f"{option} needs times, which --count and --repeat 0 do not take: leave out one of both")
    if arguments.loss and not arguments.train:
        raise CommandError("--loss is for --train, which goes back from it; give both or neither")
    check_device(arguments.device)
    if arguments.ceilings:
        ceilings.load(arguments.ceilings)


def check_device(device: str) -> None:
    """Raise CommandError where torch cannot use it."""
    try:
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise CommandError(f"device '{device}' cannot be used here: {str(error).splitlines()[0]}") from error


def called(arguments: argparse.Namespace, *, train: bool = False) -> tuple[Callable[..., Any], Arguments]:
    """Return the target and the arguments of its call; inputs are made first, as their faults cost nothing."""
    if not arguments.inputs:
        dtype = _dtype(arguments) or torch.float32
        tensors = tuple(make_input(text, dtype, arguments.device) for text in arguments.input or [])
        return model_of(arguments, train=train), (tensors, {})
    value = call_inputs(arguments.inputs, load_inputs(arguments.inputs))
    model = model_of(arguments, train=train)
    return model, arguments_for(model, value, arguments.target, arguments.inputs)


def model_of(arguments: argparse.Namespace, *, train: bool = False) -> Callable[..., Any]:
    """Return the target, on its device, in its dtype and mode. Raises CommandError where an input is missing."""
    model = load_model(arguments.target, arguments.args, arguments.device, trust=arguments.trust)
    if isinstance(model, torch.nn.Module):
        model = moved(model, arguments.target, arguments.device, _dtype(arguments))
        if not isinstance(model, torch.fx.GraphModule):  # an exported one keeps the mode that it was traced in
            model = model.train(train)
    _check_inputs(arguments, model)
    return model


def _check_inputs(arguments: argparse.Namespace, model: Callable[..., Any]) -> None:
    """Raise CommandError where no input was given to a model that needs one."""
    if arguments.inputs or arguments.input:
        return
    signature = signature_of(model)
    parameters = signature.parameters.values() if signature else ()
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    needed = [one.name for one in parameters if one.default is one.empty and one.kind in kinds]
    if needed:
        raise CommandError(
            f"{arguments.target} is called with {', '.join(needed)}, and no input was given: add --input with a shape, "
            "such as --input 1x3x224x224, or --inputs FILE.py:CALLABLE for anything else"
        )


def _dtype(arguments: argparse.Namespace) -> torch.dtype | None:
    return parse_dtype(arguments.dtype) if arguments.dtype else None


def _counted(model: Callable[..., Any], target: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Report:
    try:
        with torch.no_grad():
            return count(model, *args, **kwargs)
    except Exception as error:
        raise CommandError(_what_was_raised(target, error)) from error


def _what_was_raised(target: str, error: Exception) -> str:
    """Return a sentence without the C++ frames that torch adds to an AOTInductor package's error."""
    return f"{target} raised {type(error).__name__}: {str(error).partition('Exception raised from ')[0].strip()}"


def _training_step(
    profiler: RooflineProfiler, model: Callable[..., Any], loss: Callable[[Any], Any] | None, named: str
) -> Callable[..., None]:
    """Return a step of a training loop around the model, without an optimizer; its first call notes the loss."""
    parameters = list(model.parameters()) if isinstance(model, torch.nn.Module) else []

    def step(*args: Any, **kwargs: Any) -> None:
        for parameter in parameters:
            parameter.grad = None  # as optimizer.zero_grad() does
        output = model(*args, **kwargs)
        value, which = loss_of(output) if loss is None else given_loss(loss, named, output)
        value.backward()  # type: ignore[no-untyped-call]
        profiler._note(Note("loss", f"each call is a training step, forward and backward; its loss is {which}"))

    return step


# ---- the loss of a training step


def load_loss(target: str) -> Callable[[Any], Any]:
    """Return the loss that ``file.py:callable`` names."""
    loss = load_object(target)
    if not callable(loss) or isinstance(loss, type):
        kind = "a class" if isinstance(loss, type) else with_article(type(loss).__name__)
        raise CommandError(
            f"{target} is {kind}; a callable that takes the model's output and returns a scalar tensor is needed"
        )
    return loss  # type: ignore[no-any-return]


def loss_of(output: Any) -> tuple[torch.Tensor, str]:
    """Return the output's loss of that name, else the sum of its floating-point tensors; and the name of that loss."""
    named = output.get("loss") if isinstance(output, dict) else getattr(output, "loss", None)
    if isinstance(named, torch.Tensor):
        return _checked(named, "the output named 'loss'"), "the output named 'loss'"
    parts = [tensor.sum() for tensor in tensors_in(output) if tensor.requires_grad]
    if not parts:
        raise CommandError("--train needs an output that depends on parameters; this model's output needs no gradient")
    return torch.stack([part.float() for part in parts]).sum(), "the sum of the floating-point outputs"


def given_loss(loss: Callable[[Any], Any], target: str, output: Any) -> tuple[torch.Tensor, str]:
    """Return the loss that the callable of ``target`` computes from the output, and its name."""
    try:
        value = loss(output)
    except Exception as error:
        raise CommandError(f"the loss {target} raised {type(error).__name__}: {error}") from error
    return _checked(value, f"the loss {target}"), target


def _checked(value: Any, name: str) -> torch.Tensor:
    if not isinstance(value, torch.Tensor):
        kind = "None" if value is None else with_article(type(value).__name__)
        raise CommandError(f"{name} gave {kind}; a scalar tensor is needed")
    if value.numel() != 1:
        raise CommandError(f"{name} has the shape {list(value.shape)}; a scalar is needed, such as its mean()")
    if not value.requires_grad:
        raise CommandError(f"{name} needs no gradient: compute it with torch from what the model returned, undetached")
    return value
