"""One line of torchinfo's summary: a call of a module, or a container that was never called."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy

Size = list[int]


class LayerInfo:
    """The data of a line about its module, under torchinfo's names.

    ``macs`` are the call's mult-adds; a module with modules inside has only those of its own ops. Bytes are bytes.
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
