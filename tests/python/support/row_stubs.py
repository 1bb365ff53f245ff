"""The part of _report.pyi that follows from the table of figures; run as a program, this writes it."""

from __future__ import annotations

from pathlib import Path

import roofprof

STUBS = Path(__file__).resolve().parents[3] / "python" / "roofprof" / "_report.pyi"
BEGIN = "# Rows: what follows is written by tests/python/support/row_stubs.py.\n"
END = "# Rows end here.\n"
CLASSES = {
    "row": "Row",
    "group": "GroupRow",
    "kernel": "KernelRow",
    "rank": "Rank",
    "collective": "Collective",
    "memory": "MemoryRow",
}
# What ops are grouped by.
KEYS = ("phase", "op", "module", "scope", "dtype", "shapes")
# What a list of operations by dtype is shown as, too.
VIEWS = ("flops_by_dtype", "int_ops_by_dtype")


def attributes(kind: str) -> dict[str, str]:
    """The type of each attribute."""
    found = {"keys": "list[str]"} | dict.fromkeys(KEYS, "str | None") if kind == "group" else {}
    for name, field in roofprof.fields.of(kind).items():
        found[name] = field.type
        stem = name.removesuffix("operations_by_dtype")
        if stem != name:
            found |= {stem + view: field.type for view in VIEWS}
    return found


def section() -> str:
    classes = [
        f"class {CLASSES[kind]}:\n" + "".join(f"    {name}: Final[{of}]\n" for name, of in attributes(kind).items())
        for kind in CLASSES
    ]
    return "\n".join(classes)


def split(stubs: str) -> tuple[str, str, str]:
    """What stands before, in and behind the section."""
    before, rest = stubs.split(BEGIN)
    between, after = rest.split(END)
    return before, between.strip("\n") + "\n", after


def main() -> None:
    before, _, after = split(STUBS.read_text())
    STUBS.write_text(f"{before}{BEGIN}\n{section()}\n{END}{after}")


if __name__ == "__main__":
    main()
