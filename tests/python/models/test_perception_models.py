"""Detectors and other models of vision against torch's own counter: nothing uncosted, and as many MACs."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode, flop_registry

import roofprof

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.filterwarnings("ignore"),  # transformers' and torchvision's own
]

IMAGE = {"pixel_values": (1, 3, 256, 256)}
MASKED = {**IMAGE, "pixel_mask": (1, 256, 256)}
TOKENS = {"input_ids": (1, 8), "attention_mask": (1, 8)}
# Class, inputs by name and shape; configurations are the default ones.
VISION = {
    "RTDetrForObjectDetection": MASKED,
    "DFineForObjectDetection": IMAGE,
    "DetrForObjectDetection": MASKED,
    "ConditionalDetrForObjectDetection": MASKED,
    "DeformableDetrForObjectDetection": MASKED,
    "Mask2FormerModel": MASKED,
    "MaskFormerModel": MASKED,
    "SegformerForSemanticSegmentation": IMAGE,
    "GLPNForDepthEstimation": IMAGE,
    "DepthAnythingForDepthEstimation": {"pixel_values": (1, 3, 224, 224)},
    "CLIPSegForImageSegmentation": {"pixel_values": (1, 3, 224, 224), **TOKENS},
    "GroundingDinoForObjectDetection": {**MASKED, **TOKENS},
    "ViltModel": {"pixel_values": (1, 3, 384, 384), "pixel_mask": (1, 384, 384), **TOKENS},
    "SuperPointForKeypointDetection": {"pixel_values": (1, 3, 240, 320)},
}


# Products of a matrix and a vector, which torch's counter has no formula for: bins of D-FINE's boxes, 4 edges of 300
# boxes in 6 layers.
OF_VECTORS = {"DFineForObjectDetection": 6 * 300 * 4 * 33}


@torch.no_grad()
def check(model, *args, **kwargs):
    model.requires_grad_(requires_grad=False)  # torch's counter fails on views of parameters
    report = roofprof.count(model, *args, **kwargs)
    assert report.coverage.uncosted == {}
    assert not report.coverage.unobserved
    with FlopCounterMode(display=False) as counter:
        model(*args, **kwargs)
    # What torch's counter has, or may have, no formula for.
    unknown = OF_VECTORS.get(type(model).__name__, 0)
    if torch.ops.aten._scaled_dot_product_flash_attention_for_cpu not in flop_registry:
        unknown += sum(group.macs for group in report.group("op") if "attention" in group.keys[0])
    assert report.total.macs - unknown == counter.get_total_flops() // 2


@pytest.mark.parametrize("name", VISION)
def test_models_of_vision(name):
    transformers = pytest.importorskip("transformers")
    transformers.logging.set_verbosity_error()
    torch.manual_seed(0)
    kind = getattr(transformers, name)
    options = {"use_pretrained_backbone": False} if "Detr" in name and "RT" not in name else {}
    model = kind(kind.config_class(**options)).eval()
    inputs = {
        key: torch.rand(shape) if key == "pixel_values" else torch.ones(shape, dtype=torch.long)
        for key, shape in VISION[name].items()
    }
    if "input_ids" in inputs:
        inputs["input_ids"] = torch.tensor([[101, 4937, 1012, 3899, 1012, 3899, 1012, 102]])
    check(model, **inputs)
