"""Drop-in replacements for other tools: their functions and conventions, this observer.

``roofprof.compat.thop`` for thop, ``roofprof.compat.fvcore`` for ``fvcore.nn``: change the import, keep the rest.
Inputs that the originals refuse work (dicts, keyword arguments, any output, TorchScript), ops that they miss are
counted, and nothing is left on the model. Neither original has to be installed.
"""
