"""The arrows between the rooms, as csrc/DESIGN.md lists them, held against the #include and import lines."""

from __future__ import annotations

import ast
import functools
import re
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
CSRC = ROOT / "csrc"
PACKAGE = ROOT / "python" / "roofprof"

DESIGN = (ROOT / "csrc" / "DESIGN.md").read_text()


def rooms_of_the_design(root: str) -> dict[str, tuple[str, set[str]]]:
    """Each room below a folder: what lives there, and the rooms that it may include or import."""
    rows = re.findall(rf"^\| `{root}/([\w/]+)(?:\.py)?` \| (.+) \| ?(.*) \|$", DESIGN, re.MULTILINE)
    return {room: (what, set(arrows.split(", ")) - {""}) for room, what, arrows in rows}


ROOMS = rooms_of_the_design("csrc")
# Every room may use these too.
CORE = {"core", "include"}
ARROWS = {room: arrows | (CORE if room not in CORE else set()) for room, (_, arrows) in ROOMS.items()}
ARROWS["core"] |= {"include"}
# Tested with nothing but a C++ compiler.
STD_ONLY = {room for room, (what, _) in ROOMS.items() if what.endswith("std only")}
TORCH = re.compile(r"^(torch|ATen|c10|caffe2)\b")
CUDA = re.compile(r"(cuda|cupti|nvml|nvperf)", re.IGNORECASE)
CUPTI = re.compile(r"(cupti|nvperf)", re.IGNORECASE)
FMT = re.compile(r"^fmt/")
PYTHON = re.compile(r"^(pybind11/|torch/extension\.h|torch/csrc/utils/pybind\.h|Python\.h)")
NOT_STD = (TORCH, PYTHON, CUDA, FMT)

SOURCES = sorted(path for path in CSRC.rglob("*") if path.suffix in {".h", ".cpp"})


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@functools.cache
def includes(path: Path) -> list[str]:
    return re.findall(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', path.read_text(), re.MULTILINE)


@functools.cache
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


USED = [(path, resolve(path, include)) for path in SOURCES for include in includes(path)]
USES = {(room_of(path), room_of(ours)) for path, ours in USED if ours}


def test_includes_follow_the_arrows():
    assert {room_of(path) for path in SOURCES} <= ARROWS.keys(), "a room that the design does not have"
    wrong = {(room, to) for room, to in USES if to not in ARROWS[room] | {room}}
    assert not [f"{name(p)} includes {name(ours)}" for p, ours in USED if ours and (room_of(p), room_of(ours)) in wrong]
    # And no arrow is there that nothing uses, or runs back up.
    assert not [(room, to) for room, (_, targets) in ROOMS.items() for to in targets if (room, to) not in USES]
    list(TopologicalSorter(ARROWS).static_order())  # raises CycleError, naming the circle


def test_the_files_that_the_pages_for_developers_name_exist():
    text = DESIGN + (ROOT / "CONTRIBUTING.md").read_text()
    named = re.findall(r"`((?:csrc|python|tests|cmake)/[\w/.]+\.\w+)`", text)
    assert named
    assert not [path for path in named if not (ROOT / path).is_file()]


def test_what_needs_the_standard_library_only_or_no_torch():
    reads_reports = (TORCH, CUDA)
    foreign = {
        name(path): header
        for path in SOURCES
        for kinds in [NOT_STD if room_of(path) in STD_ONLY else reads_reports]
        if room_of(path) in STD_ONLY | {"report", "python/report"}
        for header in reached(path)
        if any(kind.search(header) for kind in kinds)
    }
    assert not foreign


def test_fmt_is_used_in_report_and_above_only():
    above = {"report", "run", "run/profiler", "python", "python/report"}
    users = {name(p) for p in SOURCES if room_of(p) not in above and any(map(FMT.match, includes(p)))}
    assert users == {"csrc/include/roofprof/fmt.h"}  # who prints with fmt asks for it


def test_headers_of_others_stay_in_their_folders():
    """CUPTI's in its room, pybind's in Python's; the costly one, 18 CPU seconds each, is included twice at most."""
    foreign = {(path, i) for path in SOURCES for i in includes(path) if resolve(path, i) is None}
    assert {room_of(path) for path, header in foreign if CUPTI.search(header)} == {"device/cupti"}
    assert {room_of(path) for path, header in foreign if PYTHON.match(header)} == {"python", "python/report"}
    assert len([path for path, header in foreign if header == "torch/extension.h"]) <= 2


def test_profiles_are_made_by_the_join_alone():
    """Of a run, live or imported; others are read from files, made of profiles (predicted, merged, folded) or empty."""
    made = re.compile(r"\bProfile \w+;|make_shared<Profile>\(\)")
    assert {name(path) for path in SOURCES if made.search(path.read_text())} == {
        "csrc/core/json/members.h",
        "csrc/join/join.cpp",
        "csrc/report/from_json.cpp",
        "csrc/analysis/predict/prediction.cpp",
        "csrc/analysis/ranks/rank_merger.cpp",
        "csrc/python/report/bind_report.cpp",
    }
    users = {room_of(path) for path in SOURCES if "join/join.h" in includes(path)}
    assert users == {"join", "run", "kineto/importer"}


# ---- the Python package

PYTHON_ROOMS = rooms_of_the_design("python/roofprof")
# What `import roofprof` gives and `python -m roofprof` runs, and the compiled modules. All may use _report, which needs
# no torch, and the errors.
PYTHON_ARROWS = {room: arrows for room, (_, arrows) in PYTHON_ROOMS.items()} | {
    "roofprof": {"_api", "_torch_check", "notebook"},
    "__main__": {"cli"},
    "_C": set(),
}
FREE = {"_report", "_build_info", "errors"}
MODULES = {
    ".".join(["roofprof", *path.relative_to(PACKAGE).with_suffix("").parts]).removesuffix(".__init__"): path
    for path in PACKAGE.rglob("*.py")
}
KNOWN = {*MODULES, "roofprof._report", "roofprof._C", "roofprof._build_info"}


def imports(tree: ast.AST) -> set[str]:
    """The dotted name of everything of ours that is imported, wherever: roofprof.report.report.Report."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert not node.level, "imports are written from the package's name on"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "importlib.import_module":
            found |= {str(argument.value) for argument in node.args if isinstance(argument, ast.Constant)}
    return {dotted for dotted in found if dotted.split(".")[0] == "roofprof"}


def module_of(dotted: str) -> str:
    """The module that a name lives in: the longest part of it that is one."""
    while dotted not in KNOWN:
        dotted = dotted.rpartition(".")[0]
    return dotted


def python_room(module: str) -> str:
    """The room that a module lives in: the innermost that the design has; of a folder's docstring alone, the folder."""
    parts = module.split(".")[1:]
    paths = ["/".join(parts[:length]) for length in range(len(parts), 0, -1)]
    return next((path for path in paths if path in PYTHON_ARROWS), paths[0] if paths else "roofprof")


PYTHON_USES = {
    module: {module_of(dotted) for dotted in imports(ast.parse(path.read_text()))} for module, path in MODULES.items()
}


USED_ROOMS = {(python_room(module), python_room(to)) for module, targets in PYTHON_USES.items() for to in targets}


def test_python_imports_follow_the_arrows():
    """None is there that nothing uses, or runs back up."""
    wrong = {(a, b) for a, b in USED_ROOMS if a != b and b not in PYTHON_ARROWS.get(a, set()) | FREE}
    assert not wrong
    assert not [(room, to) for room, targets in PYTHON_ARROWS.items() for to in targets if (room, to) not in USED_ROOMS]
    list(TopologicalSorter(PYTHON_ARROWS).static_order())  # raises CycleError, naming the circle


def test_python_modules_and_folders_do_not_import_each_other_in_circles():
    """Not inside functions and not for type checkers alone either: what two modules share is below both."""
    list(TopologicalSorter({module: uses - {module} for module, uses in PYTHON_USES.items()}).static_order())
    folders: dict[str, set[str]] = {}  # or the module, right below the package; for the package's own file the package
    for module, uses in PYTHON_USES.items():
        folder, *used = (one.split(".")[:2][-1] for one in (module, *uses))
        folders.setdefault(folder, set()).update(set(used) - {folder})
    list(TopologicalSorter(folders).static_order())


def test_python_modules_use_public_names_of_each_other():
    used = {dotted for path in MODULES.values() for dotted in imports(ast.parse(path.read_text()))} - KNOWN
    assert not [dotted for dotted in used if re.search(r"\._(?!_)\w+$", dotted)]
