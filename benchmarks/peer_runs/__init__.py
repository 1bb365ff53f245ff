"""Compares other tools with their replacements in roofprof: the runs of `benchmarks/peers.py`, and how it judges them.

`tools.py` calls a tool or its replacement, `subjects.py` has the models, `recorded.py` the truth of them from a plain
dispatch mode. `isolated.py` runs a task in a new process. `accuracy.py` with `reasons.py`, `inputs.py`,
`side_effects.py` and `overhead.py` are one table each, and `markdown.py` writes them.
"""
