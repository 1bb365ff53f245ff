"""timm's models against closed forms, against what torchvision publishes for the same architectures, and all kinds
of them against torch's own counter."""

import copy

import pytest
import torch
import transformer_truths as truths
from torch._subclasses.fake_tensor import FakeCopyMode, FakeTensorMode
from torch.utils.flop_counter import FlopCounterMode
from truths import assert_conserved

import roofprof

pytestmark = [
    pytest.mark.integration,
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::torch.jit.TracerWarning"),
]

CLOSED_FORMS = {
    "vit_base_patch16_224": truths.vit(1, size=224, patch=16, layers=12, width=768, classes=1000),
    "swin_tiny_patch4_window7_224": truths.swin(1, size=224, window=7, depths=(2, 2, 6, 2), width=96, classes=1000),
    "convnext_tiny": truths.convnext(1, size=224, depths=(3, 3, 9, 3), widths=(96, 192, 384, 768), classes=1000),
}


@pytest.fixture(scope="module")
def timm():
    return pytest.importorskip("timm")


def image(batch=1, size=224):
    return torch.rand(batch, 3, size, size)


@pytest.mark.parametrize("where", ["cpu", "meta", "image on the cpu", "fake", "scripted", "traced"])
def test_a_small_vit_everywhere(timm, where):
    options = {"img_size": 32, "patch_size": 8, "embed_dim": 24, "depth": 2, "num_heads": 3, "num_classes": 5}
    macs = truths.vit(2, size=32, patch=8, layers=2, width=24, classes=5)
    meta = where in {"meta", "image on the cpu"}
    with torch.no_grad(), torch.device("meta" if meta else "cpu"):
        model, x = timm.models.VisionTransformer(**options).eval(), image(2, 32)
    if where == "fake":
        with FakeCopyMode(FakeTensorMode()):
            model, x = copy.deepcopy((model, x))
    if where == "scripted":
        model = torch.jit.script(model)
    elif where == "traced":
        model = torch.jit.trace(model, x)
    with torch.no_grad():
        report = roofprof.count(model, image(2, 32) if where == "image on the cpu" else x)
    assert report.coverage.uncosted == {}
    assert report.total.macs == macs.forward
    assert_conserved(report)


@pytest.mark.parametrize("name", CLOSED_FORMS)
def test_backward(timm, name):
    with torch.device("meta"):
        model, x = timm.create_model(name).train(), image()
    report = roofprof.count(lambda: model(x).sum().backward())
    assert report.coverage.uncosted == {}
    assert report.by_phase()["forward"].macs == CLOSED_FORMS[name].forward
    assert report.by_phase()["backward"].macs == CLOSED_FORMS[name].backward(fused=False)


def two_of_each_file():
    """A model at the beginning and one from the middle of each of timm's files, one for each architecture."""
    timm = pytest.importorskip("timm")
    for file in timm.list_modules():
        names = timm.list_models(module=file)
        yield from dict.fromkeys([names[0], names[len(names) // 2]] if names else [])


@pytest.mark.slow
def test_every_architecture(timm):
    wrong = {}
    for name in two_of_each_file():
        with torch.device("meta"), torch.no_grad():
            model = timm.create_model(name).eval().requires_grad_(False)  # torch's counter trips over some that train
            x = torch.rand(1, *model.pretrained_cfg["input_size"])
            report = roofprof.count(model, x)
            with FlopCounterMode(display=False) as counter:
                model(x)
        # A module of relative positions gives its bias through a method of another name, or its parameters.
        not_called = {"forward-not-called", "weights-used-elsewhere"}
        notes = [note for note in report.coverage.notes if note.code not in not_called]
        found = report.total.macs, report.coverage.uncosted, notes
        if found != (counter.get_total_flops() // 2, {}, []):
            wrong[name] = found, counter.get_total_flops() // 2
    assert wrong == {}
