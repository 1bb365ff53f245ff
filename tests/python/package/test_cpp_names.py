"""The public names of C++: programs that use them compile, also those that use earlier ones."""

from __future__ import annotations

import re
import shutil

import pytest
from cpp_project import ROOT, run

PROGRAMS = ROOT / "tests" / "install"
PUBLIC = ROOT / "csrc" / "include" / "roofprof"
STRICT = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror"]


@pytest.fixture(params=["g++", "clang++"])
def compiler(request):
    if shutil.which(request.param) is None:
        pytest.skip(f"there is no {request.param}")
    return request.param


def members(header: str) -> set[str]:
    """The names that a header declares, by its layout: of types, functions, members and enumerators."""
    text = re.sub(r"^namespace detail \{.*?^\}  // namespace detail", "", header, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"//.*|\[\[.*?\]\] ?", "", text)
    text = re.sub(r"^ private:.*?^\};", "};", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^ *(?:return|friend|using|static_assert|(?:struct|class) \w+;).*", "", text, flags=re.MULTILINE)
    text = re.sub(r"^constexpr .*\{\n(?:(?:  .*)?\n)*?\}", lambda body: body[0].split("{")[0], text, flags=re.MULTILINE)
    text = re.sub(
        r"^  union \{\n((?:    .*\n)*)  \};", lambda union: union[1].replace("    ", "  "), text, flags=re.MULTILINE
    )
    found = set(re.findall(r"^(?:  )?[\w:]+(?:<.*>)?[ \w:<>,&*]*[ &*](\w+)(?: = .*|\{\})?;", text, re.MULTILINE))
    found |= set(re.findall(r"^(?:  )?[\w:][\w:<>, &*]*[ &*](\w+)\(", text, re.MULTILINE))
    for body in re.findall(r"^enum class \w+ [^{]*\{(.*?)\}", text, re.MULTILINE | re.DOTALL):
        found |= set(re.findall(r"\w+", body))
    for kind in re.findall(r"^(?:struct|class|enum class) (\w+)[^;]*?\{", text, re.MULTILINE):
        found.add(kind)
    return {name for name in found if not name.endswith("_")} - {
        "ROOFPROF_JOIN",
        "make_report",
    }  # of roofprof's own use


def test_the_program_has_every_public_name():
    used = set(re.findall(r"\w+", "".join((PROGRAMS / name).read_text() for name in ("names.cpp", "user.cpp"))))
    declared = {path.name: members(path.read_text()) for path in PUBLIC.glob("*.h") if path.name != "fmt.h"}
    assert {"rows", "table", "lower_bound_time_ns"} <= declared["report.h"] | declared["rows.h"]
    missing = {name: sorted(names - used) for name, names in declared.items() if names - used}
    assert not missing, f"add them to tests/install/names.cpp: {missing}"


def test_a_program_of_all_names_compiles(installed, compiler):
    """One that names no longer exist for breaks programs of users: docs/cpp.md promises a deprecated alias."""
    run(compiler, *STRICT, f"-I{installed / 'include'}", PROGRAMS / "names.cpp")


EARLIER = {
    "static_cast<void>(figures.lower_bound_ns);": "use lower_bound_time_ns",
    "static_cast<void>(figures.wasted_ns);": "use wasted_time_ns",
    "static_cast<void>(report.advice());": r"use findings\(\)",
    "const Advice advice; static_cast<void>(advice);": "use Finding",
    "const std::string& text = note; static_cast<void>(text);": "use text",
    "static_cast<void>(report.table({.for_shell = true}));": "use speech = Speech::shell",
    "static_cast<void>(report.predict({}, {.compiled = true}));": "use mode = LaunchMode::compiled",
}


def test_an_earlier_name_says_what_to_use(installed, tmp_path):
    source, head = tmp_path / "earlier.cpp", "#include <roofprof/report.h>\nusing namespace roofprof;\n"
    given = "void of(const Report& report, const Figures& figures, const Note& note) {"
    source.write_text(f"{head}{given}\n{chr(10).join(EARLIER)}\n}}\n")
    warned = run("g++", "-std=c++20", "-fsyntax-only", "-Wall", f"-I{installed / 'include'}", source).stderr
    for line, said in enumerate(EARLIER.values(), 4):
        assert re.search(rf"earlier\.cpp:{line}:.* warning: .*deprecated: {said}", warned), warned


UNNAMED = """
#include <roofprof/scope.h>
#include <roofprof/profiler.h>
void of(const roofprof::Work& work, const torch::nn::Module* module, const roofprof::Report& report,
        const roofprof::Ceilings& roofs) {
  roofprof::Scope{"x"};
  roofprof::Scope("x");
  roofprof::Scope{module};
  roofprof::DeclaredWork("k", work);
  roofprof::DeclaredWork{"k", work};
  report.rows();
  report.total().time();
  roofs.compute_for(roofprof::DType::fp32);
  roofprof::Report::from_json("x");
}
"""


def test_a_mark_without_a_variable_and_a_dropped_figure_are_warned_of(installed, tmp_path, compiler):
    source = tmp_path / "unnamed.cpp"
    source.write_text(UNNAMED)
    warned = run(compiler, "-std=c++20", "-fsyntax-only", f"-I{installed / 'include'}", source).stderr
    lines = {int(line) for line in re.findall(r"unnamed\.cpp:(\d+):\d+: warning:", warned)}
    first = UNNAMED.splitlines().index('  roofprof::Scope{"x"};') + 1
    assert lines == set(range(first, first + 9)), warned
    assert "without a variable it marks nothing: use ROOFPROF_SCOPE or ROOFPROF_WORK" in warned
