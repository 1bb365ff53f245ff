"""The lines of torchinfo's summary in their order: each call of a module, and the containers around them."""

from __future__ import annotations

import contextlib
import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from torch.nn.modules import module as nn_module

import roofprof
from roofprof.compat._call import named_places, path_in_report
from roofprof.compat._torchinfo_layers import LayerInfo, additions, size_of


class Calls:
    """Makes a line of each call of the model's modules, with hooks that are on none of them."""

    def __init__(self, model: nn.Module, batch_dim: int | None = None) -> None:
        self._model = model
        self._batch_dim = batch_dim
        self._places = dict(named_places(model))
        self._paths: defaultdict[int, list[str]] = defaultdict(list)
        for path, module in self._places.items():
            self._paths[id(module)].append(path)
        self._open: list[tuple[str, LayerInfo]] = []
        self._lines: list[tuple[str, LayerInfo]] = []
        self._seen: set[int] = set()

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Add a line for each call that begins in here."""

        def before(module: nn.Module, _: Any) -> None:
            if id(module) in self._paths:
                path = self._path(module)
                self._open.append((path, self._line(path)))
                if isinstance(module, torch.jit.ScriptModule):  # its modules call no hooks
                    self._add_all_below(path)

        # When the module raises, torch calls this without the keyword arguments.
        def after(module: nn.Module, args: tuple[Any, ...], *kwargs_and_output: Any) -> None:
            *kwargs, output = kwargs_and_output
            if id(module) not in self._paths:
                return
            while self._open:
                _, line = self._open.pop()
                if line.module is module:
                    self._fill(line, args or (kwargs[0] if kwargs else ()), output)
                    return

        handles = [
            nn_module.register_module_forward_pre_hook(before),
            nn_module.register_module_forward_hook(after, with_kwargs=True, always_call=True),
        ]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()
            nn_module._global_forward_hooks_with_kwargs.pop(handles[1].id, None)
            nn_module._global_forward_hooks_always_called.pop(handles[1].id, None)

    def _path(self, module: nn.Module) -> str:
        """Return the path of a module; if it has several, the one below the running module, else the last one."""
        around = f"{self._open[-1][0]}." if self._open and self._open[-1][0] else ""
        paths = self._paths[id(module)]
        return next((path for path in reversed(paths) if path.startswith(around)), paths[-1])

    def _line(self, path: str) -> LayerInfo:
        module = self._places[path]
        name = path.rpartition(".")[2] if path else type(self._model).__name__
        parent = self._open[-1][1] if self._open else None
        line = LayerInfo(name, module, path.count(".") + 1 if path else 0, parent)
        line.is_recursive = id(module) in self._seen
        self._seen.add(id(module))
        self._lines.append((path, line))
        return line

    def _fill(self, line: LayerInfo, inputs: Any, output: Any) -> None:
        if line.contains_lazy_param:
            line.calculate_num_params()
        line.input_size, _ = size_of(inputs, self._batch_dim)
        line.output_size, element_bytes = size_of(output, self._batch_dim)
        line.output_bytes = element_bytes * math.prod(line.output_size)
        line.executed = True

    def _add_all_below(self, path: str) -> None:
        for below in self._places:
            if below != path and below.startswith(f"{path}." if path else ""):
                self._line(below)

    def all_modules(self) -> list[LayerInfo]:
        """Return a line for each module, without a call."""
        for path in self._places:
            self._line(path)
        return self._finished()

    def lines(self, report: roofprof.Report) -> list[LayerInfo]:
        """Return the lines of the calls that were watched, with the work that was observed in them."""
        macs: Counter[int] = Counter()
        observed = {path_in_report(path): module for path, module in self._places.items()}
        for group in report.group("module"):
            macs[id(observed.get(group.keys[0], self._model))] += group.macs
        calls: defaultdict[int, list[LayerInfo]] = defaultdict(list)
        for _, line in self._lines:
            calls[line.layer_id].append(line)
        rows = {row.path: row for row in report.rows}
        for path, line in self._lines:
            row = rows.get(path)
            if not line.executed and row is not None:  # inside TorchScript
                line.input_size = list(row.input_shapes[0]) if row.input_shapes else []
                line.output_size = list(row.output_shapes[0]) if row.output_shapes else []
                line.output_bytes = row.output_bytes or 0
        for module, lines in calls.items():
            _share(macs.pop(module, 0), lines)
        lines = self._finished()
        if lines and macs:  # of modules that were never called: their ops' inputs were
            lines[0].macs += sum(macs.values())
        return lines

    def _finished(self) -> list[LayerInfo]:
        lines = self._with_containers()
        index: Counter[int] = Counter()
        with_lines = {line.layer_id for line in lines}
        for position, line in enumerate(lines):
            index[line.depth] += 1
            line.depth_index = index[line.depth]
            line.set_leftover(with_lines)
            line.children = []
            for below in lines[position + 1 :]:
                if below.depth <= line.depth:
                    break
                line.children.append(below)
        return lines

    def _with_containers(self) -> list[LayerInfo]:
        """Add a line for each module that nobody calls but that contains a called one, as a ModuleList."""
        called, self._lines = self._lines, []
        self._open = []
        around: list[str] = []  # the paths of the line above and of those around it
        for path, line in called:
            parts = path.split(".") if path else []
            for depth in range(len(parts)):
                above = ".".join(parts[:depth])
                if around[depth : depth + 1] != [above]:
                    self._line(above)
                    around[depth:] = [above]
            self._lines.append((path, line))
            around[len(parts) :] = [path]
        return [line for _, line in self._lines]


def _share(macs: int, lines: list[LayerInfo]) -> None:
    """Divide the work of all calls of a module among them, by their outputs, without losing any."""
    outputs = [math.prod(line.output_size) for line in lines]
    total, given = sum(outputs), 0
    for line, output in zip(lines, outputs, strict=True):
        share = macs * output // total if total else 0
        line.macs = share + additions(line, macs)
        given += share
    lines[-1].macs += macs - given
