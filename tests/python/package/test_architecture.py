"""The arrows between the rooms, read from the #include and import lines: what points the wrong way fails here."""

from __future__ import annotations

import ast
import re
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
CSRC = ROOT / "csrc"
PACKAGE = ROOT / "python" / "roofprof"

# Each folder of csrc and the folders whose headers it may include, beside its own. docs/design.md draws them.
CORE = {"core", "include"}
OBSERVING = {"observe/operators", "observe/modules", "observe/script"}
DEVICES = {"device/nvidia", "device/interface"}
ARROWS = {
    "include": set(),
    "core": {"include"},
    "ops": CORE,
    "join": CORE,
    "analysis/communication": CORE,
    "analysis": CORE | {"analysis/communication"},
    "analysis/siblings": CORE | {"analysis"},
    "analysis/advice": CORE | {"analysis", "analysis/siblings"},
    "core/json": CORE,
    "analysis/ranks": CORE | {"analysis", "analysis/communication"},
    "analysis/predict": CORE | {"ops", "core/json"},
    "report": CORE | {"analysis", "analysis/siblings", "analysis/advice", "core/json", "analysis/ranks", "analysis/predict"},
    "observe/rule": CORE,
    "observe/reuse": CORE,
    "observe/memory": CORE | {"observe/operators"},
    "observe/clock": set(),
    "observe/collectives": CORE | {"observe/operators", "observe/clock"},
    "observe/operators": CORE | {"ops", "observe/rule", "observe/reuse"},
    "observe/modules": CORE | {"observe/operators"},
    "observe/script": CORE | {"observe/operators", "observe/modules"},
    "observe": CORE
    | {"ops", "observe/rule", "observe/memory", "observe/reuse", "observe/collectives", "observe/clock"}
    | OBSERVING,
    "observe/nn": CORE | {"observe", "observe/modules"},
    "device/nvidia": CORE,
    "device/interface": CORE,
    "device/replay": CORE | {"device/interface", "core/json"},
    "device/cupti": CORE | DEVICES,
    "device": CORE | DEVICES | {"device/replay", "device/cupti"},
    "machine/known": CORE | {"core/json", "machine/common"},
    "machine/common": CORE,
    "machine/cpu": CORE | {"machine/common"},
    "machine/gpu": CORE | {"machine/common", "device/nvidia"},
    "machine": CORE | {"core/json", "machine/known", "machine/common", "machine/cpu", "machine/gpu"},
    "run": CORE | {"join", "observe", "device/interface", "machine/common", "machine/cpu", "machine/gpu"},
    "run/profiler": CORE | {"run", "observe", "observe/nn", "observe/modules", "observe/script", "machine", "machine/known"},
    "kineto": CORE | {"ops", "observe/rule"},
    "kineto/costs": CORE | {"observe", "observe/operators", "kineto"},
    "kineto/importer": CORE | {"kineto", "kineto/costs", "join", "machine/known"},
    # A library of its own, which C++ programs link and Python does not.
    "run/interpose": CORE | {"observe"},
    # A program of its own, with neither Python nor torch.
    "report/program": CORE,
    "python": CORE
    | {
        "run",
        "machine",
        "machine/cpu",
        "machine/gpu",
        "device/nvidia",
        "ops",
        "device",
        "observe",
        "observe/rule",
        "kineto/importer",
        "python/hooks",
    }
    | OBSERVING,
    # A module of its own, which loads no torch.
    "python/report": CORE | {"analysis", "analysis/ranks", "analysis/predict", "report", "core/json", "ops", "machine/known"},
    "python/hooks": CORE,
}
# Tested with nothing but a C++ compiler.
STD_ONLY = {
    "core",
    "ops",
    "report/program",
    "observe/rule",
    "observe/reuse",
    "join",
    "analysis",
    "analysis/communication",
    "analysis/siblings",
    "analysis/advice",
    "core/json",
    "analysis/ranks",
    "analysis/predict",
    "machine/known",
    "kineto",
}
TORCH = re.compile(r"^(torch|ATen|c10|caffe2)\b")
CUDA = re.compile(r"(cuda|cupti|nvml|nvperf)", re.IGNORECASE)
CUPTI = re.compile(r"(cupti|nvperf)", re.IGNORECASE)
FMT = re.compile(r"^fmt/")
PYTHON = re.compile(r"^(pybind11/|torch/extension\.h|torch/csrc/utils/pybind\.h|Python\.h)")
NOT_STD = (TORCH, PYTHON, CUDA, FMT)
LONGEST_FILE = 600

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
    return str(path.relative_to(CSRC).parent).removesuffix("/detail").removesuffix("/roofprof")


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
            assert target in ARROWS[room] | {room}, f"{name(path)} includes {include}: no arrow from {room} to {target}"


def test_the_design_page_lists_the_rooms_and_their_arrows():
    """Each room's arrows, but for those to `values` and `include`, which all rooms have."""
    page = (ROOT / "docs" / "design.md").read_text()
    table = re.findall(r"^\| `csrc/([\w/]+)` \| .+ \| ?(.*) \|$", page, re.MULTILINE)
    drawn = {room: set(arrows.split(", ")) - {""} for room, arrows in table}
    assert drawn == {room: arrows - CORE for room, arrows in ARROWS.items()}


def test_the_files_that_the_design_page_names_exist():
    page = (ROOT / "docs" / "design.md").read_text()
    named = re.findall(r"`((?:csrc|python|tests|cmake)/[\w/.]+\.\w+)`", page)
    assert named
    assert not [path for path in named if not (ROOT / path).is_file()]


def test_no_arrow_runs_back_up():
    list(TopologicalSorter(ARROWS).static_order())  # raises CycleError, naming the circle


def test_arrows_that_nothing_uses_are_taken_away():
    used = {(room_of(path), room_of(ours)) for path in SOURCES for i in includes(path) if (ours := resolve(path, i))}
    unused = [(room, to) for room, targets in ARROWS.items() for to in targets - CORE if (room, to) not in used]
    assert not unused


@pytest.mark.parametrize("folder", sorted({path.parent for path in SOURCES}), ids=name)
def test_a_folder_can_be_looked_over(folder):
    assert len([entry for entry in folder.iterdir() if entry.is_file()]) <= 60


@pytest.mark.parametrize("path", [p for p in SOURCES if room_of(p) in STD_ONLY], ids=name)
def test_these_rooms_need_the_standard_library_only(path):
    foreign = [header for header in reached(path) if any(kind.search(header) for kind in NOT_STD)]
    assert not foreign


@pytest.mark.parametrize("path", [p for p in SOURCES if room_of(p) in {"report", "python/report"}], ids=name)
def test_what_reads_reports_needs_no_torch(path):
    assert not [header for header in reached(path) if TORCH.match(header) or CUDA.search(header)]


def test_fmt_is_used_in_report_and_above_only():
    above = {"report", "run", "run/profiler", "python", "python/report"}
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
    users = [
        name(path)
        for path in SOURCES
        if not room_of(path).startswith("python") and any(map(PYTHON.match, includes(path)))
    ]
    assert not users


def test_the_costly_header_is_included_twice_at_most():
    # 18 CPU seconds each.
    users = [name(path) for path in SOURCES if "torch/extension.h" in includes(path)]
    assert len(users) <= 2, users


@pytest.mark.parametrize("path", [*SOURCES, *sorted(PACKAGE.rglob("*.py"))], ids=name)
def test_files_can_be_read_in_one_go(path):
    lines = len(path.read_text().splitlines())
    assert lines <= LONGEST_FILE, f"{lines} lines; split it where a reader would"


# ---- the Python package

# Each folder and file of the package and what it may import, for types and inside functions too; `roofprof` is what
# `import roofprof` gives. docs/design.md draws them.
PYTHON_ARROWS = {
    "_report": set(),
    "_C": set(),
    "_build_info": set(),
    "_state": {"_C"},
    "_model": {"_C", "_state"},
    "_adapters": {"_C", "_state", "_model"},
    "_progress": {"_state"},
    "_run": {"_C", "_state", "_model", "_adapters", "_progress"},
    "published_peaks": {"_C", "_report"},
    "ceilings": {"_C", "_report", "published_peaks", "_progress"},
    "_network": {"_report", "ceilings"},
    "_fields": {"_report"},
    "_of_ranks": {"_report"},
    "_prediction": {"_report", "_fields", "_files", "published_peaks", "ceilings", "_results"},
    "report": {"_report", "_fields", "_files", "_printable", "_plots", "_page", "_traces", "_of_ranks", "_prediction"},
    "_predicted_sweep": {"_report", "_fields", "_latency", "_prediction", "profiler", "report"},
    "_ranks": {"_report", "_files", "report"},
    "_scaling": {"_report", "_fields", "_files", "_plots", "report", "_plain_page", "_results"},
    "comparison": {"_report", "_fields", "_files", "report", "_plain_page", "_results"},
    "budget": {"_report", "_fields", "_files", "_printable", "comparison", "report"},
    "_files": set(),
    "_plain_page": set(),
    "_results": set(),
    "_printable": set(),
    "_views": {"_report"},
    "_page": {"_report", "_fields", "_files", "_views"},
    "_plots": {"_fields", "_files", "_results", "_views"},
    "_traces": {"_report", "_build_info", "_files"},
    "op_costs": {"_C"},
    "scopes": {"_C", "op_costs"},
    "profiler": {
        "_C",
        "_state",
        "_model",
        "_adapters",
        "_progress",
        "_run",
        "ceilings",
        "_network",
        "report",
        "_latency",
    },
    "_imported": {"_C", "_progress", "_latency", "published_peaks", "ceilings", "report", "profiler"},
    "_torch_check": {"_build_info"},
    "_api": {
        "_report",
        "_fields",
        "_imported",
        "comparison",
        "op_costs",
        "scopes",
        "report",
        "profiler",
        "_latency",
        "_ranks",
        "_scaling",
        "_predicted_sweep",
    },
    "roofprof": {"_api", "_build_info", "_torch_check"},
    "compat": {"roofprof", "_state", "_files"},
    "callbacks": {"roofprof", "_files"},
    "pytest_plugin": {"roofprof", "budget"},
    "_latency": {
        "_C",
        "_report",
        "_state",
        "_model",
        "_adapters",
        "_progress",
        "_run",
        "_fields",
        "_files",
        "_results",
        "_printable",
        "_plots",
    },
    "notebook": {"roofprof", "cli", "_plots", "_script_run"},
    "_migrate": set(),
    "_script_run": {"_C", "_model", "_adapters", "profiler", "report", "scopes"},
    "cli": {
        "roofprof",
        "_C",
        "_report",
        "_build_info",
        "_files",
        "_printable",
        "_imported",
        "_migrate",
        "_script_run",
        "_state",
        "_adapters",
        "published_peaks",
        "ceilings",
        "_network",
        "report",
        "comparison",
        "budget",
        "_page",
        "_plots",
        "_latency",
        "_ranks",
        "_scaling",
        "_traces",
        "_prediction",
        "_predicted_sweep",
    },
    "__main__": {"cli"},
}
MODULES = {
    ".".join(["roofprof", *path.relative_to(PACKAGE).with_suffix("").parts]).removesuffix(".__init__"): path
    for path in PACKAGE.rglob("*.py")
}
KNOWN = {*MODULES, "roofprof._report", "roofprof._C", "roofprof._build_info"}


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


def python_room(module: str) -> str:
    """The folder or file of the package that a module belongs to."""
    return [*module.split("."), "roofprof"][1]


PYTHON_USES = {
    module: {module_of(dotted) for dotted in imports(ast.parse(path.read_text()))} for module, path in MODULES.items()
}


@pytest.mark.parametrize("module", sorted(MODULES))
def test_python_imports_follow_the_arrows(module):
    room = python_room(module)
    targets = {python_room(used) for used in PYTHON_USES[module]} - {room}
    assert targets <= PYTHON_ARROWS[room], f"no arrow from {room} to {', '.join(targets - PYTHON_ARROWS[room])}"


def test_no_python_arrow_runs_back_up():
    list(TopologicalSorter(PYTHON_ARROWS).static_order())  # raises CycleError, naming the circle


def test_python_arrows_that_nothing_uses_are_taken_away():
    used = {(python_room(module), python_room(to)) for module, targets in PYTHON_USES.items() for to in targets}
    assert not [(room, to) for room, targets in PYTHON_ARROWS.items() for to in targets if (room, to) not in used]


def test_the_design_page_lists_the_python_rooms_and_their_arrows():
    """Each room's arrows, but for those to the compiled modules, of which nearly all have one."""
    page = (ROOT / "docs" / "design.md").read_text()
    table = re.findall(r"^\| `python/roofprof/(\w+)(?:\.py)?` \| .+ \| ?(.*) \|$", page, re.MULTILINE)
    drawn = {room: set(arrows.split(", ")) - {""} for room, arrows in table}
    built = {"_report", "_C", "_build_info"}
    outside = built | {"roofprof", "__main__"}
    assert drawn == {room: arrows - built for room, arrows in PYTHON_ARROWS.items() if room not in outside}


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
