"""The file: a template, styles, scripts and data in one, under a policy that lets nothing else run or load."""

from __future__ import annotations

import base64
import hashlib
import html
import importlib.metadata
import json
import re
from importlib import resources
from pathlib import Path
from typing import Any

_LICENCE = "<details><summary>Licence of the plotting library in this file</summary><pre>{}</pre></details>"
# The page joins these files, in this order, into one script.
_SCRIPTS = ("dom", "data", "summary", "columns", "grid", "tree", "roofline", "main")


def document(data: dict[str, Any], title: str) -> str:
    """Return the whole page. Raises ImportError where plotly is missing and there is something to draw."""
    styles = _part("page.css")
    script = "\n".join(f"// ---- {name}.js\n{_part(f'{name}.js')}" for name in _SCRIPTS)
    library, licence = _plotly() if data["rooflines"] else ("", "")
    # plotly.js adds its rules to a style element of this id through the object model, which the policy permits; one
    # that it made itself would be refused. So would be the styles of its maps, which it leaves out where an element of
    # their id is there.
    of_library = "/* rules of plotly.js */"
    of_maps = sorted(set(re.findall(r'getElementById\("([0-9a-f]{64})"\)', library)))
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src {_hash(library)} {_hash(script)}",
            f"style-src {_hash(styles)} {_hash(of_library)}",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    filled = {
        "title": html.escape(title),
        "policy": html.escape(policy, quote=False),
        "styles": styles,
        "styles_of_library": of_library,
        "left_out": "".join(f'<template id="{name}"></template>' for name in of_maps),
        "data": json_in_html(data),
        "licence": _LICENCE.format(html.escape(licence)) if licence else "",
        "library": library,
        "script": script,
    }
    # All slots are filled in one pass, so that no filled-in text is searched for slots.
    return re.sub(r"\{\{(\w+)\}\}", lambda slot: filled[slot[1]], _part("page.html"))


def json_in_html(data: Any) -> str:
    """Return JSON for a script element, with "<" escaped so that it begins nothing there."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026")


def _part(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """Return the name that a policy gives to a text that may run."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _plotly() -> tuple[str, str]:
    """Return the library's text, and its licence."""
    try:
        import plotly
    except ImportError:
        raise ImportError("Report.to_html needs plotly: run `pip install 'roofprof[html]'`") from None
    folder = Path(plotly.__file__).parent
    text = (folder / "package_data" / "plotly.min.js").read_text(encoding="utf-8")  # any newline as "\n"
    # A string of a script may have \x3C in place of "<": it means the same, and ends no element.
    text = re.sub(r"<(?=/script|script|!--)", r"\\x3C", text, flags=re.IGNORECASE)
    licences = [file for file in importlib.metadata.files("plotly") or () if Path(str(file)).name.startswith("LICENSE")]
    said = re.match(r"\s*/\*\*(.*?)\*/", text, re.DOTALL)
    heading = "\n".join(line.strip(" *") for line in said[1].strip().splitlines()) if said else "plotly.js"
    return text, "\n\n".join([heading, *(file.read_text() for file in licences)])
