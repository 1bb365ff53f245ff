"""Robust least squares on logarithms: how the numbers of the prediction are fitted to measured times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

ROBUST = 0.1  # of log(predicted / measured): beyond it an error counts linearly
PRIOR = 2e-3  # weight of a prior's squared deviation, in spreads, relative to the mean of all errors
STEP = 0.02  # of the finite differences, in logarithms


def fitted(
    predicted: Callable[[list[float]], np.ndarray],
    measured: np.ndarray,
    priors: Sequence[tuple[float, float]],
    weights: np.ndarray | None = None,
    steps: int = 12,
    robust: float = ROBUST,
    prior: float = PRIOR,
    difference: float = STEP,
) -> list[float]:
    """Return the numbers that suit measured times best.

    predicted: the times by given numbers, in the order of ``measured``. priors: each number as it is expected, above 0,
    and the spread of its logarithm. weights: of each time; their sum is 1 (default: all weigh the same). The method is
    that of Levenberg and Marquardt on log(predicted / measured), with errors beyond ``robust`` counted linearly.
    """
    import numpy as np

    expected = np.log([prior[0] for prior in priors])
    spread = np.array([prior[1] for prior in priors])
    share = np.full(len(measured), 1 / len(measured)) if weights is None else weights
    target = np.log(measured)

    def errors(logs: np.ndarray) -> np.ndarray:
        found: np.ndarray = np.log(predicted([float(number) for number in np.exp(logs)])) - target
        return found

    def cost(error: np.ndarray, logs: np.ndarray) -> float:
        deviation = ((logs - expected) / spread) ** 2
        return float(share @ (np.sqrt(1 + (error / robust) ** 2) - 1) + prior / 2 * deviation.sum())

    logs, damping = expected.copy(), 1e-3
    error = errors(logs)
    for _ in range(steps):
        slopes = np.stack(
            [(errors(logs + difference * unit) - error) / difference for unit in np.eye(len(logs))], axis=1
        )
        weight = share / np.sqrt(1 + (error / robust) ** 2) / robust**2
        curvature = (slopes * weight[:, None]).T @ slopes + np.diag(prior / spread**2)
        gradient = slopes.T @ (weight * error) + prior * (logs - expected) / spread**2
        before = cost(error, logs)
        for _ in range(6):
            trial = logs - np.linalg.solve(curvature + damping * np.diag(np.diag(curvature)), gradient)
            trial_error = errors(trial)
            if cost(trial_error, trial) < before:
                break
            damping *= 8
        else:
            break
        logs, error, damping = trial, trial_error, damping / 4
        if before - cost(error, logs) < 1e-4 * before:
            break
    return [float(f"{number:.4g}") for number in np.exp(logs)]
