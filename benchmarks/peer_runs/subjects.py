"""The models that tools are asked about, with random weights, and what is known of their work beforehand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

IMAGES = ("resnet18", "resnet50", "vgg16", "mobilenet_v2", "efficientnet_b0", "densenet121", "vit_b_16")
TEXTS = ("BERT", "GPT-2")
NAMES = (*IMAGES, *TEXTS)
WORDS = 128


@dataclass(frozen=True)
class Truth:
    """Published figures of a model: its GMACs to three decimals or its MACs exactly, and its parameters."""

    source: str
    macs: int = 0
    gmacs: float = 0.0
    params: int = 0

    def agrees(self, macs: int, params: int) -> bool:
        """Return whether these are the published figures."""
        close = abs(macs / 1e9 - self.gmacs) < 0.000501 if self.gmacs else macs == self.macs
        return close and (not self.params or params == self.params)


def build(name: str) -> tuple[nn.Module, tuple[Any, ...], dict[str, Any]]:
    """The model in eval mode, and the arguments of a call: an image, or token ids.

    Transformers return tuples and no cache, which all tools can take; the table of inputs has the rest.
    """
    torch.manual_seed(0)
    if name in IMAGES:
        import torchvision

        model = torchvision.models.get_model(name, weights=None)
        return model.eval(), (torch.randn(1, 3, 224, 224),), {}
    import transformers

    if name == "BERT":
        model = transformers.BertModel(transformers.BertConfig(return_dict=False, use_cache=False))
    else:
        model = transformers.GPT2Model(transformers.GPT2Config(return_dict=False, use_cache=False))
    return model.eval(), (torch.randint(0, 30_000, (1, WORDS)),), {}


def truth(name: str) -> Truth:
    """The published figures of torchvision, or the closed form of a transformer's dimensions."""
    if name in IMAGES:
        import torchvision

        meta = torchvision.models.get_model_weights(name)["IMAGENET1K_V1"].meta
        return Truth("torchvision's weights", gmacs=meta["_ops"], params=meta["num_params"])
    width, layers = 768, 12
    projections = WORDS * 12 * width**2  # query, key, value, output; and two of four times the width
    attention = 2 * WORDS**2 * width
    macs = layers * (projections + attention)
    if name == "BERT":
        macs += width**2  # the pooler, of the first word
    return Truth("closed form of its dimensions", macs=macs)
