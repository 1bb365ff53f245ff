"""``torch.utils.flop_counter`` on roofprof's observer: ``from roofprof.compat.flop_counter import FlopCounterMode``.

The convention is torch's: 2 FLOPs for each multiply-accumulate of products, convolutions and attention, nothing for all
else, by the names of the operators below autograd and by module ("ResNet.layer1.0"). Differences:

==============================================  ==================================  =============================
what runs in the block                          torch                               here
==============================================  ==================================  =============================
backward of a grouped convolution               its weight's gradient times groups  the MACs that are done
backward of a branch (a residual's)             the whole block's, in its row       its own
LSTM and GRU, ``mv``, ``dot``, int8 products    0                                   their MACs
custom ops without a formula                    0                                   the MACs of the ops inside
a module called without its parent              its own and those inside            its parents' too
TorchScript modules                             one row                             a row for each module inside
higher-order ops without a formula              refused, or skipped                 run, and the ops inside counted
``get_table``                                   needs tabulate                      needs nothing
==============================================  ==================================  =============================

Figures can be asked for inside the block, as with torch. A backward after that is in "Global" alone where its forward
ran before; so is one through a module that was made after the first call of a model.

All that roofprof counts inside the block (``roofprof.count``, ``profile``, ``with prof:``, another FlopCounterMode) is
counted here too; a block without a model counts in "Global" alone. ``profile`` makes several calls: one of them counts
here. Other threads are not counted, as with torch: each may open its own counter.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.flop_counter import register_flop_formula

import roofprof
from roofprof.compat._flop_counter_modules import ModulesSeen
from roofprof.compat._flop_counter_ops import OpsBelowAutograd, from_formula, operator_key, user_formulas
from roofprof.compat._flop_counter_table import table

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["FlopCounterMode", "register_flop_formula"]

FlopCounts = dict[str, dict[Any, int]]

_OPEN = threading.local()  # .blocks: this thread's, outer before inner


class _Observer(roofprof.RooflineProfiler):
    """The observer of a FlopCounterMode. Other observers make way by :meth:`FlopCounterMode._alone`."""

    def _turn(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()


class FlopCounterMode:
    """Counts the FLOPs of what runs inside the block, forward and backward, by module and operator.

    mods: not needed, as in torch; it warns.
    depth: how deep the printed table goes, None for all of it; display: print it at the end of the block.
    custom_mapping: by operator (``torch.ops.aten.mm``) a function of the call's arguments, with shapes in place of
        tensors, and ``out_shape``, that returns its FLOPs; it replaces what the operator would count.
    skip_unsupported: nothing has to be skipped here; :meth:`get_unsupported_ops` lists ops without a known cost anyway.
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
        self.depth = depth
        self.display = display
        self.skip_unsupported = skip_unsupported
        self._formulas = user_formulas(custom_mapping or {})
        self._counts: FlopCounts = {}
        self._unsupported: Counter[str] = Counter()
        self._block: contextlib.ExitStack | None = None  # while it is open
        self._modules = ModulesSeen()
        self._ops: OpsBelowAutograd | None = None
        self._guest: roofprof.RooflineProfiler | None = None  # what observes meanwhile
        self._profiler: _Observer | None = None

    # ---- figures

    @property
    def flop_counts(self) -> FlopCounts:
        """FLOPs by module and operator, "Global" for all; of what ran so far while the block is open."""
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
        return table(self.flop_counts, self.depth if depth is None else depth)

    # ---- the block

    def __enter__(self) -> Self:
        if self._block is not None:
            raise RuntimeError("this FlopCounterMode is open already: use another one for a block inside its block")
        self._counts, self._unsupported = {}, Counter()
        self._modules = ModulesSeen()
        with contextlib.ExitStack() as stack:
            stack.enter_context(self._alone())
            self._open()
            stack.callback(self._close)
            stack.enter_context(self._modules.watching(self._include))
            self._ops = stack.enter_context(OpsBelowAutograd(self._formulas))
            self._block = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._block is None:
            raise RuntimeError("this FlopCounterMode is not open")
        block, self._block = self._block, None
        block.close()
        self._modules = ModulesSeen()
        if self.display:
            sys.stdout.write(self.get_table(self.depth) + "\n")

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Let a block around this one wait, as profiles do not nest; it gets this block's counts."""
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
    def _waiting(self, inner: FlopCounterMode) -> Iterator[None]:
        self._pause()
        try:
            yield
        finally:
            for module, counts in inner._counts.items():
                for key, flops in counts.items():
                    if key not in self._formulas:  # which were asked here too
                        self._count(module, key, flops)
            self._unsupported += inner._unsupported
            self._resume()

    @contextlib.contextmanager
    def _make_way(self, profiler: roofprof.RooflineProfiler) -> Iterator[None]:
        """Wait for a profiler of the user's that observes inside this block, and count what its report has."""
        blocks: list[FlopCounterMode] = list(_OPEN.blocks)
        self._pause()
        for block in blocks:
            block._guest = profiler
        try:
            yield
        finally:
            for block in blocks:
                block._guest = None
            try:
                if profiler._run.counted:
                    self._add(profiler.report(), _modules_by_path(profiler))
            finally:
                self._resume()

    def _pause(self) -> None:
        assert self._ops is not None
        self._close()
        self._ops.instead = self._count_formula

    def _resume(self) -> None:
        assert self._ops is not None
        self._ops.instead = None
        self._open()

    def _count_formula(self, key: Any, flops: Any) -> None:
        """Count what a formula says of a call that another observes."""
        if self._guest is None or not self._guest._run.counted:  # its calls after that are made to be timed
            for name in dict.fromkeys(("Global", *self._modules.names_open())):
                self._count(name, key, flops)

    def _open(self) -> None:
        # Observe the host's ops alone: nothing here is a time, so no GPU needs to be traced.
        profiler = _Observer(self._modules.together(), device="cpu", counters="off", ceilings=roofprof.Ceilings())
        profiler.__enter__()
        self._profiler = profiler

    def _close(self) -> None:
        profiler, self._profiler = self._profiler, None
        if profiler is not None:
            profiler.__exit__(None, None, None)
            self._add(profiler.report())

    def _restart(self) -> None:
        """Have in the counts what ran so far."""
        self._close()
        self._open()

    def _include(self, module: torch.nn.Module, args: Any) -> None:
        """Observe the call of a module that has no place yet, with all modules that there are."""
        if self._profiler is None:  # another one observes
            return
        self._close()
        self._modules.discover(module)
        self._open()
        # This call's hooks were chosen before the new block added its own.
        assert self._profiler is not None
        self._profiler._observer.session.enter_hook(module, args)

    def _add(self, report: roofprof.Report, places: Mapping[str, torch.nn.Module] | None = None) -> None:
        """Count what a report has. places: the modules by path, if its model is not ``self._modules.together()``."""
        around = () if places is None else tuple(self._modules.names_open())
        for group in report.group("module", "op"):
            path, operator = group.keys
            formulas, name = from_formula(operator)
            key = operator_key(name)
            replaced = key in self._formulas and not formulas
            flops = group.flops if formulas else 0 if replaced else 2 * group.macs
            if not flops:
                continue
            for module in dict.fromkeys(("Global", *around, *self._modules.names_above(path, places))):
                self._count(module, key, flops)
        for op in report.coverage.uncosted_ops:
            if operator_key(op.op) not in self._formulas:
                self._unsupported[op.op] += op.calls

    def _count(self, module: str, key: Any, flops: int) -> None:
        counts = self._counts.setdefault(module, {})
        counts[key] = counts.get(key, 0) + flops


def _modules_by_path(profiler: roofprof.RooflineProfiler) -> dict[str, torch.nn.Module]:
    tree = profiler._tree
    return {
        facts["path"]: module for facts, module in zip(tree.modules, tree.objects, strict=True) if module is not None
    }
