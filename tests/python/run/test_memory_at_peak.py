"""What is alive when most memory is: closed forms of small models, and torch's own MemTracker."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from memory_of_mlp import BATCH, HELD, HIDDEN, INPUTS, OUTPUTS, images, mlp
from torch import nn
from torch.utils.checkpoint import checkpoint

import roofprof

GIVEN = BATCH * INPUTS * 4
NUMBERS = 16  # bytes of single numbers, such as a Python number that an op takes
FIRST, LAST = (INPUTS + 1) * HIDDEN * 4, (HIDDEN + 1) * OUTPUTS * 4  # bytes of parameters


def alive(report) -> dict[tuple[str, str, str], int]:
    """Bytes by category, module and phase; those that were there before have no phase."""
    assert sum(row.bytes for row in report.memory_at_peak if not row.before) == report.total.peak_memory
    assert max(moment.bytes for moment in report.memory_timeline) == report.total.peak_memory
    assert sum(row.percent_of_all for row in report.memory_at_peak) == pytest.approx(100)
    return {(row.category, row.module, row.phase): row.bytes for row in report.memory_at_peak}


def by_category(report) -> Counter[str]:
    sums: Counter[str] = Counter()
    for (category, _, _), count in alive(report).items():
        sums[category] += count
    return sums


BEFORE = {
    ("parameters", "0", ""): FIRST,
    ("parameters", "2", ""): LAST,
    ("inputs", "(outside)", ""): GIVEN,
}


def test_inference(place):
    with torch.no_grad():
        report = roofprof.count(mlp(), images())
    # Beside the activation's result, only its input is still there.
    found = {("temporaries", "0", "forward"): HELD, ("temporaries", "1", "forward"): HELD}
    assert alive(report) == BEFORE | found
    (peak,) = (moment for moment in report.memory_timeline if moment.is_peak)
    assert (peak.bytes, peak.module, peak.phase) == (2 * HELD, "1", "forward")


def test_views_and_containers(place):
    class Views(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("scale", torch.rand(INPUTS))

        def forward(self, batch):
            x = batch["images"][0] * self.scale
            return {"flat": x.flatten(), "rows": x[1:]}

    with torch.no_grad():
        report = roofprof.count(Views(), {"images": [images()], "unused": torch.rand(3)})
    assert alive(report) == {
        ("buffers", "", ""): INPUTS * 4,
        ("inputs", "(outside)", ""): GIVEN,  # what no op reads is not known
        ("outputs", "", "forward"): GIVEN,
    }


def trained(model, optimizer, x):
    def step():
        loss = model(x).square().mean()
        loss.backward()
        if optimizer is not None:
            optimizer.step()
            optimizer.zero_grad()

    return step


def step_report(model, step):
    return roofprof.RooflineProfiler(model, warmup=0, repeat=0).run_step(step)


@pytest.mark.parametrize("steps", [0, 1], ids=["first step", "second step"])
def test_adam(place, steps):
    # Parameters are large and activations small, so most memory is there inside of the optimizer's step.
    model = nn.Sequential(nn.Linear(64, 64, bias=False), nn.ReLU(), nn.Linear(64, 64, bias=False))
    optimizer = torch.optim.Adam(model.parameters(), foreach=False)
    step = trained(model, optimizer, torch.rand(1, 64))
    for _ in range(steps):
        step()
    report = step_report(model, step)
    sums = by_category(report)
    params = 2 * 64 * 64 * 4
    assert sums["parameters"] == params
    assert sums["gradients"] == params
    states = [row for row in report.memory_at_peak if row.category == "optimizer state"]
    # By sizes, numbers that no op made are known once one reads them, as if they had been there before.
    state = max(states, key=lambda row: row.bytes)
    assert (state.module, state.before) == ("(optimizer)", steps == 1)
    # The first step's peak is reached while the last parameter is updated, when all state is there.
    assert 0 <= sums["optimizer state"] - 2 * params < 100
    # Meanwhile the update of one parameter makes three of its size, and numbers.
    assert 0 <= sums["temporaries"] - 3 * params // 2 < 100
    assert next(moment.phase for moment in report.memory_timeline if moment.is_peak) == "optimizer"


class Segments(nn.Module):
    def __init__(self, *, again: bool, reentrant: bool = False):
        super().__init__()
        self.again = again
        self.reentrant = reentrant
        self.layers = nn.ModuleList(nn.Sequential(nn.Linear(HIDDEN, HIDDEN), nn.GELU()) for _ in range(6))

    def called(self, layer, x):
        if not self.again:
            return layer(x)
        return checkpoint(layer, x, use_reentrant=self.reentrant, preserve_rng_state=False)

    def forward(self, x):
        for layer in self.layers:
            x = self.called(layer, x)
        return x


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpointing_keeps_less(place, reentrant):
    rows = 256
    held = rows * HIDDEN * 4
    reports, kept = {}, {}
    for again in (False, True):
        model = Segments(again=again, reentrant=reentrant)
        x = torch.rand(rows, HIDDEN, requires_grad=reentrant)
        reports[again] = step_report(model, trained(model, None, x))
        kept[again] = Counter()
        for (category, module, phase), count in alive(reports[again]).items():
            if category == "activations" and module != "(outside)":
                kept[again][phase] += count
    # Without: each GELU's input and its result, which the next layer or the loss keeps.
    assert kept[False] == {"forward": 2 * 6 * held}
    # With: the results of all segments, which the next one or the loss keeps. The peak is before one is run again.
    assert kept[True] == {"forward": 6 * held}
    assert reports[True].total.peak_memory < reports[False].total.peak_memory


def test_an_optimizer_inside_of_the_backward_has_no_gradients_but_the_last(place):
    model = nn.Sequential(*(nn.Linear(32, 32, bias=False) for _ in range(4)))

    def update(parameter):
        parameter.data.add_(parameter.grad, alpha=-0.1)
        parameter.grad = None

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(update)
    report = step_report(model, trained(model, None, torch.rand(1, 32)))
    assert by_category(report)["gradients"] == 32 * 32 * 4


def test_a_cache_that_the_model_keeps_is_neither_kept_for_the_backward_nor_a_temporary(place):
    class Caches(nn.Module):
        def forward(self, x):
            self.held = x * 2
            return (x + 1).sum()

    with torch.no_grad():
        found = alive(roofprof.count(Caches(), images()))
    assert found["other", "", "forward"] == GIVEN
    assert 0 <= found["temporaries", "", "forward"] - GIVEN <= NUMBERS


def test_the_timeline_is_bounded(place):
    class Many(nn.Module):
        def forward(self, x):
            for _ in range(5000):
                x = x + 1
            held = [x + 1 for _ in range(100)]
            return x + len(held)

    with torch.no_grad():
        report = roofprof.count(Many(), images())
    moments = report.memory_timeline
    assert 512 <= len(moments) <= 1024
    assert moments[1].first_op == 8
    assert 0 <= alive(report)["temporaries", "", "forward"] - 101 * GIVEN <= NUMBERS
    (peak,) = (index for index, moment in enumerate(moments) if moment.is_peak)
    assert abs(moments[peak].first_op - 5100) <= 8


@pytest.mark.parametrize(("rows", "width"), [(512, 64), (4, 512)], ids=["activations", "parameters"])
def test_what_memtracker_says(rows, width):
    """torch's tracker takes all of a forward for activations, and all that an optimizer makes for its state."""
    from torch.distributed._tools.mem_tracker import MemTracker

    model = nn.Sequential(*(layer for _ in range(6) for layer in (nn.Linear(width, width), nn.GELU())))
    optimizer = torch.optim.Adam(model.parameters(), foreach=True)
    x = torch.rand(rows, width)
    step = trained(model, optimizer, x)
    step()  # the state of the optimizer is there
    tracker = MemTracker()
    tracker.track_external(model, optimizer, x)
    with tracker:
        step()
    snapshot = tracker.get_tracker_snapshot("peak")[torch.device("cpu")]
    theirs = {str(kind).rpartition(".")[2]: size for kind, size in snapshot.items()}
    report = step_report(model, step)
    sums = by_category(report)
    of_step = sum(row.bytes for row in report.memory_at_peak if row.phase == "optimizer")
    assert sums["parameters"] == theirs["PARAM"]
    assert sums["gradients"] == theirs["GRAD"]
    assert sums["inputs"] == theirs["OTH"]
    # Python's numbers that an op takes are tensors for a moment: their tracker is below the place that makes them.
    assert 0 <= sums["optimizer state"] + of_step - theirs["OPT"] <= NUMBERS
    assert 0 <= sum(sums.values()) - theirs["Total"] <= NUMBERS
    assert sums["activations"] - theirs["ACT"] in {-4, 0}  # the loss, which no backward reads


@pytest.mark.integration
def test_what_resnet50_keeps_for_its_backward():
    """By hand: what each kind of layer saves. ReLU and the residual's addition work in place."""
    import torchvision

    with torch.device("meta"):
        model = torchvision.models.resnet50()
        x = torch.rand(32, 3, 224, 224)  # with fewer images, gradients make the peak
    kept = []

    def keep(module, args, output):
        if isinstance(module, nn.Conv2d):
            kept.append(output.numel() * 4)  # the norm's input
        elif isinstance(module, nn.BatchNorm2d):
            kept.append(2 * module.num_features * 4)  # mean and inverse deviation
            if not hasattr(module, "of_shortcut"):
                kept.append(output.numel() * 4)  # ReLU's result, in place of this
        elif isinstance(module, nn.MaxPool2d):
            kept.append(output.numel() * (4 + 8))  # the next layer's input, and indices

    for name, module in model.named_modules():
        if name.endswith("downsample.1"):
            module.of_shortcut = True  # only added
    hooks = [module.register_forward_hook(keep) for module in model.modules()]
    model(x)
    for hook in hooks:
        hook.remove()
    report = step_report(model, lambda: model(x).sum().backward())
    activations = sum(
        count for key, count in alive(report).items() if key[0] == "activations" and key[1] != "(outside)"
    )
    # The peak is in the backward of the last block, when the last layer has dropped its input.
    assert next(moment.module for moment in report.memory_timeline if moment.is_peak).startswith("layer4.2")
    assert activations == sum(kept)
    assert by_category(report)["parameters"] == 25_557_032 * 4


def test_where_it_is_not_known():
    def why(report):
        assert report.memory_at_peak == report.memory_timeline == []
        (message,) = [
            line for line in report.table(by="memory", width=0).split("\n") if "no memory at the peak" in line
        ]
        return message

    profiler = roofprof.RooflineProfiler(model := mlp())
    with profiler, roofprof.scope("part"):
        model(images())
    assert "not a block that is timed" in why(profiler.report())
    assert "not a model of TorchScript" in why(roofprof.count(torch.jit.script(mlp()), images()))
    counted = roofprof.count(mlp(), images())
    assert "a part of a run" in why(in_region().within("part"))
    twice = counted.predict(roofprof.Ceilings.published("L40S"), batch=2 * BATCH)
    assert "not counted with this batch" in why(twice)
    same = counted.predict(roofprof.Ceilings.published("L40S"))
    assert [row.bytes for row in same.memory_at_peak] == [row.bytes for row in counted.memory_at_peak]

    class MakesSizesOnly(nn.Module):
        def forward(self, x):
            return x.relu(), torch.empty(3, device="meta")

    assert "hold no memory themselves" in why(roofprof.count(MakesSizesOnly(), images()))


def in_region():
    class InRegion(nn.Module):
        def forward(self, x):
            with roofprof.scope("part"):
                return x + 1

    return roofprof.count(InRegion(), images())
