"""`python -m acceptance PART FOLDER RECORDED` runs one part, whose results go to FOLDER/PART.json.

`... here` exits with 3 where there is no GPU; `... summary FOLDER RESULTS` puts the parts' results together, and exits
with 1 where something failed.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from acceptance import checks


def main(name: str, *folders: str) -> int:
    if name == "summary":
        return checks.put_together(*map(Path, folders))
    from acceptance.machine import Machine

    machine = Machine.here(Path(folders[1]) if folders else Path())
    if machine is None:
        print("tests/gpu: there is no GPU here that torch can use, so nothing was run")
        return 3
    if name != "here":
        part = checks.Part(name, Path(folders[0]))
        with part.stage("importing"):
            part.fact("simulated", machine.simulated)
            importlib.import_module(f"acceptance.{name}").run(part, machine)
        part.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
