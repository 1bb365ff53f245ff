"""Runs a program as Python would: its ``__main__``, arguments, path, exit code, and what it prints when it raises."""

from __future__ import annotations

import runpy
import sys
import traceback
import types
from collections.abc import Callable
from pathlib import Path


class Stop(BaseException):
    """Ends the program where it stands, without an error."""


def run_program(
    target: str, arguments: list[str], ended: Callable[[BaseException | None], None], *, as_module: bool
) -> int:
    """Run the file, or the module as ``python -m`` does, and return its exit code.

    ended: is told when it has ended, and what it raised, before that is printed as Python prints it.
    Raises OSError where the file cannot be read.
    """
    main, argv, path = sys.modules["__main__"], sys.argv, list(sys.path)
    sys.argv = [target, *arguments]
    try:
        if as_module:
            sys.path[0] = ""
            return _exit_code(ended, lambda: runpy.run_module(target, run_name="__main__", alter_sys=True))
        source = Path(target).read_bytes()
        sys.path[0] = str(Path(target).resolve().parent)  # in the place of what `python -m roofprof` has there
        program = types.ModuleType("__main__")
        program.__dict__.update({"__file__": target, "__builtins__": __builtins__, "__spec__": None})
        sys.modules["__main__"] = program
        return _exit_code(ended, lambda: exec(compile(source, target, "exec"), program.__dict__))  # noqa: S102
    finally:
        sys.modules["__main__"], sys.argv, sys.path[:] = main, argv, path


def _exit_code(ended: Callable[[BaseException | None], None], program: Callable[[], object]) -> int:
    try:
        program()
    except Stop:
        ended(None)
    except SystemExit as error:
        ended(error if error.code else None)
        if error.code is None or isinstance(error.code, int):
            return error.code or 0
        sys.stderr.write(f"{error.code}\n")
        return 1
    except BaseException as error:
        ended(error)
        trace = _of_program(error.__traceback__)
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        return 130 if isinstance(error, KeyboardInterrupt) else 1
    else:
        ended(None)
    return 0


def _of_program(trace: types.TracebackType | None) -> types.TracebackType | None:
    """Without the frames that ran it."""
    ours = {__file__, runpy.__file__, "<frozen runpy>"}
    while trace is not None and traceback.extract_tb(trace, limit=1)[0].filename in ours:
        trace = trace.tb_next
    return trace
