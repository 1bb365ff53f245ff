"""Whole steps of language models in fp32, as they were measured on five cards."""

import importlib
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from roofprof import _C

BENCHMARKS = Path(__file__).parents[3] / "benchmarks" / "prediction"
MEASURED = os.environ.get("ROOFPROF_MEASURED")


@pytest.mark.slow
@pytest.mark.skipif(MEASURED is None, reason="ROOFPROF_MEASURED does not name the folder of measured times")
def test_errors_on_measured_steps(monkeypatch, tmp_path):
    pytest.importorskip("transformers")
    monkeypatch.setattr(sys, "path", [*sys.path, str(BENCHMARKS)])
    models = importlib.import_module("whole_models")
    folder = Path(MEASURED) / "neusight"
    rows = models.cases(folder)
    predictors = models.Predictors(folder, tmp_path, rows)
    shipped = _C.PredictionParameters.shipped()
    predicted = np.array([predictors.seconds(case, shipped) for case in rows])
    measured = np.array([case.seconds for case in rows])
    error = np.abs(predicted[:, 0] / measured - 1)
    assert np.median(error) < 0.08
    assert np.quantile(error, 0.9) < 0.2
    assert np.mean((predicted[:, 1] <= measured) & (measured <= predicted[:, 2])) > 0.7
