"""Hugging Face models, built from configurations, against the closed forms of their architectures."""

import contextlib

import pytest
import torch
import transformer_truths as truths
from hugging_face import (
    BATCH,
    HEADS,
    KINDS,
    LENGTH,
    MODELS,
    REAL,
    SIZES,
    any_model,
    build,
    inputs_of,
    instance,
    truth_of,
    words,
)
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.flop_counter import FlopCounterMode, flop_registry
from truths import assert_conserved

import roofprof

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("one_thread")]

WITH_FAKES = "counted with fake tensors on the CPU"
ATTENTIONS = [(name, kind) for name in MODELS for kind in (["eager"] if name == "mamba" else ["sdpa", "eager"])]


@pytest.fixture(scope="module")
def transformers():
    library = pytest.importorskip("transformers")
    library.logging.set_verbosity_error()
    return library


def check(report, macs):
    assert report.coverage.uncosted == {}
    assert report.total.macs == macs
    assert_conserved(report)


def notes_of(report, name):
    """Mamba's mixer uses the weights of its convolution and of a projection, and a note names these two."""
    known = {"weights-used-elsewhere"} if name.startswith("mamba") else set()
    return [note for note in report.coverage.notes if note.code not in known]


def macs_unknown_to_torch(report):
    """MACs of the operators that torch's counter has no formula for: attention on the CPU is one in older torch."""
    macs = {group.keys[0]: group.macs for group in report.group("op")}
    unknown = {"_grouped_mm": macs.get("aten::_grouped_mm", 0)}
    if torch.ops.aten._scaled_dot_product_flash_attention_for_cpu not in flop_registry:
        unknown["attention"] = macs.get("aten::scaled_dot_product_attention", 0)
    return unknown


# ---- forward


@pytest.mark.parametrize("where", ["cpu", "meta", "words on the cpu", "fake", "fake, from outside"])
@pytest.mark.parametrize(("name", "attention"), ATTENTIONS)
def test_forward(transformers, name, attention, where):
    places = {"cpu": torch.device("cpu"), "meta": torch.device("meta"), "words on the cpu": torch.device("meta")}
    with places.get(where) or FakeTensorMode() as mode, torch.no_grad():
        model, inputs = build(transformers, name, attention), inputs_of(name)
    if where == "words on the cpu":
        inputs = inputs_of(name)
    with torch.no_grad(), mode if where == "fake" else contextlib.nullcontext():
        report = roofprof.count(model, **inputs)
    check(report, truth_of(name).forward)
    moved = where == "words on the cpu" and name in {"whisper", "vit"}  # whose inputs are no words
    assert notes_of(report, name) == [] or moved


@pytest.mark.parametrize(("name", "attention"), ATTENTIONS)
def test_torch_counts_the_same(transformers, name, attention):
    model, inputs = build(transformers, name, attention), inputs_of(name)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model(**inputs)
    report = roofprof.count(model, **inputs)
    unknown = macs_unknown_to_torch(report)
    experts = 2 * truths.linear(BATCH * LENGTH * 2, 32, 48).forward * 3
    assert unknown["_grouped_mm"] == (experts if name == "mixtral" else 0)
    if "attention" in unknown:
        assert unknown["attention"] == (truth_of(name).attention if attention == "sdpa" else 0)
    assert report.total.macs - sum(unknown.values()) == counter.get_total_flops() // 2


@pytest.mark.parametrize("where", ["cpu", "meta", "mask on the cpu"])
@pytest.mark.parametrize("name", ["bert", "gpt2", "llama", "mixtral", "t5"])
def test_padded_sentences(transformers, name, where):
    # The code that makes masks looks into the given one, unless that is fake.
    with torch.device("cpu" if where == "cpu" else "meta"):
        model, inputs = build(transformers, name), inputs_of(name)
    mask = torch.ones(BATCH, LENGTH, dtype=torch.long)
    mask[0, 6:] = 0
    inputs["attention_mask"] = mask.to("meta") if where == "meta" else mask
    parameters = list(model.parameters())
    with torch.no_grad():
        report = roofprof.count(model, **inputs)
    check(report, truth_of(name).forward)
    assert all(now is before for now, before in zip(model.parameters(), parameters, strict=True))
    if where == "cpu":
        assert report.coverage.notes == []
    else:
        (note,) = report.coverage.notes
        assert str(note).startswith(WITH_FAKES)


# ---- backward


# Of T5's attentions on the CPU, those whose bias is trained are not fused, the others are: that one is left out.
BACKWARDS = [
    (*model, training, device)
    for model in ATTENTIONS
    for training in (True, False)
    for device in ("cpu", "meta")
    if (*model, training, device) != ("t5", "sdpa", False, "cpu")
]


@pytest.mark.parametrize(("name", "attention", "training", "device"), BACKWARDS)
def test_backward(transformers, name, attention, training, device):
    with torch.device(device):
        model, inputs = build(transformers, name, attention).train(training), inputs_of(name)
        labels = torch.randint(3, 10, (BATCH,) if name == "vit" else tuple(list(inputs.values())[-1].shape))

    def step():
        output = model(**inputs, labels=labels)
        assert output.loss.shape == ()
        output.loss.backward()

    report = roofprof.count(step)
    phases = report.by_phase()
    # Fused attention has a backward of its own. torch takes it on the CPU, and where nothing is dropped.
    dropped = training and name in {"bert", "gpt2", "t5"}
    fused = attention == "sdpa" and device == "cpu" and not dropped
    assert report.coverage.uncosted == {}
    assert phases["forward"].macs == truth_of(name).forward
    assert phases["backward"].macs == truth_of(name).backward(fused=fused)
    assert_conserved(report)


# ---- with a cache


@pytest.mark.parametrize("name", ["llama", "gpt2"])
def test_generating(transformers, name):
    # Every word is made from the logits of the one before: the prompt's last, then each new one's but the last.
    model, prompt, new = build(transformers, name), words(), 5
    if name == "llama":
        steps = truths.llama(BATCH, LENGTH, scored=1, hidden=64, **SIZES, **HEADS)
        for seen in range(LENGTH + 1, LENGTH + new):
            steps += truths.llama(BATCH, 1, keys=seen, hidden=64, **SIZES, **HEADS)
    else:
        steps = 2 * truths.encoder_layer(BATCH, LENGTH, 32, 128) + truths.linear(BATCH, 32, 100)
        for seen in range(LENGTH + 1, LENGTH + new):
            layer = truths.encoder_layer(BATCH, 1, 32, 128) + truths.attention(BATCH, 1, seen - 1, 32)
            steps += 2 * layer + truths.linear(BATCH, 32, 100)

    def generate():
        made = model.generate(prompt, max_new_tokens=new, min_new_tokens=new, do_sample=False)
        assert made.shape == (BATCH, LENGTH + new)

    check(roofprof.count(generate), steps.forward)
    profiler = roofprof.RooflineProfiler(model, ceilings=roofprof.Ceilings())
    with profiler:
        generate()
    report = profiler.report()
    check(report, steps.forward)
    assert {row.path: row for row in report.rows}[""].calls == new


def test_a_cache_is_not_filled_twice(transformers):
    # The mask makes the call on the meta device fail; the same is counted again, from where that one began.
    with torch.device("meta"), torch.no_grad():
        model = build(transformers, "llama")
        cache = model(words()).past_key_values
        mask = torch.ones(BATCH, LENGTH + 1, dtype=torch.long)
        report = roofprof.count(model, words(1), attention_mask=mask, past_key_values=cache)
    check(report, truths.llama(BATCH, 1, keys=LENGTH + 1, hidden=64, **SIZES, **HEADS).forward)
    assert str(report.coverage.notes[0]).startswith(WITH_FAKES)
    assert cache.get_seq_length() == LENGTH


# ---- real sizes


@pytest.mark.parametrize("name", REAL)
def test_real_size(transformers, name):
    kind, options, shapes, macs, parameters = REAL[name]
    with torch.device("meta"), torch.no_grad():
        model = instance(transformers, kind, options)
        inputs = {
            key: torch.rand(shape) if key == "input_features" else torch.zeros(shape, dtype=torch.long)
            for key, shape in shapes.items()
        }
        report = roofprof.count(model, **inputs)
    check(report, macs.forward)
    assert report.total.params == parameters
    assert notes_of(report, name) == []


# ---- all sorts


MODULES_NOT_CALLED = {"forward-not-called", "weights-used-elsewhere"}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_any_kind(transformers, kind):
    with torch.device("meta"), torch.no_grad():
        model, inputs = any_model(transformers, kind)
        report = roofprof.count(model, **inputs)
        assert report.coverage.uncosted == {}
        assert report.total.macs > 0
        assert_conserved(report)
        notes = [note for note in report.coverage.notes if note.code not in MODULES_NOT_CALLED]
        if notes:  # torch's counter raises on these
            (note,) = notes
            assert str(note).startswith(WITH_FAKES)
            return
        with FlopCounterMode(display=False) as counter:
            model(**inputs)
    unknown = macs_unknown_to_torch(report)
    assert report.total.macs - sum(unknown.values()) == counter.get_total_flops() // 2
