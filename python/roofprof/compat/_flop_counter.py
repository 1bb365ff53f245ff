"""torch.utils.flop_counter: whose module an op is, its operators, and its table."""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch.fx import GraphModule
from torch.nn.modules import module as nn_module
from torch.utils import flop_counter as torchs
from torch.utils._python_dispatch import TorchDispatchMode

import roofprof
from roofprof.compat._call import named_places

# ---- the modules that run, and their names in torch's FLOP counter: an outermost module's type, the paths of others

_MOST = 5_000


class _Together(torch.nn.Module):
    """All modules that may run, as one model."""


class _Open(threading.local):
    """The modules whose calls are under way on this thread, outer before inner."""

    def __init__(self) -> None:
        self.modules: list[torch.nn.Module] = []


class ModulesSeen:
    """The modules of a block: their names, and one tree in which all of them have a place."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._named_below: dict[int, torch.nn.Module] = {}  # kept alive, as names go by identity
        self._called: set[int] = set()
        self._together: _Together | None = None
        self._places: dict[str, torch.nn.Module] = {}
        self._in_tree: set[int] = set()
        self._open = _Open()
        self._thread = threading.get_ident()

    @contextlib.contextmanager
    def watching(self, unknown: Callable[[torch.nn.Module, Any], None]) -> Iterator[None]:
        """Name the called modules; ``unknown`` is called for one without a place that begins on this thread."""

        def before(module: torch.nn.Module, args: Any) -> None:
            self._called.add(id(module))
            self._open.modules.append(module)
            if len(self._open.modules) == 1:
                self._name(module)
                if id(module) not in self._in_tree and threading.get_ident() == self._thread:
                    unknown(module, args)

        def after(*_: Any) -> None:
            del self._open.modules[-1:]

        handles = [
            nn_module.register_module_forward_pre_hook(before),
            nn_module.register_module_forward_hook(after, always_call=True),
        ]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()
            nn_module._global_forward_hooks_always_called.pop(handles[1].id, None)

    def _name(self, module: torch.nn.Module) -> None:
        name = self._names.setdefault(id(module), type(module).__name__)
        if id(module) in self._named_below:
            return
        self._named_below[id(module)] = module
        for child_name, child in module.named_children():
            self._names[id(child)] = f"{name}.{child_name}"
            self._name(child)

    def discover(self, called: torch.nn.Module) -> None:
        """Give ``called`` a place, and all other modules that are there: a backward may run through them too.

        Graphs of torch.fx only where they are called, and in a process with very many modules no others.
        """
        self._together = None
        roots = {id(root): root for root in _roots()}
        if sum(1 for root in roots.values() for _ in root.modules()) > _MOST:
            roots = {id(root): root for root in roots.values() if any(called is one for one in root.modules())}
        below = {id(module) for root in roots.values() for module in root.modules()}
        if id(called) not in below:  # its parents are each other's children
            roots[id(called)] = called
        self._together = _Together()
        for number, root in enumerate(roots.values()):
            self._together.add_module(str(number), root)
        self._places = dict(named_places(self._together))
        self._in_tree = {id(module) for module in self._places.values()}

    def together(self) -> torch.nn.Module | None:
        """Return one module that contains every module with a place; None before any has one."""
        return self._together

    def names_open(self) -> Iterator[str]:
        """Yield the names of the modules whose calls are under way on this thread."""
        for module in self._open.modules:
            if id(module) in self._names:
                yield self._names[id(module)]

    def names_above(self, path: str, places: Mapping[str, torch.nn.Module] | None = None) -> Iterator[str]:
        """Yield the names of the module at a path and of those around it, as far as they were called.

        places: modules by path, those of another model than :meth:`together`.
        """
        places = self._places if places is None else places
        parts = path.split(".") if path else []
        if parts and parts[0] not in places:
            return
        for end in range(len(parts) + 1):
            module = places.get(".".join(parts[:end]))
            if module is None or id(module) not in self._names:
                continue
            # Lists have no row; modules in TorchScript run without being called from here.
            if id(module) in self._called or isinstance(module, torch.jit.ScriptModule):
                yield self._names[id(module)]


def _roots() -> list[torch.nn.Module]:
    """Return every module that is in no other one."""
    # Ask type(), not isinstance: isinstance asks objects for their __class__, which some compute.
    found = [each for each in gc.get_objects() if issubclass(type(each), torch.nn.Module)]
    modules = [each for each in found if not issubclass(type(each), (_Together, GraphModule)) and _is_made(each)]
    inside = {id(child) for module in modules for child in module._modules.values() if child is not None}
    return [module for module in modules if id(module) not in inside]


def _is_made(module: torch.nn.Module) -> bool:
    """Return True when the module's constructor has called nn.Module's."""
    return all(hasattr(module, name) for name in ("_modules", "_parameters", "_buffers"))


# ---- operators as torch's FLOP counter sees them: below autograd, by packet, some with a formula of the user's own

Formula = Callable[..., Any]

_FORMULA = " (formula)"  # after the name of an operator: what a formula declared for it


class OpsBelowAutograd(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Lets every op through, so that ops are observed as autograd dispatches them, and calls the formulas.

    A formula's result is declared as work; while another profiler observes, whose figures it is not for, it goes to
    ``self.instead``.
    """

    supports_higher_order_operators = True

    def __init__(self, formulas: Mapping[Any, Formula]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._formulas = formulas
        self.instead: Callable[[Any, Any], None] | None = None

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        packet = getattr(func, "_overloadpacket", func)
        formula = self._formulas.get(packet)
        if formula is not None and self.instead is not None:
            result = func(*args, **kwargs)
            self.instead(packet, formula(*args, **kwargs, out_val=result))
            return result
        if formula is not None:
            name = operator_name(packet)
            with roofprof.work(name + _FORMULA):  # the formula stands for the work inside
                result = func(*args, **kwargs)
            roofprof.work(name + _FORMULA, flops=formula(*args, **kwargs, out_val=result))
            return result
        if isinstance(func, torch._ops.OpOverload) and func is not torch.ops.prim.device.default:
            with self:  # in inference mode composite ops come whole
                result = func.decompose(*args, **kwargs)
            if result is not NotImplemented:
                return result
        return func(*args, **kwargs)


def user_formulas(custom_mapping: Mapping[Any, Formula]) -> dict[Any, Formula]:
    """Return the user's formulas by operator: registered ones (``register_flop_formula``) and ``custom_mapping``."""
    registered = {
        key: formula
        for key, formula in torchs.flop_registry.items()
        if getattr(formula, "__module__", None) != torchs.__name__
    }
    given = {
        key: formula if getattr(formula, "_get_raw", False) else torchs.shape_wrapper(formula)  # type: ignore[no-untyped-call]
        for key, formula in custom_mapping.items()
    }
    return registered | given


def operator_name(key: Any) -> str:
    """Return the name that reports have for an operator: "aten::mm"."""
    name: str = getattr(key, "_qualified_op_name", None) or getattr(key, "__name__", None) or str(key)
    return name


def operator_key(name: str) -> Any:
    """Return the operator of that name, the key of torch's counter; the name where there is none."""
    namespace, _, short = name.partition("::")
    try:
        return getattr(getattr(torch.ops, namespace), short) if short else name
    except (AttributeError, RuntimeError):
        return name


def from_formula(operator: str) -> tuple[bool, str]:
    """Split an operator's name: True where a formula declared its work, and the operator's own name."""
    return operator.endswith(_FORMULA), operator.removesuffix(_FORMULA)


# ---- the table that torch's FLOP counter prints

_LETTERS = ("", "K", "M", "B", "T")
_HEADER = ("Module", "FLOP", "% Total")

Line = tuple[str, str, str]


def table(counts: Mapping[str, Mapping[Any, int]], depth: int | None) -> str:
    """Return a line for each module down to ``depth``, sorted by name, and below it one for each of its operators.

    "Global" has lines only where no module has all of it. All figures have the letter that suits the total.
    """
    total = sum(counts.get("Global", {}).values())
    # Up to four digits before the point: 1001M, not 1.001B.
    scale = max(0, min(len(_LETTERS) - 1, (len(str(total)) - 2) // 3))

    def lines(name: str, indent: int) -> list[Line]:
        return [_line(" " * indent + name, sum(counts[name].values()), total, scale)] + [
            _line(" " * indent + f" - {key}", flops, total, scale) for key, flops in counts[name].items()
        ]

    modules = [name for name in sorted(counts) if name != "Global"]
    shown = [name for name in modules if depth is None or name.count(".") < depth]
    rows = [line for name in shown for line in lines(name, name.count("."))]
    if "Global" in counts and not any(sum(counts[name].values()) >= total for name in shown):
        rows = lines("Global", 0) + [(f" {name}", flops, share) for name, flops, share in rows]
    return _laid_out(rows or [("Global", "0", "0%")])


def _line(name: str, flops: int, total: int, scale: int) -> Line:
    amount = f"{flops / 1000**scale:.3f}{_LETTERS[scale]}" if scale else str(flops)
    return name, amount, f"{flops / total:.2%}" if total else "0%"


def _laid_out(rows: list[Line]) -> str:
    # The layout is tabulate's.
    widths = [max(len(title) + 2, *(len(row[column]) for row in rows)) for column, title in enumerate(_HEADER)]
    rule = "  ".join("-" * width for width in widths)

    def text(row: Line) -> str:
        first, *numbers = row
        return "  ".join([first.ljust(widths[0]), *map(str.rjust, numbers, widths[1:])])

    return "\n".join([text(_HEADER), rule, *map(text, rows)])
