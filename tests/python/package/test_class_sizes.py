"""No class of the C++ sources has more public functions than a reader keeps in mind."""

from __future__ import annotations

import re
from pathlib import Path

CSRC = Path(__file__).resolve().parents[3] / "csrc"
MOST = 20
# What users of C++ read a profile by: one accessor for each of its tables and figures.
LARGER = {"include/roofprof/report.h: Report"}

CLASS = re.compile(r"(?<!enum )\b(class|struct)\s+(\w+)\s*(?:final\s*)?(?::[^;{}()]*)?\{")
ACCESS = re.compile(r"\b(public|private|protected)\s*:(?!:)")
NO_FUNCTION = re.compile(r"(using|friend|static_assert|typedef|enum|class|struct)\b")
CONDITION = re.compile(r"\b(?:alignas|decltype|requires|noexcept|explicit)\s*\([^()]*\)")


def without(pattern: str, text: str, instead: str) -> str:
    """Replace matches until there are none: of what nests, the innermost first."""
    while (less := re.sub(pattern, instead, text)) != text:
        text = less
    return text


def bare(source: str) -> str:
    """A source without comments, texts, preprocessor lines, attributes, and arguments of templates."""
    source = re.sub(r"//[^\n]*|/\*.*?\*/", " ", source, flags=re.DOTALL)
    source = re.sub(r'"(?:\\.|[^"\\\n])*"', '""', source)
    source = re.sub(r"(?<!\w)'(?:\\.|[^'\\\n])'", "0", source)
    source = re.sub(r"^[ \t]*#(?:\\\n|[^\n])*", "", source, flags=re.MULTILINE)
    source = re.sub(r"\[\[.*?\]\]", " ", source)
    source = re.sub(r"\boperator\s*(?:\(\)|[<>=!+\-*/%&|^~\[\]]+)", "operator_", source)
    return without(r"<[^<>;{}]*>", re.sub(r"<<|->", " ", source), " ")


def body_from(text: str, start: int) -> str:
    """What stands in the braces that open just before `start`."""
    depth = 1
    for end, character in enumerate(text[start:], start):
        depth += {"{": 1, "}": -1}.get(character, 0)
        if depth == 0:
            return text[start:end]
    raise AssertionError("a brace is not closed")


def is_function(member: str) -> bool:
    head = CONDITION.sub("", member.split("=", maxsplit=1)[0])
    return "(" in head and not NO_FUNCTION.match(head) and not re.search(r"\(\s*[*&]", head)


def public_functions(kind: str, body: str) -> list[str]:
    """The public functions that a class declares itself, constructors and operators among them."""
    body = without(r"\{[^{}]*\}", body, "@")  # bodies, initial values, enumerators, nested classes
    body = re.sub(r"(\)[^;@=()]*)@", r"\1;", body)  # a body ends its function
    is_public = kind == "struct"
    found = []
    for line in ACCESS.sub(r";\1:;", body).split(";"):
        member = " ".join(line.split())
        if access := ACCESS.fullmatch(member):
            is_public = access[1] == "public"
        elif is_public and is_function(member):
            found.append(member)
    return found


def classes_in(source: str) -> dict[str, list[str]]:
    text = bare(source)
    return {found[2]: public_functions(found[1], body_from(text, found.end())) for found in CLASS.finditer(text)}


def test_public_functions_are_found():
    found = classes_in(
        """
        enum class Kind : std::uint8_t { a, b };
        class [[nodiscard]] Held final : public Base<T>, Other {
          void hidden();
         public:
          explicit Held(int first = f(1)) : first_(first) { use(first); }
          Held(const Held&) = delete;
          friend void others(Held&);
          struct Inner {
            int value() const { return 1; }
            std::map<int, std::vector<int>> members{{1, {2}}};
          };
          std::function<int(int)> call = [](int) { return 1; };
          auto visit(F&& f) const -> decltype(f(1)) requires (sizeof(F) > 1) { return f(1); }
         private:
          void also_hidden();
        };
        """
    )
    assert {name: len(functions) for name, functions in found.items()} == {"Held": 3, "Inner": 1}


def test_classes_are_split_by_who_uses_what():
    large = {
        f"{path.relative_to(CSRC)}: {name}"
        for path in CSRC.rglob("*.h")
        for name, functions in classes_in(path.read_text()).items()
        if len(functions) > MOST
    }
    assert large == LARGER
