"""A program of several ranks: one kind of parallelism after the other, each profiled and gathered into a file.

torchrun --nproc-per-node N parallel_programs.py FOLDER
"""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

import torch
import torch.distributed as dist
from given_roofs import roofs
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
from torch.distributed.tensor.experimental import context_parallel
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.attention import SDPBackend, sdpa_kernel

import roofprof

FOLDER = Path(sys.argv[1])
WIDTH, HIDDEN, ROWS, STEPS = 16, 32, 8, 2


def mlp(width=WIDTH):
    return nn.Sequential(nn.Linear(width, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, width))


def profiled(name, model, step):
    """What so many steps do after one that sets up."""
    step()
    profiler = roofprof.RooflineProfiler(model, ceilings=roofs())
    with profiler:
        for _ in range(STEPS):
            step()
            profiler.step()
    merged = roofprof.gather(profiler.report())
    if merged:
        merged.to_json(FOLDER / f"{name}.json")


def data_parallel():
    model = nn.parallel.DistributedDataParallel(mlp(), bucket_cap_mb=0.002)  # a bucket for each layer or so
    inputs = torch.rand(ROWS, WIDTH)
    profiled("ddp", model, lambda: model(inputs).sum().backward())


def compressed_data_parallel():
    """The hook's product is in a callback, which runs here or on a thread of gloo's (PowerSGD's are alike)."""

    def hook(_, bucket):
        done = dist.all_reduce(bucket.buffer(), async_op=True).get_future()

        def compressed(future):
            torch.ones(ROWS, WIDTH) @ torch.ones(WIDTH, HIDDEN)
            return future.value()[0]

        return done.then(compressed)

    model = nn.parallel.DistributedDataParallel(mlp())
    model.register_comm_hook(None, hook)
    inputs = torch.rand(ROWS, WIDTH)
    profiled("ddp_hook", model, lambda: model(inputs).sum().backward())


def fully_sharded(name, **keywords):
    model = mlp()
    for layer in (model[0], model[2]):
        fully_shard(layer, reshard_after_forward=True, **keywords)
    fully_shard(model, **keywords)
    inputs = torch.rand(ROWS, WIDTH)
    profiled(name, model, lambda: model(inputs).sum().backward())


def split(mesh):
    return parallelize_module(mlp(), mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})


def tensor_parallel():
    model, inputs = split(init_device_mesh("cpu", (dist.get_world_size(),))), torch.rand(ROWS, WIDTH)
    profiled("tp", model, lambda: model(inputs).sum().backward())


def two_dimensional():
    """Each layer split over two ranks, and each half sharded over two others."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("shards", "tensors"))
    model = split(mesh["tensors"])
    for layer in (model[0], model[2]):
        fully_shard(layer, mesh=mesh["shards"])
    inputs = torch.rand(ROWS, WIDTH)
    profiled("fsdp_tp", model, lambda: model(inputs).sum().backward())


class Attention(nn.Module):
    def forward(self, query, key, value):
        return nn.functional.scaled_dot_product_attention(query, key, value)


def context():
    """Attention over a sequence of which each rank has ROWS positions."""
    ranks = dist.get_world_size()
    mesh, model = init_device_mesh("cpu", (ranks,)), Attention()

    def step():
        tensors = [torch.rand(1, 2, ranks * ROWS, WIDTH) for _ in range(3)]
        flash = sdpa_kernel(SDPBackend.FLASH_ATTENTION)
        with context_parallel(mesh, buffers=tensors, buffer_seq_dims=[2, 2, 2]), flash:
            model(*tensors)

    profiled("context", model, step)


class Stages(nn.Module):
    """As many equal layers as there are ranks; each keeps its own."""

    def __init__(self, ranks, own):
        super().__init__()
        self.layers = nn.ModuleDict({str(own): nn.Linear(WIDTH, WIDTH)}) if ranks > 1 else nn.ModuleDict()
        self.own = str(own)

    def forward(self, value):
        return self.layers[self.own](value)


def pipeline():
    rank, ranks = dist.get_rank(), dist.get_world_size()
    model = Stages(ranks, rank)
    stage = PipelineStage(model, rank, ranks, torch.device("cpu"))
    schedule = ScheduleGPipe(stage, n_microbatches=ranks, loss_fn=nn.MSELoss())
    inputs, target = torch.rand(ranks * ROWS, WIDTH), torch.rand(ranks * ROWS, WIDTH)

    def step():
        if rank == 0:
            schedule.step(inputs)
        elif rank == ranks - 1:
            schedule.step(target=target)
        else:
            schedule.step()

    profiled("gpipe", model, step)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    data_parallel()
    compressed_data_parallel()
    fully_sharded("fsdp")
    fully_sharded("fsdp_bf16", mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16))
    tensor_parallel()
    context()
    if dist.get_world_size() == 4:
        two_dimensional()
    pipeline()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
