"""Print what bounds a GPT-2 on this machine: prefill and decode, then their arithmetic intensity by batch and context.

Needs transformers; the weights are random, on which neither the work nor its time depends.
"""

from __future__ import annotations

import argparse

import torch
from transformers import DynamicCache, GPT2Config, GPT2LMHeadModel

import roofprof


def generate(model: GPT2LMHeadModel, prompt: int, new: int) -> roofprof.Report:
    """Return the report of one `generate`."""
    ids = torch.randint(0, model.config.vocab_size, (1, prompt))
    profiler = roofprof.RooflineProfiler(model)
    with profiler, torch.no_grad():
        model.generate(ids, max_new_tokens=new, do_sample=False, pad_token_id=0)
    return profiler.report()


def intensities(config: GPT2Config, batch: int, context: int) -> tuple[float, float]:
    """Return FLOPs per byte of a prefill of `context` tokens, and of a decode that then attends to one more, in fp16.

    Both are counted on the meta device, where nothing is allocated or computed.
    """
    with torch.device("meta"), torch.no_grad():
        model = GPT2LMHeadModel(config).half().eval()
        cache = DynamicCache()
        ids = torch.zeros(batch, context, dtype=torch.long)
        prefill = roofprof.count(model, ids, past_key_values=cache, logits_to_keep=1)
        decode = roofprof.count(model, ids[:, :1], past_key_values=cache)
    return prefill.total.intensity or 0, decode.total.intensity or 0


def main() -> None:
    """Print the bounds of prefill and decode, and the intensities."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--new", type=int, default=32)
    options = parser.parse_args()
    torch.manual_seed(0)
    config = GPT2Config(n_layer=options.layers, n_positions=4096)
    report = generate(GPT2LMHeadModel(config).eval(), options.prompt, options.new)
    print(report.table(by="scope", legend=False))
    for phase in report.language_model:
        print(f"\n{phase.name}: what its time goes to\n")
        print(report.within(phase.name).table(by="op", limit=5, legend=False))
    print("\nFLOPs per byte in fp16, prefill / decode\n")
    contexts = (128, 1024, 4096)
    print("batch".rjust(8), *(f"context {context}".rjust(16) for context in contexts))
    for batch in (1, 8, 64):
        found = [intensities(config, batch, context - 1) for context in contexts]
        print(str(batch).rjust(8), *(f"{prefill:.0f} / {decode:.2f}".rjust(16) for prefill, decode in found))


if __name__ == "__main__":
    main()
