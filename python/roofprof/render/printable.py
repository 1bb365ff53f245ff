"""Text with nothing in it that a terminal would act on or that is hidden: names come from files.

``printable`` gives one line, ``printable_lines`` keeps the lines and tabs of a text that was laid out. Both are those
of csrc/core/utf8.h; what stays is legible in any script.
"""

from __future__ import annotations

from roofprof._report import printable, printable_lines

__all__ = ["printable", "printable_lines"]
