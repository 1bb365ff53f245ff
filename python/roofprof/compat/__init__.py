"""Drop-in replacements for other tools: their functions and conventions, this observer.

``roofprof.compat.thop`` for thop, ``roofprof.compat.fvcore`` for ``fvcore.nn``: change the import, keep the rest. What
the originals refuse works (dicts, keyword arguments, any output, TorchScript), what they miss is counted, and nothing
is left on the model. Neither original has to be installed.
"""
