"""The part of a report that is about other devices."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from roofprof import _report
from roofprof.predict.options import Device, Options, OptionsOfCalls, compiled_options, roofs_of
from roofprof.predict.ranking import Ranking, ranked
from roofprof.predict.what_if import WhatIf, answers_of

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack


class Predicts:
    """The predictions of a report for other devices (docs/prediction.md)."""

    _compiled: _report.Report

    def predict(self, device: Device, **options: Unpack[Options]) -> Self:
        """Return the report of another device: each time is predicted, with an interval, from the counts here.

        device: a card's name ("RTX 4090"), the path of a file of roofs (its name ends in .json), or Ceilings.
        precision: "fp16", "bf16", "fp32", ...: in place of the one that was counted. batch: samples of a call in place
        of those that were counted. bandwidth, peak: factors, 2 for a device that is twice as fast. autocast: whether
        what was counted in fp16 or bf16 runs under autocast, its parameters in fp32 (the default); False: all of it in
        that type. channels_last: model and images have their channels last in memory (compiled models bring them into
        that order themselves). mode: "eager" (the default): the host launches op by op, and the device waits where the
        host is slower; "graph": a CUDA or HIP graph is replayed; "compiled": elementwise ops, norms and reductions that
        follow each other are one kernel, and nothing waits for the host. host: seconds in which the host launches an op
        in eager mode, or "measured": those of this machine, which takes a second.
        ranks: devices of one machine that share the work, one of which is predicted. parallel: "ddp" and "fsdp" train,
        the count is that of one rank's batch; "tp" splits the products of transformer blocks that were counted whole.

        ``total.time`` is the predicted time of what was counted, ``total.time_low`` to ``total.time_high`` its interval
        of 80%. Raises ValueError, one sentence, for a device that is not known, roofs without a peak for a type of the
        model, and reports without ops or of several ranks.
        """
        roofs = roofs_of(device)
        return type(self)(_report.predict_report(self._compiled, roofs, compiled_options(options)))  # type: ignore[call-arg]

    def predict_all(self, devices: Iterable[Device] = (), **options: Unpack[Options]) -> Ranking:
        """Return the predicted totals for many devices, the shortest time first; without names for all known cards.

        Options and errors are those of :meth:`predict`.
        """
        return ranked(self._compiled, devices, options)

    def what_if(self, device: Device, batch: int | None = None, **options: Unpack[OptionsOfCalls]) -> WhatIf:
        """Return the time that each module saves on a device with twice the bandwidth and so on: what would help most.

        batch: the batch of the last question; twice the one that was counted where it is known. Options and errors are
        those of :meth:`predict`.
        """
        return answers_of(self._compiled, roofs_of(device), batch, {**options})

    @property
    def prediction(self) -> str:
        """The options under which the times were predicted; "" where they were measured."""
        return _report.prediction_of(self._compiled)
