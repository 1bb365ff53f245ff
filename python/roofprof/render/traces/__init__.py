"""Reports as traces and flame graphs: ``timeline`` and ``time_tree`` have the data, and each format has a file."""
