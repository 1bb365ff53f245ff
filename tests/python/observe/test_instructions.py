"""What observing costs, in instructions of roofprof's own: never more than a tenth above what was recorded.

Instructions hardly vary, unlike times. After a change that is worth its cost, or that saves some,
`benchmarks/instructions/count.py --record` writes them anew.
"""

import json
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration  # with valgrind

INSTRUCTIONS = Path(__file__).parents[3] / "benchmarks" / "instructions"


def test_instructions_are_at_most_a_tenth_above_the_recorded_ones(monkeypatch):
    monkeypatch.syspath_prepend(str(INSTRUCTIONS))
    import count

    recorded = json.loads((INSTRUCTIONS / "recorded.json").read_text())
    if reason := count.why_not():
        pytest.skip(reason)
    ours = recorded.pop("roofprof")
    if (here := count.circumstances()) != recorded:
        pytest.skip(f"the recorded counts are of {recorded}, and here is {here}")
    counts = count.counted()
    sys.modules.pop("count")
    assert set(ours) == {name for name in counts if not name.endswith("plain")}
    more = {name: (counts[name]["roofprof"], most) for name, most in ours.items()}
    assert {name: pair for name, pair in more.items() if pair[0] > 1.1 * pair[1]} == {}
    # torch's and Python's too: a call that goes around torch's code takes fewer than one by that code.
    call = "Python: call of an empty module, "
    assert sum(counts[call + "in a block"].values()) < sum(counts[call + "plain"].values())
