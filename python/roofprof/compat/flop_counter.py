"""``torch.utils.flop_counter`` on roofprof's observer: docs/compat.md has what differs, and how blocks nest."""

from __future__ import annotations

import contextlib
import gc
import sys
import threading
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch.fx import GraphModule
from torch.utils import flop_counter as torchs
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import register_flop_formula

import roofprof
from roofprof.compat._call import Around, global_hooks, named_places
from roofprof.compat._table import share, shown

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["FlopCounterMode", "register_flop_formula"]

# ---- the modules that run, and their names in torch's FLOP counter: an outermost module's type, the paths of others

_MOST = 5_000


class _Together(torch.nn.Module):
    """All modules that may run, as one model."""


class _ModulesSeen:
    """Names the modules of a block, and puts all of them into one tree."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._named_below: dict[int, torch.nn.Module] = {}  # kept alive, as names go by identity
        self._called: set[int] = set()
        self._places: dict[str, torch.nn.Module] = {}
        self._in_tree: set[int] = set()
        self._open: defaultdict[int, list[torch.nn.Module]] = defaultdict(list)  # by thread, outer before inner
        self._thread = threading.get_ident()
        self.together: _Together | None = None  # a module that contains every module with a place

    def watching(self, unknown: Callable[[torch.nn.Module, Any], None]) -> Around:
        """Name the called modules; ``unknown`` is called for one without a place that begins on this thread."""

        def before(module: torch.nn.Module, args: Any) -> None:
            self._called.add(id(module))
            thread = threading.get_ident()
            self._open[thread].append(module)
            if len(self._open[thread]) == 1:
                self._name(module)
                if id(module) not in self._in_tree and thread == self._thread:
                    unknown(module, args)

        def after(*_: Any) -> None:
            del self._open[threading.get_ident()][-1:]

        return global_hooks(before, after, always_call=True)

    def _name(self, module: torch.nn.Module) -> None:
        name = self._names.setdefault(id(module), type(module).__name__)
        if id(module) not in self._named_below:
            self._named_below[id(module)] = module
            for child_name, child in module.named_children():
                self._names[id(child)] = f"{name}.{child_name}"
                self._name(child)

    def discover(self, called: torch.nn.Module) -> None:
        """Give a place to ``called`` and, but for very many, to all other modules: a backward may run through them."""
        self.together = None
        roots = {id(root): root for root in _roots()}
        if sum(1 for root in roots.values() for _ in root.modules()) > _MOST:
            roots = {id(root): root for root in roots.values() if any(called is one for one in root.modules())}
        if not any(called is one for root in roots.values() for one in root.modules()):
            roots[id(called)] = called  # its parents are each other's children
        self.together = _Together()
        for number, root in enumerate(roots.values()):
            self.together.add_module(str(number), root)
        self._places = dict(named_places(self.together))
        self._in_tree = {id(module) for module in self._places.values()}

    def names_open(self) -> list[str]:
        """Return the names of the modules whose calls are under way on this thread."""
        return [self._names[id(one)] for one in self._open[threading.get_ident()] if id(one) in self._names]

    def names_above(self, path: str, places: Mapping[str, torch.nn.Module] | None = None) -> Iterator[str]:
        """Yield the names of the module at a path of ``places`` and of those around it, as far as they were called."""
        places = self._places if places is None else places
        parts = path.split(".") if path else []
        for end in range(len(parts) + 1 if not parts or parts[0] in places else 0):
            module = places.get(".".join(parts[:end]))
            # Lists have no row; modules in TorchScript run without being called from here.
            if id(module) in self._names and (id(module) in self._called or isinstance(module, torch.jit.ScriptModule)):
                yield self._names[id(module)]


def _roots() -> list[torch.nn.Module]:
    """Return every module that is in no other one."""
    # Ask type(), not isinstance: isinstance asks objects for their __class__, which some compute.
    found = [each for each in gc.get_objects() if issubclass(type(each), torch.nn.Module)]
    names = ("_modules", "_parameters", "_buffers")  # a constructor may not have called nn.Module's yet
    found = [each for each in found if not issubclass(type(each), (_Together, GraphModule))]
    modules = [each for each in found if all(hasattr(each, name) for name in names)]
    inside = {id(child) for module in modules for child in module._modules.values() if child is not None}
    return [module for module in modules if id(module) not in inside]


# ---- operators as torch's FLOP counter sees them: below autograd, by packet, some with a formula of the user's own

_FORMULA = " (formula)"  # after the name of an operator: what a formula declared for it


class _OpsBelowAutograd(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Runs every op below autograd, where it is observed, and declares the formulas' results as work.

    While another profiler observes, which must not get them, they go to ``self.instead``.
    """

    supports_higher_order_operators = True

    def __init__(self, formulas: Mapping[Any, Callable[..., Any]]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._formulas = formulas
        self.instead: Callable[[Any, Any], None] | None = None

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        packet = getattr(func, "_overloadpacket", func)
        formula = self._formulas.get(packet)
        if formula is not None:
            name = _operator_name(packet) + _FORMULA
            # The formula stands for the work inside.
            with contextlib.nullcontext() if self.instead else roofprof.work(name):
                result = func(*args, **kwargs)
            flops = formula(*args, **kwargs, out_val=result)
            self.instead(packet, flops) if self.instead else roofprof.work(name, flops=flops)
            return result
        if isinstance(func, torch._ops.OpOverload) and func is not torch.ops.prim.device.default:
            with self:  # in inference mode composite ops come whole
                result = func.decompose(*args, **kwargs)
            if result is not NotImplemented:
                return result
        return func(*args, **kwargs)


def _user_formulas(custom_mapping: Mapping[Any, Callable[..., Any]]) -> dict[Any, Callable[..., Any]]:
    """Return the user's formulas by operator: registered ones (``register_flop_formula``) and ``custom_mapping``."""
    registered = {
        key: formula
        for key, formula in torchs.flop_registry.items()
        if getattr(formula, "__module__", None) != torchs.__name__
    }
    return registered | {
        key: formula if getattr(formula, "_get_raw", False) else torchs.shape_wrapper(formula)  # type: ignore[no-untyped-call]
        for key, formula in custom_mapping.items()
    }


def _operator_name(key: Any) -> str:
    """Return the name that reports have for an operator: "aten::mm"."""
    return str(getattr(key, "_qualified_op_name", None) or getattr(key, "__name__", None) or key)


def _operator_key(name: str) -> Any:
    """Return the operator of that name, the key of torch's counter; the name where there is none."""
    namespace, _, short = name.partition("::")
    try:
        return getattr(getattr(torch.ops, namespace), short) if short else name
    except (AttributeError, RuntimeError):
        return name


# ---- the block

FlopCounts = dict[str, dict[Any, int]]

_OPEN = threading.local()  # .blocks: this thread's, outer before inner


class _Observer(roofprof.RooflineProfiler):
    """The observer of a FlopCounterMode. Other observers make way by :meth:`FlopCounterMode._alone`."""

    def _turn(self) -> Around:
        return contextlib.nullcontext()


class FlopCounterMode:
    """Counts the FLOPs of what runs inside the block, forward and backward, by module and operator.

    custom_mapping: by operator (``torch.ops.aten.mm``) a function of the call's arguments, with shapes in place of
        tensors, and ``out_shape``, that returns its FLOPs; it replaces what the operator would count.
    skip_unsupported: changes nothing; :meth:`get_unsupported_ops` lists ops without a known cost.
    """

    def __init__(
        self,
        mods: torch.nn.Module | list[torch.nn.Module] | None = None,
        depth: int = 2,
        display: bool = True,
        custom_mapping: dict[Any, Any] | None = None,
        skip_unsupported: bool = False,
    ) -> None:
        if mods is not None:
            warnings.warn("mods argument is not needed anymore, you can stop passing it", stacklevel=2)
        self.depth, self.display, self.skip_unsupported = depth, display, skip_unsupported
        self._formulas = _user_formulas(custom_mapping or {})
        self._counts: FlopCounts = {}
        self._unsupported: Counter[str] = Counter()
        self._block: contextlib.ExitStack | None = None  # while it is open
        self._modules = _ModulesSeen()
        self._ops = _OpsBelowAutograd(self._formulas)
        self._guest: roofprof.RooflineProfiler | None = None  # what observes meanwhile
        self._profiler: _Observer | None = None

    # ---- figures

    @property
    def flop_counts(self) -> FlopCounts:
        """FLOPs by module and operator, "Global" for all; while the block is open, of the part that has run."""
        if self._profiler is not None:
            self._restart()
        return self._counts

    def get_total_flops(self) -> int:
        """Return the FLOPs of everything in the block."""
        return sum(self.flop_counts.get("Global", {}).values())

    def get_flop_counts(self) -> FlopCounts:
        """Return FLOPs by module name, the modules below it included, and operator; "Global" is everything."""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def get_unsupported_ops(self) -> Counter[str]:
        """Return the calls of operators that count 0 because they have neither a cost nor a formula."""
        if self._profiler is not None:
            self._restart()
        return Counter(self._unsupported)

    def get_table(self, depth: int | None = None) -> str:
        """Return the figures as text: modules down to ``depth`` (None: the constructor's), and their operators."""
        depth, total, lines = self.depth if depth is None else depth, self.get_total_flops(), []
        for name in sorted(self._counts, key=lambda name: (name != "Global", name)):
            level = name.count(".")
            if depth is None or level < depth:
                own = {
                    name: sum(self._counts[name].values()),
                    **{f" - {key}": n for key, n in self._counts[name].items()},
                }
                lines += [(level, (key, n, share(n, total))) for key, n in own.items()]
        return shown(("Module", "FLOP", "% Total"), lines or [(0, ("Global", 0, "0%"))])

    # ---- the block

    def __enter__(self) -> Self:
        if self._block is not None:
            raise RuntimeError("this FlopCounterMode is open already: use another one for a block inside its block")
        self._counts, self._unsupported, self._modules = {}, Counter(), _ModulesSeen()
        with contextlib.ExitStack() as stack:
            stack.enter_context(self._alone())
            self._open()
            stack.callback(self._close)
            stack.enter_context(self._modules.watching(self._include))
            stack.enter_context(self._ops)
            self._block = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        if self._block is None:
            raise RuntimeError("this FlopCounterMode is not open")
        block, self._block = self._block, None
        block.close()
        self._modules = _ModulesSeen()
        if self.display:
            sys.stdout.write(self.get_table(self.depth) + "\n")

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Make a block around this one wait, because profiles do not nest; it gets this block's counts."""
        blocks: list[FlopCounterMode] = _OPEN.__dict__.setdefault("blocks", [])
        make_way = roofprof.RooflineProfiler._around.make_way
        with blocks[-1]._waiting(self) if blocks else contextlib.nullcontext():
            blocks.append(self)
            make_way.append(self._make_way)
            try:
                yield
            finally:
                make_way.remove(self._make_way)
                blocks.remove(self)

    @contextlib.contextmanager
    def _pausing(self) -> Iterator[None]:
        self._close()
        self._ops.instead = self._count_formula
        try:
            yield
        finally:
            self._ops.instead = None
            self._open()

    @contextlib.contextmanager
    def _waiting(self, inner: FlopCounterMode) -> Iterator[None]:
        with self._pausing():
            try:
                yield
            finally:
                for module, counts in inner._counts.items():
                    for key, flops in counts.items():
                        self._count(module, key, 0 if key in self._formulas else flops)  # which were asked here too
                self._unsupported += inner._unsupported

    @contextlib.contextmanager
    def _make_way(self, profiler: roofprof.RooflineProfiler) -> Iterator[None]:
        """Wait while a profiler of the user's observes inside this block, and count the work in its report."""
        blocks: list[FlopCounterMode] = list(_OPEN.blocks)
        with self._pausing():
            for block in blocks:
                block._guest = profiler
            try:
                yield
            finally:
                for block in blocks:
                    block._guest = None
                if profiler._run.counted:
                    tree = profiler._tree
                    by_path = zip((facts["path"] for facts in tree.modules), tree.objects, strict=True)
                    self._add(profiler.report(), {path: module for path, module in by_path if module is not None})

    def _count_formula(self, key: Any, flops: Any) -> None:
        """Count a formula's FLOPs of a call that another profiler observes."""
        if self._guest is None or not self._guest._run.counted:  # its calls after that are made to be timed
            for name in dict.fromkeys(("Global", *self._modules.names_open())):
                self._count(name, key, flops)

    def _open(self) -> None:
        # Observe the host's ops alone: nothing here is a time, so no GPU needs to be traced.
        profiler = _Observer(self._modules.together, device="cpu", counters="off", ceilings=roofprof.Ceilings())
        profiler.__enter__()
        self._profiler = profiler

    def _close(self) -> None:
        profiler, self._profiler = self._profiler, None
        if profiler is not None:
            profiler.__exit__(None, None, None)
            self._add(profiler.report())

    def _restart(self) -> None:
        """Add the work that has run to the counts."""
        self._close()
        self._open()

    def _include(self, module: torch.nn.Module, args: Any) -> None:
        """Observe the call of a module that has no place yet, and all modules that exist now."""
        if self._profiler is not None:  # else another one observes
            self._close()
            self._modules.discover(module)
            self._open()
            # This call's hooks were chosen before the new block added its own.
            self._profiler._observer.session.enter_hook(module, args)

    def _add(self, report: roofprof.Report, places: Mapping[str, torch.nn.Module] | None = None) -> None:
        """Count a report's work. places: the modules by path, if its model is not ``self._modules.together``."""
        around = () if places is None else self._modules.names_open()
        for group in report.group("module", "op"):
            path, operator = group.keys
            key = _operator_key(operator.removesuffix(_FORMULA))
            flops = group.flops if operator.endswith(_FORMULA) else 0 if key in self._formulas else 2 * group.macs
            for module in dict.fromkeys(("Global", *around, *self._modules.names_above(path, places))):
                self._count(module, key, flops)
        for op in report.coverage.uncosted_ops:
            if _operator_key(op.op) not in self._formulas:
                self._unsupported[op.op] += op.calls

    def _count(self, module: str, key: Any, flops: int) -> None:
        if flops:
            counts = self._counts.setdefault(module, {})
            counts[key] = counts.get(key, 0) + flops
