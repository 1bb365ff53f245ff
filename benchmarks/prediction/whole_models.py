"""Judge the prediction on whole steps of language models in fp32, on five cards.

    python benchmarks/prediction/whole_models.py --measured FOLDER [--counts FOLDER]

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
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import judgement
import numpy as np
import torch
import vector_products
from judgement import DATA, Line, op_rooflines, parameters_of

import roofprof
from roofprof import _C

CARDS = {device.replace(" ", "_"): card for card, device in judgement.NEUSIGHT.items()}


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

    def roofline(self, case: Case) -> float:
        """Return the sum over all ops of max(operations / peak, bytes / bandwidth)."""
        roofs = _C.published_ceilings(case.card)
        return float(op_rooflines(roofs, self.ops[case.count]).sum())

    def _predictor(self, case: Case) -> _C.Predictor:
        mode = "compiled" if case.kind == "compiled" else "eager"
        return _C.Predictor(self.reports[case.count], _C.PredictionOptions(mode=mode))


def judged(measured: Path, file: dict[str, Any], counts: Path) -> Iterator[Line]:
    """Yield the errors on each card."""
    tables = measured / "neusight"
    rows = cases(tables)
    predictors = Predictors(tables, counts, rows)
    for card in CARDS.values():
        here = sorted(case for case in rows if case.card == card)
        shipped, without = (
            np.array([predictors.seconds(case, parameters_of(numbers)) for case in here])
            for numbers in (file, vector_products.left_out(tables, card)[0])
        )
        yield Line(
            "whole steps in fp32",
            card,
            [case.kind for case in here],
            np.array([case.seconds for case in here]),
            np.array([predictors.roofline(case) for case in here]),
            shipped[:, 0],
            shipped[:, 1:] / shipped[:, :1],
            without[:, 0],
            without[:, 1:] / without[:, :1],
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measured", type=Path, required=True, help="the folder that holds neusight/")
    parser.add_argument("--counts", type=Path, default=Path("build/model-counts"), help="where counts are kept")
    arguments = parser.parse_args()
    lines = [*judged(arguments.measured, json.loads(DATA.read_text()), arguments.counts)]
    rows = cases(arguments.measured / "neusight")
    for line in lines:
        for case, ratio in zip(
            sorted(row for row in rows if row.card == line.card), line.unseen / line.measured, strict=True
        ):
            print(f"{case.kind:10} {case.model:10} {case.card:15} {case.batch} x {case.sequence:<6} {ratio:5.2f}")
    judgement.say(lines)


if __name__ == "__main__":
    main()
