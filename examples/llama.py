"""Count a 7B language model that this machine need not hold: Llama on meta, against a card's published roofs.

    python examples/llama.py
    roofprof profile examples/llama.py:build --inputs examples/llama.py:batch --device meta --depth 3

examples/language_model.py times a smaller one that is really there.
"""

from __future__ import annotations

import torch
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

import roofprof

PROMPT = 512
CARD = "H100 SXM"


def build() -> LlamaForCausalLM:
    """Return Llama 7B, whose sizes are the defaults of the configuration."""
    with torch.device("meta"):
        return LlamaForCausalLM(LlamaConfig()).half().eval()


def batch() -> tuple[tuple[()], dict[str, torch.Tensor]]:
    return (), {"input_ids": torch.zeros(1, PROMPT, dtype=torch.long, device="meta")}


def formula(model: LlamaForCausalLM, new: int, context: int) -> int:
    """Return MACs of `new` tokens that attend to `context`: a weight once a token, except the table's and norms'."""
    weights = sum(parameter.numel() for parameter in model.parameters() if parameter.dim() == 2)
    weights -= model.get_input_embeddings().weight.numel()
    config = model.config
    return new * weights + 2 * config.num_hidden_layers * new * context * config.hidden_size


def main() -> None:
    model, cache = build(), DynamicCache()
    ids = batch()[1]["input_ids"]
    card = roofprof.Ceilings.published(CARD)
    peak = next(roof.operations_per_second for roof in card.compute if roof.dtype == "fp16")
    bandwidth = next(level.bytes_per_second for level in card.memory if level.level == "DRAM")
    for name, tokens, context in (("prefill", ids, PROMPT), ("decode", ids[:, :1], PROMPT + 1)):
        with torch.no_grad():
            report = roofprof.count(model, tokens, past_key_values=cache)
        total, expected = report.total, formula(model, tokens.shape[1], context)
        print(f"{name}: {total.macs:,} MACs, by the formula {expected:,}; AI {total.intensity:.2f} FLOPs/B")
        compute, memory = 1e3 * total.flops / peak, 1e3 * total.bytes / bandwidth
        print(f"  on {CARD} at least {compute:.2f} ms to compute, {memory:.2f} ms to move\n")
    print(report.table(depth=3, legend=False))


if __name__ == "__main__":
    main()
