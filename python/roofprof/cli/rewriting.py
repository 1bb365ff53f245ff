"""Rewrites a program's imports of other tools to those of roofprof.compat. Comments and layout stay (libcst).

A place whose meaning might change stays unchanged, and is listed with its line.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

# A tool's module, as programs import it, and the one of roofprof.compat that has its names.
TOOLS = {
    "calflops": "calflops",
    "deepspeed.profiling.flops_profiler": "deepspeed",
    "deepspeed.profiling.flops_profiler.profiler": "deepspeed",
    "fvcore.nn": "fvcore",
    "fvcore.nn.activation_count": "fvcore",
    "fvcore.nn.flop_count": "fvcore",
    "fvcore.nn.jit_analysis": "fvcore",
    "fvcore.nn.jit_handles": "fvcore",
    "fvcore.nn.parameter_count": "fvcore",
    "fvcore.nn.print_model_statistics": "fvcore",
    "ptflops": "ptflops",
    "ptflops.flops_counter": "ptflops",
    "thop": "thop",
    "thop.profile": "thop",
    "torch.utils.flop_counter": "flop_counter",
    "torchinfo": "torchinfo",
    "torchinfo.model_statistics": "torchinfo",
    "torchinfo.torchinfo": "torchinfo",
    "torchstat": "torchstat",
    "torchsummary": "torchsummary",
    "torchsummary.torchsummary": "torchsummary",
}
_COMPAT = "roofprof.compat"
_BY_NAME = {"import_module", "__import__"}


@dataclass(frozen=True)
class Left:
    """A place that could not be changed, and the reason."""

    line: int
    text: str


@dataclass(frozen=True)
class Migration:
    """A program's source with other imports."""

    source: bytes
    left: tuple[Left, ...]


def migrated(source: bytes) -> Migration:
    """Return the source with roofprof's imports. Raises ValueError, with the line, for text that is not Python."""
    try:
        module = cst.parse_module(source)
    except cst.ParserSyntaxError as error:
        raise ValueError(f"line {error.raw_line}: this is no Python: {error.message.splitlines()[0]}") from None
    except (SyntaxError, UnicodeDecodeError) as error:  # of the encoding
        raise ValueError(f"this is no text: {error}") from None
    wrapper = MetadataWrapper(module, unsafe_skip_copy=True)
    uses = _Uses()
    module.visit(uses)
    change = _Change(frozenset(uses.found))
    changed = wrapper.visit(change)
    return Migration(changed.bytes, tuple(sorted(change.left, key=lambda left: left.line)))


def names_of(tool: str) -> frozenset[str]:
    """Return the names that roofprof.compat has of a tool's module."""
    return frozenset(importlib.import_module(f"{_COMPAT}.{TOOLS[tool]}").__all__)


def _dotted(node: cst.CSTNode | None) -> str:
    """Return a name such as "fvcore.nn"; "" for any other expression."""
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute):
        above = _dotted(node.value)
        return f"{above}.{node.attr.value}" if above else ""
    return ""


def _name(dotted: str) -> cst.Name | cst.Attribute:
    *above, last = dotted.split(".")
    return cst.Attribute(_name(".".join(above)), cst.Name(last)) if above else cst.Name(last)


def _is_constant(node: cst.CSTNode) -> bool:
    """Return whether the node is None, True or False."""
    return isinstance(node, cst.Name) and node.value in {"None", "True", "False"}


class _Uses(cst.CSTVisitor):
    """Finds every dotted name outside of imports, the longest that there is: "thop.profile", "model.eval".

    A name that is only tested, or set to None, does not count: programs do that where a package may be missing.
    """

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()
        self._guards: set[cst.CSTNode] = set()

    def visit_Import(self, node: cst.Import) -> bool:  # noqa: ARG002
        return False

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:  # noqa: ARG002
        return False

    def visit_Assign(self, node: cst.Assign) -> None:
        if _is_constant(node.value):
            self._guards.update(target.target for target in node.targets)

    def visit_AnnAssign(self, node: cst.AnnAssign) -> None:
        if node.value is not None and _is_constant(node.value):
            self._guards.add(node.target)

    def visit_Comparison(self, node: cst.Comparison) -> None:
        if all(_is_constant(comparison.comparator) for comparison in node.comparisons):
            self._guards.add(node.left)

    def visit_If(self, node: cst.If) -> None:
        self._guards.add(node.test)

    def visit_IfExp(self, node: cst.IfExp) -> None:
        self._guards.add(node.test)

    def visit_Assert(self, node: cst.Assert) -> None:
        self._guards.add(node.test)

    def visit_UnaryOperation(self, node: cst.UnaryOperation) -> None:
        self._guards.add(node.expression)

    def visit_BooleanOperation(self, node: cst.BooleanOperation) -> None:
        if node in self._guards:
            self._guards.update((node.left, node.right))

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        name = _dotted(node)
        self.found.add(name)
        return not name  # of what is inside of a call or an index, names stand further in

    def visit_Name(self, node: cst.Name) -> None:
        if node not in self._guards:
            self.found.add(node.value)


class _Change(cst.CSTTransformer):
    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self, uses: frozenset[str]) -> None:
        super().__init__()
        self.left: list[Left] = []
        self._uses = uses
        self._renamed: dict[str, str] = {}  # dotted modules that are written out where they are used

    def _leave(self, node: cst.CSTNode, text: str) -> None:
        self.left.append(Left(self.get_metadata(PositionProvider, node).start.line, text))

    # ---- from tool import names

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine | cst.FlattenSentinel[cst.SimpleStatementLine]:
        if len(original_node.body) != 1 or not isinstance(statement := original_node.body[0], cst.ImportFrom):
            return updated_node
        both = self._split(statement)
        if both is None:
            return updated_node
        ours, theirs = both
        return cst.FlattenSentinel(
            [updated_node.with_changes(body=[ours]), cst.SimpleStatementLine([theirs], leading_lines=[])]
        )

    def _split(self, node: cst.ImportFrom) -> tuple[cst.ImportFrom, cst.ImportFrom] | None:
        """Return the import of the names that roofprof has, and that of the others; None unless the import has both."""
        tool = _tool_of(node)
        if not tool or isinstance(node.names, cst.ImportStar):
            return None
        known = names_of(tool)
        ours = [alias for alias in node.names if alias.evaluated_name in known]
        theirs = [alias for alias in node.names if alias.evaluated_name not in known]
        if not ours or not theirs:
            return None
        return (
            node.with_changes(module=_name(f"{_COMPAT}.{TOOLS[tool]}"), names=_last_comma_as_it_may_be(ours, node)),
            node.with_changes(names=_last_comma_as_it_may_be(theirs, node)),
        )

    def leave_ImportFrom(self, original_node: cst.ImportFrom, updated_node: cst.ImportFrom) -> cst.ImportFrom:
        module = "" if original_node.relative else _dotted(original_node.module)
        tool = _tool_of(original_node)
        if isinstance(original_node.names, cst.ImportStar):
            if tool:
                self._leave(original_node, f"from {tool} import *: name what is imported")
            return updated_node
        names = [alias.evaluated_name for alias in original_node.names]
        if not tool:
            for name in names:
                if f"{module}.{name}" in TOOLS:
                    self._leave(original_node, f"from {module} import {name}: import its names instead")
                elif _is_of_a_tool(module):
                    self._leave(original_node, f"from {module} import {name}: roofprof.compat does not have it")
            return updated_node
        known = names_of(tool)
        unknown = [name for name in names if name not in known]
        if unknown:
            self._leave(original_node, f"from {tool} import {', '.join(unknown)}: roofprof.compat does not have it")
        if len(unknown) in {0, len(names)}:
            return updated_node if unknown else updated_node.with_changes(module=_name(f"{_COMPAT}.{TOOLS[tool]}"))
        return updated_node

    # ---- import tool

    def leave_Import(self, original_node: cst.Import, updated_node: cst.Import) -> cst.Import:
        names = [self._imported(alias, original_node) for alias in updated_node.names]
        return updated_node.with_changes(names=names)

    def _imported(self, alias: cst.ImportAlias, statement: cst.Import) -> cst.ImportAlias:
        tool = alias.evaluated_name
        if tool not in TOOLS:
            used = any(f"{use}.".startswith(f"{name}.") for use in self._uses for name in _below(alias))
            if _is_of_a_tool(tool) or used:
                self._leave(statement, f"import {tool}: import its names instead, where roofprof.compat has them")
            return alias
        used_as = alias.evaluated_alias or tool
        unknown = sorted(set(self._used_of(used_as)) - names_of(tool))
        root = used_as.split(".")[0]
        others = "." in used_as and any(
            use.split(".")[0] == root and not use.startswith(f"{used_as}.") for use in self._uses
        )
        if unknown:
            self._leave(statement, f"import {tool}: roofprof.compat does not have {', '.join(unknown)}")
        elif others:
            self._leave(statement, f"import {tool}: '{root}' is used by itself; import the names of {tool} instead")
        elif "." in used_as:
            self._renamed[used_as] = f"{_COMPAT}.{TOOLS[tool]}"
            return alias.with_changes(name=_name(self._renamed[used_as]))
        else:
            name = _name(f"{_COMPAT}.{TOOLS[tool]}")
            asname = alias.asname or cst.AsName(cst.Name(used_as))
            return alias.with_changes(name=name, asname=asname)
        return alias

    def _used_of(self, module: str) -> Iterator[str]:
        """Yield the used names of a module: "profile" of "thop.profile", and "the module itself"."""
        for use in self._uses:
            if use == module:
                yield "the module itself"
            elif use.startswith(f"{module}."):
                yield use[len(module) + 1 :].split(".")[0]

    # ---- where they are used

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        ours = self._renamed.get(_dotted(original_node))
        return _name(ours) if ours else updated_node

    def visit_Call(self, node: cst.Call) -> None:
        called = node.func.attr.value if isinstance(node.func, cst.Attribute) else _dotted(node.func)
        if called == "set_op_handle":
            self._leave(node, "set_op_handle: write the handle anew, for one argument (docs/compat.md)")
        if called not in _BY_NAME or not node.args or not isinstance(text := node.args[0].value, cst.SimpleString):
            return
        if text.evaluated_value in TOOLS:
            self._leave(node, f"{called}({text.value}): it is imported by its name; import roofprof.compat's module")


def _is_of_a_tool(module: str) -> bool:
    return any(module.startswith(f"{tool}.") for tool in TOOLS)


def _below(alias: cst.ImportAlias) -> list[str]:
    """Return the tools' modules inside of this one, by the program's names for them."""
    module, used_as = alias.evaluated_name, alias.evaluated_alias or alias.evaluated_name
    if module == "torch":  # programs that import torch use other parts of it, and have that one from it
        return [f"{used_as}.utils.flop_counter"]
    return [used_as + tool.removeprefix(module) for tool in TOOLS if tool.startswith(f"{module}.")]


def _tool_of(node: cst.ImportFrom) -> str:
    """Return the tool's module; "" for other imports."""
    module = "" if node.relative else _dotted(node.module)
    return module if module in TOOLS else ""


def _last_comma_as_it_may_be(names: Sequence[cst.ImportAlias], of: cst.ImportFrom) -> Sequence[cst.ImportAlias]:
    """Inside parentheses it stays, with the comment behind it."""
    return names if of.lpar else [*names[:-1], names[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)]
