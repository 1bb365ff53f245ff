"""Reports as traces and flame graphs: ``timeline`` and ``time_tree`` have what they show, one file each a format."""
