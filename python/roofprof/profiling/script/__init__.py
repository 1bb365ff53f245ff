"""A program run as it is, as ``__main__``, while the calls of one of its modules are profiled."""
