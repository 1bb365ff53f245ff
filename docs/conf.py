"""The documentation site: `make docs` makes it of the pages that stand here."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import roofprof

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "roofprof"
author = "The roofprof authors"
version = release = roofprof.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
# The packages that callbacks are for: their own pages describe them.
autodoc_mock_imports = ["IPython", "accelerate", "lightning", "transformers"]
html_theme = "furo"
html_title = f"roofprof {release}"
html_copy_source = False
html_show_copyright = False
highlight_language = "none"  # blocks without a language are shells and tables

myst_heading_anchors = 4  # [text](page.md#heading), as README's readers follow it
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "undoc-members": True}
nitpick_ignore_regex = [
    ("py:class", ".*"),  # types in signatures: torch's, and those that have no page
    ("py:mod", r".*\._\w+"),  # modules that are not public
]

# Pages outside docs/ that have another name in the site.
ELSEWHERE = {"../README.md": "index.md"}


def _target(path: str) -> str:
    """Return the target of a link in the site: a page, or a copy of the file that lies next to the site."""
    page = ELSEWHERE.get(path, path)
    return f"path:{page}" if page.startswith("../") else page


def links_within_the_site(_app: Sphinx, _page: str, source: list[str]) -> None:
    """Turn the links of a page that leave docs/."""
    source[0] = re.sub(r"\]\((\.\./[\w/.-]+)", lambda link: f"]({_target(link[1])}", source[0])


def arguments_as_list(_app: Sphinx, _what: str, _name: str, _thing: object, _options: object, lines: list[str]) -> None:
    """Turn lines `name: meaning`, continued by an indent, into a list of arguments, as docstrings have them."""
    made: list[str] = []
    in_list = False
    for text in lines:
        # A figure's docstring is the text of the tables' legend, which has no markup.
        line = text.replace("*", r"\*") if text.startswith('Column "') else text
        argument = re.match(r"([\w*]+(?:, [\w*]+)*): +(.*)", line)
        if argument and (in_list or not made or not made[-1]):
            in_list = True
            made.append(f"- **{argument[1].replace('*', '')}**: {argument[2]}")
        elif in_list and line.strip():
            made.append("  " + line.strip())
        else:
            in_list = False
            made.append(line)
    lines[:] = [*made, ""]


def setup(app: Sphinx) -> None:
    """Connect the above; Sphinx calls this."""
    app.connect("source-read", links_within_the_site)
    app.connect("autodoc-process-docstring", arguments_as_list)
