"""Models of torchvision, timm and Hugging Face, with random weights, and an input for each: nothing is downloaded."""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

Maker = Callable[[], tuple[nn.Module, Tensor]]

# Library, model, images in a batch, height and width.
_IMAGES = (
    ("torchvision", "resnet18", 1, 224),
    ("torchvision", "vgg11", 1, 224),
    ("torchvision", "mobilenet_v2", 1, 224),
    ("torchvision", "squeezenet1_1", 1, 224),
    ("timm", "mobilevit_s", 1, 256),
    ("torchvision", "shufflenet_v2_x1_0", 1, 224),
    ("timm", "mixer_b16_224", 1, 224),
    ("torchvision", "efficientnet_b0", 1, 224),
    ("torchvision", "alexnet", 4, 224),
    ("torchvision", "mnasnet1_0", 4, 128),
    ("torchvision", "regnet_y_400mf", 1, 224),
    ("timm", "ghostnet_100", 1, 224),
    ("torchvision", "densenet121", 1, 224),
    ("timm", "xcit_nano_12_p16_224", 1, 224),
    ("torchvision", "googlenet", 1, 224),
    ("timm", "levit_128", 1, 224),
    ("torchvision", "resnet50", 1, 224),
    ("torchvision", "mobilenet_v3_large", 1, 224),
    ("torchvision", "lraspp_mobilenet_v3_large", 1, 224),
    ("timm", "rexnet_100", 1, 224),
    ("torchvision", "convnext_tiny", 1, 224),
    ("timm", "vit_tiny_patch16_224", 4, 224),
    ("torchvision", "swin_t", 1, 224),
    ("timm", "poolformer_s12", 1, 224),
    ("torchvision", "resnext50_32x4d", 1, 224),
    ("timm", "hrnet_w18_small", 1, 224),
    ("torchvision", "mobilenet_v3_small", 8, 128),
    ("timm", "efficientformer_l1", 1, 224),
    ("torchvision", "wide_resnet50_2", 1, 128),
    ("timm", "efficientnet_lite0", 8, 128),
    ("torchvision", "fcn_resnet50", 1, 128),
    ("timm", "repvgg_a0", 1, 224),
    ("torchvision", "regnet_x_800mf", 4, 128),
    ("torchvision", "vit_b_16", 1, 224),
    ("torchvision", "inception_v3", 1, 299),
)
# Added after the rules had been chosen by looking at those above.
_LATER = (
    ("timm", "fastvit_t8", 1, 256),
    ("torchvision", "vgg11_bn", 1, 128),
    ("timm", "mobilenetv4_conv_small", 1, 224),
    ("timm", "edgenext_xx_small", 1, 256),
    ("torchvision", "deeplabv3_mobilenet_v3_large", 1, 224),
    ("timm", "pvt_v2_b0", 1, 224),
    ("timm", "dla34", 1, 128),
    ("timm", "ese_vovnet19b_dw", 1, 224),
    ("timm", "skresnet18", 1, 128),
    ("timm", "tf_efficientnetv2_b0", 1, 192),
    ("torchvision", "shufflenet_v2_x0_5", 8, 128),
    ("torchvision", "squeezenet1_0", 2, 128),
    ("timm", "convmixer_768_32", 1, 64),
    ("timm", "hardcorenas_a", 1, 224),
)

_SIX = {"num_hidden_layers": 6}
_SMALL = {"hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 1024}

# Model, configuration, options of it; the input is words of (rows, length) if no other shape is named.
_TEXTS: tuple[tuple[str, str, str, dict[str, Any], tuple[int, ...]], ...] = (
    ("bert", "BertModel", "BertConfig", _SIX, (1, 128)),
    ("gpt2", "GPT2Model", "GPT2Config", {"n_layer": 6}, (1, 128)),
    ("t5", "T5EncoderModel", "T5Config", {"num_layers": 6}, (1, 128)),
    ("bert of one word", "BertModel", "BertConfig", _SIX, (1, 1)),
    ("distilbert", "DistilBertModel", "DistilBertConfig", {"n_layers": 3}, (4, 64)),
    ("gpt2 of one word", "GPT2Model", "GPT2Config", {"n_layer": 6}, (1, 1)),
    ("opt", "OPTModel", "OPTConfig", {"num_hidden_layers": 4}, (1, 16)),
    ("albert", "AlbertModel", "AlbertConfig", {**_SMALL, "embedding_size": 64}, (1, 128)),
    ("llama", "LlamaModel", "LlamaConfig", {**_SMALL, "num_key_value_heads": 2}, (1, 64)),
    ("mobilebert", "MobileBertModel", "MobileBertConfig", _SIX, (1, 64)),
    ("clip text", "CLIPTextModel", "CLIPTextConfig", {"num_hidden_layers": 4}, (4, 77)),
    ("electra", "ElectraModel", "ElectraConfig", _SIX, (1, 32)),
    ("roberta", "RobertaModel", "RobertaConfig", {"num_hidden_layers": 3}, (8, 32)),
    ("vit of transformers", "ViTModel", "ViTConfig", _SMALL, (1, 3, 224, 224)),
    ("whisper encoder", "WhisperModel", "WhisperConfig", {"d_model": 256, "encoder_layers": 4}, (1, 80, 400)),
)
_LATER_TEXTS: tuple[tuple[str, str, str, dict[str, Any], tuple[int, ...]], ...] = (
    ("mpnet", "MPNetModel", "MPNetConfig", _SMALL, (1, 16)),
    ("qwen2", "Qwen2Model", "Qwen2Config", {**_SMALL, "num_key_value_heads": 2}, (1, 1)),
    ("squeezebert", "SqueezeBertModel", "SqueezeBertConfig", {"num_hidden_layers": 3}, (1, 64)),
    ("mamba", "MambaModel", "MambaConfig", {"hidden_size": 256, "num_hidden_layers": 4}, (1, 16)),
    ("gpt_neox", "GPTNeoXModel", "GPTNeoXConfig", _SMALL, (4, 32)),
    ("bart encoder", "BartModel", "BartConfig", {"d_model": 256, "encoder_layers": 3, "decoder_layers": 1}, (1, 32)),
)


def all_models() -> dict[str, Maker]:
    """Return functions that make each model and its input, images and texts in turns."""
    images = [(_name(*which), functools.partial(_image_model, *which)) for which in _IMAGES]
    texts = [(which[0], functools.partial(_text_model, *which[1:])) for which in _TEXTS]
    made: dict[str, Maker] = {}
    for i, image in enumerate(images):
        made.update([image])
        if i % 2 and texts:
            made.update([texts.pop(0)])
    return made | dict(texts)


def later_models() -> dict[str, Maker]:
    """Return models that no rule was chosen by."""
    made: dict[str, Maker] = {_name(*which): functools.partial(_image_model, *which) for which in _LATER}
    return made | {which[0]: functools.partial(_text_model, *which[1:]) for which in _LATER_TEXTS}


def _name(library: str, model: str, rows: int, size: int) -> str:  # noqa: ARG001
    return model + (f", {rows} images" if rows > 1 else "")


def _image_model(library: str, name: str, rows: int, size: int) -> tuple[nn.Module, Tensor]:
    if library == "timm":
        import timm

        model = timm.create_model(name, pretrained=False)
    else:
        import torchvision

        options: dict[str, Any] = {"weights_backbone": None} if name.startswith(("fcn", "lraspp", "deeplab")) else {}
        if name in ("googlenet", "inception_v3"):
            options = {"init_weights": False}
        model = torchvision.models.get_model(name, weights=None, **options)
    return model.eval(), torch.randn(rows, 3, size, size)


def _text_model(kind: str, config: str, options: dict[str, Any], shape: tuple[int, ...]) -> tuple[nn.Module, Tensor]:
    import transformers

    if kind == "WhisperModel":
        options = {**options, "encoder_attention_heads": 4, "decoder_attention_heads": 4, "max_source_positions": 200}
    model = getattr(transformers, kind)(getattr(transformers, config)(**options)).eval()
    if kind in ("WhisperModel", "BartModel"):
        model = model.encoder
    return model, torch.randint(3, 1000, shape) if len(shape) == 2 else torch.randn(shape)


@dataclasses.dataclass(frozen=True)
class Faulty:
    """A model with a fault that code can mend: what mends it, and the sound model with its input."""

    make: Maker
    tried: str
    mend: Callable[[nn.Module, Tensor], tuple[nn.Module, Tensor]]
    trains: bool = False  # a call is a training step of Adam


def faulty_models() -> dict[str, Faulty]:
    """Return models in fp64, with attention op by op, and with an optimizer that works op by op."""
    small_bert = ("BertModel", "BertConfig", {"num_hidden_layers": 3})
    makers = {
        "mobilenet_v2": functools.partial(_image_model, "torchvision", "mobilenet_v2", 1, 128),
        "resnet18": functools.partial(_image_model, "torchvision", "resnet18", 1, 128),
        "mobilenet_v3_small": functools.partial(_image_model, "torchvision", "mobilenet_v3_small", 8, 64),
        "regnet_y_400mf": functools.partial(_image_model, "torchvision", "regnet_y_400mf", 4, 64),
        "bert": functools.partial(_text_model, *small_bert, (1, 32)),
        "bert of 512 words": functools.partial(_text_model, *small_bert, (1, 512)),
        "gpt2 of 512 words": functools.partial(_text_model, "GPT2Model", "GPT2Config", {"n_layer": 3}, (1, 512)),
        "opt of 512 words": functools.partial(_text_model, "OPTModel", "OPTConfig", {"num_hidden_layers": 2}, (1, 512)),
        "electra": functools.partial(_text_model, "ElectraModel", "ElectraConfig", _SIX, (4, 128)),
    }
    found: dict[str, Faulty] = {}
    for name in ("resnet18", "mobilenet_v2", "bert"):
        make = functools.partial(_changed, makers[name], torch.float64)
        found[f"{name} in fp64"] = Faulty(make, "fp32", functools.partial(_in_type, dtype=torch.float32))
    for name in ("bert of 512 words", "gpt2 of 512 words", "opt of 512 words", "electra"):
        make = functools.partial(_changed, makers[name], "eager")
        found[f"{name}, attention op by op"] = Faulty(
            make, "fused attention", functools.partial(_attention, how="sdpa")
        )
    for name in ("mobilenet_v3_small", "regnet_y_400mf", "resnet18", "bert"):
        found[f"{name}, a step of Adam"] = Faulty(makers[name], "fused=True", copied, trains=True)
    return found


def copied(model: nn.Module, given: Tensor) -> tuple[nn.Module, Tensor]:
    return copy.deepcopy(model), given


def _changed(make: Maker, to: torch.dtype | str) -> tuple[nn.Module, Tensor]:
    model, given = make()
    return _attention(model, given, to) if isinstance(to, str) else _in_type(model, given, to)


def _in_type(model: nn.Module, given: Tensor, dtype: torch.dtype) -> tuple[nn.Module, Tensor]:
    model, given = copied(model, given)
    return model.to(dtype), given.to(dtype) if given.is_floating_point() else given


def _attention(model: Any, given: Tensor, how: str) -> tuple[nn.Module, Tensor]:
    model, given = copied(model, given)
    model.set_attn_implementation(how)
    return model, given
