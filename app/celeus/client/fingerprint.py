"""The fingerprint of a judge, and the check of the one who takes work up: two are not to be mixed.

A fingerprint has three parts. ``code`` is a digest of what decides how it judges: the bytecode of
a function and of the functions, classes and modules it refers to or imports, its defaults, its
numbers and texts and every constant in capitals; of a model the name, rubric and request; of a
program the files of its command. ``values`` is a digest of what may change while it judges, as a
list it appends to, and empty where something cannot be read, as a connection or a file.
``runtime`` is the Python that made the bytecode. Installed packages count by their names, but for
the one that the judge is part of. The same program has the same fingerprint in every process.
"""

import dis
import functools
import hashlib
import importlib.util
import json
import logging
import re
import sys
import sysconfig
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path, PurePath
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Literal

from celeus.errors import InvalidValue

ATOMS = (type(None), bool, int, float, complex, str, bytes, type(...))
CONTAINERS = (list, set, dict)
LETTERS = 10
"""Digits of a digest: two digests and a runtime fit into a tag of a session."""
MOST_RUNTIME = 12
MOST_MEMBERS = 10_000
"""Members of a container of other than JSON values that are read."""
_PACKAGES = tuple(
    sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")
)
_Cached = type(functools.cache(len))
_STORES = frozenset({"STORE_GLOBAL", "STORE_DEREF"})
_LOADS = frozenset({"LOAD_GLOBAL", "LOAD_NAME"})
_OUTSIDE = frozenset({"open", "read_text", "read_bytes", "environ", "getenv", "import_module"})
"""Names by which code reads what is neither in it nor in what it refers to; as are these alone:"""
_BUILTINS = frozenset({"eval", "exec", "globals", "__import__"})


@dataclass(frozen=True, slots=True)
class Comparison:
    """The verdict on a judge against the one that judged before, and ``why`` it is so."""

    verdict: Literal["same", "changed", "unknown"]
    why: str


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Digests that a judge is known by; ``unread`` names the parts that could not be read."""

    runtime: str
    code: str
    values: str
    unread: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.code}-{self.values or 0}-{self.runtime}"

    def against(self, earlier: str | None) -> "Comparison":
        """Compare with the text of an earlier judge's fingerprint, None where there is none."""
        code, values, runtime = [*(earlier or "").split("-", 2), "", ""][:3]
        unknown = None
        if earlier is None:
            unknown = "it is not known who gave the earlier judgements"
        elif runtime != self.runtime:
            unknown = f"the earlier judge was run by {runtime}"
        elif not self.code or not code:
            unknown = "its code cannot be read"
        elif code != self.code:
            return Comparison("changed", "its code or its constants differ")
        elif self.unread:
            unknown = f"{', '.join(self.unread)} cannot be read"
        elif values != self.values:
            unknown = "its code is the same, but values that it reads differ"
        return Comparison("same", "") if unknown is None else Comparison("unknown", unknown)


def fingerprint(judge: object, *, scored: bool = False) -> Fingerprint:
    """Return the fingerprint of a function, or of whatever describes a judge in plain values.

    A function whose returns are scores (``scored``) is another judge than if they were losses.
    """
    runtime = (sys.implementation.cache_tag or "")[:MOST_RUNTIME] if callable(judge) else "data"
    whose = judge if hasattr(judge, "__module__") else type(judge)
    reader = _Reader(str(getattr(whose, "__module__", "")).partition(".")[0])
    try:
        code = reader.read("the judge", judge)
    except (OSError, RecursionError, ValueError):
        return Fingerprint(runtime, "", "", ("the judge",))
    values = "" if reader.unread else _digest(reader.values)
    if scored:
        code = [code, "returns a score"]
    return Fingerprint(runtime, _digest(code), values, tuple(dict.fromkeys(reader.unread)))


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:LETTERS]


class _Reader:
    """Reads a judge as JSON, and keeps apart what may change while it judges.

    ``package`` is the top-level package that the judge is part of.
    """

    def __init__(self, package: str = "") -> None:
        self.values: list[object] = []
        self.unread: list[str] = []
        self._package = package
        self._files: set[Path] = set()
        self._seen: dict[int, int] = {}
        self._alive: list[object] = []
        """Objects seen, kept so that no other object gets the id of one."""

    def read(  # noqa: PLR0911 -- one a kind of value
        self, name: str, value: object, *, stays: bool = True
    ) -> object:
        """Return a value under its name as JSON; what may not stay goes to ``values``."""
        if type(value) in ATOMS:
            return self._kept(name, [type(value).__name__, repr(value)], stays=stays)
        if type(value) is tuple or type(value) is frozenset:
            return self._fixed(name, value, stays=stays)
        if isinstance(value, re.Pattern):
            return ["pattern", str(value.pattern), value.flags]
        if isinstance(value, PurePath):
            return ["path", str(value)]
        if id(value) in self._seen:
            return ["seen", self._seen[id(value)]]
        self._seen[id(value)] = len(self._seen)
        self._alive.append(value)
        content = self._content(name, value, stays=stays)
        if content is None:
            return self._code(name, value)
        if self._installed(type(value).__module__, _file_of(type(value))):
            return content
        return [content, self._object(name, value)]

    def _content(self, name: str, value: object, *, stays: bool) -> object:
        """Return what an object is as a container, a number or a text; None of any other."""
        if isinstance(value, CONTAINERS):
            return self._kept(name, self._container(name, value), stays=stays)
        if isinstance(value, tuple | frozenset):
            return self._fixed(name, value, stays=stays)
        kind = next((kind for kind in ATOMS if isinstance(value, kind)), None)
        if kind is None:
            return None
        return self._kept(name, [kind.__name__, _repr(kind, value)], stays=stays)

    def _fixed(self, name: str, value: Collection[object], *, stays: bool) -> object:
        inner = [self.read(name, member, stays=stays) for member in self._ordered(value)]
        return [type(value).__name__, inner]

    def _ordered(self, value: Collection[object]) -> Collection[object]:
        """Return members in the same order in every process."""
        if not isinstance(value, set | frozenset):
            return value
        # By what they are alone: what was seen before depends on the order
        return sorted(value, key=lambda member: json.dumps(_Reader(self._package).read("", member)))

    def _kept(self, name: str, read: object, *, stays: bool) -> object:
        if stays:
            return read
        self.values.append([name, read])
        return ["value"]

    def _container(self, name: str, value: Collection[object]) -> object:
        kind = type(value).__name__
        with suppress(TypeError, ValueError):
            # Thousands of items take seconds one by one
            return [kind, json.dumps(value, sort_keys=True)]
        if len(value) > MOST_MEMBERS:
            self.unread.append(name)
            return ["unread", kind]
        if isinstance(value, dict):
            return [kind, _sorted([self.read(name, pair) for pair in value.items()])]
        return [kind, [self.read(name, member) for member in self._ordered(value)]]

    def _code(  # noqa: PLR0911 -- one a kind of value
        self, name: str, value: object
    ) -> object:
        if isinstance(value, FunctionType):
            return self._function(value)
        if isinstance(value, MethodType):
            return [self.read(name, value.__func__), self.read(name, value.__self__)]
        if isinstance(value, functools.partial | functools.partialmethod):
            parts = (value.func, value.args, value.keywords)
            return ["partial", *(self.read(name, part) for part in parts)]
        if isinstance(value, _Cached):
            return ["cached", self.read(name, value.__wrapped__)]
        if isinstance(value, functools.cached_property):
            return ["cached", self.read(name, value.func)]
        if isinstance(value, BuiltinFunctionType):
            owner = value.__self__
            whose = None if isinstance(owner, ModuleType) else self.read(name, owner)
            return ["builtin", value.__name__, whose]
        if isinstance(value, ModuleType):
            return self._module(value)
        if isinstance(value, type):
            return self._class(value)
        if self._installed(type(value).__module__, _file_of(type(value))):
            self.unread.append(name)
            return ["unread", type(value).__qualname__]
        return self._object(name, value)

    def _object(self, name: str, value: object) -> object:
        members = dict(getattr(value, "__dict__", {}))
        for kind in type(value).__mro__:
            for member, slot in vars(kind).items():
                if isinstance(slot, MemberDescriptorType):
                    with suppress(AttributeError):
                        members[member] = slot.__get__(value)
        return ["object", self.read(name, type(value)), self._members(name, members)]

    def _members(self, name: str, members: dict[str, object]) -> object:
        return [
            [member, self.read(f"{name}.{member}", value, stays=isinstance(value, str))]
            for member, value in sorted(members.items())
        ]

    def _function(self, function: FunctionType) -> object:
        code = function.__code__
        closure: dict[str, object] = {}
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            try:
                closure[name] = cell.cell_contents
            except ValueError:
                # Not yet bound
                closure[name] = None
        if self._installed(function.__module__, code.co_filename):
            return self._decorated(function, closure)
        loaded, stored = _names(code, _LOADS), _names(code, _STORES)
        scope = {name: function.__globals__[name] for name in loaded & function.__globals__.keys()}
        used = _used(code)
        outside = used & _OUTSIDE | loaded & _BUILTINS
        self.unread += [f"what {name} reads" for name in sorted(outside - scope.keys())]
        scope |= closure
        package = str(function.__globals__.get("__package__") or "")
        return [
            _bytecode(code),
            [
                self.read(name, value, stays=_stays(name, value, stored))
                for name, value in sorted(scope.items())
            ],
            [
                list(self._attributes(name, value, used))
                for name, value in sorted(scope.items())
                if isinstance(value, ModuleType)
            ],
            [self._imported(name) for name in _imports(code, package)],
            self._members(function.__name__, vars(function)),
            [
                self.read("a default", value, stays=not isinstance(value, CONTAINERS))
                for value in (
                    *(function.__defaults__ or ()),
                    *(value for _, value in sorted((function.__kwdefaults__ or {}).items())),
                )
            ],
        ]

    def _decorated(self, function: FunctionType, closure: dict[str, object]) -> object:
        """Return an installed function by its name, with the functions that it was put around."""
        known = len(self.unread)
        around = closure | {"wrapped": getattr(function, "__wrapped__", None)}
        inner = [self.read(name, value, stays=False) for name, value in sorted(around.items())]
        # What else it holds is the installed package's
        del self.unread[known:]
        return ["installed", function.__module__, function.__qualname__, inner]

    def _installed(self, module: str | None, file: str | None) -> bool:
        """Return True of code that came with Python or with another package than the judge."""
        package = str(module).partition(".")[0]
        if file is None or package == "celeus":
            return True
        return package != self._package and (
            file.startswith(("<frozen", *_PACKAGES))
            or not {"site-packages", "dist-packages"}.isdisjoint(Path(file).parts)
        )

    def _class(self, kind: type) -> object:
        named = ["class", kind.__module__, kind.__qualname__]
        if self._installed(kind.__module__, _file_of(kind)):
            return named
        members: list[object] = []
        for name, member in sorted(vars(kind).items()):
            function = getattr(member, "__func__", getattr(member, "fget", member))
            # The slots of a class have no contents of their own
            slot = isinstance(member, GetSetDescriptorType | MemberDescriptorType)
            if slot or name.startswith("_abc_"):
                continue
            if isinstance(function, FunctionType) or not name.startswith("__"):
                members.append([name, self.read(f"{kind.__name__}.{name}", function)])
        bases = [self.read(kind.__name__, base) for base in (*kind.__bases__, type(kind))]
        return [*named[:1], bases, members]

    def _module(self, module: ModuleType) -> object:
        file = _file_of_module(module)
        if self._installed(module.__name__, file):
            return ["installed", module.__name__]
        return ["module", self._file(module.__name__, Path(str(file)))]

    def _attributes(self, name: str, module: ModuleType, used: set[str]) -> Iterator[object]:
        """Yield what code may use of a module, and of the modules within it."""
        if self._installed(module.__name__, _file_of_module(module)):
            return
        for attribute in sorted(used & vars(module).keys()):
            value = vars(module)[attribute]
            named = f"{name}.{attribute}"
            yield [named, self.read(named, value, stays=attribute.isupper())]
            if isinstance(value, ModuleType) and value.__name__ == f"{module.__name__}.{attribute}":
                yield from self._attributes(named, value, used)

    def _imported(self, name: str) -> object:
        """Return what a module's file says, whether or not it was loaded yet."""
        spec = _spec(name)
        if spec is None or spec.origin is None or self._installed(name, spec.origin):
            return ["installed", name]
        return ["module", self._file(name, Path(spec.origin))]

    def _file(self, name: str, file: Path) -> object:
        """Return the code of a file, and of those that it imports."""
        if file in self._files or file.is_dir():
            return name
        self._files.add(file)
        content = file.read_bytes()
        if file.suffix == ".py":
            with suppress(SyntaxError):
                code = compile(content, name, "exec", dont_inherit=True)
                whole = file.name == "__init__.py"
                package = name if whole else name.rpartition(".")[0]
                imported = [self._imported(module) for module in _imports(code, package)]
                return [_bytecode(code), imported]
        return hashlib.sha256(content).hexdigest()


def _bytecode(code: CodeType) -> object:
    """Return the bytecode and its constants, without names of files and numbers of lines."""
    reader = _Reader()
    constants = [
        _bytecode(constant) if isinstance(constant, CodeType) else reader.read("", constant)
        for constant in code.co_consts
    ]
    names = [code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars]
    counts = [code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags]
    table = getattr(code, "co_exceptiontable", b"")
    return [code.co_code.hex(), table.hex(), constants, names, counts]


def _nested(code: CodeType) -> Iterator[CodeType]:
    """Yield code and the code within it, the outer one first."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)


def _names(code: CodeType, operations: frozenset[str]) -> set[str]:
    """Return the names that code, and the code within it, loads or stores by these operations."""
    return {
        step.argval
        for part in _nested(code)
        for step in dis.get_instructions(part)
        if step.opname in operations
    }


def _used(code: CodeType) -> set[str]:
    """Return all names that code, and the code within it, uses, those of attributes too."""
    return {name for part in _nested(code) for name in part.co_names}


def _imports(code: CodeType, package: str) -> Iterator[str]:
    """Yield the names of what code in a package imports, each of which may be a module."""
    for part in _nested(code):
        steps = [step for step in dis.get_instructions(part) if step.opname != "EXTENDED_ARG"]
        for index, step in enumerate(steps):
            if step.opname == "IMPORT_NAME":
                level, members = steps[index - 2].argval, steps[index - 1].argval
                name = step.argval
                if level:
                    with suppress(ImportError):
                        name = importlib.util.resolve_name("." * level + name, package)
                yield name
                yield from (f"{name}.{member}" for member in members or () if member != "*")


def _spec(name: str) -> ModuleSpec | None:
    """Return where a module is, None of one that is not in a file; nothing is loaded."""
    spec, path, end = None, None, 0
    while end != len(name):
        end = name.find(".", end + 1) % (len(name) + 1)
        spec = PathFinder.find_spec(name[:end], path)
        if spec is None or (path := spec.submodule_search_locations) is None:
            break
    return spec if end == len(name) else None


def _file_of_module(module: ModuleType) -> str | None:
    """Return the file of a module, the folder of a package without one."""
    file: str | None = getattr(module, "__file__", None)
    return file or next(iter(getattr(module, "__path__", ())), None)


def _repr(kind: type, value: object) -> object:
    """Return a number or text as its kind writes it, whatever a subclass makes of it."""
    return kind.__repr__(value)  # type: ignore[call-arg]


def _stays(name: str, value: object, stored: set[str]) -> bool:
    """Return True of constants, and of values that nothing changes while the judge runs."""
    return name.isupper() or (name not in stored and not isinstance(value, CONTAINERS))


def _file_of(kind: type) -> str | None:
    module = sys.modules.get(kind.__module__)
    # What is typed at a prompt has no file, and is nobody else's
    return getattr(module, "__file__", "" if kind.__module__ == "__main__" else None)


def _sorted(values: Iterable[object]) -> list[object]:
    return sorted(values, key=json.dumps)


LOG = logging.getLogger("celeus")
"""Its warnings are lines on stderr, unless the program has its own logging."""
IN_PYTHON = "keep=True goes on with the earlier judgements, fresh=True begins anew"


def taken_up(judgements: int, place: object, last: str | None) -> None:
    """Say how many judgements there are already, where, and from when the last one is."""
    if judgements:
        when = "" if last is None else f", the last at {last[:16].replace('T', ' ')} UTC"
        LOG.warning("celeus: taken up: %s from %s%s", counted(judgements), place, when)


def check_judge(
    judge: Fingerprint, earlier: str | None, *, keep: bool, ways: str = IN_PYTHON
) -> None:
    """Refuse a judge that is not the earlier one unless ``keep`` is said; say what is not known."""
    found = judge.against(earlier)
    if found.verdict == "unknown":
        LOG.warning("celeus: cannot tell whether the judge changed: %s", found.why)
    elif found.verdict == "changed" and not keep:
        message = f"the judge changed since the earlier judgements ({found.why}): {ways}"
        raise InvalidValue(message, field="judge", rule=ways)


def check_resume(resume: object, *, keep: bool, fresh: bool) -> None:
    """Refuse contradictions in how work is to go on; ``resume`` is None where it is not to."""
    if keep and fresh:
        rule = "one of them, or none"
        raise InvalidValue(f"keep and fresh must be {rule}", field="keep", rule=rule)
    if resume is None and (keep or fresh):
        field, rule = "keep" if keep else "fresh", "left out, or beside resume"
        raise InvalidValue(f"{field} must be {rule}", field=field, rule=rule)


def counted(judgements: int) -> str:
    """Return a number of judgements in words."""
    return "1 judgement" if judgements == 1 else f"{judgements} judgements"
