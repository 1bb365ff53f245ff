"""Other tools beside what roofprof has in their place: what `benchmarks/peers.py` runs, and how it judges.

`tools.py` calls a tool or its replacement, `subjects.py` has the models, `recorded.py` the truth of them from a plain
dispatch mode. `isolated.py` runs a task in a process of its own. `accuracy.py` with `reasons.py`, `inputs.py`,
`side_effects.py` and `overhead.py` are one table each, and `markdown.py` writes them.
"""
