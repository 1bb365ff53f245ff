"""Judge the prediction on whole models that this project timed on an H100.

    python benchmarks/prediction/h100.py [--counts FOLDER]

The times are in tests/data/gpu/h100/models.jsonl, one line for each model, batch, dtype and mode; its README says how
they were taken. Five numbers come from the same recordings, so this is no judgement on a card left out: three shares of
convolutions (channels_first, fp32_convolution, grouped_convolution of compute capability 9.0 in prediction.json),
the host's seconds for an op (HOST), and GPU_OVER_CPU of predict/host.py, which is made of these and is not used here.
Kernels of models without convolutions owe them nothing. What contradicts itself is left out. Models are those of
torchvision and transformers, which it needs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import warnings
from pathlib import Path
from typing import Any

import torch

import roofprof

RECORDED = Path(__file__).resolve().parents[2] / "tests" / "data" / "gpu" / "h100" / "models.jsonl"
LANGUAGE = {"bert", "gpt2", "llama1b"}
HOST = 32e-6  # seconds in which that host launches an op: the median of these recordings at batch 1


def model_of(name: str) -> torch.nn.Module:
    """Return the model as it was timed, with random weights."""
    if name not in LANGUAGE:
        import torchvision

        return getattr(torchvision.models, name)()
    import transformers

    options = {"attn_implementation": "sdpa"}
    if name == "bert":
        return transformers.BertModel(transformers.BertConfig(**options))
    if name == "gpt2":
        return transformers.GPT2LMHeadModel(transformers.GPT2Config(use_cache=False, **options))
    llama = transformers.LlamaConfig(
        vocab_size=128256, hidden_size=2048, intermediate_size=8192, num_hidden_layers=16, num_attention_heads=32,
        num_key_value_heads=8, use_cache=False, tie_word_embeddings=True, **options,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(llama)


def counted(case: dict[str, Any]) -> roofprof.Report:
    """Return the count of one step on the meta device."""
    dtype = torch.bfloat16 if case["dtype"] == "bf16" else torch.float32
    with torch.device("cpu" if case["model"].startswith("regnet") else "meta"):  # regnet computes its widths
        model = model_of(case["model"]).eval().to("meta", dtype)
    with torch.device("meta"):
        if case["model"] in LANGUAGE:
            x = torch.zeros(case["batch"], 512 if case["model"] == "bert" else 1024, dtype=torch.long)
        else:
            x = torch.zeros(case["batch"], 3, 224, 224, dtype=dtype)
    if case["layout"] == "nhwc":
        model, x = model.to(memory_format=torch.channels_last), x.contiguous(memory_format=torch.channels_last)
    with torch.no_grad():
        return roofprof.RooflineProfiler(model, ceilings=roofprof.Ceilings()).run(x)


def kept(case: dict[str, Any], folder: Path | None) -> roofprof.Report:
    """Return the count of a case, from the folder of counts if it is there."""
    if folder is None:
        return counted(case)
    sizes = f"{case['batch']}_{case['dtype']}_{case['layout']}"
    path = folder / f"{case['model']}_{sizes}.json"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        counted(case).to_json(path)
    return roofprof.Report.from_json(path)


def main() -> None:
    """Print each case, * where the interval misses, and the errors of each mode."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--counts", type=Path, help="a folder that keeps the counts")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    errors: dict[str, list[tuple[float, bool]]] = {}
    print(f"{'model':20} batch dtype mode        kernels: measured predicted ratio   step: measured predicted ratio")
    for line in RECORDED.read_text().splitlines():
        case = json.loads(line)
        if "contradiction" in case:
            print(f"{case['model']:20} {case['batch']:5} {case['dtype']:5} {case['mode']:10}  {case['contradiction']}")
            continue
        if case["train"]:  # GPT-2 in training mode asks a tensor for its value, which the meta device does not have
            continue
        report = kept(case, arguments.counts)
        kind = case["mode"]
        shown = f"{case['model']:20} {case['batch']:5} {case['dtype']:5} {kind:10}"
        for what, mode, measured in (
            ("kernels", "graph" if case["mode"] == "eager" else "compiled", case["kernel_seconds"]),
            ("step", case["mode"], case["back_to_back"]),
        ):
            found = report.predict(
                "H100 SXM",
                mode=mode,
                host=HOST,
                channels_last=case["layout"] == "nhwc",
                **({"autocast": False} if case["dtype"] == "bf16" else {}),
            ).total
            inside = found.time_low <= measured <= found.time_high
            errors.setdefault(f"{what}, {kind}", []).append((abs(found.time / measured - 1), inside))
            ratio = f"{found.time / measured:5.2f}{' ' if inside else '*'}"
            shown += f"  {1e3 * measured:8.3f} {1e3 * found.time:8.3f} {ratio}  "
        print(shown)
    for kind, cases in sorted(errors.items()):
        ranked = sorted(error for error, _ in cases)
        print(
            f"{kind}: {len(cases)} cases, median error {statistics.median(ranked):.1%}, 90th percentile "
            f"{ranked[int(0.9 * (len(ranked) - 1))]:.1%}, inside the interval {sum(inside for _, inside in cases)}"
        )


if __name__ == "__main__":
    main()
