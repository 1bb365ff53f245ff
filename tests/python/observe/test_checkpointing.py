"""Checkpointing: what is run again has a phase of its own, module by module, and is exactly what is run again."""

from functools import partial

import pytest
import torch
from attributed import Model
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    checkpoint_sequential,
    create_selective_checkpoint_contexts,
    set_checkpoint_early_stop,
)
from truths import assert_conserved, counts, macs_by, observe

pytestmark = pytest.mark.usefixtures("one_thread")

ROWS, WIDTH = 4, 8
LAYER = ROWS * WIDTH * WIDTH
WAYS = pytest.mark.parametrize("use_reentrant", [False, True], ids=["saved tensors", "reentrant"])


def layers(count):
    return nn.Sequential(*(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU()) for _ in range(count)))


def value():
    return torch.rand(ROWS, WIDTH, requires_grad=True)


def expected(forward, recompute, backward):
    """MACs by (path, phase) from the products that each path has in each phase."""
    phases = {"forward": forward, "recompute": recompute, "backward": backward}
    return {(path, phase): n * LAYER for phase, paths in phases.items() for path, n in paths.items() if n}


def by_phase(report, phase):
    return {
        (group.keys[0], group.keys[2]): counts(group)
        for group in report.group("module", "phase", "op")
        if group.keys[1] == phase and any(counts(group).values())
    }


@pytest.fixture
def to_the_end():
    """Without reentry, running again stops where everything that was saved is there again; here it does not."""
    with set_checkpoint_early_stop(False):
        yield


@pytest.mark.usefixtures("to_the_end")
@WAYS
def test_a_part_of_a_model(use_reentrant):
    model = Model(
        lambda self, v: self.last(checkpoint(self.middle, self.first(v), use_reentrant=use_reentrant)),
        first=nn.Linear(WIDTH, WIDTH),
        middle=layers(2),
        last=nn.Linear(WIDTH, WIDTH),
    )
    report = observe(model, lambda: model(value()).sum().backward())
    middle = {"middle.0.0": 1, "middle.1.0": 1}
    every = {"first": 1, **middle, "last": 1}
    assert macs_by(report, "module", "phase") == expected(every, middle, dict.fromkeys(every, 2))
    # What is run again is the forward of that part, op by op, and of nothing else.
    again = {key: work for key, work in by_phase(report, "forward").items() if key[0].startswith("middle")}
    assert by_phase(report, "recompute") == again
    assert report.row("middle").calls == 2
    assert_conserved(report)


@WAYS
def test_the_rest_is_as_without(use_reentrant):
    model = layers(2)
    plain = observe(model, lambda: model(value()).sum().backward())
    model.zero_grad()
    report = observe(model, lambda: checkpoint(model, value(), use_reentrant=use_reentrant).sum().backward())
    for phase in ("forward", "backward"):
        modules = [
            {key: work for key, work in by_phase(each, phase).items() if key[0] != "(outside)"}
            for each in (report, plain)
        ]
        assert modules[0] == modules[1]


@WAYS
def test_checkpoint_sequential(use_reentrant):
    model = layers(4)
    report = observe(
        model, lambda: checkpoint_sequential(model, 2, value(), use_reentrant=use_reentrant).sum().backward()
    )
    every = {f"{i}.0": 1 for i in range(4)}
    # The last of the segments is not run again.
    assert macs_by(report, "module", "phase") == expected(every, {"0.0": 1, "1.0": 1}, dict.fromkeys(every, 2))


def test_running_again_stops_where_all_is_there():
    model = layers(2)
    report = observe(model, lambda: checkpoint(model, value(), use_reentrant=False).sum().backward())
    again, forward = by_phase(report, "recompute"), by_phase(report, "forward")
    # The last activation had its input saved: with that, it need not run again.
    missing = {("1.1", "aten::gelu")}
    assert again == {key: work for key, work in forward.items() if key[0] != "(outside)" and key not in missing}


@pytest.mark.usefixtures("to_the_end")
@WAYS
def test_nested_checkpoints(use_reentrant):
    def inner(self, v):
        return self.b(checkpoint(self.a, v, use_reentrant=use_reentrant))

    block = Model(inner, a=nn.Linear(WIDTH, WIDTH), b=nn.Linear(WIDTH, WIDTH))
    model = Model(lambda self, v: checkpoint(self.block, v, use_reentrant=use_reentrant), block=block)
    report = observe(model, lambda: model(value()).sum().backward())
    # The inner part is run again with the outer one, and once more for its own backward.
    assert macs_by(report, "module", "phase") == expected(
        {"block.a": 1, "block.b": 1}, {"block.a": 2, "block.b": 1}, {"block.a": 2, "block.b": 2}
    )


def test_selective_checkpointing_runs_again_what_it_did_not_save():
    def policy(_context, op, *_args, **_kwargs):
        saved = {torch.ops.aten.mm.default, torch.ops.aten.addmm.default}
        return CheckpointPolicy.MUST_SAVE if op in saved else CheckpointPolicy.PREFER_RECOMPUTE

    model = layers(2)
    contexts = partial(create_selective_checkpoint_contexts, policy)
    report = observe(
        model, lambda: checkpoint(model, value(), use_reentrant=False, context_fn=contexts).sum().backward()
    )
    every = {"0.0": 1, "1.0": 1}
    # The products are saved; the activations in between are worked out again.
    assert macs_by(report, "module", "phase") == expected(every, {}, dict.fromkeys(every, 2))
    again = by_phase(report, "recompute")
    assert again["0.1", "aten::gelu"] == by_phase(report, "forward")["0.1", "aten::gelu"]
    assert not report.coverage.uncosted


@pytest.mark.usefixtures("to_the_end")
def test_attention_that_is_run_again():
    query = torch.rand(2, 3, ROWS, WIDTH, requires_grad=True)

    def attention(query):
        return F.scaled_dot_product_attention(query, query, query)

    report = observe(None, lambda: checkpoint(attention, query, use_reentrant=False).sum().backward())
    forward = 2 * query.numel() * ROWS
    assert macs_by(report, "phase")["forward"] == forward
    assert macs_by(report, "phase")["recompute"] == forward


@WAYS
def test_several_steps(use_reentrant):
    model = layers(2)

    def run():
        for _ in range(3):
            checkpoint(model, value(), use_reentrant=use_reentrant).sum().backward()

    report = observe(model, run)
    assert macs_by(report, "phase") == {"forward": 6 * LAYER, "recompute": 6 * LAYER, "backward": 12 * LAYER}


def test_checkpointing_under_autocast():
    model = layers(1)

    def run():
        with torch.autocast("cpu", torch.bfloat16):
            output = checkpoint(model, value(), use_reentrant=False)
        output.float().sum().backward()

    report = observe(model, run)
    assert macs_by(report, "phase", "dtype") == {
        ("forward", "bf16"): LAYER,
        ("recompute", "bf16"): LAYER,
        ("backward", "bf16"): 2 * LAYER,
    }


def test_tensors_that_are_moved_away():
    model = nn.Linear(WIDTH, WIDTH, bias=False)
    given = torch.rand(ROWS, WIDTH)

    def run():
        with torch.autograd.graph.saved_tensors_hooks(torch.clone, torch.clone):
            output = model(given)
        output.sum().backward()

    plain = observe(model, lambda: model(given).sum().backward())
    model.zero_grad()
    report = observe(model, run)
    assert macs_by(report, "module", "phase") == macs_by(plain, "module", "phase")
    # The input that the weight's gradient needs: copied away in the forward, and back in the backward.
    copies = {group.keys[1]: group.bytes for group in report.group("op", "phase") if group.keys[0] == "aten::clone"}
    assert copies == {"forward": 2 * 4 * ROWS * WIDTH, "backward": 2 * 4 * ROWS * WIDTH}
    assert report.total.bytes - plain.total.bytes == sum(copies.values())
