"""Every op of real models has a cost, forward and backward; the MACs of the forward are those that torch counts."""

import pytest
import torch
import torchvision
from models import ONE_OF_EACH_KIND
from torch.utils.flop_counter import FlopCounterMode
from truths import assert_conserved, observe

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("one_thread")]


def flop_counters_macs(closure):
    """What torch.utils.flop_counter says of the same run: 2 for each MAC, contractions only."""
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        closure()
    return counter.get_total_flops() // 2


def check_forward(model, closure):
    """Complete, and as torch counts it."""
    model.eval()
    with torch.no_grad():
        report = observe(model, closure)
    assert not report.coverage.uncosted
    assert_conserved(report)
    assert report.total.macs == flop_counters_macs(closure)


def check_training(model, closure):
    """Complete; each product of the forward comes again at most twice in the backward, and most of them do."""
    model.train()
    report = observe(model, closure)
    assert not report.coverage.uncosted
    assert_conserved(report)
    phases = report.by_phase()
    assert set(phases) == {"forward", "backward"}
    assert 1.7 * phases["forward"].macs < phases["backward"].macs < 2 * phases["forward"].macs


def build(name, **options):
    return torchvision.models.get_model(name, weights=None, **options)


def backward(output):
    """From whatever a model returns."""
    if isinstance(output, dict):
        output = list(output.values())
    if isinstance(output, torch.Tensor):
        output = [output]
    sum(part.square().mean() for part in output).backward()


# ---- torchvision


@pytest.mark.usefixtures("uninitialised")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in ONE_OF_EACH_KIND else [pytest.mark.slow])
        for name in torchvision.models.list_models(module=torchvision.models)
    ],
)
def test_classification(name):
    # Training alone: the forward is held to published figures in test_accuracy.py.
    options = {"init_weights": False} if name in {"googlenet", "inception_v3"} else {}
    size = 299 if name == "inception_v3" else 224
    model, images = build(name, **options).to("meta"), torch.empty(2, 3, size, size, device="meta")
    check_training(model, lambda: backward(model(images)))


SEGMENTATION = {
    "deeplabv3_mobilenet_v3_large": {"aux_loss": True},
    "deeplabv3_resnet50": {"aux_loss": True},
    "fcn_resnet50": {"aux_loss": True},
    "lraspp_mobilenet_v3_large": {},
}


@pytest.mark.parametrize("name", SEGMENTATION)
def test_segmentation(name):
    model = build(name, weights_backbone=None, num_classes=3, **SEGMENTATION[name])
    images = torch.rand(2, 3, 64, 64)
    check_forward(model, lambda: model(images))
    check_training(model, lambda: backward(model(images)))


# Few boxes: what follows them is repeated for each.
FEW = {
    "box_batch_size_per_image": 16,
    "box_detections_per_img": 4,
    "rpn_post_nms_top_n_test": 20,
    "rpn_post_nms_top_n_train": 20,
}
DETECTION = {
    "fasterrcnn_mobilenet_v3_large_320_fpn": FEW,
    "fasterrcnn_resnet50_fpn_v2": FEW,
    "fcos_resnet50_fpn": {},
    "keypointrcnn_resnet50_fpn": FEW,
    "maskrcnn_resnet50_fpn": FEW,
    "retinanet_resnet50_fpn": {},
    "retinanet_resnet50_fpn_v2": {},
    "ssdlite320_mobilenet_v3_large": {},
}


def targets(size):
    boxes = torch.tensor([[5.0, 5.0, 40.0, 40.0], [10.0, 12.0, 50.0, 45.0]])
    keypoints = torch.cat([boxes[:, None, :2].expand(2, 17, 2) + 3, torch.ones(2, 17, 1)], dim=-1)
    masks = torch.ones(2, *size, dtype=torch.uint8)
    return {"boxes": boxes, "labels": torch.ones(2, dtype=torch.long), "masks": masks, "keypoints": keypoints}


@pytest.mark.parametrize("name", DETECTION)
def test_detection(name):
    size = {} if name.startswith("ssd") else {"min_size": 64, "max_size": 64}
    classes = 2 if name.startswith("keypoint") else 5
    model = build(name, weights_backbone=None, num_classes=classes, **size, **DETECTION[name])
    images = [torch.rand(3, 64, 64), torch.rand(3, 64, 48)]
    check_forward(model, lambda: model(images))
    labels = [targets(image.shape[1:]) for image in images]
    check_training(model, lambda: sum(model(images, labels).values()).backward())
