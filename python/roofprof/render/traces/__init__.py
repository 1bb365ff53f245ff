"""Reports as traces and folded stacks: ``timeline`` and ``time_tree`` have the data, and each format has a file."""
