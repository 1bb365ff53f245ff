"""The optimizer phase: what a step does stands in its row, and nothing else does."""

import pytest
import torch
from attributed import MACS, Model, linear, x
from models import Residual
from torch import nn
from truths import assert_conserved, counts, macs_by, observe

pytestmark = pytest.mark.usefixtures("one_thread")

OPTIMIZER, OUTSIDE = "(optimizer)", "(outside)"
COUNT = 8 * 4  # parameters of linear()


def with_gradients(model):
    model(x()).sum().backward()
    return model


def flops_by(report, *keys):
    return {tuple(group.keys): group.flops for group in report.group(*keys) if group.flops}


# ---- what a step costs


def test_sgd():
    """p - lr g: an addition for each parameter, whose factor comes along; three passes over its memory."""
    model = with_gradients(linear())
    report = observe(model, torch.optim.SGD(model.parameters(), lr=0.1, foreach=False).step)
    assert report.row(OPTIMIZER).flops == COUNT
    assert report.row(OPTIMIZER).bytes == 4 * 3 * COUNT
    assert set(report.by_phase()) == {"optimizer"}


def test_foreach_is_the_loop():
    """The same steps, however they are dispatched."""
    flops = {}
    for foreach in (False, True):
        model = with_gradients(Model(lambda self, v: self.b(self.a(v)), a=linear(), b=nn.Linear(4, 8, bias=False)))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01, foreach=foreach)
        optimizer.step()
        report = observe(model, optimizer.step)
        flops[foreach] = report.row(OPTIMIZER).flops
        # Decay: g + d p; momentum: 0.9 m, + g; the step: p - lr m.
        assert flops[foreach] == (1 + 1 + 1 + 1) * 2 * COUNT
    assert flops[True] == flops[False]


@pytest.mark.parametrize("options", [{"foreach": False}, {"foreach": True}, {"fused": True}], ids=str)
@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.AdamW])
def test_adam(kind, options):
    model = with_gradients(linear())
    optimizer = kind(model.parameters(), lr=0.1, **options)
    optimizer.step()
    report = observe(model, optimizer.step)
    row = report.row(OPTIMIZER)
    # Two moments, a root and a quotient: ten operations at the least, and not twice as many.
    assert 10 * COUNT <= row.flops <= 20 * COUNT
    # The parameter, its gradient and the moments are read; all but the gradient are written.
    assert row.read_bytes >= 4 * 4 * COUNT
    assert row.write_bytes >= 4 * 3 * COUNT
    assert counts(report.total) == counts(row)
    assert not report.coverage.uncosted


def test_a_closure_is_the_models_work():
    model = linear()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def closure():
        optimizer.zero_grad()
        loss = model(x()).square().sum()
        loss.backward()
        return loss

    report = observe(model, lambda: optimizer.step(closure))
    assert macs_by(report, "module", "phase") == {("", "forward"): MACS, ("", "backward"): MACS}
    assert report.row(OPTIMIZER).flops == COUNT
    # The square and the sum stand outside, in the closure as in any step: forward, and backward.
    outside = {key: value for key, value in flops_by(report, "module", "phase").items() if key[0] == OUTSIDE}
    assert set(outside) == {(OUTSIDE, "forward"), (OUTSIDE, "backward")}
    assert_conserved(report)


class SignDescent(torch.optim.Optimizer):
    """An optimizer of the user's own."""

    def __init__(self, parameters):
        super().__init__(parameters, {})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.sub_(parameter.grad.sign())


def test_optimizers_of_the_users_own():
    model = with_gradients(linear())
    report = observe(model, SignDescent(model.parameters()).step)
    assert report.row(OPTIMIZER).flops == 2 * COUNT
    assert report.row(OPTIMIZER).calls == 1
    assert counts(report.total) == counts(report.row(OPTIMIZER))


def test_a_step_inside_the_backward():
    """A hook steps as soon as a gradient is there, and its memory can go."""
    model = Residual(8)
    optimizers = {parameter: torch.optim.SGD([parameter], lr=0.1) for parameter in model.parameters()}

    def step(parameter):
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    for parameter in optimizers:
        parameter.register_post_accumulate_grad_hook(step)
    value = torch.rand(4, 8)
    report = observe(model, lambda: model(value).square().mean().backward())
    parameters = sum(parameter.numel() for parameter in optimizers)
    assert report.row(OPTIMIZER).flops == parameters
    assert report.row(OPTIMIZER).calls == len(optimizers)
    layer = 4 * 8 * 8
    assert macs_by(report, "phase") == {"forward": 2 * layer, "backward": 3 * layer}
    assert_conserved(report)


# ---- what stands around a step


def test_clipping_and_zeroing_stand_outside():
    model = with_gradients(linear())
    report = observe(model, lambda: nn.utils.clip_grad_norm_(model.parameters(), 1.0))
    assert {path for (path, _) in flops_by(report, "module", "phase")} == {OUTSIDE}
    # A norm (a square and a sum for each), and a product.
    assert report.total.flops >= 3 * COUNT
    report = observe(model, lambda: model.zero_grad(set_to_none=False))
    assert (report.row(OUTSIDE).write_bytes, report.total.flops) == (4 * COUNT, 0)
