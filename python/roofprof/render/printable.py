"""Text with nothing in it that a terminal would act on: names come from files. csrc/core/utf8.h has the same."""

from __future__ import annotations

# Control characters, separators of lines and paragraphs, and those that turn the direction of what follows.
_ACTED_ON = [*range(0x20), *range(0x7F, 0xA0), *range(0x2028, 0x202F), *range(0x2066, 0x206A)]
_SURROGATES = range(0xD800, 0xE000)  # bytes of an argument or a file's name that are no UTF-8
_LINE = dict.fromkeys(_ACTED_ON, " ") | dict.fromkeys(_SURROGATES, "\ufffd")
_LINES = {code: shown for code, shown in _LINE.items() if chr(code) not in "\n\t"}


def printable(text: str) -> str:
    """Return the text as one line; what stays is legible in any script."""
    return text if text.isascii() and text.isprintable() else text.translate(_LINE)


def printable_lines(text: str) -> str:
    """Return the same of a text that was laid out in lines, which it keeps, as its tabs."""
    return text.translate(_LINES)
