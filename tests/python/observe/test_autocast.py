"""Autocast: ops in the dtype that they run in, and the casts as work of their own."""

import pytest
import torch
from attributed import Model
from torch import nn
from truths import assert_conserved, macs_by, observe

pytestmark = pytest.mark.usefixtures("one_thread")

ROWS, IN, OUT = 4, 8, 6
PRODUCT = ROWS * IN * OUT
FP32, BF16 = 4, 2


def autocast(**options):
    return torch.autocast("cpu", dtype=torch.bfloat16, **options)


def casts(report):
    """(calls, bytes) of what only changes dtypes."""
    group = report.by_operator().get("aten::_to_copy")
    return (group.calls, group.bytes) if group else (0, 0)


def cast_bytes(*elements):
    """From fp32 to bf16, or back."""
    return sum(elements) * (FP32 + BF16)


def test_a_layer_and_its_casts():
    layer, value = nn.Linear(IN, OUT), torch.rand(ROWS, IN)
    with autocast(), torch.no_grad():
        report = observe(layer, lambda: layer(value))
    assert report.total.macs == PRODUCT
    assert report.total.flops_by_dtype == {"bf16": 2 * PRODUCT + ROWS * OUT}
    assert casts(report) == (3, cast_bytes(ROWS * IN, IN * OUT, OUT))
    own = BF16 * (ROWS * IN + IN * OUT + OUT + ROWS * OUT)
    assert report.by_operator()["aten::linear"].bytes == own
    assert report.total.bytes == own + cast_bytes(ROWS * IN, IN * OUT, OUT)


def test_a_weight_is_cast_once_while_autocast_keeps_it():
    layer, value = nn.Linear(IN, OUT, bias=False), torch.rand(ROWS, IN)

    def run():
        with autocast():
            for _ in range(3):
                layer(value)

    # Only leaves that want a gradient are kept: the weight once, the data every time.
    report = observe(layer, run)
    assert casts(report) == (4, cast_bytes(IN * OUT, *[ROWS * IN] * 3))
    assert report.total.macs == 3 * PRODUCT


def test_a_part_without_autocast():
    def forward(self, value):
        value = self.first(value)
        with torch.autocast("cpu", enabled=False):
            return self.second(value.float())

    model = Model(forward, first=nn.Linear(IN, OUT), second=nn.Linear(OUT, IN))
    with autocast(), torch.no_grad():
        report = observe(model, lambda: model(torch.rand(ROWS, IN)))
    assert report.row("first").flops_by_dtype == {"bf16": 2 * PRODUCT + ROWS * OUT}
    assert report.row("second").flops_by_dtype == {"fp32": 2 * PRODUCT + ROWS * IN}
    # What the model itself casts stands in its own row.
    assert report.row("").self_bytes == cast_bytes(ROWS * OUT)


def test_a_training_step():
    model = nn.Sequential(nn.Linear(IN, OUT), nn.ReLU(), nn.Linear(OUT, IN))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    value = torch.rand(ROWS, IN)

    def run():
        with autocast():
            loss = model(value).square().mean()
        loss.backward()
        optimizer.step()

    report = observe(model, run)
    assert macs_by(report, "module", "phase", "dtype") == {
        ("0", "forward", "bf16"): PRODUCT,
        ("2", "forward", "bf16"): PRODUCT,
        ("2", "backward", "bf16"): 2 * PRODUCT,
        ("0", "backward", "bf16"): PRODUCT,
    }
    # The optimizer works on the fp32 weights.
    assert set(report.row("(optimizer)").flops_by_dtype) == {"fp32"}
    # Every weight is cast on its way in, and its gradient on its way back, each in its layer's row.
    elements = {"0": IN * OUT + OUT, "2": OUT * IN + IN}
    back = {
        group.keys[0]: group.bytes
        for group in report.group("module", "phase", "op")
        if group.keys[1:] == ["backward", "aten::_to_copy"]
    }
    assert back == {path: cast_bytes(count) for path, count in elements.items()}
    assert not report.coverage.uncosted
    assert_conserved(report)


def test_a_scaled_loss_stands_outside():
    model = nn.Linear(IN, OUT)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu")
    value = torch.rand(ROWS, IN)

    def run():
        with autocast():
            loss = model(value).float().mean()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()

    report = observe(model, run)
    assert not report.coverage.uncosted
    assert macs_by(report, "module", "phase") == {("", "forward"): PRODUCT, ("", "backward"): PRODUCT}
    outside = {group.keys[1] for group in report.group("module", "op") if group.keys[0] == "(outside)"}
    assert "aten::_amp_foreach_non_finite_check_and_unscale_" in outside
    assert "aten::_amp_update_scale_" in outside
    assert_conserved(report)
