"""Programs of several real ranks on this machine."""

import os
import subprocess
import sys


def torchrun(*arguments, ranks=2, cwd=None, expected=0, timeout=1200, **environment):
    """Runs ``torchrun`` with these arguments, a thread a rank, and asserts its exit status."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    done = subprocess.run(
        [*command, *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
    )
    assert done.returncode == expected, done.stderr
    return done
