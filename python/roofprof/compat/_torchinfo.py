"""torchinfo: the calls of modules, its layers, and its text."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum, unique
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy

import roofprof
from roofprof.compat._call import global_hooks, named_places, path_in_report

# ---- the lines of torchinfo's summary in their order: each call of a module, and the containers around them


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

    def watching(self) -> contextlib.AbstractContextManager[None]:
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

        return global_hooks(before, after, with_kwargs=True, always_call=True)

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


# ---- one line of torchinfo's summary: a call of a module, or a container that was never called

Size = list[int]


class LayerInfo:
    """The data of a line about its module, under torchinfo's names.

    ``macs`` are the call's mult-adds; a module with modules inside has only those of ops outside of them.
    """

    def __init__(self, var_name: str, module: nn.Module, depth: int, parent_info: LayerInfo | None = None) -> None:
        self.layer_id = id(module)
        self.module = module
        self.class_name = str(getattr(module, "original_name", type(module).__name__))
        self.var_name = var_name
        self.depth = depth
        self.depth_index: int | None = None
        self.parent_info = parent_info
        self.children: list[LayerInfo] = []  # all lines below this one's
        self.is_leaf_layer = not any(True for _ in module.children())
        self.executed = False
        self.is_recursive = False  # a line of the same module stands above
        self.contains_lazy_param = False
        self.input_size: Size = []
        self.output_size: Size = []
        self.output_bytes = 0
        self.macs = 0
        self.kernel_size = _kernel_size(module)
        self.inner_layers: dict[str, dict[str, str]] = {}
        self.num_params = self.trainable_params = self.param_bytes = 0
        self._leftover = (0, 0)  # all and trainable ones
        self.calculate_num_params()

    def __repr__(self) -> str:
        return f"{self.class_name}: {self.depth}"

    def calculate_num_params(self) -> None:
        """Count the module's parameters, those of modules inside included; a pruned one by what its mask leaves."""
        self.num_params = self.trainable_params = self.param_bytes = 0
        self.inner_layers = {}
        self.contains_lazy_param = False
        for full_name, parameter in self.module.named_parameters():
            if is_lazy(parameter):
                self.contains_lazy_param = True
                continue
            name, count = _unmasked(self.module, full_name, parameter)
            self.num_params += count
            self.trainable_params += count if parameter.requires_grad else 0
            self.param_bytes += count * parameter.element_size()
            if self.depth or "." not in name:
                self.inner_layers[name] = {"kernel_size": _kernel_shape(name, parameter), "num_params": f"├─{count:,}"}
        if self.inner_layers:
            last = self.inner_layers[next(reversed(self.inner_layers))]
            last["num_params"] = "└─" + last["num_params"][2:]

    @property
    def trainable(self) -> str:
        """Return "True", "False" or "Partial" for parameters that can be trained, or "--" without parameters."""
        if self.num_params == 0:
            return "--"
        if self.trainable_params == 0:
            return "False"
        return "True" if self.trainable_params == self.num_params else "Partial"

    def get_layer_name(self, show_var_name: bool, show_depth: bool) -> str:
        """Return the line's name: "Conv2d (conv1): 1-1"."""
        name = f"{self.class_name} ({self.var_name})" if show_var_name and self.var_name else self.class_name
        if not show_depth or not self.depth:
            return name
        return f"{name}: {self.depth}" + ("" if self.depth_index is None else f"-{self.depth_index}")

    def leftover_params(self) -> int:
        """Return the number of parameters of the module and of modules inside without a line."""
        return self._leftover[0]

    def leftover_trainable_params(self) -> int:
        """Return the number of those that can be trained."""
        return self._leftover[1]

    def set_leftover(self, with_lines: set[int]) -> None:
        """Set the leftover parameters; ``with_lines``: the modules that have a line, by identity."""
        counted: dict[int, tuple[int, bool]] = {}
        for owner, name, parameter in _parameters_without_line(self.module, with_lines):
            if not is_lazy(parameter):
                counted[id(parameter)] = _unmasked(owner, name, parameter)[1], parameter.requires_grad
        self._leftover = sum(n for n, _ in counted.values()), sum(n for n, trainable in counted.values() if trainable)

    def shown_params(self, reached_max_depth: bool) -> int:
        """Return the line's parameters: all at the last depth that is shown, else those of no line below."""
        return self.num_params if reached_max_depth or self.is_leaf_layer else self.leftover_params()

    def num_params_to_str(self, reached_max_depth: bool) -> str:
        """Return the cell "Param #"; in brackets where they are frozen."""
        if self.num_params == 0:
            return "--"
        if self.is_recursive:
            return "(recursive)"
        shown = self.shown_params(reached_max_depth)
        if reached_max_depth or self.is_leaf_layer:
            return f"{shown:,}" if self.trainable_params else f"({shown:,})"
        return f"{shown:,}" if shown > 0 else "--"

    def params_percent(self, total_params: int, reached_max_depth: bool) -> str:
        """Return the cell "Param %"."""
        if total_params and self.is_recursive:
            return "(recursive)"
        shown = self.shown_params(reached_max_depth) if total_params else 0
        return f"{shown / total_params:>7.2%}" if shown else "     --"

    def macs_to_str(self, reached_max_depth: bool) -> str:
        """Return the cell "Mult-Adds"."""
        below = sum(line.macs for line in self.children) if reached_max_depth else 0
        return f"{self.macs + below:,}" if self.macs + below > 0 else "--"


def _kernel_size(module: nn.Module) -> int | Size | None:
    size = getattr(module, "kernel_size", None)
    return list(size) if isinstance(size, Iterable) else size if isinstance(size, int) else None


def _kernel_shape(name: str, parameter: torch.Tensor) -> str:
    """Return the shape of a parameter; a weight's as [in, out, ...]."""
    shape = list(parameter.shape)
    return str([shape[1], shape[0], *shape[2:]] if name == "weight" and len(shape) > 1 else shape)


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


def size_of(value: Any, batch_dim: int | None) -> tuple[Size, int]:
    """Return the sizes of a call's inputs or outputs, and the bytes of an element, by one tensor: the first of a list,
    a dict's last value, a dataclass's first; ([], 0) without any.
    """
    tensor = _first_tensor(list(value.values())[-1:] if isinstance(value, Mapping) else value)
    if tensor is None:
        return [], 0
    size = list(tensor.shape)
    if batch_dim is not None and not isinstance(value, torch.Tensor) and batch_dim < len(size):
        size[batch_dim] = 1
    return size, int(tensor.element_size())


def _first_tensor(value: Any) -> Any:
    return next(iter(tensors_in(value)), None)


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


_LOOKUPS = (nn.Embedding, nn.EmbeddingBag)
_RECURRENT = (nn.RNNBase, nn.RNNCellBase)


def additions(layer: LayerInfo, macs: int) -> int:
    """Return torchinfo's additions to a call's MACs: one for each bias that is added, and for norms and the like one
    for each parameter and sample.
    """
    module, output = layer.module, layer.output_size
    if not layer.is_leaf_layer or not layer.executed or not output or isinstance(module, _LOOKUPS):
        return 0
    own = dict(module.named_parameters(recurse=False))
    if isinstance(module, _RECURRENT):
        return math.prod(layer.input_size[:-1]) * sum(p.numel() for name, p in own.items() if "bias" in name)
    if macs:
        return math.prod(output) if own.get("bias") is not None else 0
    return output[0] * sum(_unmasked(module, name, own[name])[1] for name in own if _is_weight(name))


def _is_weight(name: str) -> bool:
    return name.removesuffix("_orig") in {"weight", "bias"}


# ---- torchinfo's summary as text, and the settings that it takes


@unique
class Mode(str, Enum):
    """The model's mode during the call."""

    TRAIN = "train"
    EVAL = "eval"


@unique
class RowSettings(str, Enum):
    """The settings of a line's name."""

    DEPTH = "depth"
    VAR_NAMES = "var_names"
    ASCII_ONLY = "ascii_only"
    HIDE_RECURSIVE_LAYERS = "hide_recursive_layers"


@unique
class ColumnSettings(str, Enum):
    """The columns."""

    KERNEL_SIZE = "kernel_size"
    INPUT_SIZE = "input_size"
    OUTPUT_SIZE = "output_size"
    NUM_PARAMS = "num_params"
    PARAMS_PERCENT = "params_percent"
    MULT_ADDS = "mult_adds"
    TRAINABLE = "trainable"


@unique
class Units(str, Enum):
    """Decimal units; AUTO is the largest of M, G and T that gives 1 or more."""

    AUTO = "auto"
    MEGABYTES = "M"
    GIGABYTES = "G"
    TERABYTES = "T"
    NONE = ""


@unique
class Verbosity(IntEnum):
    """The amount of text that is printed."""

    QUIET, DEFAULT, VERBOSE = 0, 1, 2


HEADINGS = {
    ColumnSettings.KERNEL_SIZE: "Kernel Shape",
    ColumnSettings.INPUT_SIZE: "Input Shape",
    ColumnSettings.OUTPUT_SIZE: "Output Shape",
    ColumnSettings.NUM_PARAMS: "Param #",
    ColumnSettings.PARAMS_PERCENT: "Param %",
    ColumnSettings.MULT_ADDS: "Mult-Adds",
    ColumnSettings.TRAINABLE: "Trainable",
}
UNIT_FACTORS = {Units.TERABYTES: 1e12, Units.GIGABYTES: 1e9, Units.MEGABYTES: 1e6, Units.NONE: 1}
_NAME_WIDTH = 40
_INDENT = 5  # characters a level


@dataclass
class FormattingOptions:
    """The layout of a summary; users may change it before they print it again."""

    max_depth: int
    verbose: int
    col_names: tuple[ColumnSettings, ...]
    col_width: int
    row_settings: set[RowSettings]
    params_units: Units = Units.NONE
    macs_units: Units = Units.AUTO

    def table(self, lines: list[LayerInfo], total_params: int) -> tuple[int, str]:
        """Return the table's width, and its lines below the header, each with its newline."""
        names = {id(line): self._name(line) for line in lines}
        longest = max((len(names[id(line)]) + line.depth * _INDENT + 1 for line in lines), default=0)
        width = math.ceil(longest / _INDENT) * _INDENT if longest >= _NAME_WIDTH else _NAME_WIDTH
        title = "Layer (type"
        title += " (var_name)" if RowSettings.VAR_NAMES in self.row_settings else ""
        title += ":depth-idx)" if RowSettings.DEPTH in self.row_settings else ")"
        total_width = width + self.col_width * len(self.col_names)
        divider = "=" * total_width + "\n"
        text = divider + self._row(title, HEADINGS, width) + divider
        for line in lines:
            hidden = line.is_recursive and RowSettings.HIDE_RECURSIVE_LAYERS in self.row_settings
            if line.depth > self.max_depth or hidden:
                continue
            text += self._row(self._branch(line.depth) + names[id(line)], self._cells(line, total_params), width)
            if self.verbose == Verbosity.VERBOSE:
                for name, cells in line.inner_layers.items():
                    text += self._row(self._branch(line.depth + 1) + name, cells, width)
        return total_width, text + divider

    def _name(self, line: LayerInfo) -> str:
        return line.get_layer_name(
            show_var_name=RowSettings.VAR_NAMES in self.row_settings,
            show_depth=RowSettings.DEPTH in self.row_settings,
        )

    def _cells(self, line: LayerInfo, total_params: int) -> dict[ColumnSettings, str]:
        last = line.depth == self.max_depth
        return {
            ColumnSettings.KERNEL_SIZE: str(line.kernel_size or "--"),
            ColumnSettings.INPUT_SIZE: str(line.input_size or "--"),
            ColumnSettings.OUTPUT_SIZE: str(line.output_size or "--"),
            ColumnSettings.NUM_PARAMS: line.num_params_to_str(last),
            ColumnSettings.PARAMS_PERCENT: line.params_percent(total_params, last),
            ColumnSettings.MULT_ADDS: line.macs_to_str(last),
            ColumnSettings.TRAINABLE: line.trainable,
        }

    def _row(self, name: str, cells: Any, width: int) -> str:
        texts = [f"{name:<{width}}", *(f"{cells.get(column, ''):<{self.col_width}}" for column in self.col_names)]
        return " ".join(texts).rstrip() + "\n"

    def _branch(self, depth: int) -> str:
        ascii_only = RowSettings.ASCII_ONLY in self.row_settings
        if depth <= 1:
            return "" if depth == 0 else "+ " if ascii_only else "├─"
        return ("|    " if ascii_only else "│    ") * (depth - 1) + ("+ " if ascii_only else "└─")


class ModelStatistics:
    """The result of :func:`roofprof.compat.torchinfo.summary`: the lines, their sums, and the table by ``str()``.

    total_params, trainable_params: distinct ones of the model. total_mult_adds: of all lines. total_input,
    total_output_bytes, total_param_bytes: bytes; outputs are twice those of the layers with parameters.
    """

    def __init__(
        self, summary_list: list[LayerInfo], input_size: Any, total_input_size: int, formatting: FormattingOptions
    ) -> None:
        self.summary_list = summary_list
        self.input_size = input_size
        self.formatting = formatting
        self.total_input = total_input_size
        model = summary_list[0]
        self.total_params = model.num_params
        self.trainable_params = model.trainable_params
        self.total_param_bytes = model.param_bytes
        self.total_mult_adds = sum(line.macs for line in summary_list)
        with_params = [line for line in summary_list if line.is_leaf_layer and line.num_params > 0]
        self.total_output_bytes = 2 * sum(line.output_bytes for line in with_params)

    def __repr__(self) -> str:
        width, text = self.formatting.table(self.summary_list, self.total_params)
        for name, count in (
            ("Total", self.total_params),
            ("Trainable", self.trainable_params),
            ("Non-trainable", self.total_params - self.trainable_params),
        ):
            text += f"{name} params{self.format_output_num(count, self.formatting.params_units)}\n"
        if self.input_size:
            text += f"Total mult-adds{self.format_output_num(self.total_mult_adds, self.formatting.macs_units)}\n"
            text += "=" * width + "\n"
            sizes = {
                "Input size": self.total_input,
                "Forward/backward pass size": self.total_output_bytes,
                "Params size": self.total_param_bytes,
            }
            sizes["Estimated Total Size"] = sum(sizes.values())
            text += "".join(f"{name} (MB): {self.to_megabytes(size):0.2f}\n" for name, size in sizes.items())
        return text + "=" * width

    @staticmethod
    def float_to_megabytes(num: int) -> float:
        """Return the megabytes of so many floats of 4 bytes."""
        return num * 4 / 1e6

    @staticmethod
    def to_megabytes(num: int) -> float:
        """Return bytes in megabytes."""
        return num / 1e6

    @staticmethod
    def to_readable(num: int, units: Units = Units.AUTO) -> tuple[Units, float]:
        """Return a unit and the number in it."""
        if units == Units.AUTO:
            units = Units.TERABYTES if num >= 1e12 else Units.GIGABYTES if num >= 1e9 else Units.MEGABYTES
        return units, num / UNIT_FACTORS[units]

    @staticmethod
    def format_output_num(num: int, units: Units) -> str:
        """Return the text after a total's name: " (G): 1.81"."""
        unit, value = ModelStatistics.to_readable(num, units)
        shown = f"{int(value):,d}" if float(value).is_integer() else f"{value:,.2f}"
        return ("" if unit == Units.NONE else f" ({unit.value})") + f": {shown}"
