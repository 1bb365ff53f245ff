"""Judge the prediction on whole steps of language models in fp32, on five cards.

    python benchmarks/prediction/whole_models.py --tables FOLDER [--counts FOLDER]

The steps are NeuSight's (sitar-lab/NeuSight, MIT), models.csv and configs/: torch 2.1, models of Hugging Face with
eager attention; inference, also with torch.compile ("fusion"), and training: forward and backward without an optimizer.
Nothing is fitted to them; each card is left out of the numbers of products in fp32, as in vector_products.py.
switchxl4 and switch4 have no configuration there, so they are left out. Needs transformers.
"""

from __future__ import annotations

import argparse
import csv
import json
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import vector_products

import roofprof
from roofprof import _C

CARDS = {
    "NVIDIA_A100-PCIE-40GB": "A100 PCIe 40GB",
    "NVIDIA_A100_80GB_PCIe": "A100 PCIe 80GB",
    "Tesla_V100-PCIE-32GB": "V100 PCIe",
    "Tesla_T4": "T4",
    "NVIDIA_L4": "L4",
}
KINDS = ("inference", "compiled", "training")


class Case(NamedTuple):
    """A measured step."""

    model: str
    card: str
    kind: str
    sequence: int
    batch: int
    seconds: float

    @property
    def count(self) -> str:
        """Return the name of the count that it is predicted from."""
        mode = "training" if self.kind == "training" else "inference"
        return f"{self.model}__{mode}__{self.sequence}__{self.batch}"


def cases(folder: Path) -> list[Case]:
    """Return the steps on one GPU of models whose configuration is there."""
    found = []
    with (folder / "models.csv").open(newline="") as lines:
        for row in csv.DictReader(lines):
            if not (folder / "configs" / f"{row['model']}.json").exists() or row["variant"] not in ("", "fusion"):
                continue
            kind = "compiled" if row["variant"] else {"inf": "inference", "train": "training"}[row["mode"]]
            sizes = int(row["sequence"]), int(row["batch"])
            found.append(Case(row["model"], CARDS[row["device"]], kind, *sizes, float(row["e2e_latency"]) * 1e-3))
    return found


def counted(folder: Path, counts: Path, case: Case) -> _C.Report:
    """Return the count of the step, from the folder of counts if it is there."""
    path = counts / f"{case.count}.json"
    if not path.exists():
        counts.mkdir(parents=True, exist_ok=True)
        path.write_text(_count(folder, case).to_json())
    return _C.report_from_json(path.read_bytes())


def _count(folder: Path, case: Case) -> roofprof.Report:
    import transformers

    warnings.filterwarnings("ignore")
    settings = json.loads((folder / "configs" / f"{case.model}.json").read_text())
    config = transformers.AutoConfig.for_model(settings.pop("model_type"), **settings, attn_implementation="eager")
    training = case.kind == "training"
    with torch.device("meta"):
        model = getattr(transformers, settings["architectures"][0])(config).train(training)
        tokens = torch.zeros(case.batch, case.sequence, dtype=torch.long)
        mask = torch.ones(case.batch, case.sequence, dtype=torch.long)
    if not training:
        with torch.no_grad():
            return roofprof.count(model, tokens, attention_mask=mask, use_cache=False)

    def step() -> None:
        model(tokens, attention_mask=mask, labels=tokens, use_cache=False).loss.backward()

    return roofprof.RooflineProfiler(model, warmup=0, repeat=0).run_step(step)


class Predictors:
    """The cases' counts: predictions of each."""

    def __init__(self, folder: Path, counts: Path, of: Sequence[Case]) -> None:
        self.reports = {case.count: counted(folder, counts, case) for case in of}
        self.ops = {name: json.loads(report.to_json())["ops"] for name, report in self.reports.items()}

    def seconds(self, case: Case, parameters: _C.PredictionParameters) -> tuple[float, float, float]:
        """Return the predicted seconds of the step, and their interval."""
        return self._predictor(case).total(_C.published_ceilings(case.card), parameters)[:3]

    def by_op(self, case: Case, parameters: _C.PredictionParameters) -> Counter[str]:
        """Return the seconds of the kernels of each kind of op."""
        seconds = self._predictor(case).op_seconds(_C.published_ceilings(case.card), parameters)
        found: Counter[str] = Counter()
        for op, time in zip(self.ops[case.count], seconds, strict=True):
            found[op["op"].removeprefix("aten::")] += time
        return found

    def _predictor(self, case: Case) -> _C.Predictor:
        mode = "compiled" if case.kind == "compiled" else "eager"
        return _C.Predictor(self.reports[case.count], _C.PredictionOptions(mode=mode))


def left_out(tables: Path) -> dict[str, _C.PredictionParameters]:
    """Return for each card the numbers without its products."""
    rows = vector_products.cases(tables)
    products = vector_products.Counted(rows)
    file = json.loads(vector_products.DATA.read_text())
    found = {}
    for card in CARDS.values():
        content, _ = vector_products.fitted(products, [row for row in rows if row.card != card], file)
        found[card] = _C.PredictionParameters(json.dumps(content))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=Path, required=True)
    parser.add_argument("--counts", type=Path, default=Path("build/model-counts"), help="where counts are kept")
    parser.add_argument("--shipped", action="store_true", help="judge the shipped numbers, no card left out")
    arguments = parser.parse_args()
    rows = cases(arguments.tables)
    predictors = Predictors(arguments.tables, arguments.counts, rows)
    shipped = _C.PredictionParameters.shipped()
    numbers = dict.fromkeys(CARDS.values(), shipped) if arguments.shipped else left_out(arguments.tables)
    predicted = np.array([predictors.seconds(case, numbers[case.card]) for case in rows])
    measured = np.array([case.seconds for case in rows])
    ratio = predicted[:, 0] / measured
    for place in sorted(range(len(rows)), key=lambda place: (rows[place].kind, rows[place].model, rows[place].card)):
        case = rows[place]
        most = predictors.by_op(case, numbers[case.card]).most_common(6)
        shares = ", ".join(f"{op} {time / case.seconds:.0%}" for op, time in most)
        size = f"{case.batch} x {case.sequence}"
        print(f"{case.kind:10} {case.model:10} {case.card:15} {size:8} {ratio[place]:5.2f}  {shares}")
    print(f"\n{'':16} steps  median     p90    bias  inside 80%")
    for name in (*KINDS, *CARDS.values()):
        here = np.array([name in (case.kind, case.card) for case in rows])
        inside = (predicted[here, 1] <= measured[here]) & (measured[here] <= predicted[here, 2])
        figures = vector_products.figures(predicted[here, 0], measured[here])
        print(f"{name:16} {here.sum():5} {figures} {np.mean(inside):8.0%}")
    print(f"{'all':16} {len(rows):5} {vector_products.figures(predicted[:, 0], measured)}")


if __name__ == "__main__":
    main()
