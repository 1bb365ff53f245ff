"""The recipes of docs/recipes.md: what their models count, against closed forms and torch's own counter, and that the
scripts run as they stand. Those whose package is not installed are left out."""

import importlib
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from truths import assert_conserved

import roofprof

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples"
# What `make test-integrations` puts beside the environment, as its requirements are not needed here.
BESIDE = ROOT / "build" / "torchdrive"
NEEDS = {
    "perception": "torchdrive",
    "detection": "torchvision",
    "diffusion": "diffusers",
    "llama": "transformers",
    "recommender": "torch",
    "graph_network": "torch_geometric",
}

pytestmark = [pytest.mark.integration, pytest.mark.filterwarnings("ignore")]  # warnings are the packages' own


@pytest.fixture
def recipe(monkeypatch):
    """A recipe by its name, as a module."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.syspath_prepend(str(BESIDE))

    def load(name):
        pytest.importorskip(NEEDS[name])
        torch.manual_seed(0)
        return importlib.import_module(name)

    return load


@torch.no_grad()
def count(model, *args, **kwargs):
    report = roofprof.count(model, *args, **kwargs)
    assert report.coverage.uncosted == {}
    assert not report.coverage.unobserved
    assert report.total.params == sum(parameter.numel() for parameter in model.parameters())
    assert_conserved(report)
    return report


@torch.no_grad()
def macs_by_torch(model, *args, **kwargs):
    with FlopCounterMode(display=False) as counter:
        model(*args, **kwargs)
    return counter.get_total_flops() // 2


# ---- perception


def test_perception(recipe):
    perception = recipe("perception")
    model, images = perception.build(), perception.batch()
    report = count(model, images)
    assert report.total.macs == macs_by_torch(model, images)
    # Each camera gives a cell for 16 x 16 pixels; the cells of the view ask all of them, with 6 features of position.
    cameras, width, cells = 6, 96, 16 * 16
    seen = (240 // 16) * (320 // 16)
    attention = 2 * cells * cameras * seen * width
    layers = seen * cameras * width * width + cells * (width + 6) * width + cameras * seen * width * 2 * width
    assert report.row("transformer").macs == attention + layers
    assert report.row("transformer").self_macs == attention
    # Each backbone has a last stage and a classifier that the package never calls.
    for camera in perception.CAMERAS:
        unused = {f"cam_encoders.{camera}.model.trunk_output.block4", f"cam_encoders.{camera}.model.fc"}
        assert unused <= set(report.coverage.uncalled_modules)


# ---- detection


def test_detection(recipe):
    detection = recipe("detection")
    model, images = detection.build(), detection.batch()
    seen = []
    hook = model.roi_heads.box_head.fc6.register_forward_hook(lambda _m, args, _o: seen.append(len(args[0])))
    maps = []
    other = model.rpn.head.register_forward_hook(lambda _m, args, _o: maps.extend(args[0]))
    report = count(model, images)
    hook.remove()
    other.remove()
    (boxes,) = seen
    assert detection.proposals(report) == boxes > 0
    head = boxes * (256 * 7 * 7 * 1024 + 1024 * 1024)
    assert report.row("roi_heads.box_head").macs == head
    assert report.row("roi_heads.box_predictor").macs == boxes * 1024 * (91 + 4 * 91)
    # 15 anchors at each position: a score and four offsets.
    positions = sum(math.prod(feature.shape) // feature.shape[1] for feature in maps)
    assert report.row("rpn.head").macs == positions * (9 * 256 * 256 + 256 * 15 + 256 * 4 * 15)
    # roi_align: 256 x 7 x 7 bins of 2 x 2 samples, 8 operations each, and their mean.
    pooled = {group.keys[0]: group for group in report.group("op")}["torchvision::roi_align"]
    assert pooled.flops == boxes * 256 * 7 * 7 * (4 * 8 + 1)


# ---- diffusion


def test_diffusion(recipe):
    diffusion = recipe("diffusion")
    model, ((latents, time), prompt) = diffusion.build(), diffusion.batch()
    report = count(model, latents, time, **prompt)
    # torch's counter has no formula for attention on the CPU in older versions: the unfused one is products alone.
    attention = sum(group.macs for group in report.group("op") if "attention" in group.keys[0])
    by_torch = macs_by_torch(model, latents, time, **prompt)
    assert by_torch in {report.total.macs, report.total.macs - attention}
    # 8 heads in each of 3 resolutions; the cross attention's keys and values are of the prompt's tokens.
    first = "down_blocks.0.attentions.0.transformer_blocks.0"
    tokens, width = 32 * 32, 64
    assert report.row(f"{first}.attn1").macs == 4 * tokens * width**2 + 2 * tokens * tokens * width
    text = 2 * diffusion.TOKENS * diffusion.TEXT_WIDTH * width
    assert report.row(f"{first}.attn2").macs == 2 * tokens * width**2 + text + 2 * tokens * diffusion.TOKENS * width


# ---- language model


def test_llama(recipe):
    llama = recipe("llama")
    model, (_, inputs) = llama.build(), llama.batch()
    assert {parameter.device.type for parameter in model.parameters()} == {"meta"}
    report = count(model, **inputs)
    layers, width, hidden, vocabulary = 32, 4096, 11008, 32000
    each = layers * (4 * width**2 + 3 * width * hidden) + width * vocabulary
    assert report.total.params == each + width * vocabulary + (2 * layers + 1) * width == 6_738_415_616
    macs = 512 * each + 2 * layers * 512**2 * width
    assert report.total.macs == macs == llama.formula(model, 512, 512)


# ---- recommender


def test_recommender(recipe):
    recommender = recipe("recommender")
    model, features = recommender.build(), recommender.batch()
    report = count(model, features)
    size, tables, width = 512, 26, 64
    indices = size * 8
    for name in features["sparse"]:
        row = report.row(f"bags.{name}")
        # A row of floats for each index, the indices and the offsets; sums of rows, and of torch's own two per bag.
        assert row.read_bytes == indices * width * 4 + indices * 8 + size * 8
        assert row.write_bytes == size * width * 4 + 2 * size * 8
        assert (row.macs, row.flops) == (0, indices * width)
    vectors = tables + 1
    pairs = size * vectors**2 * width
    assert report.row("").self_macs == pairs
    assert report.row("bottom").macs == size * (13 * 512 + 512 * 256 + 256 * width)
    interacted = width + vectors * (vectors - 1) // 2
    assert report.row("top").macs == size * (interacted * 512 + 512 * 256 + 256)
    assert report.total.macs == sum(report.row(path).macs for path in ("bottom", "top")) + pairs


# ---- graph network


def test_graph_network(recipe):
    graph = recipe("graph_network")
    model, (nodes, edges) = graph.build(), graph.batch()
    count_, edges_, features, hidden, classes = 2708, 10_556, 1433, 64, 7
    dense = count_ * features * hidden + count_ * hidden * classes
    report = count(model, nodes, edges)
    assert report.total.macs == dense
    messages = edges_ + count_  # a loop at each node
    for path, width in (("convs.0", hidden), ("convs.1", classes)):
        groups = {tuple(group.keys): group for group in report.group("op", "module")}
        # Each message is a row of the source's, scaled by its edge's norm (two products) and added up at its target.
        assert groups["aten::mul", path].flops == messages * width + 2 * messages
        assert groups["aten::scatter_add_", f"{path}.aggr_module"].flops == messages * width
        rows = 4 * count_ * width, 8 * messages, 4 * messages * width
        assert groups["aten::index_select", path].bytes == sum(rows)
    sparse = graph.adjacency(edges)
    stored = sparse._nnz() + count_
    report = count(model, nodes, sparse.to_sparse_csr())
    assert report.total.macs == dense + stored * (hidden + classes)


# ---- as a user runs them


@pytest.mark.slow
@pytest.mark.parametrize("name", NEEDS)
def test_the_script_runs(recipe, name):
    recipe(name)
    path = os.pathsep.join([str(BESIDE), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, str(EXAMPLES / f"{name}.py")]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | {"PYTHONPATH": path, "COLUMNS": "120"}
    )
    assert done.returncode == 0, done.stderr
    assert "everything observed was counted" in done.stdout
    assert "on cpu" in done.stdout or name == "llama"
