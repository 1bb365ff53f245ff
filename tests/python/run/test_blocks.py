"""Blocks of one profiler, one after another: changes between them are seen, the rest is not walked anew."""

import pytest
import torch
from given_roofs import profiler
from torch import nn

from roofprof.models import walk


class Doubling(nn.Linear):
    def forward(self, value):
        return 2 * super().forward(value)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.second = nn.Linear(4, 4)
        self.more = nn.ModuleList([nn.Linear(4, 4)])
        self.register_buffer("scale", torch.ones(4))

    def forward(self, value):
        value = self.second(self.first(value.to(self.first.weight.dtype)))
        for module in self.more:
            value = module(value)
        return value


CHANGES = {
    "added": lambda net: net.more.append(nn.Linear(4, 4)),
    "removed": lambda net: net.more.pop(0),
    "replaced": lambda net: setattr(net, "second", nn.Linear(4, 4, bias=False)),
    "replaced by another type": lambda net: setattr(net, "second", nn.Identity()),
    "replaced deep inside": lambda net: net.more.__setitem__(0, nn.Sequential(nn.Linear(4, 4), nn.ReLU())),
    "renamed": lambda net: net._modules.update(third=net._modules.pop("second")) or setattr(net, "second", net.third),
    "in another order": lambda net: net._modules.update(first=net._modules.pop("first")),
    "shared": lambda net: setattr(net, "second", net.first),
    "given another class": lambda net: setattr(net.first, "__class__", Doubling),
    "put around": lambda net: setattr(net, "second", nn.Sequential(net.second)),
    "parameter replaced": lambda net: setattr(net.first, "weight", nn.Parameter(torch.ones(4, 4))),
    "parameter of another size": lambda net: setattr(net.first, "bias", nn.Parameter(torch.ones(1))),
    "parameter removed": lambda net: setattr(net.first, "bias", None),
    "parameter tied": lambda net: setattr(net.second, "weight", net.first.weight),
    "parameter frozen": lambda net: net.first.weight.requires_grad_(requires_grad=False),
    "parameter's data replaced": lambda net: setattr(net.first.bias, "data", torch.ones(1)),
    "other dtype": lambda net: net.double(),
    "other device": lambda net: net.to("meta"),
    "parametrised": lambda net: nn.utils.parametrizations.weight_norm(net.first),
    "buffer of another size": lambda net: setattr(net, "scale", torch.ones(8)),
    "buffer registered": lambda net: net.second.register_buffer("table", torch.ones(3)),
    "buffer shared": lambda net: net.second.register_buffer("scale", net.scale),
    "list that is called": lambda net: setattr(net.more, "forward", lambda value: value),
}


def block_of(prof, net):
    """All that a report says of the tree, and who did how much."""
    with prof:
        net(torch.ones(2, 4, device=net.first.weight.device))
    report = prof.report()
    rows = [
        (r.path, r.type, r.calls, r.macs, r.params, r.trainable_params, r.param_bytes, r.buffer_bytes)
        for r in report.rows
    ]
    return report.device, rows, report.coverage.uncalled_modules


@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
def test_a_change_between_blocks_is_seen(change):
    net = Net()
    prof = profiler(net)
    before = block_of(prof, net)
    assert block_of(prof, net) == before
    change(net)
    changed = block_of(prof, net)
    assert changed == block_of(profiler(net), net)  # one that never saw it as it was
    assert block_of(prof, net) == changed


def test_a_model_that_does_not_change_is_walked_once(monkeypatch):
    walked = []
    walk_it = walk.model_tree
    monkeypatch.setattr(walk, "model_tree", lambda model: walked.append(model) or walk_it(model))
    net = Net()
    prof = profiler(net)
    for _ in range(3):
        block_of(prof, net)
    assert walked == [net]


def test_a_compiled_function_of_a_model_is_watched_by_its_model():
    net = Net()
    forward = torch.compile(net.forward, backend="eager")
    prof = profiler(forward)
    with torch.compiler.set_stance("force_eager"):
        with prof:
            forward(torch.ones(2, 4))
        net.second = nn.Linear(4, 4, bias=False)
        with prof:
            forward(torch.ones(2, 4))
    assert prof.report().row("second").params == 16


def test_packed_weights_that_change_are_seen():
    if torch.backends.quantized.engine == "none":
        pytest.skip("this torch has no quantized kernels")
    layer = nn.Sequential(torch.ao.nn.quantized.dynamic.Linear(4, 8))
    prof = profiler(layer)
    with prof:
        layer(torch.ones(2, 4))
    assert prof.report().total.params == 4 * 8 + 8
    layer[0]._packed_params.set_weight_bias(torch.quantize_per_tensor(torch.rand(2, 4), 0.1, 0, torch.qint8), None)
    with prof:
        layer(torch.ones(2, 4))
    assert prof.report().total.params == 2 * 4
