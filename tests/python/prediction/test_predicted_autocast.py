"""What autocast adds, against torch itself: models under real autocast on fake CUDA tensors, which need no GPU."""

import pytest
import torch
from on_meta import counted

import roofprof

pytestmark = pytest.mark.integration

timm = pytest.importorskip("timm")

DEVICE = "RTX 4090"
SMALL = ("vit_tiny_patch16_224", "convnext_atto", "resnet18")
LARGER = ("vit_small_patch16_224", "convnext_tiny", "resnet50")
NAMES = [*SMALL, *(pytest.param(name, marks=pytest.mark.slow) for name in LARGER)]
# The prediction lets norms run in half, torch runs them in fp32 (docs/prediction.md): they count most in ConvNeXts.
WITHIN = 0.3


def made(name):
    with torch.device("meta"):
        return timm.create_model(name).eval()


def under_autocast(name, batch, dtype=torch.float16):
    """The fp32 model's count while autocast is on: its casts are ops as all others."""
    model = made(name)
    fake = torch._subclasses.fake_tensor.FakeTensorMode(allow_non_fake_inputs=True)
    try:
        with fake, torch.no_grad():
            model = model.to_empty(device="cuda")
            x = torch.empty(batch, 3, 224, 224, device="cuda")
            torch.set_autocast_dtype("cuda", dtype)
            torch.set_autocast_enabled("cuda", True)
            return roofprof.count(model, x)
    finally:
        torch.set_autocast_enabled("cuda", False)
        torch.set_autocast_dtype("cuda", torch.float16)
        torch.clear_autocast_cache()


def in_half(name, batch, dtype=torch.float16):
    with torch.no_grad():
        return roofprof.count(made(name).to(dtype), torch.empty(batch, 3, 224, 224, dtype=dtype, device="meta"))


def time(report, **options):
    return report.predict(DEVICE, **options).total.time


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_to_what_was_counted_under_autocast_nothing_is_added(name, dtype):
    report = under_autocast(name, 8, dtype)
    assert not torch.is_autocast_enabled("cuda")
    on, off = (report.predict(DEVICE, autocast=how) for how in (True, False))
    assert on.total.time == off.total.time
    assert on.prediction == off.prediction
    assert on.prediction == "as autocast ran it"
    assert on.total.macs == in_half(name, 8, dtype).total.macs


@pytest.mark.parametrize("name", NAMES)
def test_half_and_what_autocast_adds_is_the_time_of_autocast(name):
    for batch in (32, 128):
        truth, half = time(under_autocast(name, batch)), in_half(name, batch)
        assert 1 - WITHIN < time(half) / truth < 1.05
        on, off = (abs(time(half, autocast=how) - truth) for how in (True, False))
        # Without what autocast adds it is further away; batch norms take parameters of fp32 beside inputs of fp16.
        assert on == off if name.startswith("resnet") else on < off


def test_sums_with_parameters_are_in_fp32():
    # Positions are parameters, so that what follows them is in fp32: twice the bytes of the sums of a ViT's stream.
    on, off = (in_half("vit_tiny_patch16_224", 512).predict(DEVICE, autocast=how) for how in (True, False))
    sums = [report.by_operator()["aten::add"].time for report in (on, off)]
    assert sums[0] / sums[1] == pytest.approx(2, rel=0.25)
    attention = [report.by_operator()["aten::scaled_dot_product_attention"].time for report in (on, off)]
    assert attention[0] == attention[1]


def test_casts_of_a_model_in_half_are_no_autocast():
    class Norm(torch.nn.Module):
        def forward(self, x):
            wide = x.float()
            return (wide * wide.square().mean(-1, keepdim=True).rsqrt()).to(x.dtype)

    def model(*norms):
        return torch.nn.Sequential(torch.nn.Linear(64, 64), *norms)

    for make in (model, lambda: model(Norm())):
        predicted = counted(make, 64, 64, dtype=torch.float16).predict(DEVICE)
        assert predicted.prediction == "as under autocast in fp16"
