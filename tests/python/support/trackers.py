"""What experiment trackers kept, read back with their own packages; and a small model whose work is known."""

import torch
from torch import nn

BATCH, WIDTH, HIDDEN, CLASSES = 4, 6, 8, 3
# A training step: both layers forward and their weights' gradients; inputs' gradients of the second layer alone.
STEP_MACS = BATCH * (2 * WIDTH * HIDDEN + 3 * HIDDEN * CLASSES)
FORWARD_MACS = BATCH * (WIDTH * HIDDEN + HIDDEN * CLASSES)


class Classifier(nn.Module):
    """Gives its loss where it is given labels, as Hugging Face's models do."""

    def __init__(self, raises_at=None, error=None):
        super().__init__()
        self.first = nn.Linear(WIDTH, HIDDEN)
        self.second = nn.Linear(HIDDEN, CLASSES)
        self.calls = 0
        self.raises_at = raises_at
        self.error = error

    def forward(self, x, labels=None):
        self.calls += 1
        if self.calls == self.raises_at:
            raise self.error
        logits = self.second(self.first(x).relu())
        if labels is None:
            return logits
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


def samples(steps):
    """For so many batches."""
    generator = torch.Generator().manual_seed(0)
    return [{"x": torch.rand(WIDTH, generator=generator), "labels": i % CLASSES} for i in range(steps * BATCH)]


def nothing_is_patched(model):
    """No hook of ours is left on any module, and another profiler may begin."""
    import roofprof

    hooks = (torch.nn.modules.module._global_forward_pre_hooks, torch.nn.modules.module._global_forward_hooks)
    assert not any(hooks)
    assert not any(module._forward_pre_hooks or module._forward_hooks for module in model.modules())
    with roofprof.RooflineProfiler(None, ceilings=roofprof.Ceilings()):
        pass


def tensorboard_events(folder):
    """All scalars as {tag: [(step, value)]} and texts as {tag: text} below a folder."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    numbers, texts = {}, {}
    for file in folder.rglob("*tfevents*"):
        events = EventAccumulator(str(file), size_guidance={"tensors": 0, "scalars": 0})
        events.Reload()
        for tag in events.Tags()["scalars"]:
            numbers.setdefault(tag, []).extend((event.step, event.value) for event in events.Scalars(tag))
        for tag in events.Tags()["tensors"]:
            texts[tag] = events.Tensors(tag)[0].tensor_proto.string_val[0].decode()
    return numbers, texts
