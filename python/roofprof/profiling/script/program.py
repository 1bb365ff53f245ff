"""Runs a program as Python would: its ``__main__``, arguments, path, exit code, and what it prints when it raises."""

from __future__ import annotations

import builtins
import importlib.machinery
import os
import runpy
import sys
import threading
import traceback
import types
from collections.abc import Callable
from pathlib import Path


class Stop(BaseException):
    """Ends the program at once, without an error."""


def run_program(
    target: str, arguments: list[str], ended: Callable[[BaseException | None], None], *, as_module: bool
) -> int:
    """Run the file, or the module as ``python -m`` does, and return its exit code once its threads have ended, too.

    ended: called with the error that the main code raised, or None, before Python prints it.
    Raises OSError if the file cannot be read.
    """
    main, argv, path = sys.modules["__main__"], sys.argv, list(sys.path)
    threads = set(threading.enumerate())
    sys.argv = [target, *arguments]
    try:
        program = sys.modules["__main__"] = _main_module()
        # sys.path[0] has what `python -m roofprof` has there.
        if as_module:
            sys.path[0] = str(Path.cwd())
            run_module = runpy._run_module_as_main  # type: ignore[attr-defined] # what `python -m` calls
            code = _exit_code(ended, lambda: run_module(target))
        else:
            source = Path(target).read_bytes()
            sys.path[0] = str(Path(target).resolve().parent)
            file = os.path.join(Path.cwd(), target)  # noqa: PTH118 - a Path would lose "./"
            program.__file__ = file
            program.__loader__ = importlib.machinery.SourceFileLoader("__main__", file)
            code = _exit_code(ended, lambda: exec(compile(source, file, "exec"), program.__dict__))  # noqa: S102
        _wait_for_others_than(threads)
        return code
    finally:
        sys.modules["__main__"], sys.argv, sys.path[:] = main, argv, path


def _main_module() -> types.ModuleType:
    """Return a module like the one in which Python runs programs."""
    program = types.ModuleType("__main__")
    program.__dict__.update({"__builtins__": builtins, "__spec__": None, "__cached__": None})
    if sys.version_info < (3, 14):  # later they are made when they are asked for
        program.__annotations__ = {}
    return program


def _wait_for_others_than(threads: set[threading.Thread]) -> None:
    """Wait for the program's threads but for daemons, as the interpreter does when its main code has ended."""
    if all(each.daemon or each in threads for each in threading.enumerate()):
        return
    try:
        # The interpreter's function also lets executors' threads go, and marks the main thread as ended.
        threading._shutdown()  # type: ignore[attr-defined]
    except KeyboardInterrupt:
        sys.stderr.write("roofprof: interrupted while the program's threads were waited for\n")


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
    """Return the traceback without the frames that ran the program."""
    ours = {__file__, runpy.__file__, "<frozen runpy>"}
    while trace is not None and traceback.extract_tb(trace, limit=1)[0].filename in ours:
        trace = trace.tb_next
    return trace
