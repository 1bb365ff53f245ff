"""AOTInductor packages: compiled code of which no model is left, and what is known of its work.

That is a report of one call of the program that the package was compiled from. It rides in the package's metadata, or
comes from the exported program. All of torch's private interfaces to packages are here.
"""

from __future__ import annotations

import contextlib
import json
import sys
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar, NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import _pytree

from roofprof import _C
from roofprof.errors import Error
from roofprof.models.tree import ModelTree
from roofprof.state.shared_change import SharedChange

KEY = "roofprof"
"""The key of the counts in a package's metadata; csrc/run/profiler/model.cpp reads it too."""

Count = Callable[[torch.export.ExportedProgram, tuple[Any, ...], dict[str, Any]], str]
"""Counts one call of a program, and returns the report's JSON."""

_ARCHIVE = "torch.export.pt2_archive._package"
_FACTS = {"type", "has_forward", "forward_of_torch", "parameters_read", "parameters_tied"}
_FACTS |= {"params", "param_bytes", "buffer_bytes"}
_FACTS_OF_A_CALL = {"input_shapes", "output_shapes", "output_bytes"}
_SHAPES_KEPT = 16  # of a call, as roofprof's hooks keep them

Shapes = tuple[tuple[int, ...], ...]


@dataclass
class Known:
    """The counts of one call of a package: a report's JSON; "": there are none, and why_not may say why."""

    counts: str = ""
    why_not: str = ""
    program: torch.export.ExportedProgram | None = None
    modules: list[dict[str, Any]] = field(default_factory=list)
    shapes: Shapes = ()  # of the inputs for which it was counted; sorted, because keywords have any order

    def __post_init__(self) -> None:
        if self.counts:
            self.modules = json.loads(self.counts)["modules"]
            self.shapes = tuple(sorted(map(tuple, self.modules[0].get("input_shapes", []))))


_known: WeakKeyDictionary[Any, Known] = WeakKeyDictionary()


def is_package(value: object) -> bool:
    """Return True for what torch._inductor.aoti_load_package returns."""
    archive = sys.modules.get(_ARCHIVE)
    return archive is not None and type(value) is archive.AOTICompiledModel


def known_of(package: Any) -> Known:
    """Return what is known of the package's work."""
    if package not in _known:
        _known[package] = _from_metadata(package.get_metadata().get(KEY, ""))
    return _known[package]


def _from_metadata(text: str) -> Known:
    try:
        if text:
            _C.report_from_json(text)
        return Known(text)
    except RuntimeError as error:
        return Known(why_not=f"its counts cannot be read: {error}")


# ---- files


def holds_package(path: Path) -> bool:
    """Return True for the file of a package; False for other .pt2 files, and for what cannot be read."""
    try:
        with zipfile.ZipFile(path) as archive:
            return any("/data/aotinductor/" in name for name in archive.namelist())
    except (OSError, zipfile.BadZipFile):
        return False


def load(path: Path, model_name: str, program: torch.export.ExportedProgram | None, count: Count) -> Any:
    """Return the package in the file, with what is known of its work. Raises ValueError, one sentence."""
    if not path.is_file():
        raise Error(f"there is no file {path}")
    if not holds_package(path):
        raise Error(
            f"{path} is damaged, or not an AOTInductor package (roofprof docs guide-compiled#aotinductor-packages)"
        )
    try:
        from torch.export.pt2_archive._package import load_pt2
    except ImportError as error:
        raise Error(f"torch {torch.__version__} cannot load AOTInductor packages: {error}") from error
    try:
        metadata = _loader().load_metadata_from_package(str(path), model_name)
    except AttributeError:  # an older torch tells nothing of a package before it loads it
        metadata = {}
    except RuntimeError as error:
        raise Error(f"{path} has no model '{model_name}' that can be read: {_first_line(error)}") from error
    device = metadata.get("AOTI_DEVICE_KEY", "cpu")
    if device != "cpu" and not torch.get_device_module(device).is_available():
        raise Error(f"{path} was compiled for {device}, and torch finds no such device here")
    try:
        contents = load_pt2(str(path))
        package = contents.aoti_runners[model_name]
    except Exception as error:  # whatever a damaged file makes of its readers
        raise Error(f"{path} is damaged, or no package that this torch can load: {_first_line(error)}") from error
    known = known_of(package)
    program = program or contents.exported_programs.get(model_name)
    if program is not None:
        known.program = program
        if not known.counts:
            _known[package] = Known(counted(program, count), program=program)
    return package


def _loader() -> Any:
    return torch._C._aoti.AOTIModelPackageLoader


def counted(program: torch.export.ExportedProgram, count: Count) -> str:
    """Return the counts of a call with the program's example inputs. Raises ValueError where it has none."""
    if program.example_inputs is None:
        raise Error("the exported program has no example inputs: export it again, from the model")
    return count(program, *_fakes(_without_data(program.example_inputs)))


class _Tensor(NamedTuple):
    """Says how to make a fake tensor later: an observed call would have the ops that make one now."""

    size: torch.Size
    stride: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device

    def fake(self) -> torch.Tensor:
        return torch.empty_strided(self.size, self.stride, dtype=self.dtype, device=self.device)


def _without_data(arguments: Any) -> Any:
    return _pytree.tree_map_only(
        torch.Tensor, lambda each: _Tensor(each.size(), each.stride(), each.dtype, each.device), arguments
    )


def _fakes(arguments: Any) -> Any:
    with FakeTensorMode(allow_non_fake_inputs=True):
        return _pytree.tree_map_only(_Tensor, _Tensor.fake, arguments, is_leaf=lambda value: isinstance(value, _Tensor))


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


# ---- rows


def add_places(tree: ModelTree, package: Any, root: int) -> None:
    """Make ``root`` the package's place, and add those of the modules that it was compiled from below."""
    tree.modules[root]["same_as"] = next((place for known, place in tree.packages if known is package), -1)
    tree.packages.append((package, root))
    modules = known_of(package).modules
    if not modules:
        tree.modules[root]["params_known"] = False
        return
    above = tree.modules[root]["path"]
    places = [root, root, root]  # (outside) and (optimizer) do nothing in a call
    tree.modules[root] |= {name: modules[0][name] for name in _FACTS & modules[0].keys()}
    for facts in modules[3:]:
        path = f"{above}.{facts['path']}" if above else facts["path"]
        place = tree.add(path, facts["type"], places[facts["parent"]], None, has_forward=True)
        places.append(place)
        tree.modules[place] |= {name: facts[name] for name in (_FACTS | _FACTS_OF_A_CALL) & facts.keys()}
        if "same_as" in facts:
            tree.modules[place]["same_as"] = places[facts["same_as"]]


def sizes_in(module: torch.nn.Module) -> dict[int, tuple[int, Fraction]]:
    """Return, by identity, the parameters of packages that the module holds, and the bytes of each on average."""
    tops = {id(package): known_of(package).modules[:1] for _, package in held_by(module)}
    return {
        key: (top["params"], Fraction(top["param_bytes"], top["params"]))
        for key, modules in tops.items()
        for top in modules
        if top.get("params")
    }


def held_by(module: torch.nn.Module) -> list[tuple[str, Any]]:
    """Return the packages that are attributes of the module itself, with their names."""
    if _ARCHIVE not in sys.modules:
        return []
    return [(name, value) for name, value in vars(module).items() if is_package(value)]


# ---- calls


class Packages:
    """Reports calls of a tree's packages to the session as those of modules, and keeps the shapes of their inputs."""

    _observing: ClassVar[list[Packages]] = []

    def __init__(self, tree: ModelTree, session: _C.ModuleHooks, compiled: set[int]) -> None:
        self.in_compiled = any(tree.modules[place]["parent"] in compiled for _, place in tree.packages)
        self._places: dict[int, list[int]] = {}
        self._packages = {id(package): package for package, _ in tree.packages}
        for package, place in tree.packages:
            self._places.setdefault(id(package), []).append(place)
        self._session = session
        self._enter_hook, self._leave_hook = session.enter_hook, session.leave_hook
        self._calls: dict[tuple[int, Shapes], list[Any]] = {}  # [calls, arguments without data]

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Report every call in here."""
        if not self._places:
            yield
            return
        with _calls_are_seen():
            self._observing.append(self)
            try:
                yield
            finally:
                self._observing.remove(self)

    def enter(self, package: Any) -> None:
        """Begin a call of the package."""
        if id(package) in self._places:
            self._enter_hook(package)

    def leave(
        self, package: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any, *, returned: bool
    ) -> None:
        """End a call of the package, and keep its shapes if calls are counted now.

        What a call did that raised is not known: it has no counts.
        """
        if id(package) not in self._places:
            return
        self._leave_hook(package, args, kwargs, result)
        if not returned or not self._session.record_shapes or not self._session.active:
            return
        tensors = [value for value in _pytree.tree_leaves((args, kwargs)) if isinstance(value, torch.Tensor)]
        shapes = tuple(sorted(tuple(tensor.shape) for tensor in tensors[:_SHAPES_KEPT]))
        call = self._calls.setdefault((id(package), shapes), [0, None])
        call[0] += 1
        known = known_of(package)
        if call[1] is None and known.program is not None and shapes != known.shapes:
            call[1] = _without_data((args, kwargs))

    def counted(self, count: Count) -> list[tuple[int, str, int, str]]:
        """Return for each kind of calls of a package its place, the counts of one call, the calls, and why none.

        Of a package some of whose calls have no counts, none has.
        """
        found = []
        for key, package in self._packages.items():
            known, places = known_of(package), self._places[key]
            kinds = [
                _counts(known, shapes, calls, arguments, count)
                for (called, shapes), (calls, arguments) in self._calls.items()
                if called == key
            ]
            why = next((why for *_, why in kinds if why), known.why_not)
            if len(kinds) > 1 and len(places) > 1:
                why = "it stands at several places, and was called with inputs of several shapes"
            if why or not kinds:
                kinds = [("", 1, why)]
            found += [(place, *kind) for place in places for kind in kinds]
        return found


def _counts(known: Known, shapes: Shapes, calls: int, arguments: Any, count: Count) -> tuple[str, int, str]:
    if not known.counts or shapes == known.shapes:
        return known.counts, calls, ""
    if known.program is None:
        return "", calls, f"its counts are of inputs {_text(known.shapes)}, and these are {_text(shapes)}"
    try:
        return count(known.program, *_fakes(arguments)), calls, ""
    except Exception as error:  # the user's program may raise anything
        return "", calls, f"its program cannot be counted on inputs {_text(shapes)}: {_first_line(error)}"


def _text(shapes: Shapes) -> str:
    return ", ".join("x".join(map(str, shape)) for shape in shapes)


@SharedChange
@contextlib.contextmanager
def _calls_are_seen() -> Iterator[None]:
    kind = sys.modules[_ARCHIVE].AOTICompiledModel
    call = kind.__call__

    def observed(package: Any, *args: Any, **kwargs: Any) -> Any:
        observing = list(Packages._observing)
        for each in observing:
            each.enter(package)
        result, returned = None, False
        try:
            result = call(package, *args, **kwargs)
            returned = True
        finally:
            for each in reversed(observing):
                each.leave(package, args, kwargs, result, returned=returned)
        return result

    kind.__call__ = observed
    try:
        yield
    finally:
        if kind.__call__ is observed:
            kind.__call__ = call
