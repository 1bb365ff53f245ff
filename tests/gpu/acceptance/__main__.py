"""`python -m acceptance PART FOLDER RECORDED`: runs one part; its results go to FOLDER/PART.json."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from acceptance.checks import Part


def main() -> int:
    name, folder, recorded = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    part = Part(name, folder)
    with part.stage("importing"):
        from acceptance.machine import Machine

        module = importlib.import_module(f"acceptance.{name}")
        machine = Machine.here(recorded)
        if machine is None:
            part.skip(name, "there is no GPU that torch can use")
        else:
            part.fact("simulated", machine.simulated)
            module.run(part, machine)
    part.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main())
