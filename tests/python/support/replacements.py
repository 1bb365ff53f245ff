"""What every replacement of another tool is held against."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect

import torch
from torch import nn
from torch.nn.modules import module as nn_module


def parameters(function):
    """Names, kinds and defaults; an empty list, an empty tuple and None are one default."""
    return [(one.name, one.kind, one.default or None) for one in inspect.signature(function).parameters.values()]


@contextlib.contextmanager
def nothing_left_on(model):
    """What is on a model, in torch and among the global hooks is the same afterwards, also where the model raised."""

    def state():
        modules = list(model.modules())
        return (
            [(module.training, set(vars(module)), len(module._forward_hooks)) for module in modules],
            {name: value.clone() for name, value in model.state_dict().items()},
            [len(vars(nn_module)[name]) for name in sorted(vars(nn_module)) if name.startswith("_global_forward")],
            (nn.functional.relu, torch.add, torch.Tensor.matmul, torch.backends.mha.get_fastpath_enabled()),
        )

    before = state()
    try:
        yield
    finally:
        after = state()
        assert [before[i] for i in (0, 2, 3)] == [after[i] for i in (0, 2, 3)]
        assert before[1].keys() == after[1].keys()
        assert all(torch.equal(before[1][name], after[1][name]) for name in before[1])


@dataclasses.dataclass
class Output:
    logits: torch.Tensor


class TakesADict(nn.Module):
    """Linear(8, 16), and a product where it is given ``scale``."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 16)

    def forward(self, batch, *, scale=None):
        x = self.layer(batch["points"])
        return Output(x if scale is None else x @ scale)


class Raises(nn.Module):
    """After a layer ran."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        self.layer(x)
        raise KeyError("mine")


def small_cnn():
    """Convolution, norm, activation, poolings, linear: no sum beside them."""
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Sequential(nn.Conv2d(8, 8, 3, groups=4, bias=False), nn.GELU()),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 5),
    )


def elements_after(model, x, kinds):
    """Elements of what modules of these exact types return in one call in eval mode, added up."""
    found = []
    handles = [
        module.register_forward_hook(lambda _, __, output: found.append(output.numel()))
        for module in model.modules()
        if type(module) in kinds
    ]
    modes = [module.training for module in model.modules()]
    model.eval()(x)
    for handle in handles:
        handle.remove()
    for module, training in zip(model.modules(), modes, strict=True):
        module.training = training
    return sum(found)


# Additions of residuals: channels x positions of each block that has one, one image of 64 x 64.
RESIDUALS = {
    "resnet18": 2 * (64 * 16**2 + 128 * 8**2 + 256 * 4**2 + 512 * 2**2),
    "mobilenet_v2": 24 * 16**2 + 2 * 32 * 8**2 + 3 * 64 * 4**2 + 2 * 96 * 4**2 + 2 * 160 * 2**2,
    "alexnet": 0,
}
