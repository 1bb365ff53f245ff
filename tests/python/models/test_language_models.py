"""Language models: prefill and decode told apart, against closed forms of their work; MFU and HFU."""

import pytest
import torch
import transformers
from torch.utils.checkpoint import checkpoint

import roofprof

pytestmark = pytest.mark.integration

LAYERS, WIDTH, HEADS, WORDS = 3, 64, 4, 500
BATCH, PROMPT, NEW = 2, 16, 5


@pytest.fixture
def model():
    torch.manual_seed(0)
    config = transformers.GPT2Config(n_layer=LAYERS, n_embd=WIDTH, n_head=HEADS, vocab_size=WORDS, n_positions=64)
    return transformers.GPT2LMHeadModel(config).eval()


@pytest.fixture
def prompt():
    return torch.randint(0, WORDS, (BATCH, PROMPT), generator=torch.Generator().manual_seed(0))


def macs(sequences, new, context, scored=1):
    """Of a GPT-2 that gets `new` tokens, each attending to all of `context`, and scores the last ones.

    12 width^2 a token in the matrices of a layer (4 of attention, 8 of the MLP), 2 width a token and token attended to.
    """
    layer = 12 * WIDTH**2 * new + 2 * WIDTH * new * context
    return sequences * (LAYERS * layer + WORDS * WIDTH * scored)


def cache_bytes(sequences, tokens):
    return 2 * LAYERS * WIDTH * tokens * sequences * 4


def generated(model, prompt, **options):
    profiler = roofprof.RooflineProfiler(model, ceilings=roofprof.Ceilings())
    with profiler, torch.no_grad():
        model.generate(prompt, max_new_tokens=NEW, pad_token_id=0, **{"do_sample": False} | options)
    return profiler.report()


def test_generate_is_a_prefill_and_decodes(model, prompt):
    report = generated(model, prompt)
    prefill, decode = report.language_model
    assert (prefill.name, prefill.calls, prefill.sequences, prefill.tokens) == ("prefill", 1, BATCH, BATCH * PROMPT)
    assert (prefill.least_context, prefill.most_context, prefill.cache_bytes) == (PROMPT, PROMPT, 0)
    assert prefill.macs == macs(BATCH, PROMPT, PROMPT)
    # The last token that is made is not read again.
    assert (decode.name, decode.calls, decode.tokens) == ("decode", NEW - 1, BATCH * (NEW - 1))
    contexts = range(PROMPT + 1, PROMPT + NEW)
    assert (decode.least_context, decode.most_context) == (contexts[0], contexts[-1])
    assert decode.macs == sum(macs(BATCH, 1, context) for context in contexts)
    assert decode.cache_bytes == cache_bytes(BATCH, contexts[-1] - 1)
    assert decode.weight_bytes == prefill.weight_bytes == 4 * sum(p.numel() for p in model.parameters())


def test_their_reports_are_those_of_the_regions(model, prompt):
    report = generated(model, prompt)
    for phase in report.language_model:
        inside = report.within(phase.name)
        assert [(each.name, each.tokens, each.time) for each in inside.language_model] == [
            (phase.name, phase.tokens, phase.time)
        ]
        assert str(inside)
        assert inside.row("").calls == phase.calls
        assert (inside.total.macs, inside.total.flops, inside.total.bytes) == (phase.macs, phase.flops, phase.bytes)
        assert phase.intensity == pytest.approx(phase.flops / phase.bytes)
        assert phase.flops_per_token == pytest.approx(phase.flops / phase.tokens)
        assert phase.tokens_per_second == pytest.approx(phase.tokens / phase.time)
    assert report.row("").calls == NEW
    assert sum(phase.macs for phase in report.language_model) == report.total.macs
    assert not [row for row in report.rows if row.type == "region"], "they have no rows of their own"


def test_one_call_with_an_empty_cache_is_prefill(model, prompt):
    cache = transformers.DynamicCache()
    with torch.no_grad():
        report = roofprof.count(model, prompt, past_key_values=cache)
        [prefill] = report.language_model
        assert (prefill.name, prefill.macs) == ("prefill", macs(BATCH, PROMPT, PROMPT, scored=PROMPT))
        report = roofprof.count(model, prompt[:, :1], past_key_values=cache)
    [decode] = report.language_model
    assert (decode.name, decode.least_context, decode.macs) == ("decode", PROMPT + 1, macs(BATCH, 1, PROMPT + 1))


def test_a_static_cache(model, prompt):
    cache = transformers.StaticCache(config=model.config, max_cache_len=32)
    with torch.no_grad():
        assert [p.name for p in roofprof.count(model, prompt, past_key_values=cache).language_model] == ["prefill"]
        report = roofprof.count(model, prompt[:, :1], past_key_values=cache)
    [decode] = report.language_model
    assert (decode.name, decode.most_context) == ("decode", PROMPT + 1)
    assert decode.cache_bytes == cache_bytes(BATCH, 32), "what it holds, used or not"


def test_an_encoder_and_a_decoder():
    config = transformers.T5Config(d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, vocab_size=100)
    config.decoder_start_token_id = 0
    torch.manual_seed(0)
    model = transformers.T5ForConditionalGeneration(config).eval()
    report = generated(model, torch.randint(1, 100, (2, 7)))
    assert {phase.name for phase in report.language_model} == {"prefill", "decode"}
    assert [phase.calls for phase in report.language_model] == [1, NEW - 1]
    assert [phase.tokens for phase in report.language_model] == [2, 2 * (NEW - 1)]


def test_the_model_may_be_part_of_another(model, prompt):
    class Assistant(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.language = model

        def forward(self, batch):
            return self.language.generate(batch["ids"], max_new_tokens=NEW, do_sample=False, pad_token_id=0)

    with torch.no_grad():
        report = roofprof.count(Assistant().eval(), {"ids": prompt})
    assert [phase.calls for phase in report.language_model] == [1, NEW - 1]
    assert report.within("decode").row("language").calls == NEW - 1


def test_regions_of_the_user_win(model, prompt):
    profiler = roofprof.RooflineProfiler(model, ceilings=roofprof.Ceilings())
    with profiler, torch.no_grad(), roofprof.scope("decode"):
        model(prompt, use_cache=True)
    report = profiler.report()
    assert [phase.name for phase in report.language_model] == ["decode"]
    assert [region.path for region in report.regions if region.path != "(no region)"] == ["decode"]


def test_files_keep_it(model, prompt, tmp_path):
    report = generated(model, prompt)
    report.to_json(tmp_path / "r.json")
    read = roofprof.Report.from_json(tmp_path / "r.json")
    assert read == report
    assert [phase.macs for phase in read.language_model] == [phase.macs for phase in report.language_model]
    assert "decode: 4 calls with 8 new tokens, contexts of 17 to 20" in " ".join(str(report).split())


# ---- MFU and HFU: seconds of the work at the peak, over the seconds that it took


PEAK = 1e12


@pytest.fixture
def roofs(tmp_path):
    roofs = roofprof.Ceilings.published("RTX 4090")
    roofs.save(tmp_path / "roofs.json")
    return roofs


def trained(model, x, roofs):
    profiler = roofprof.RooflineProfiler(model, ceilings=roofs)
    with profiler:
        model(x).sum().backward()
    return profiler.report()


class Chain(torch.nn.Module):
    def __init__(self, *, recompute):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(32, 32, bias=False) for _ in range(4))
        self.recompute = recompute

    def forward(self, x):
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=True) if self.recompute else layer(x)
        return x


def test_mfu_is_model_flops_over_the_peak(roofs):
    x = torch.randn(8, 32, requires_grad=True)
    report = trained(Chain(recompute=False), x, roofs)
    flops = 3 * 2 * 4 * 8 * 32 * 32  # forward, and two products of each layer in the backward
    [peak] = [roof.operations_per_second for roof in roofs.compute if roof.dtype == "fp32"]
    assert report.mfu == pytest.approx(100 * flops / report.total.wall / peak)
    assert report.hfu == report.mfu


def test_recomputing_counts_for_hfu_alone(roofs):
    x = torch.randn(8, 32, requires_grad=True)
    report = trained(Chain(recompute=True), x, roofs)
    assert report.hfu / report.mfu == pytest.approx(4 / 3)
    assert "MFU" in str(report)


@pytest.mark.parametrize("name", ["past_key_values", "cache"])
def test_the_cache_goes_by_each_of_its_names(name):
    """Whichever of the names the installed transformers uses."""

    class Model(torch.nn.Module):
        def forward(self, input_ids, past_key_values=None, cache=None, use_cache=None):
            return torch.nn.functional.one_hot(input_ids, WORDS).float()

    cache = [(torch.zeros(BATCH, HEADS, PROMPT, 8),) * 2]
    [phase] = roofprof.count(Model(), torch.zeros(BATCH, 1, dtype=torch.long), **{name: cache}).language_model
    assert (phase.name, phase.tokens, phase.most_context) == ("decode", BATCH, PROMPT + 1)


def test_a_cache_of_something_else_is_no_language_model():
    class Memo(torch.nn.Module):
        def forward(self, input_ids, cache):
            return input_ids + cache["offset"]

    offset = {"offset": torch.ones(1, dtype=torch.long)}
    assert not roofprof.count(Memo(), torch.zeros(2, 3, dtype=torch.long), cache=offset).language_model
