"""Reads the installed pages of docs, and explains a figure, note, operator, rule, key, option or word.

Every text comes from the table of figures, the codes of notes, the tables of operators or a page.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

from roofprof import _report
from roofprof.errors import Error

_PACKAGE = Path(__file__).parent
_CHECKOUT = _PACKAGE.parents[1] / "docs"
# An editable install reads the pages where they are written.
_FOLDER = _CHECKOUT if (_CHECKOUT / "definitions.md").exists() else _PACKAGE / "share" / "doc" / "roofprof"

# Words for the facts that a figure needs in a report; csrc/core/fields.h names the facts.
_OF_REPORTS = {
    "integers": "with integer operations",
    "time": "with times",
    "device": "with a device's kernels",
    "intervals": "with the intervals in which the device worked",
    "counters": "with hardware counters (--counters)",
    "roofs": "with roofs",
    "regions": "with compiled regions",
    "incomplete": "with ops that could not be counted",
    "inferred": "with modules that were inferred",
    "ranks": "merged of several ranks' reports",
    "collectives": "with collectives",
    "predicted": "that is a prediction",
    "latency": "with rows that latency bounds",
    "compiled": "with kernels of compiled code (--compiled-kernels)",
    "generated": "of a trace with kernels that torch.compile generated",
}

_WIDTH = 100
_LABELS = 9  # width of their column


# ---- pages


def pages() -> list[str]:
    """Return the names of all pages."""
    return sorted(path.stem for path in _FOLDER.glob("*.md"))


def page(name: str) -> str:
    """Return the text of a page, or of one of its sections: "budgets", "definitions#roofline".

    Raises ValueError, naming the nearest, where there is none.
    """
    stem, _, anchor = name.removeprefix("docs/").partition("#")
    stem = stem.removesuffix(".md")
    if stem not in pages():
        raise Error(f"there is no page '{stem}'{nearest(stem, pages())}")
    text = (_FOLDER / f"{stem}.md").read_text(encoding="utf-8").strip()
    if not anchor:
        return text
    sections = _sections(text)
    if anchor not in sections:
        raise Error(f"the page '{stem}' has no section '{anchor}'{nearest(anchor, sections)}")
    return sections[anchor]


def title(name: str) -> str:
    """Return the heading of a page."""
    return page(name).partition("\n")[0].removeprefix("# ").replace("`", "")


def sections(name: str) -> list[str]:
    """Return the anchors of a page's or section's headings."""
    return list(_sections(page(name)))


def _sections(text: str) -> dict[str, str]:
    """Return the sections by anchor, each with those below it."""
    fence = False
    lines = text.split("\n")
    found: list[tuple[int, int, str]] = []  # line, level, anchor
    for i, line in enumerate(lines):
        fence ^= line.startswith("```")
        heading = None if fence else re.match(r"(#+) (.*)", line)
        if heading:
            found.append((i, len(heading[1]), re.sub(r"[^\w\- ]", "", heading[2].lower()).replace(" ", "-")))
    sections: dict[str, str] = {}
    for n, (begin, level, anchor) in enumerate(found):
        end = next((line for line, other, _ in found[n + 1 :] if other <= level), len(lines))
        sections.setdefault(anchor, "\n".join(lines[begin:end]).strip())
    return sections


# ---- what the pages define


@dataclasses.dataclass(frozen=True)
class _Entry:
    """A paragraph, a point of a list or a row of a table, and the names that it defines: those in bold type."""

    page: str  # with its section: "definitions#roofline"
    text: str
    names: tuple[str, ...]
    called: tuple[str, ...] = ()  # of a row: the names as they are written
    cells: dict[str, str] = dataclasses.field(default_factory=dict, hash=False)  # of a row, by its table's heads


@functools.cache
def _entries(stem: str) -> tuple[_Entry, ...]:
    """Return what a page defines, in its order."""
    text = page(stem)
    found = []
    for anchor, section in _sections(text).items():
        where = stem if section == text else f"{stem}#{anchor}"
        own = re.split(r"^#+ .*$", section, flags=re.MULTILINE)[1]  # without the sections below it
        for block in re.split(r"\n(?=- )|\n\n", own):
            rows = [
                [cell.strip() for cell in row.strip("|").split(" | ")] for row in block.split("\n") if row[:1] == "|"
            ]
            if rows:
                heads, _, *cells = rows
                found += [_of_row(where, heads, row) for row in cells]
            else:  # each part that begins with a name
                parts = re.split(r"(?<=[.;])\s+(?=(?:\w+\s)?\*\*)", block)
                found += [_Entry(where, _readable(part, stem), _bold(part)) for part in parts]
    return tuple(found)


def _bold(text: str) -> tuple[str, ...]:
    return tuple(
        _plain(part) for name in re.findall(r"\*\*(.+?)\*\*", text, re.DOTALL) for part in re.split(r", | and ", name)
    )


def _of_row(where: str, heads: list[str], cells: list[str]) -> _Entry:
    """Return the entry of a table's row, which defines what its first cell names."""
    names = re.findall(r"`(.+?)`", cells[0]) or cells[0].split(", ")
    readable = [_readable(cell, where.partition("#")[0]) for cell in cells[1:]]
    labelled = dict(zip(heads[1:], readable, strict=False))
    text = "; ".join(f"{head}: {cell}" if len(labelled) > 1 and head else cell for head, cell in labelled.items())
    return _Entry(where, text, tuple(map(_plain, names)), tuple(names), labelled)


def _readable(text: str, stem: str) -> str:
    """Return a paragraph of a page without the marks of Markdown; links are what `roofprof docs` prints."""
    text = re.sub(r"\*\*`?(.+?)`?\*\*", r"\1", " ".join(text.removeprefix("- ").split()))
    text = re.sub(r"\[([^]]+)\]\((https?://[^)]+)\)", r"\1 (\2)", text)

    def without_link(link: re.Match[str]) -> str:
        where = f"{link[2] or stem}{link[3] or ''}"
        return where if link[1].removesuffix(".md") == link[2] else f"{link[1]} ({where})"

    return re.sub(r"\[([^]]+)\]\(([\w-]*)(?:\.md)?(#[\w-]+)?\)", without_link, text)


def _plain(name: str) -> str:
    """Return a name in the form in which names are compared."""
    in_brackets = re.fullmatch(r"\(.*\)", name.strip("`* "))  # "(outside ops)"; else what stands in brackets says more
    plain = re.sub(r"[`*:]" if in_brackets else r"[`*:]|\(.*?\)", "", name)
    return re.sub(r"[\s_-]+", " ", plain).strip().lower().removeprefix("the ") or name.strip("` ")  # of a sign: itself


_GENERAL = tuple(f"definitions#{section}" for section in ("rows", "counts", "time", "on-a-device", "roofline"))
# The sections and pages that define the figures of each kind of row. The first group with an entry is quoted.
_PLACES = {
    "row": (_GENERAL, ("memory",), ("definitions",)),
    "group": (_GENERAL, ("definitions",)),
    "kernel": (("definitions#kernels",), _GENERAL, ("definitions",)),
    "rank": (("definitions#ranks",), _GENERAL, ("definitions",)),
    "collective": (("definitions#collectives",), ("definitions",)),
    "memory": (("memory#what-is-alive-at-the-peak",), ("definitions",)),
}


def _definitions(name: str, kind: str) -> list[_Entry]:
    """Return the entries that define a figure of a kind of row."""
    for places in _PLACES[kind]:
        stems = dict.fromkeys(place.partition("#")[0] for place in places)
        entries = [entry for stem in stems for entry in _entries(stem) if {entry.page, stem} & set(places)]
        found = [entry for entry in entries if _plain(name) in entry.names]
        if found:
            return found
    return []


# ---- explanations

_RULES, _HOLDS = "findings", "holds where"  # the page with the table of rules, and the head of the cell that says when


@dataclasses.dataclass(frozen=True)
class Explanation:
    """The meaning of one name; ``str()`` gives it as text. Parts that the name does not have are empty."""

    name: str
    kind: str  # "figure", "note", "operator", "rule" or "term"
    of: str = ""  # of a figure: whose it is; of a note: its level; of an operator: its family
    definition: str = ""
    formula: str = ""
    unit: str = ""
    source: str = ""  # of a formula or rule
    page: str = ""  # what `roofprof docs` prints: "definitions#roofline"
    further: tuple[tuple[str, str], ...] = ()  # label and text: a figure's needs, an operator's arguments

    def __str__(self) -> str:
        head = (
            f"{self.name}: {'an' if self.kind == 'operator' else 'a'} {self.kind}{f' ({self.of})' if self.of else ''}"
        )
        labelled = [("", self.definition), ("formula", self.formula), ("unit", self.unit), *self.further]
        labelled += [("source", self.source), ("page", f"roofprof docs {self.page}" if self.page else "")]
        return "\n".join([head, *(_wrapped(label, text) for label, text in labelled if text)])


class Explanations(tuple[Explanation, ...]):
    """All that a name means, printed one below the other."""

    __slots__ = ()

    def __str__(self) -> str:
        return "\n\n".join(map(str, self))

    def first(self) -> str:
        """Return the first as text, which ends with the others' names and the shell's option that prints them."""
        others = ", ".join(dict.fromkeys(map(_named, self[1:])))
        return "\n".join([*map(str, self[:1]), *([_wrapped("also", f"{others} (--all)")] if others else [])])


def _named(one: Explanation) -> str:
    if one.kind == "figure":
        return f"{one.name} {one.of}"
    return one.name if one.kind == "operator" else f"the {one.kind} {one.name} ({one.page})"


def explain(name: str | _report.Note | _report.Finding) -> Explanations:
    """Return what a name means: definition, unit, formula, source, page.

    name: a figure as Python, JSON or a table's heading has it ("percent_of_roof", "time_ns", "%roof"); a note or its
    code; a finding, its rule or its id; an operator with or without its namespace; a key of files, an option ("--by"),
    or a word that reports print ("bare"). Raises ValueError, naming the nearest, for other names.
    """
    wanted = _name_of(name).strip()
    found = [*_figures(wanted), *_notes(wanted), *_operators(wanted), *_rules(wanted)]
    if not any(one.kind == "figure" and "row" in one.of for one in found):  # a row's figure means the same in all pages
        found += _terms(wanted)
        found = _without_repeats(found)
    if not found:
        kinds = "figure, note, operator, rule, key, option or word"
        raise Error(f"no {kinds} is called '{wanted}'{nearest(wanted, _every_name())}")
    return Explanations(found)


def _without_repeats(found: list[Explanation]) -> list[Explanation]:
    """Return the explanations without the terms whose text one before them has, too."""
    kept: list[Explanation] = []
    for one in found:
        if one.kind != "term" or not any(one.definition in before.definition for before in kept):
            kept.append(one)
    return kept


def _name_of(thing: str | _report.Note | _report.Finding) -> str:
    if isinstance(thing, _report.Finding):
        return thing.rule
    return thing.code if isinstance(thing, _report.Note) else str(thing)


def _figures(wanted: str) -> Iterator[Explanation]:
    alike: dict[
        tuple[object, ...], tuple[list[_report.Field], list[_Entry]]
    ] = {}  # equal ones of several kinds of rows
    for field in _report.fields():
        if _plain(wanted) in map(_plain, (field.name, field.key, field.heading, *field.aliases)):
            entries = _definitions(field.name.removeprefix("self_"), field.of)
            same, _ = alike.setdefault((field.name, field.unit, field.legend, *entries), ([], entries))
            same.append(field)
    for same, entries in alike.values():
        yield _figure(same, entries)


def _figure(same: list[_report.Field], entries: list[_Entry]) -> Explanation:
    field = same[0]
    legend = field.legend.partition(": ")[2] if field.legend.startswith(f"{field.heading}: ") else field.legend
    texts = [entry.text for entry in entries]
    formula = legend if " = " in legend else ""
    if legend and not formula and not texts:
        texts.append(legend)
    further = [("heading", field.heading)] if field.heading != field.name else []
    if field.key != field.name:
        further.append(("in files", field.key))
    if field.name.startswith("self_"):
        texts.insert(0, "Of the module's own ops, without the modules below it.")
    if field.needs:
        further.append(("needs", f"a report {' and '.join(_OF_REPORTS[fact] for fact in field.needs)}"))
    if field.limit:
        further.append(("limit", f"{field.limit} where an op without a known cost is in it"))
    return Explanation(
        field.name,
        "figure",
        f"of a {' or '.join(dict.fromkeys(one.of for one in same))}",
        "\n".join(texts),
        formula,
        "float seconds; nanoseconds in JSON and CSV" if field.unit == "seconds" else field.unit,
        _sources(*texts),
        entries[0].page if entries else "report#columns",
        tuple(further),
    )


def _notes(wanted: str) -> Iterator[Explanation]:
    level, meaning = _report.note_kinds().get(wanted.lower(), ("", ""))
    if level:
        (entry,) = (entry for entry in _entries("notes") if _plain(wanted) in entry.names and "more" in entry.cells)
        yield Explanation(
            wanted.lower(),
            "note",
            level,
            meaning,
            page=entry.cells["more"],
            further=(("in", f"roofprof docs {entry.page}"),),
        )


def _operators(wanted: str) -> Iterator[Explanation]:
    """Yield the operators of that name in any namespace; the plain name stands for in-place forms and overloads."""
    plain = re.sub(r"\.\w+$", "", wanted)
    lines = {cost["op"]: cost for cost in _report.op_costs()}
    for name in (plain, plain.removesuffix("_")):
        same = [op for op in lines if name in {op, op.partition("::")[2]}]
        if same:
            break
    for op in same:
        cost = lines[op]
        further = (("reads", cost["scalars"].replace(",", ", ")),)
        yield Explanation(
            op,
            "operator",
            f"family {cost['family']}",
            formula=" ".join(cost["formula"].split()),
            unit="MACs and operations of one call",
            source=cost["source"] or ("op_cost" if cost["family"] == "own" else "plain arithmetic"),
            page="definitions#counts",
            further=further if cost["scalars"] else (),
        )


def _rules(wanted: str) -> Iterator[Explanation]:
    rule = wanted.partition("/")[0]  # of a finding's id
    for entry in _entries(_RULES):
        if _plain(rule) in entry.names and _HOLDS in entry.cells:
            further = tuple((head, cell) for head, cell in entry.cells.items() if head != _HOLDS)
            holds = f"Holds where: {entry.cells[_HOLDS]}"
            yield Explanation(rule, "rule", definition=holds, page=entry.page, source=_sources(holds), further=further)


def _sources(*texts: str) -> str:
    """Return the addresses in texts."""
    return "; ".join(dict.fromkeys(url for text in texts for url in re.findall(r"https?://[^\s)]+", text)))


# The pages and sections that define what is neither figure, note, operator nor rule: keys of files, options, words.
_OF_TERMS = (
    "definitions",
    "report#the-table",
    "report#each-mark",
    "report#each-key",
    "findings#what-a-finding-has",
    "memory#what-is-alive-at-the-peak",
    "command-line",
)


def _terms(wanted: str) -> Iterator[Explanation]:
    """Yield what the pages define besides figures; what is written with the same capitals first: "ATTENTION"."""
    for entry in sorted(_entries_of_terms(), key=lambda entry: wanted.islower() or wanted not in entry.called):
        if any(_is_called(wanted, name) for name in entry.names):
            yield Explanation(wanted, "term", "", _term_text(entry), page=entry.page)


def _is_called(wanted: str, name: str) -> bool:
    """Return whether a name is that of an entry; what stands in <> there may be any word: "compute <dtype>"."""
    if _plain(wanted) == name:
        return True
    pattern = re.sub(r"<\w+>", r"[\\w./]+", re.escape(name))
    return "<" in name and re.fullmatch(pattern, wanted.lower()) is not None


def _entries_of_terms() -> Iterator[_Entry]:
    for place in _OF_TERMS:
        stem = place.partition("#")[0]
        yield from (entry for entry in _entries(stem) if place in {entry.page, stem})


def _term_text(entry: _Entry) -> str:
    """Return the entry's text; a row that defines several names begins with them."""
    if not entry.cells:
        return entry.text
    return entry.text if len(entry.called) < 2 else f"{', '.join(entry.called)}: {entry.text}"


def names() -> list[str]:
    """Return the figures, notes and rules of findings, by name."""
    figures = [field.name for field in _report.fields() if not field.name.startswith("self_")]
    rules = [entry.names[0].replace(" ", "-") for entry in _entries(_RULES) if _HOLDS in entry.cells]
    return list(dict.fromkeys([*figures, *_report.note_kinds(), *rules]))


def _every_name() -> list[str]:
    terms = [name for entry in _entries_of_terms() for name in entry.called or entry.names]
    return [*terms, *(cost["op"].partition("::")[2] for cost in _report.op_costs()), *names()]


def nearest(word: str, known: list[str] | dict[str, str]) -> str:
    """Return what to add to a sentence that refuses a word."""
    plain = {_plain(name): name for name in known}
    close = difflib.get_close_matches(_plain(word), plain, n=3, cutoff=0.5)
    return f"; the nearest are {', '.join(plain[name] for name in close)}" if close else ""


def _wrapped(label: str, text: str) -> str:
    indent = " " * (_LABELS + 2)
    first = f"  {label:{_LABELS}}" if len(label) < _LABELS else f"  {label}: "
    parts = [
        textwrap.fill(
            part,
            _WIDTH,
            initial_indent=indent if i else first,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
        for i, part in enumerate(text.split("\n"))
    ]
    return "\n".join(parts)
