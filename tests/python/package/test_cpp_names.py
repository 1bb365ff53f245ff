"""The public names of C++: programs that use them compile, and what roofprof throws is a roofprof::Error."""

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
    text = re.sub(r"^ (?:private|protected):.*?^\};", "};", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^ *(?:return|friend|using|static_assert|(?:struct|class) \w+;).*", "", text, flags=re.MULTILINE)
    text = re.sub(r"^constexpr .*\{\n(?:(?:  .*)?\n)*?\}", lambda body: body[0].split("{")[0], text, flags=re.MULTILINE)
    found = set(re.findall(r"^(?:  )?[\w:]+(?:<.*>)?[ \w:<>,&*]*[ &*](\w+)(?: = .*|\{\})?;", text, re.MULTILINE))
    found |= set(re.findall(r"^(?:  )?[\w:][\w:<>, &*]*[ &*](\w+)\(", text, re.MULTILINE))
    for body in re.findall(r"^enum class \w+ [^{]*\{(.*?)\}", text, re.MULTILINE | re.DOTALL):
        found |= set(re.findall(r"\w+", body))
    for kind in re.findall(r"^(?:struct|class|enum class) (\w+)[^;]*?\{", text, re.MULTILINE):
        found.add(kind)
    return {name for name in found if not name.endswith("_")} - {"ROOFPROF_JOIN"}  # of roofprof's own use


def test_the_program_has_every_public_name():
    used = set(re.findall(r"\w+", "".join((PROGRAMS / name).read_text() for name in ("names.cpp", "user.cpp"))))
    declared = {path.name: members(path.read_text()) for path in PUBLIC.glob("*.h") if path.name != "fmt.h"}
    assert {"rows", "table", "lower_bound_time_ns"} <= declared["report.h"] | declared["rows.h"]
    missing = {name: sorted(names - used) for name, names in declared.items() if names - used}
    assert not missing, f"add them to tests/install/names.cpp: {missing}"


def test_a_program_of_all_names_compiles(installed, compiler):
    """One that names no longer exist for breaks programs of users: docs/cpp.md promises a deprecated alias."""
    run(compiler, *STRICT, f"-I{installed / 'include'}", PROGRAMS / "names.cpp")


def test_what_is_thrown_is_an_error():
    """What Python's bindings throw becomes Python's exceptions, and never reaches a program of C++."""
    rooms = [path for path in (ROOT / "csrc").rglob("*.[ch]*") if "python" not in path.parts]
    plain = re.compile(r"throw std::(invalid_argument|out_of_range|logic_error|runtime_error)\b")
    assert [str(path) for path in rooms if plain.search(path.read_text())] == []
    assert sum("throw InvalidArgument(" in path.read_text() for path in rooms) > 10


DISABLED = """
#include <roofprof/scope.h>
#include <memory>
#include <string>
#include <tuple>

namespace torch::nn {
class Module {
 public:
  int forward() {
    ROOFPROF_SCOPE(*this); ROOFPROF_SCOPE(this);
    return 1;
  }
};
}

int calls = 0;
std::string name() { ++calls; return "region"; }

int main() {
  roofprof::Work work;
  work.add_macs(1, roofprof::DType::fp32);
  const auto shared = std::make_shared<torch::nn::Module>();
  const auto [first, unused_but_here] = std::tuple(1, std::string("marked"));
  for (int i = 0; i < first; ++i) ROOFPROF_SCOPE(unused_but_here);
  ROOFPROF_SCOPE("region");
  ROOFPROF_SCOPE(name());
  ROOFPROF_SCOPE(shared);
  ROOFPROF_WORK("kernel", work);
  return shared->forward() == 1 && calls == 0 ? 0 : 1;
}
"""


def test_disabled_marks_need_no_library_and_evaluate_nothing(installed, tmp_path, compiler):
    source = tmp_path / "disabled.cpp"
    source.write_text(DISABLED)
    flags = [flag for flag in STRICT if flag != "-fsyntax-only"]
    program = tmp_path / "disabled"
    run(compiler, *flags, "-DROOFPROF_DISABLE", f"-I{installed / 'include'}", source, "-o", program)
    run(program)
    enabled = run(compiler, *flags, f"-I{installed / 'include'}", source, "-o", program, check=False)
    assert "undefined reference to `roofprof::Scope::" in enabled.stderr


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
