"""Counts against figures that others published, and against LeNet worked out by hand.

torchvision states for each of its weights the GMACs at the weights' own input size (`_ops`, three decimals) and the
number of parameters (`num_params`).
"""

import pytest
import torch
import torchvision
from models import ONE_OF_EACH_KIND
from torchvision.models import detection, optical_flow, segmentation, video
from truths import assert_conserved, macs_by

import roofprof

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("uninitialised")]


def weights_of(module, quick=None):
    """(name, weights) of every builder of a torchvision module; weights that differ in training only count once."""
    found = {}
    for name in torchvision.models.list_models(module=module):
        marks = [pytest.mark.slow] if quick and name not in quick else []
        for weights in torchvision.models.get_model_weights(name):
            what = (name, str(getattr(weights.transforms(), "crop_size", "")), weights.meta["_ops"])
            found.setdefault(what, pytest.param(name, weights, id=f"{name}-{weights.name}", marks=marks))
    return list(found.values())


def build(name, **options):
    """On the CPU first, because some constructors compute with what they make."""
    return torchvision.models.get_model(name, weights=None, **options).eval().to("meta")


@torch.no_grad()
def count(model, *shapes):
    return roofprof.count(model, *(torch.empty(shape, device="meta") for shape in shapes))


def assert_published(report, weights):
    assert round(report.total.macs / 1e9, 3) == weights.meta["_ops"]
    assert report.total.params == weights.meta["num_params"]
    assert not report.coverage.uncosted
    assert_conserved(report)


# ---- torchvision, whole models on the meta device


@pytest.mark.parametrize(("name", "weights"), weights_of(torchvision.models, ONE_OF_EACH_KIND))
def test_classification(name, weights):
    (size,) = set(weights.transforms().crop_size)
    options = {
        "vit": {"image_size": size},
        # The published parameters of GoogLeNet leave out its auxiliary heads, those of Inception do not.
        "googlenet": {"aux_logits": False, "init_weights": False},
        "inception": {"init_weights": False},
    }.get(name.split("_", maxsplit=1)[0], {})
    assert_published(count(build(name, **options), (1, 3, size, size)), weights)


@pytest.mark.parametrize(("name", "weights"), weights_of(segmentation))
def test_segmentation(name, weights):
    # Published at 520x520, the auxiliary classifier among it where there is one.
    auxiliary = {} if name.startswith("lraspp") else {"aux_loss": True}
    model = build(name, weights_backbone=None, num_classes=len(weights.meta["categories"]), **auxiliary)
    assert_published(count(model, (1, 3, 520, 520)), weights)


@pytest.mark.parametrize(("name", "weights"), weights_of(video))
def test_video(name, weights):
    # Published for 16 frames.
    assert_published(count(build(name), (1, 3, 16, *weights.transforms().crop_size)), weights)


@pytest.mark.parametrize(("name", "weights"), weights_of(optical_flow))
def test_optical_flow(name, weights):
    # Published for a pair of 512x512.
    assert_published(count(build(name), (1, 3, 512, 512), (1, 3, 512, 512)), weights)


@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("ssd300_vgg16", 34.858),
        ("ssdlite320_mobilenet_v3_large", 0.583),
        ("retinanet_resnet50_fpn", 151.54),
        ("retinanet_resnet50_fpn_v2", 152.238),
        ("fcos_resnet50_fpn", 128.207),
        ("fasterrcnn_resnet50_fpn", 134.38),
        ("fasterrcnn_resnet50_fpn_v2", 280.371),
    ],
)
def test_detection(name, published):
    # Published for one image of 512x512. What comes after the heads follows the values of the boxes, and has no MACs;
    # two-stage models have their 1,000 proposals classified.
    model = torchvision.models.get_model(name, weights=None, weights_backbone=None, num_classes=91).eval()
    size = model.transform([torch.zeros(3, 512, 512)])[0].tensors.shape
    model.to("meta")

    def network(images):
        features = list(model.backbone(images).values())
        if isinstance(model, detection.FasterRCNN):
            model.rpn.head(features)
            model.roi_heads.box_predictor(model.roi_heads.box_head(torch.empty(1000, 256, 7, 7, device="meta")))
        else:
            model.head(features)

    report = count(network, size)
    assert round(report.total.macs / 1e9, 3) == published
    assert not report.coverage.uncosted


# ---- LeNet by hand

CONVOLUTIONS = {"conv1": 6 * 30 * 30 * (1 * 3 * 3), "conv2": 16 * 13 * 13 * (6 * 3 * 3)}
LINEARS = {"fc1": 576 * 120, "fc2": 120 * 84, "fc3": 84 * 10}
BIASES = {"conv1": 6 * 30 * 30, "conv2": 16 * 13 * 13, "fc1": 120, "fc2": 84, "fc3": 10}
# Elements of (input, weight, bias, output), 4 bytes each.
ELEMENTS = {
    "conv1": (32 * 32, 6 * 9, 6, 6 * 30 * 30),
    "conv2": (6 * 15 * 15, 16 * 6 * 9, 16, 16 * 13 * 13),
    "fc1": (576, 576 * 120, 120, 120),
    "fc2": (120, 120 * 84, 84, 84),
    "fc3": (84, 84 * 10, 10, 10),
}
# Outside the layers: relu one comparison an element, pooling one for each of the 4 elements of a window.
RELU = 6 * 30 * 30 + 16 * 13 * 13 + 120 + 84
POOLING = 4 * (6 * 15 * 15) + 4 * (16 * 6 * 6)


def test_lenet_macs(lenet, image):
    report = roofprof.count(lenet, image)
    assert report.total.macs == 274_656
    assert macs_by(report, "op") == {"aten::conv2d": 194_616, "aten::linear": 80_040}
    by_module = {"conv1": 48_600, "conv2": 146_016, "fc1": 69_120, "fc2": 10_080, "fc3": 840}
    assert by_module == CONVOLUTIONS | LINEARS
    assert macs_by(report, "module") == by_module
    assert {row.path: row.macs for row in report.rows} == by_module | {"": 274_656}
    assert report.total.params == report.row("").params == 60 + 880 + 69_240 + 10_164 + 850
    assert_conserved(report)


def test_lenet_flops(lenet, image):
    report = roofprof.count(lenet, image)
    for path, macs in (CONVOLUTIONS | LINEARS).items():
        assert report.row(path).flops == 2 * macs + BIASES[path]
    assert report.row("").self_flops == RELU + POOLING
    assert report.total.flops == 2 * 274_656 + sum(BIASES.values()) + RELU + POOLING
    assert report.total.flops_by_dtype == {"fp32": report.total.flops}
    assert report.total.int_ops == 0


def test_lenet_bytes(lenet, image):
    report = roofprof.count(lenet, image)
    for path, (*read, written) in ELEMENTS.items():
        row = report.row(path)
        assert (row.read_bytes, row.write_bytes) == (4 * sum(read), 4 * written), path
    # relu reads and writes its input's size, pooling reads it and writes a quarter (the last row and column of the
    # second one's 13x13 are read with the rest); flatten is a view.
    before_pooling = 6 * 30 * 30 + 16 * 13 * 13
    root = report.row("")
    assert root.self_read_bytes == 4 * (RELU + before_pooling)
    assert root.self_write_bytes == 4 * (RELU + 6 * 15 * 15 + 16 * 6 * 6)
    assert report.total.bytes == root.bytes == sum(row.self_bytes for row in report.rows)
