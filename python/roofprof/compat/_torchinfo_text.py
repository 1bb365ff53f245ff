"""torchinfo's summary as text, and the settings that it takes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum, IntEnum, unique
from typing import Any

from roofprof.compat._torchinfo_layers import LayerInfo


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
