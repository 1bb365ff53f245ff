"""Drop-in replacements for other tools: their functions and conventions, this observer. docs/compat.md has them."""

from roofprof.compat._call import ConventionWarning

__all__ = ["ConventionWarning"]
