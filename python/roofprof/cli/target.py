"""The objects that the command line names: models, inputs."""

from __future__ import annotations

import ast
import difflib
import importlib
import importlib.util
import inspect
import os
import re
import sys
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree

from roofprof.cli.shared import CommandError, with_article
from roofprof.latency.batches import Arguments, arguments_of
from roofprof.models.compiled import original
from roofprof.models.exported import runnable
from roofprof.models.packages import holds_package
from roofprof.profiling.packages import load_package

_TARGETS = " (roofprof docs command-line#targets-and-inputs)"


def load_object(target: str) -> Any:
    """Return the object that ``package.module:name`` or ``file.py:name`` names; dots in ``name`` reach into it."""
    place, separator, name = target.rpartition(":")
    if not separator and Path(target).suffix in (".pt", ".pt2", ".pth", ".ts"):
        raise CommandError(f"there is no file {target}")
    if not separator or not place or not name:
        raise CommandError(f"'{target}' names no object; write package.module:callable or file.py:callable{_TARGETS}")
    value: Any = _load_file(Path(place)) if place.endswith(".py") else _load_module(place)
    for part in name.split("."):
        if not hasattr(value, part):
            raise CommandError(f"{place} has no '{part}'{_similar(value, part)}")
        value = getattr(value, part)
    return value


def _similar(value: object, name: str) -> str:
    close = difflib.get_close_matches(name, dir(value), n=3)
    return f"; did you mean {' or '.join(close)}?" if close else ""


def _load_module(name: str) -> Any:
    # `python -m` finds modules in the current folder; so does this.
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(f"{error.name}.")):
            raise CommandError(f"cannot find the module '{name}'; is it installed in this environment?") from error
        raise CommandError(f"importing {name} failed: {error}") from error
    except Exception as error:
        raise CommandError(f"importing {name} failed: {type(error).__name__}: {error}") from error


def _load_file(path: Path) -> Any:
    if not path.is_file():
        raise CommandError(f"there is no file {path}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # The module is known under its name and finds its folder, so that it can import modules there and pickle its
    # objects.
    sys.modules.setdefault(path.stem, module)
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise CommandError(f"running {path} failed: {type(error).__name__}: {error}") from error
    return module


def parse_args(text: str) -> tuple[list[Any], dict[str, Any]]:
    """Return the values of ``'"resnet50", num_classes=10'``: arguments of a call, written as Python's literals."""
    try:
        call = ast.parse(f"call({text})", mode="eval").body
        assert isinstance(call, ast.Call)
        args = [ast.literal_eval(argument) for argument in call.args]
        return args, {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
    except (SyntaxError, ValueError, AssertionError) as error:
        raise CommandError(
            f"--args '{text}' is no list of Python literals; write for example --args '\"resnet50\", num_classes=10'"
        ) from error


def load_model(target: str, args: str | None = None, device: str = "cpu", *, trust: bool = False) -> Callable[..., Any]:
    """Return the model behind a target: a module, what a callable makes, a TorchScript or a .pt2 file.

    args: what the callable is called with, as :func:`parse_args` reads it. On the device meta it makes its model
    there, so that models larger than this machine's memory can be counted. trust: load saved models, which are programs
    that do not look like one: pickles and native code in a .pt2 file, operators that write files in TorchScript.
    """
    given, keywords = parse_args(args) if args is not None else ([], {})
    if Path(target).is_file() and not target.endswith(".py") and not trust:
        raise CommandError(
            f"{target} is a saved model, and loading it runs what is in it with your rights: if you trust those who "
            "made it, add --trust"
        )
    if Path(target).is_file() and target.endswith(".pt2"):
        return _load_pt2(target)
    if Path(target).is_file() and not target.endswith(".py"):
        try:
            return torch.jit.load(target, map_location="cpu")  # type: ignore[no-any-return, no-untyped-call]
        except Exception as error:
            raise CommandError(f"{target} is not a TorchScript file that torch can load: {error}") from error
    value = runnable(load_object(target))
    if isinstance(value, torch.nn.Module):
        if args is not None:
            raise CommandError(f"--args is for a callable that makes a model, and {target} is a model")
        return value
    if not callable(value):
        raise CommandError(
            f"{target} is {with_article(type(value).__name__)}; a module, or a callable that makes one, is needed"
        )
    try:
        model = runnable(_made_on_meta(value, given, keywords) if device == "meta" else value(*given, **keywords))
    except Exception as error:
        raise CommandError(f"{target}() failed: {type(error).__name__}: {error}") from error
    if not callable(model):
        raise CommandError(f"{target}() gave {with_article(type(model).__name__)}; a module is needed")
    return model  # type: ignore[no-any-return]


def _load_pt2(target: str) -> Callable[..., Any]:
    """Return the AOTInductor package in the file, or the exported program."""
    if holds_package(Path(target)):
        os.environ.setdefault("AOTI_RUNTIME_CHECK_INPUTS", "1")  # else it computes on inputs of any shape
        try:
            return load_package(target)  # type: ignore[no-any-return]
        except ValueError as error:
            raise CommandError(str(error)) from error
    if not zipfile.is_zipfile(target):
        raise CommandError(f"{target} is no exported program that torch can load: it is no archive, or damaged")
    try:
        return runnable(torch.export.load(target))  # type: ignore[no-any-return]
    except Exception as error:
        raise CommandError(f"{target} is no exported program that torch can load: {error}") from error


def _made_on_meta(make: Callable[..., Any], given: list[Any], keywords: dict[str, Any]) -> Any:
    try:
        with torch.device("meta"):
            return make(*given, **keywords)
    except Exception:  # it may need values, to load weights for example; what is made on the CPU is moved
        return make(*given, **keywords)


def parse_dtype(name: str) -> torch.dtype:
    """Return the dtype of a name: ``float32``, ``fp32``, ``bf16``, ``int64``, ..."""
    short = {"fp64": "float64", "fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}
    dtype = getattr(torch, short.get(name, name), None)
    if not isinstance(dtype, torch.dtype):
        raise CommandError(f"'{name}' is no dtype of torch; write float32, bfloat16, int64, ...")
    return dtype


def moved(model: torch.nn.Module, target: str, device: str, dtype: torch.dtype | None) -> torch.nn.Module:
    """Return the model on that device, in that dtype."""
    try:
        return model.to(device=device, dtype=dtype)
    except (TypeError, RuntimeError) as error:  # NotImplementedError is a RuntimeError
        if device != "meta" and any(tensor.is_meta for tensor in model.state_dict().values()):
            raise CommandError(
                f"{target} has parameters without data (meta device): count it with --device meta, or give it data"
            ) from error
        form = f" as {str(dtype).removeprefix('torch.')}" if dtype else ""
        raise CommandError(f"{target} cannot be put on {device}{form}: {_first_line(error)}") from error


def make_input(text: str, dtype: torch.dtype, device: str) -> torch.Tensor:
    """Return a tensor from ``1x3x224x224`` or ``1x128:int64``: random numbers, or zeros of integers and booleans."""
    shape, _, own = text.partition(":")
    if not re.fullmatch(r"\d+(x\d+)*", shape):
        raise CommandError(
            f"'{text}' is no input shape; write sizes with x between them, such as 1x3x224x224 or 1x128:int64{_TARGETS}"
        )
    kind = parse_dtype(own) if own else dtype
    try:
        sizes = [int(size) for size in shape.split("x")]
        if kind.is_floating_point or kind.is_complex:
            return torch.randn(sizes, device=device).to(kind)
        return torch.zeros(sizes, dtype=kind, device=device)
    except (RuntimeError, TypeError, ValueError, OverflowError, MemoryError) as error:
        raise CommandError(f"an input of shape {shape} cannot be made on {device}: {_first_line(error)}") from error


def load_inputs(target: str) -> Callable[..., Any]:
    """Return the callable that ``file.py:callable`` names, which returns the inputs."""
    function = load_object(target)
    if not callable(function):
        raise CommandError(
            f"{target} is {with_article(type(function).__name__)}; a callable that returns the inputs is needed"
        )
    return function  # type: ignore[no-any-return]


def call_inputs(target: str, function: Callable[..., Any], *batch: int) -> Any:
    """Return what the function gives for the model's arguments: :func:`arguments_for` reads it."""
    try:
        return function(*batch)
    except Exception as error:
        raise CommandError(f"{target}({', '.join(map(str, batch))}) failed: {type(error).__name__}: {error}") from error


def arguments_for(model: Callable[..., Any], value: Any, target: str, inputs: str) -> Arguments:
    """Return the model's arguments for what the callable named ``inputs`` gave.

    A dict is keywords where the model can be called with them, and one of them is a parameter's name or the model takes
    nothing by position. Any other dict is the one argument; one in a tuple always is.
    """
    signature = signature_of(model) if isinstance(value, Mapping) else None
    if signature is None:
        return arguments_of(value)
    names = [one.name for one in signature.parameters.values() if one.kind in _NAMED]
    is_argument = _binds(lambda: signature.bind(value))
    if _binds(lambda: signature.bind(**value)) and (not is_argument or set(value) & set(names)):
        by_name = _exported_keywords(model)
        if by_name is None:
            return (), dict(value)
        return tuple(value[name] for name in names if name not in by_name), {name: value[name] for name in by_name}
    if is_argument:
        return (value,), {}
    raise CommandError(
        f"{inputs} gave a dict of {', '.join(map(str, value))}, which {target}, called with "
        f"{', '.join(names) or 'nothing'}, takes neither as keywords nor as its one input{_TARGETS}"
    )


def _exported_keywords(model: Any) -> list[str] | None:
    """Return the names that an exported program takes as keywords: those of its export; None for other models."""
    spec = getattr(model, "_in_spec", None)
    return None if spec is None else list(_pytree.tree_unflatten(range(spec.num_leaves), spec)[1])


_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def _binds(bind: Callable[[], object]) -> bool:
    try:
        bind()
    except TypeError:
        return False
    return True


def signature_of(model: Callable[..., Any]) -> inspect.Signature | None:
    """Return how the model is called; None where nothing tells: a builtin, what wraps itself."""
    plain = original(model)
    forward = getattr(plain, "forward", plain)
    try:
        schema = getattr(forward, "schema", None)
        if not isinstance(schema, torch.FunctionSchema):
            return inspect.signature(forward)
        parameters = [  # of TorchScript
            inspect.Parameter(
                one.name,
                _NAMED[one.kwarg_only],
                default=None if one.has_default_value() else inspect.Parameter.empty,
            )
            for one in schema.arguments
        ]
        is_method = bool(parameters) and parameters[0].name == "self"
        return inspect.Signature(parameters[is_method:])
    except (TypeError, ValueError, RecursionError):
        return None


def _first_line(error: BaseException) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
