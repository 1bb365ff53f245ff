"""torch.distributed.fsdp.FullyShardedDataParallel: counts in closed form; parameters as a plain call leaves them."""

import pytest
import torch
import torch.distributed as dist
from given_roofs import profiler
from torch import nn

import roofprof

fsdp = pytest.importorskip("torch.distributed.fsdp")

pytestmark = [
    pytest.mark.skipif(not (dist.is_available() and dist.is_gloo_available()), reason="this torch has no gloo"),
    pytest.mark.filterwarnings("ignore"),
]
MACS = 3 * (8 * 16 + 16 * 4)  # of one forward


@pytest.fixture(name="model")
def _model():
    """A perceptron in FSDP, in a group of this process alone."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
        try:
            wrapped = fsdp.FullyShardedDataParallel(model, device_id=torch.device("cpu"), use_orig_params=True)
        except (RuntimeError, ValueError) as error:
            pytest.skip(f"FSDP cannot run on this CPU: {error}")
        yield wrapped
    finally:
        dist.destroy_process_group()


def values(model):
    return [parameter.detach().clone() for parameter in model.parameters()]


@pytest.mark.parametrize("profile", [roofprof.count, lambda model, x: profiler(model, repeat=2).run(x)])
def test_a_call_has_the_macs_of_the_model_inside(model, profile):
    before = values(model)
    report = profile(model, torch.ones(3, 8))
    assert report.total.macs == MACS
    assert all(torch.equal(a, b) for a, b in zip(before, values(model), strict=True))
    assert model(torch.ones(3, 8)).shape == (3, 4)  # it still runs


def test_a_step_has_those_of_forward_and_backward(model):
    before = values(model)

    def step(x):
        model.zero_grad()
        model(x).sum().backward()

    report = profiler(model, repeat=2).run_step(step, torch.ones(3, 8))
    # The gradients of both weights, and that of what the second layer was given.
    assert report.total.macs == MACS + MACS + 3 * 16 * 4
    assert all(torch.equal(a, b) for a, b in zip(before, values(model), strict=True))
