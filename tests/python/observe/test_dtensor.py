"""DTensor and FSDP: each rank's own shards are its work, and the collectives between ranks stand beside it."""

import pytest
import torch
import torch.distributed as dist
from given_roofs import profiler
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from truths import assert_conserved, macs_by, observe

import roofprof

RANKS = 2
ROWS, IN, HIDDEN, OUT = 3, 8, 6, 4
FIRST, SECOND = ROWS * IN * HIDDEN, ROWS * HIDDEN * OUT  # of all ranks together
SHARE = {
    ("0", "forward"): FIRST // RANKS,
    ("2", "forward"): SECOND // RANKS,
    ("2", "backward"): 2 * SECOND // RANKS,
    ("0", "backward"): FIRST // RANKS,
}


def perceptron():
    return nn.Sequential(nn.Linear(IN, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, OUT))


def tensor_parallel():
    """Columns of the first layer, rows of the second: one sum over all ranks at the end."""
    mesh = init_device_mesh("cpu", (RANKS,))
    return parallelize_module(perceptron(), mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})


def step(model, value):
    output = model(value)
    # What the last layer gives is still under way: asking for it waits.
    output.sum().backward()


def collectives(report):
    groups = [group for group in report.group("op") if "c10d" in group.keys[0] and group.bytes]
    return {group.keys[0]: (group.calls, group.read_bytes, group.write_bytes, group.flops) for group in groups}


# ---- one process that stands for all


@pytest.fixture
def mesh():
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=RANKS)
    yield init_device_mesh("cpu", (RANKS,))
    dist.destroy_process_group()


@pytest.mark.usefixtures("mesh")
def test_a_rank_does_its_share():
    model, value = tensor_parallel(), torch.rand(ROWS, IN)
    reports = [observe(model, lambda: step(model, value)) for _ in range(2)]
    # The first step works out how to shard, on fake tensors of the whole shapes; that is no work.
    for report in reports:
        assert macs_by(report, "module", "phase") == SHARE
        assert report.row("1").flops == 2 * ROWS * HIDDEN // RANKS
        assert not report.coverage.uncosted
        assert_conserved(report)
    sum_over_ranks = 4 * ROWS * OUT
    assert collectives(reports[0]) == {"_c10d_functional::all_reduce": (1, sum_over_ranks, sum_over_ranks, 0)}


@pytest.mark.parametrize(
    ("left", "right", "share"),
    [
        (Shard(0), Replicate(), RANKS),
        (Replicate(), Shard(1), RANKS),
        (Shard(1), Shard(0), RANKS),
        (Replicate(), Replicate(), 1),
    ],
    ids=str,
)
def test_products(left, right, share, mesh):
    one = distribute_tensor(torch.rand(4, 6), mesh, [left])
    other = distribute_tensor(torch.rand(6, 8), mesh, [right])
    with torch.no_grad():
        report = observe(None, lambda: one @ other)
    assert report.total.macs == 4 * 6 * 8 // share
    assert not report.coverage.uncosted


def test_an_elementwise_op_is_as_large_as_the_shard_and_gathering_moves_bytes(mesh):
    value = distribute_tensor(torch.rand(4, 6), mesh, [Shard(0)])
    report = observe(None, value.exp)
    assert (report.total.flops, report.total.bytes) == (12, 2 * 12 * 4)
    report = observe(None, value.full_tensor)
    assert report.total.flops == 0
    assert collectives(report) == {"_c10d_functional::all_gather_into_tensor": (1, 12 * 4, 24 * 4, 0)}


# ---- torch.distributed.fsdp.FullyShardedDataParallel


@pytest.fixture(name="wrapped")
def _wrapped():
    """A perceptron in FSDP, in a group of this process alone."""
    if not dist.is_gloo_available():
        pytest.skip("this torch has no gloo")
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        yield FullyShardedDataParallel(perceptron(), device_id=torch.device("cpu"), use_orig_params=True)
    finally:
        dist.destroy_process_group()


@pytest.mark.filterwarnings("ignore")
def test_fsdp1_has_the_macs_of_the_model_inside_and_its_parameters_stay(wrapped):
    value = torch.ones(ROWS, IN)
    before = [parameter.detach().clone() for parameter in wrapped.parameters()]

    def train(value):
        wrapped.zero_grad()
        step(wrapped, value)

    for report in (roofprof.count(wrapped, value), profiler(wrapped, repeat=2).run(value)):
        assert report.total.macs == FIRST + SECOND
    # The gradients of both weights, and that of what the second layer was given.
    assert profiler(wrapped, repeat=2).run_step(train, value).total.macs == 2 * (FIRST + SECOND) + SECOND
    assert all(torch.equal(a, b) for a, b in zip(before, wrapped.parameters(), strict=True))
    assert wrapped(value).shape == (ROWS, OUT)  # it still runs
