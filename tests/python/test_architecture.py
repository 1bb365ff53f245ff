"""The arrows between the rooms, read from the #include and import lines: what points the wrong way fails here."""

from __future__ import annotations

import ast
import re
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CSRC = ROOT / "csrc"
PACKAGE = ROOT / "python" / "roofprof"

# python -> profiler -> {observe -> ops, device, report} -> core. "include" are the public headers.
ARROWS = {
    "include": {"include"},
    "core": {"core", "include"},
    "ops": {"ops", "core", "include"},
    "observe": {"observe", "ops", "core", "include"},
    "device": {"device", "core", "include"},
    "report": {"report", "core", "include"},
    "profiler": {"profiler", "observe", "ops", "device", "report", "core", "include"},
    # A library of its own, which C++ programs link and Python does not.
    "interpose": {"interpose", "observe", "ops", "core", "include"},
    "python": {"python", "profiler", "observe", "ops", "device", "report", "core", "include"},
}
TORCH = re.compile(r"(torch|ATen|c10|caffe2|pybind11|Python\.h)\b")
CUDA = re.compile(r"(cuda|cupti|nvml|nvperf)", re.IGNORECASE)
CUPTI = re.compile(r"(cupti|nvperf)", re.IGNORECASE)
FMT = re.compile(r"fmt/")
PYTHON = re.compile(r"(pybind11/|torch/extension\.h|torch/csrc/utils/pybind\.h|Python\.h)")
LONGEST_FILE = 350

SOURCES = sorted(path for path in CSRC.rglob("*") if path.suffix in {".h", ".cpp"})


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def includes(path: Path) -> list[str]:
    return re.findall(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', path.read_text(), re.MULTILINE)


def resolve(path: Path, include: str) -> Path | None:
    """The file of ours that an include names, if it is one of ours."""
    candidates = (path.parent / include, CSRC / include, CSRC / "include" / include)
    return next((found.resolve() for found in candidates if found.is_file()), None)


def room_of(path: Path) -> str:
    return path.relative_to(CSRC).parts[0]


def reached(path: Path) -> set[str]:
    """Every header that a file includes, by way of our own headers too; foreign ones by the name they are asked by."""
    seen: set[Path] = set()
    foreign: set[str] = set()
    todo = [path]
    while todo:
        current = todo.pop()
        if current in seen:
            continue
        seen.add(current)
        for include in includes(current):
            ours = resolve(current, include)
            if ours:
                todo.append(ours)
            else:
                foreign.add(include)
    return foreign


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_includes_follow_the_arrows(path):
    room = room_of(path)
    assert room in ARROWS, f"{name(path)} is in a room that the design does not have"
    for include in includes(path):
        ours = resolve(path, include)
        if ours:
            target = room_of(ours)
            assert target in ARROWS[room], f"{name(path)} includes {include}: no arrow from {room} to {target}"


@pytest.mark.parametrize("path", [p for p in SOURCES if room_of(p) in {"core", "ops"}], ids=name)
def test_core_and_ops_need_the_standard_library_only(path):
    foreign = [header for header in reached(path) if TORCH.match(header) or CUDA.search(header) or FMT.match(header)]
    assert not foreign


@pytest.mark.parametrize("path", [p for p in SOURCES if room_of(p) == "report"], ids=name)
def test_report_needs_no_torch(path):
    assert not [header for header in reached(path) if TORCH.match(header) or CUDA.search(header)]


def test_fmt_is_used_in_report_and_above_only():
    above = {"report", "profiler", "python"}
    users = {name(p) for p in SOURCES if room_of(p) not in above and any(map(FMT.match, includes(p)))}
    assert users == {"csrc/include/roofprof/fmt.h"}  # who prints with fmt asks for it


def test_vendor_headers_stay_in_their_folder():
    allowed = CSRC / "device" / "cupti"
    users = [
        name(path)
        for path in SOURCES
        if not path.is_relative_to(allowed) and any(CUPTI.search(i) for i in includes(path) if resolve(path, i) is None)
    ]
    assert not users


def test_pybind_stays_in_python():
    users = [name(path) for path in SOURCES if room_of(path) != "python" and any(map(PYTHON.match, includes(path)))]
    assert not users


def test_the_costly_header_is_included_twice_at_most():
    # 18 CPU seconds each.
    users = [name(path) for path in SOURCES if "torch/extension.h" in includes(path)]
    assert len(users) <= 2, users


@pytest.mark.parametrize("path", [*SOURCES, *sorted(PACKAGE.rglob("*.py"))], ids=name)
def test_files_can_be_read_in_one_go(path):
    lines = len(path.read_text().splitlines())
    assert lines <= LONGEST_FILE, f"{lines} lines; about 300 is the aim: split it where a reader would"


# ---- the Python package

MODULES = {
    ".".join(["roofprof", *path.relative_to(PACKAGE).with_suffix("").parts]).removesuffix(".__init__"): path
    for path in PACKAGE.rglob("*.py")
}
KNOWN = {*MODULES, "roofprof._C", "roofprof._build_info"}


def imports(tree: ast.AST) -> set[str]:
    """The dotted name of everything of ours that is imported: roofprof.report.Report, roofprof.ceilings."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert not node.level, "imports are written from the package's name on"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {dotted for dotted in found if dotted.split(".")[0] == "roofprof"}


def module_of(dotted: str) -> str:
    """The module that a name lives in: the longest part of it that is one."""
    while dotted not in KNOWN:
        dotted = dotted.rpartition(".")[0]
    return dotted


class AtImport(ast.NodeTransformer):
    """Leaves out what does not run when a module is imported: bodies of functions, and `if TYPE_CHECKING`."""

    def visit_FunctionDef(self, node):
        return None

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def visit_If(self, node):
        return None if "TYPE_CHECKING" in ast.unparse(node.test) else self.generic_visit(node)


def test_python_modules_do_not_import_each_other_in_circles():
    graph = {
        module: {module_of(dotted) for dotted in imports(AtImport().visit(ast.parse(path.read_text())))} - {module}
        for module, path in MODULES.items()
    }
    list(TopologicalSorter(graph).static_order())  # raises CycleError, naming the circle


@pytest.mark.parametrize("module", sorted(MODULES))
def test_python_modules_use_public_names_of_each_other(module):
    used = imports(ast.parse(MODULES[module].read_text())) - KNOWN
    private = {dotted for dotted in used if re.search(r"\._(?!_)\w+$", dotted)}
    assert not private
