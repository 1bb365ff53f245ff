"""Programs of several ranks."""

from functools import partial

import pytest
import real_ranks


@pytest.fixture
def torchrun(tmp_path):
    """Runs ``torchrun`` with these arguments, its roofs in a cache of its own."""
    return partial(real_ranks.torchrun, cwd=tmp_path, ROOFPROF_CACHE_DIR=str(tmp_path / "cache"))
