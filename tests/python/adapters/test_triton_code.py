"""What is read of Inductor's kernels for a GPU while it writes their code, which needs no GPU."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import roofprof
from roofprof.models import inductor

pytest.importorskip("triton")
pytestmark = pytest.mark.skipif(inductor.why_not() != "", reason=inductor.why_not())

# Fake tensors of a GPU that is not there, the properties of an H100, and code that is written and never compiled.
PROGRAM = """
import contextlib, json, types
from unittest import mock

import torch
import torch.fx.traceback
import torch.utils._triton
from torch import nn
from torch._dynamo.device_interface import CudaInterface
from torch._inductor.debug import DebugContext
from torch._inductor.decomposition import select_decomp_table
from torch._inductor.graph import GraphLowering
from torch._inductor.runtime.hints import DeviceProperties
from torch._inductor.virtualized import V
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from roofprof.models import inductor

h100 = DeviceProperties("cuda", 0, 132, 90, 9, 65536, 2048, 1024, 32)
card = types.SimpleNamespace(
    name="NVIDIA H100 80GB HBM3",
    major=9,
    minor=0,
    multi_processor_count=132,
    warp_size=32,
    total_memory=85017493504,
    max_threads_per_multi_processor=2048,
    shared_memory_per_block_optin=232448,
)
patches = [
    mock.patch("torch.cuda.is_available", lambda: True),
    mock.patch("torch.cuda.get_device_capability", lambda *_: (9, 0)),
    mock.patch("torch.cuda.get_device_properties", lambda *_: card),
    mock.patch("torch.cuda.current_device", lambda: 0),
    mock.patch("torch.cuda.device_count", lambda: 1),
    mock.patch("torch.cuda._lazy_init", lambda: None),
    mock.patch("torch.utils._triton.triton_hash_with_backend", lambda: "none"),
    mock.patch.object(DeviceProperties, "create", lambda *_: h100),
    mock.patch.object(CudaInterface, "get_compute_capability", staticmethod(lambda *_: 90)),
    mock.patch.object(CudaInterface, "current_device", staticmethod(lambda: 0)),
    mock.patch.object(CudaInterface, "is_available", staticmethod(lambda: True)),
    mock.patch.object(CudaInterface, "is_triton_capable", staticmethod(lambda *_: True)),
    mock.patch.object(CudaInterface, "raise_if_triton_unavailable", staticmethod(lambda *_: None)),
]
model = nn.Sequential(
    nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False),
    nn.ReLU(),
    nn.MaxPool2d(3, 2, 1),
    nn.Conv2d(64, 64, 3, padding=1, bias=False),
    nn.Softmax(-1),
).eval()
kernels = inductor._Graph()
with contextlib.ExitStack() as stack:
    for patch in patches:
        stack.enter_context(patch)
    fakes = stack.enter_context(FakeTensorMode(allow_non_fake_inputs=True))
    stack.enter_context(torch.no_grad())
    for module in model.modules():
        for name, value in list(module._parameters.items()):
            if value is not None:
                on_gpu = torch.empty(value.shape, device="cuda", dtype=torch.bfloat16)
                module._parameters[name] = nn.Parameter(on_gpu, requires_grad=False)
    x = torch.empty(32, 3, 224, 224, device="cuda", dtype=torch.bfloat16)
    with torch.fx.traceback.preserve_node_meta():
        program = make_fx(lambda x: (model(x), x.flatten().cumsum(0)), decomposition_table=select_decomp_table())(x)
    stack.enter_context(torch._inductor.config.patch(inductor._PATCHES))
    stack.enter_context(inductor._kernels_into(kernels))
    lowered = GraphLowering(program, example_inputs=[x], is_inference=True)
    for given in (V.set_graph_handler(lowered), V.set_debug_handler(DebugContext()), V.set_fake_mode(fakes)):
        stack.enter_context(given)
    lowered.run(x)
    lowered.codegen()
inductor._leave_operators_to_their_calls(kernels)
found = [
    [k.name, k.generated, k.moved, [inductor._op_name(node) for node in k.nodes], len(k.prepared_for)]
    for k in kernels.kernels
]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def kernels():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={"PATH": "/usr/bin:/bin", "HOME": "/tmp", "PYTHONPATH": str(Path(roofprof.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_operators_and_generated_kernels_come_in_their_order(kernels):
    operators = ["aten::convolution", "aten::convolution", "aten::zero_"]
    assert [name for name, generated, *_ in kernels if not generated] == operators
    assert all(name.startswith("triton_") for name, generated, *_ in kernels if generated)
    names = [name for name, *_ in kernels]  # memory that generated code clears for a kernel comes before it
    assert names[names.index("aten::zero_") + 1].startswith("triton_spl_fused")
    prepare = [kernel for kernel in kernels if kernel[4]]  # an operator's input, and does none of its work
    assert prepare
    assert all(ops == [] and "convolution" in name for name, _, _, ops, _ in prepare)


def test_bytes_are_those_of_the_closed_form(kernels):
    moved = {name: bytes_ for name, generated, bytes_, *_ in kernels if generated}
    image, activation, pooled = 2 * 32 * 3 * 224 * 224, 2 * 32 * 64 * 112 * 112, 2 * 32 * 64 * 56 * 56
    (relu,) = [of for name, of in moved.items() if name.startswith("triton_poi_fused_max_pool2d_with_indices_relu")]
    assert relu == [activation, pooled]
    (softmax,) = [of for name, of in moved.items() if "softmax" in name]
    assert softmax == [pooled, pooled]
    assert [image, image] in moved.values()  # into channels last
