"""The fused bound of whole models: the root's bytes in closed form, and no row above its unfused bytes."""

from __future__ import annotations

import pytest
import torch
import torchvision
from fused_checks import UNREACHED, assert_bounded
from given_roofs import profiler
from torch import nn

pytestmark = pytest.mark.integration


def storage_bytes(tensors):
    return sum({t.untyped_storage()._cdata: t.untyped_storage().nbytes() for t in tensors}.values())


def tensors_in(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from tensors_in(item)


class UNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.down = nn.ModuleList(self.block(n, m) for n, m in ((3, width), (width, 2 * width)))
        self.middle = self.block(2 * width, 2 * width)
        self.up = nn.ModuleList(self.block(n, m) for n, m in ((4 * width, width), (2 * width, width)))
        self.pool = nn.MaxPool2d(2)
        self.head = nn.Conv2d(width, 1, 1)

    @staticmethod
    def block(n, m):
        return nn.Sequential(nn.Conv2d(n, m, 3, padding=1), nn.BatchNorm2d(m), nn.ReLU(inplace=True))

    def forward(self, x):
        kept = []
        for down in self.down:
            kept.append(down(x))
            x = self.pool(kept[-1])
        x = self.middle(x)
        for up, side in zip(self.up, reversed(kept), strict=True):
            x = up(torch.cat([nn.functional.interpolate(x, scale_factor=2), side], 1))
        return self.head(x)


def resnet(name):
    return lambda: (torchvision.models.get_model(name), (torch.rand(1, 3, 64, 64),))


def vit():
    return torchvision.models.VisionTransformer(64, 16, 2, 4, 64, 128), (torch.rand(1, 3, 64, 64),)


def gpt2():
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(n_layer=2, n_embd=64, n_head=4, vocab_size=100, n_positions=16, use_cache=False)
    return transformers.GPT2LMHeadModel(config), (torch.arange(16)[None],)


def unet():
    return UNet(), (torch.rand(1, 3, 32, 32),)


MODELS = {
    "resnet18": resnet("resnet18"),
    "vit": vit,
    "gpt2": gpt2,
    "unet": unet,
}


# Positions and masks of the language models are made of numbers, and BERT's tokens have one type of two.
SLACK = {"gpt2": 16 * 8 * 4, "bert": 16 * 8 * 4 + 2 * 64 * 4}


def bytes_of_root(model, inputs):
    """Inputs, outputs, parameters and buffers: every row of the tables is looked up, or may be."""
    unused = [b for n, b in model.named_buffers() if n.endswith(("num_batches_tracked", "token_type_ids"))]
    used = [*model.parameters(), *model.buffers(), *tensors_in(inputs), *tensors_in(model(*inputs))]
    return storage_bytes(used) - storage_bytes(unused)


@pytest.mark.parametrize("name", MODELS)
@torch.no_grad()
def test_eager(name):
    model, inputs = MODELS[name]()
    model.eval()
    report = profiler(model, ceilings=UNREACHED).run(*inputs)
    assert_bounded(report)
    assert abs(report.row("").fused_bytes - bytes_of_root(model, inputs)) <= SLACK.get(name, 0)


@pytest.mark.parametrize("name", MODELS)
def test_training_step(name):
    model, inputs = MODELS[name]()
    prof = profiler(model, ceilings=UNREACHED)
    with prof:
        out = model(*inputs)
        sum(t.float().sum() for t in tensors_in(dict(out) if hasattr(out, "keys") else out)).backward()
    report = prof.report()
    assert_bounded(report)
    assert report.row("").fused_bytes < report.row("").bytes


@pytest.mark.parametrize("name", ["resnet18", "vit", "unet"])
@torch.no_grad()
def test_compiled(name):
    """The work is that of eager mode, and so is what crosses a boundary; the region's row has the time."""
    model, inputs = MODELS[name]()
    model.eval()
    eager = profiler(model).count(*inputs)
    compiled = profiler(torch.compile(model, backend="aot_eager"), ceilings=UNREACHED).run(*inputs)
    assert_bounded(compiled)
    assert compiled.row("").fused_bytes == eager.row("").fused_bytes
    row = compiled.row("")
    assert row.percent_of_fused == pytest.approx(100 * row.fused_bound_time / row.time)
