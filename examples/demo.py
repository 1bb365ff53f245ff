"""Profile two models on this machine's CPU and print where their time goes: `make demo`.

The first takes an image. The second takes one nested dict, as models of real systems do; roofprof needs no description
of it.
"""

from __future__ import annotations

from pathlib import Path

import torch
import torchvision
from cooperative_perception import CooperativePerception, example_batch

import roofprof

OUT = Path("out")


def show(name: str, model: torch.nn.Module, *args: object) -> None:
    """Profile one call, print its table and keep its JSON, CSV, picture and page."""
    print(f"\n=== {name} ===\n", flush=True)
    report = roofprof.profile(model, *args)
    print(report)
    OUT.mkdir(exist_ok=True)
    report.to_json(OUT / f"{name}.json")
    report.to_csv(OUT / f"{name}.csv")
    report.plot(OUT / f"{name}.svg")
    report.to_html(OUT / f"{name}.html")


def main() -> None:
    """Profile both models with random weights, on which neither the work nor its time depends."""
    torch.manual_seed(0)
    with torch.no_grad():
        show("resnet50", torchvision.models.resnet50(weights=None).eval(), torch.randn(1, 3, 224, 224))
        show("cooperative_perception", CooperativePerception().eval(), example_batch())
    print("\nThe same figures, as JSON, CSV, a roofline (.svg) and a page (.html):")
    print(*(f"  {path}" for path in sorted(OUT.iterdir())), sep="\n")
    print("Read a report again with `.venv/bin/roofprof show out/resnet50.json --by op`.")


if __name__ == "__main__":
    main()
