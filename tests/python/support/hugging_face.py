"""Hugging Face models from configurations, without weights, and what each takes: small ones and some of real size."""

from __future__ import annotations

import importlib

import torch
import transformer_truths as truths
from transformer_truths import Macs

BATCH, LENGTH, ANSWER, FRAMES = 2, 10, 7, 40
SMALL = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "vocab_size": 100,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
GROUPED = {"num_key_value_heads": 2}
HEADS = {"heads": 4, "key_heads": 2, "head": 8}
SIZES = {"layers": 2, "width": 32, "vocabulary": 100}
GPT2 = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "vocab_size": 100}
T5 = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4, "vocab_size": 100}
WHISPER = {
    "d_model": 32,
    **{f"{part}_layers": 2 for part in ("encoder", "decoder")},
    **{f"{part}_attention_heads": 4 for part in ("encoder", "decoder")},
    **{f"{part}_ffn_dim": 64 for part in ("encoder", "decoder")},
    "vocab_size": 100,
    "num_mel_bins": 8,
    "max_source_positions": FRAMES // 2,
    "max_target_positions": 16,
}
SPECIAL = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}
MAMBA = {"hidden_size": 32, "num_hidden_layers": 2, "vocab_size": 100, "state_size": 8}


def words(length=LENGTH, batch=BATCH):
    return torch.randint(3, 100, (batch, length))


# Class, options of its configuration, what it is called with, and the closed form.
MODELS = {
    "bert": (
        "BertForMaskedLM",
        SMALL,
        lambda: {"input_ids": words()},
        truths.bert(BATCH, LENGTH, hidden=64, **SIZES),
    ),
    "gpt2": (
        "GPT2LMHeadModel",
        GPT2 | {"bos_token_id": 1, "eos_token_id": 2},
        lambda: {"input_ids": words()},
        truths.gpt2(BATCH, LENGTH, **SIZES),
    ),
    "llama": (
        "LlamaForCausalLM",
        SMALL | GROUPED,
        lambda: {"input_ids": words()},
        truths.llama(BATCH, LENGTH, hidden=64, **SIZES, **HEADS),
    ),
    "mixtral": (
        "MixtralForCausalLM",
        SMALL | GROUPED | {"intermediate_size": 48, "num_local_experts": 4, "num_experts_per_tok": 2},
        lambda: {"input_ids": words()},
        truths.mixtral(BATCH, LENGTH, hidden=48, experts=4, chosen=2, **SIZES, **HEADS),
    ),
    "t5": (
        "T5ForConditionalGeneration",
        T5 | SPECIAL,
        lambda: {"input_ids": words(), "decoder_input_ids": words(ANSWER)},
        truths.t5(BATCH, LENGTH, ANSWER, inner=32, hidden=64, **SIZES),
    ),
    "whisper": (
        "WhisperForConditionalGeneration",
        WHISPER | SPECIAL,
        lambda: {"input_features": torch.rand(BATCH, 8, FRAMES), "decoder_input_ids": words(ANSWER)},
        truths.whisper(BATCH, FRAMES, ANSWER, bands=8, hidden=64, **SIZES),
    ),
    "mamba": (
        "MambaForCausalLM",
        MAMBA,
        lambda: {"input_ids": words()},
        truths.mamba(BATCH, LENGTH, inner=64, state=8, rank=2, kernel=4, **SIZES),
    ),
    "vit": (
        "ViTForImageClassification",
        {**SMALL, "intermediate_size": 128, "image_size": 32, "patch_size": 8, "num_labels": 10},
        lambda: {"pixel_values": torch.rand(BATCH, 3, 32, 32)},
        truths.vit(BATCH, size=32, patch=8, layers=2, width=32, classes=10),
    ),
}

# As published, with the number of parameters that the published weights have.
REAL = {
    "bert-base-uncased": (
        "BertForMaskedLM",
        {},
        {"input_ids": (1, 512)},
        truths.bert(1, 512, layers=12, width=768, hidden=3072, vocabulary=30522),
        109_514_298,
    ),
    "gpt2": (
        "GPT2LMHeadModel",
        {},
        {"input_ids": (1, 1024)},
        truths.gpt2(1, 1024, layers=12, width=768, vocabulary=50257),
        124_439_808,
    ),
    "Llama-3-8B": (
        "LlamaForCausalLM",
        {
            "hidden_size": 4096,
            "num_hidden_layers": 32,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "intermediate_size": 14336,
            "vocab_size": 128256,
            "max_position_embeddings": 8192,
        },
        {"input_ids": (1, 8192)},
        truths.llama(1, 8192, layers=32, width=4096, hidden=14336, vocabulary=128256, heads=32, key_heads=8, head=128),
        8_030_261_248,
    ),
    "Mixtral-8x7B": (
        "MixtralForCausalLM",
        {"num_hidden_layers": 32},
        {"input_ids": (1, 2048)},
        truths.mixtral(
            1,
            2048,
            layers=32,
            width=4096,
            hidden=14336,
            vocabulary=32000,
            experts=8,
            chosen=2,
            heads=32,
            key_heads=8,
            head=128,
        ),
        46_702_792_704,
    ),
    "t5-base": (
        "T5ForConditionalGeneration",
        {"d_model": 768, "d_ff": 3072, "num_layers": 12, "num_heads": 12, "d_kv": 64},
        {"input_ids": (1, 512), "decoder_input_ids": (1, 128)},
        truths.t5(1, 512, 128, layers=12, width=768, inner=768, hidden=3072, vocabulary=32128),
        222_903_552,
    ),
    "whisper-small": (
        "WhisperForConditionalGeneration",
        {
            "d_model": 768,
            **{f"{part}_layers": 12 for part in ("encoder", "decoder")},
            **{f"{part}_attention_heads": 12 for part in ("encoder", "decoder")},
            **{f"{part}_ffn_dim": 3072 for part in ("encoder", "decoder")},
        },
        {"input_features": (1, 80, 3000), "decoder_input_ids": (1, 448)},
        truths.whisper(1, 3000, 448, bands=80, layers=12, width=768, hidden=3072, vocabulary=51865),
        241_734_912,
    ),
    "mamba-130m": (
        "MambaForCausalLM",
        {"hidden_size": 768, "num_hidden_layers": 24, "vocab_size": 50280, "state_size": 16},
        {"input_ids": (1, 32)},
        truths.mamba(1, 32, layers=24, width=768, inner=1536, state=16, rank=48, kernel=4, vocabulary=50280),
        129_135_360,
    ),
}

# Types of models whose defaults can be called with words, sounds or images alone; some look at their data on the meta
# device, and are counted with fake tensors.
NAMES = """
    albert audio-spectrogram-transformer bart beit bert bert-generation big_bird biogpt bit blenderbot blip bloom
    camembert canine clip codegen cohere convbert convnext convnextv2 ctrl cvt data2vec-text data2vec-vision deberta
    deberta-v2 deit dinov2 distilbert dpr dpt efficientnet electra ernie falcon falcon_mamba focalnet gemma gemma2
    glm gpt2 gpt_bigcode gpt_neo gpt_neox gpt_oss gptj granite granitemoe helium hiera hubert ibert imagegpt
    layoutlm levit lfm2 llama luke m2m_100 mamba mamba2 marian mbart megatron-bert mistral mixtral mobilebert
    mobilenet_v2 mobilevit modernbert mpnet mpt mt5 nystromformer olmo2 olmoe opt pegasus persimmon phi phi3 phimoe
    poolformer prophetnet pvt qwen2 qwen2_moe qwen3 qwen3_moe regnet rembert resnet roberta roformer rwkv segformer
    sew squeezebert stablelm starcoder2 swiftformer swin swinv2 t5 umt5 unispeech vit vit_mae vit_msn wav2vec2 wavlm
    whisper xglm xlm-roberta xlnet xlstm yoso
"""
KINDS = NAMES.split()
# The depth of these is told by more than the names below.
DEEP = {"convnext", "convnextv2", "falcon_mamba", "gpt_neo", "prophetnet"}
DEPTHS = ("num_hidden_layers", "num_layers", "encoder_layers", "decoder_layers", "n_layers", "n_layer")


def any_model(transformers, kind):
    """A model of the type's default configuration, with two layers where that alone makes it shallow, and inputs."""
    config = transformers.AutoConfig.for_model(kind)
    if kind not in DEEP:
        shallow = {name: 2 for name in DEPTHS if isinstance(getattr(config, name, None), int)}
        config = transformers.AutoConfig.for_model(kind, **shallow)
    model = transformers.AutoModel.from_config(config).eval().requires_grad_(False)
    size = getattr(config, "image_size", 224)
    sides = size if isinstance(size, (list, tuple)) else [size, size]
    inputs = {"input_ids": torch.zeros(1, 16, dtype=torch.long)}
    if model.main_input_name == "pixel_values":
        inputs = {"pixel_values": torch.rand(1, config.num_channels, *sides)}
    elif kind == "audio-spectrogram-transformer":
        inputs = {"input_values": torch.rand(1, config.max_length, config.num_mel_bins)}
    elif model.main_input_name == "input_values":
        inputs = {"input_values": torch.rand(1, 4000)}
    elif model.main_input_name == "input_features":
        inputs = {"input_features": torch.rand(1, config.num_mel_bins, 3000)}
    if hasattr(config, "vision_config"):
        inputs["pixel_values"] = torch.rand(1, 3, 224, 224)
    if config.is_encoder_decoder:
        inputs["decoder_input_ids"] = torch.zeros(1, 4, dtype=torch.long)
    return model, inputs


def build(transformers, name, attention=None, **options):
    """One of `MODELS`, in evaluation mode."""
    kind, sizes, _, _ = MODELS[name]
    return instance(transformers, kind, sizes | options, attention)


def instance(transformers, kind, options, attention=None):
    made = getattr(transformers, kind)
    chosen = {} if attention is None else {"attn_implementation": attention}
    if kind == "MixtralForCausalLM" and not experts_may_be_fp32():
        chosen["dtype"] = torch.bfloat16
    # Said by its full name: the package has it as an attribute only where something has imported it before.
    initialization = importlib.import_module("transformers.initialization")
    with initialization.no_init_weights():  # in no time, and under any mode: no count looks at values
        model = made._from_config(made.config_class(**options), **chosen).eval()
    model.tie_weights()
    return model


def experts_may_be_fp32():
    """Whether torch's product by groups takes more than bfloat16 without data: older ones do not."""
    words, experts, ends = ((1, 8), torch.float32), ((1, 8, 8), torch.float32), ((1,), torch.int32)
    try:
        torch._grouped_mm(*(torch.empty(shape, dtype=dtype, device="meta") for shape, dtype in (words, experts, ends)))
    except RuntimeError:
        return False
    return True


def truth_of(name) -> Macs:
    return MODELS[name][3]


def inputs_of(name):
    return MODELS[name][2]()
