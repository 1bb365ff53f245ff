"""Drop-in replacements for other tools: their functions and conventions, this observer.

``roofprof.compat.thop`` for thop, ``fvcore`` for ``fvcore.nn``, ``flop_counter`` for ``torch.utils.flop_counter``,
``deepspeed``, ``ptflops``, ``calflops``, ``torchinfo``, ``torchstat`` and ``torchsummary``: change the import, keep the
rest. Inputs that the originals refuse work (dicts, keyword arguments, any output, TorchScript), ops that they miss are
counted, and nothing is left on the model. No original has to be installed. Where a word of theirs means something else
here, a :class:`ConventionWarning` says so, once.
"""

from roofprof.compat._call import ConventionWarning

__all__ = ["ConventionWarning"]
