"""The lines of torchinfo's and torchsummary's tables: each call of a module, and the containers around them."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy

import roofprof
from roofprof.compat._call import Around, global_hooks, named_places, path_in_report

Size = list[int]


class LayerInfo:
    """The data of a line about its module, under torchinfo's names.

    ``macs`` are the call's mult-adds; a module with modules inside has only those of ops outside of them.
    """

    def __init__(self, var_name: str, module: nn.Module, depth: int, parent_info: LayerInfo | None = None) -> None:
        self.layer_id, self.module = id(module), module
        self.class_name = str(getattr(module, "original_name", type(module).__name__))
        self.var_name, self.depth, self.parent_info = var_name, depth, parent_info
        self.depth_index: int | None = None
        self.children: list[LayerInfo] = []  # all lines below this one's
        self.is_leaf_layer = not any(True for _ in module.children())
        self.executed = False
        self.is_recursive = False  # a line of the same module stands above
        self.input_size: Size = []
        self.output_size: Size = []
        self.output_bytes = self.macs = 0
        size = getattr(module, "kernel_size", None)
        self.kernel_size = list(size) if isinstance(size, Iterable) else size if isinstance(size, int) else None
        self.outputs: list[Size] = []  # of all tensors, which torchsummary shows
        self.outputs_bytes = 0
        self.ended: float = 0  # torchsummary's order; 0: it did not run
        self._leftover = (0, 0)  # elements, and those that are trainable
        self.calculate_num_params()

    def __repr__(self) -> str:
        return f"{self.class_name}: {self.depth}"

    def calculate_num_params(self) -> None:
        """Count the module's parameters, those of modules inside included; a pruned one by what its mask leaves."""
        self.num_params = self.trainable_params = self.param_bytes = 0
        self.contains_lazy_param = False
        self._parameters: dict[str, nn.Parameter] = {}
        self._counts: dict[str, int] = {}
        for full_name, parameter in self.module.named_parameters():
            if is_lazy(parameter):
                self.contains_lazy_param = True
                continue
            name, count = _unmasked(self.module, full_name, parameter)
            self._parameters[name], self._counts[name] = parameter, count
            self.num_params += count
            self.trainable_params += count if parameter.requires_grad else 0
            self.param_bytes += count * parameter.element_size()

    @property
    def inner_layers(self) -> dict[str, dict[str, str]]:
        """Return each parameter's shape and number of elements, as texts; the model's without those of its layers."""
        found = {}
        for name, parameter in self._parameters.items():
            if self.depth or "." not in name:
                shape = list(parameter.shape)
                shape = [shape[1], shape[0], *shape[2:]] if name == "weight" and len(shape) > 1 else shape
                found[name] = {"kernel_size": str(shape), "num_params": f"{self._counts[name]:,}"}
        return found

    @property
    def trainable(self) -> str:
        """Return "True", "False" or "Partial" for parameters that can be trained, or "--" without parameters."""
        if self.num_params == 0:
            return "--"
        return {0: "False", self.num_params: "True"}.get(self.trainable_params, "Partial")

    def leftover_params(self) -> int:
        """Return the number of parameters of the module and of modules inside without a line."""
        return self._leftover[0]

    def leftover_trainable_params(self) -> int:
        """Return the number of these parameters that can be trained."""
        return self._leftover[1]

    def set_leftover(self, with_lines: set[int]) -> None:
        """Set the leftover parameters; ``with_lines``: the modules that have a line, by identity."""
        if self.is_leaf_layer:
            self._leftover = self.num_params, self.trainable_params
            return
        found = _parameters_without_line(self.module, with_lines)
        counts = {id(p): (_unmasked(owner, name, p)[1], p.requires_grad) for owner, name, p in found if not is_lazy(p)}
        self._leftover = sum(n for n, _ in counts.values()), sum(n for n, is_trained in counts.values() if is_trained)


def _unmasked(module: nn.Module, name: str, parameter: torch.Tensor) -> tuple[str, int]:
    """Return a parameter's name and elements; where torch.nn.utils.prune masks it, the elements that are left."""
    if name.endswith("_orig"):
        path, _, last = name.removesuffix("_orig").rpartition(".")
        mask = getattr(module.get_submodule(path), f"{last}_mask", None)
        if mask is not None:
            return name.removesuffix("_orig"), int(mask.sum())
    return name, parameter.numel()


def _parameters_without_line(module: nn.Module, with_lines: set[int]) -> Iterator[tuple[nn.Module, str, nn.Parameter]]:
    for name, parameter in module.named_parameters(recurse=False):
        yield module, name, parameter
    for child in module.children():
        if id(child) not in with_lines:
            yield from _parameters_without_line(child, with_lines)


class Calls:
    """Makes a line of each call of the model's modules, with hooks that are on none of them."""

    def __init__(self, model: nn.Module, batch_dim: int | None = None) -> None:
        self._model, self._batch_dim = model, batch_dim
        self._places = dict(named_places(model))
        self._paths: defaultdict[int, list[str]] = defaultdict(list)
        for path, module in self._places.items():
            self._paths[id(module)].append(path)
        self._open: list[tuple[str, LayerInfo]] = []
        self._lines: list[tuple[str, LayerInfo]] = []
        self._seen: set[int] = set()
        self._ended = 0

    def watching(self) -> Around:
        """Add a line for each call that begins in here."""

        def before(module: nn.Module, _: Any) -> None:
            if id(module) in self._paths:
                # If the module has several paths, take the one below the running module, else the last one.
                around = f"{self._open[-1][0]}." if self._open and self._open[-1][0] else ""
                paths = self._paths[id(module)]
                path = next((path for path in reversed(paths) if path.startswith(around)), paths[-1])
                self._open.append((path, self._line(path)))
                if isinstance(module, torch.jit.ScriptModule):  # its modules call no hooks
                    inside = [each for each in self._places if each.startswith(f"{path}." if path else "")]
                    for below in inside:
                        if below != path:
                            self._line(below)

        # When the module raises, torch calls this without the keyword arguments.
        def after(module: nn.Module, args: tuple[Any, ...], *kwargs_and_output: Any) -> None:
            *kwargs, output = kwargs_and_output
            while self._open if id(module) in self._paths else False:
                _, line = self._open.pop()
                if line.module is module:
                    self._fill(line, args or (kwargs[0] if kwargs else ()), output)
                    return

        return global_hooks(before, after, always_call=True)

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
        line.input_size, _ = _size_of(inputs, self._batch_dim)
        line.output_size, element_bytes = _size_of(output, self._batch_dim)
        line.output_bytes = element_bytes * math.prod(line.output_size)
        tensors = tensors_in(output)
        line.outputs, line.outputs_bytes = [list(one.shape) for one in tensors], sum(one.nbytes for one in tensors)
        self._ended += 1
        line.executed, line.ended = True, self._ended

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
        rows = {row.path: row for row in report.rows}
        for path, line in self._lines:
            calls[line.layer_id].append(line)
            if not line.executed and path in rows:  # inside TorchScript
                row = rows[path]
                line.input_size, line.output_size = (
                    list(shapes[0]) if shapes else [] for shapes in (row.input_shapes, row.output_shapes)
                )
                line.outputs, line.output_bytes = row.output_shapes, row.output_bytes or 0
                line.outputs_bytes = line.output_bytes
                line.ended = math.inf if row.calls and not line.is_recursive else 0
        for module, lines in calls.items():
            _share(macs.pop(module, 0), lines)
        finished = self._finished()
        if finished:  # of modules that were never called: their ops' inputs were
            finished[0].macs += sum(macs.values())
        return finished

    def _finished(self) -> list[LayerInfo]:
        """Return the lines, one also for each module that nobody calls but that contains a called one."""
        called, self._lines, self._open = self._lines, [], []
        paths: list[str] = []  # of the line above and of those around it
        for path, line in called:
            parts = path.split(".") if path else []
            for depth in range(len(parts)):
                above = ".".join(parts[:depth])
                if paths[depth : depth + 1] != [above]:
                    self._line(above)
                    paths[depth:] = [above]
            self._lines.append((path, line))
            paths[len(parts) :] = [path]
        index: Counter[int] = Counter()
        lines = [line for _, line in self._lines]
        with_lines = {line.layer_id for line in lines}
        around: list[LayerInfo] = []
        for line in lines:
            index[line.depth] += 1
            line.depth_index, line.children = index[line.depth], []
            line.set_leftover(with_lines)
            around = [*(one for one in around if one.depth < line.depth), line]
            for one in around[:-1]:
                one.children.append(line)
        return lines


def _share(macs: int, lines: list[LayerInfo]) -> None:
    """Divide the work of all calls of a module among them, by their outputs, without losing any."""
    outputs = [math.prod(line.output_size) for line in lines]
    shares = [macs * output // sum(outputs) if sum(outputs) else 0 for output in outputs]
    shares[-1] += macs - sum(shares)
    for line, share in zip(lines, shares, strict=True):
        line.macs = share + _additions(line, macs)


def _additions(layer: LayerInfo, macs: int) -> int:
    """Return torchinfo's additions to a call's MACs: one for each bias that is added, and for norms and the like one
    for each parameter and sample.
    """
    module, output = layer.module, layer.output_size
    is_lookup = isinstance(module, (nn.Embedding, nn.EmbeddingBag))
    if not layer.is_leaf_layer or not layer.executed or not output or is_lookup:
        return 0
    own = dict(module.named_parameters(recurse=False))
    if isinstance(module, (nn.RNNBase, nn.RNNCellBase)):
        return math.prod(layer.input_size[:-1]) * sum(p.numel() for name, p in own.items() if "bias" in name)
    if macs:
        return math.prod(output) if own.get("bias") is not None else 0
    weights = [name for name in own if name.removesuffix("_orig") in {"weight", "bias"}]
    return output[0] * sum(_unmasked(module, name, own[name])[1] for name in weights)


def _size_of(value: Any, batch_dim: int | None) -> tuple[Size, int]:
    """Return the sizes of a call's inputs or outputs, and the bytes of an element, by one tensor: the first of a list,
    a dict's last value, a dataclass's first; ([], 0) without any.
    """
    tensors = tensors_in(list(value.values())[-1:] if isinstance(value, Mapping) else value)
    if not tensors:
        return [], 0
    size = list(tensors[0].shape)
    if batch_dim is not None and not isinstance(value, torch.Tensor) and batch_dim < len(size):
        size[batch_dim] = 1
    return size, tensors[0].element_size()


def tensors_in(value: Any) -> list[torch.Tensor]:
    """Return all tensors in containers and dataclasses, in their order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, nn.utils.rnn.PackedSequence):
        return [value.data]
    if isinstance(value, Mapping):
        value = list(value.values())
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = [getattr(value, field.name, None) for field in dataclasses.fields(value)]
    return [tensor for each in value for tensor in tensors_in(each)] if isinstance(value, (list, tuple)) else []
