"""Programs of several ranks."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


@pytest.fixture
def torchrun(tmp_path):
    """Runs ``torchrun`` with these arguments, its roofs in a cache of its own."""

    def run(*arguments, ranks=2):
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
        done = subprocess.run(
            [*command, *map(str, arguments)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
            env={**os.environ, "OMP_NUM_THREADS": "1", "ROOFPROF_CACHE_DIR": str(tmp_path / "cache")},
        )
        assert done.returncode == 0, done.stderr
        return done

    return run
