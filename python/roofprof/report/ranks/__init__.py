"""Reports of several ranks: brought to rank 0 of a running program, or read from files, and merged into one."""
