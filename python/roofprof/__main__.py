"""``python -m roofprof`` is the ``roofprof`` command."""

import sys

from roofprof.cli import main

sys.exit(main())
