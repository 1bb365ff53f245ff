"""The parts of the loss: they add up, and a program whose times are known by construction gives them back."""

import dataclasses
import itertools
import random
from types import SimpleNamespace

import pytest
from scaled_reports import scaled_report

from roofprof.report.scaling.loss import MEANINGS, parts_of_loss
from roofprof.report.scaling.measured import Measured, Read, measured


def program(ranks, compute, transfer, overhead, *, late=0.0, lower_bound=1.0, known=("exposed", "waiting")):
    """A step: overhead, compute of each rank, a collective that begins when all are there, and some ranks late."""
    time = overhead + max(compute) + late + transfer
    waiting = tuple(time - overhead - transfer - own for own in compute)
    given = {"exposed": tuple(transfer + wait for wait in waiting), "waiting": waiting, "compute": tuple(compute)}
    return Measured(
        name=f"{ranks} ranks",
        ranks=ranks,
        hosts=1,
        time=time,
        spread=None,
        macs=1,
        flops=1,
        lower_bound=lower_bound,
        intensity=1.0,
        **{name: value if name in {*known, "compute"} else None for name, value in given.items()},
    )


def test_each_part_is_what_the_program_lost():
    one = program(1, [8.0], transfer=0.0, overhead=0.5, lower_bound=6.0)
    four = program(4, [2.0, 2.5, 2.0, 3.0], transfer=0.7, overhead=0.4, late=0.1, lower_bound=7.0)
    first, parts = parts_of_loss([one, four], [1.0, 1.0], same_roofs=True)
    assert set(first.values()) == {0.0}
    assert parts == pytest.approx(
        {
            "communication": 4 * 0.7,
            "waiting": 4 * 0.1,  # on the late one
            "imbalance": 1.0 + 0.5 + 1.0 + 0.0,
            "overhead": 4 * 0.4 - 0.5,
            "lower intensity": 7.0 - 6.0,
            "slower ops": (2.0 + 2.5 + 2.0 + 3.0 - 7.0) - (8.0 - 6.0),
        }
    )


def test_without_times_of_ops_nothing_is_distinguished():
    points = [program(ranks, [1.0] * ranks, transfer=0.1 * (ranks - 1), overhead=0.0) for ranks in (1, 2)]
    points = [dataclasses.replace(point, compute=None) for point in points]
    assert parts_of_loss(points, [1.0, 1.0], same_roofs=True)[1] == pytest.approx({"all": 2 * 1.1 - 1.0})


@pytest.mark.parametrize("known", [(), ("exposed",), ("exposed", "waiting")])
@pytest.mark.parametrize("same_roofs", [False, True])
def test_parts_add_up_to_the_loss(known, same_roofs):
    chance = random.Random(5)
    for first, last in itertools.product((1, 2), (4, 8)):
        points = [
            program(
                ranks,
                [chance.uniform(1, 3) for _ in range(ranks)],
                chance.random(),
                chance.random(),
                lower_bound=chance.random(),
                known=known,
            )
            for ranks in (first, last)
        ]
        work = [chance.uniform(1, 2) for _ in points]
        for at, parts in zip(points, parts_of_loss(points, work, same_roofs=same_roofs), strict=True):
            ideal = work[points.index(at)] / work[0] * first * points[0].time
            assert sum(parts.values()) == pytest.approx(at.ranks * at.time - ideal, abs=1e-12)
            assert set(parts) <= set(MEANINGS)
            assert ("communication and overhead" in parts) == (not known)
            assert ("waiting" in parts) == ("waiting" in known)
            assert ("slower compute" in parts) == (not same_roofs)


def test_times_of_a_rank_are_those_of_its_median_step():
    """Sums over the block come by their share of its wall time: here a step that took as long as all others."""
    report = scaled_report(2, 0.1)
    line = {name: getattr(report.ranks[0], name) for name in dir(report.ranks[0]) if name[0] != "_"}
    line |= {"wall": 2.0, "steps": 10, "step": 0.1, "compute": 1.2, "exposed": 0.5, "waiting": 0.3}
    of = measured(Read("r", report, [SimpleNamespace(**line)] * 2, 2), per_step=True)
    assert of.compute == pytest.approx((0.06, 0.06))
    assert of.exposed == pytest.approx((0.025, 0.025))
    assert of.waiting == pytest.approx((0.015, 0.015))
