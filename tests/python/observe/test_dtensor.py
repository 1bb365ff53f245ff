"""DTensor: each rank's own shards are its work, and the collectives between ranks stand beside it."""

import json
import multiprocessing

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from truths import assert_conserved, macs_by, observe

RANKS = 2
ROWS, IN, HIDDEN, OUT = 3, 8, 6, 4
FIRST, SECOND = ROWS * IN * HIDDEN, ROWS * HIDDEN * OUT  # of all ranks together
SHARE = {
    ("0", "forward"): FIRST // RANKS,
    ("2", "forward"): SECOND // RANKS,
    ("2", "backward"): 2 * SECOND // RANKS,
    ("0", "backward"): FIRST // RANKS,
}


def tensor_parallel():
    """Columns of the first layer, rows of the second: one sum over all ranks at the end."""
    mesh = init_device_mesh("cpu", (RANKS,))
    model = nn.Sequential(nn.Linear(IN, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, OUT))
    return parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})


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


def test_an_elementwise_op_is_as_large_as_the_shard(mesh):
    value = distribute_tensor(torch.rand(4, 6), mesh, [Shard(0)])
    report = observe(None, value.exp)
    assert (report.total.flops, report.total.bytes) == (12, 2 * 12 * 4)


def test_gathering_moves_bytes(mesh):
    value = distribute_tensor(torch.rand(4, 6), mesh, [Shard(0)])
    report = observe(None, value.full_tensor)
    assert report.total.flops == 0
    assert collectives(report) == {"_c10d_functional::all_gather_into_tensor": (1, 12 * 4, 24 * 4, 0)}


def test_sharded_parameters_are_whole_where_they_are_used(mesh):
    model, value = nn.Sequential(nn.Linear(IN, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, OUT)), torch.rand(ROWS, IN)
    fully_shard(model, mesh=mesh)
    report = observe(model, lambda: step(model, value))
    # The data is what the ranks share, so each has all of a layer's products.
    assert macs_by(report, "module", "phase") == {key: RANKS * macs for key, macs in SHARE.items()}
    assert {"c10d::_allgather_base_", "c10d::_reduce_scatter_base_"} & set(collectives(report))
    assert not report.coverage.uncosted


# ---- two processes


def rank(number, folder, results):
    """One of the ranks: what it counted, as JSON."""
    torch.set_num_threads(1)
    store = dist.FileStore(f"{folder}/store", RANKS)
    dist.init_process_group("gloo", store=store, rank=number, world_size=RANKS)
    model, value = tensor_parallel(), torch.ones(ROWS, IN)
    shard = model[0].weight
    assert isinstance(shard, DTensor)
    report = observe(model, lambda: step(model, value))
    reduced = torch.ones(10)
    gathered = observe(None, lambda: dist.all_reduce(reduced))
    results.put(
        json.dumps(
            {
                "rank": number,
                "macs": [[*key, macs] for key, macs in macs_by(report, "module", "phase").items()],
                "collectives": collectives(report),
                "plain": collectives(gathered),
                "uncosted": [*report.coverage.uncosted, *gathered.coverage.uncosted],
            }
        )
    )
    dist.destroy_process_group()


def test_two_processes(tmp_path):
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    processes = [context.Process(target=rank, args=(number, str(tmp_path), results)) for number in range(RANKS)]
    for process in processes:
        process.start()
    try:
        reports = [json.loads(results.get(timeout=900)) for _ in processes]
    finally:
        for process in processes:
            process.join(timeout=600)
            process.kill()
    assert {report["rank"] for report in reports} == set(range(RANKS))
    sum_over_ranks = 4 * ROWS * OUT
    for report in reports:
        assert {(module, phase): macs for module, phase, macs in report["macs"]} == SHARE
        assert report["collectives"] == {"_c10d_functional::all_reduce": [1, sum_over_ranks, sum_over_ranks, 0]}
        assert report["plain"] == {"c10d::allreduce_": [1, 40, 40, 0]}
        assert report["uncosted"] == []
