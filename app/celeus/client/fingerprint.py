"""The fingerprint of a judge: work that is taken up is not to mix the judgements of two.

A fingerprint has three parts. ``code`` is a digest of what decides how it judges: the bytecode of a
function and of the functions, classes and modules it refers to, its defaults, its numbers and texts
and every constant in capitals; of a model the name, rubric and request; of a program the files of
its command. ``values`` is a digest of what may change while it judges, as a list it appends to, and
empty where something cannot be read, as a connection. ``runtime`` is the Python that made the
bytecode. Installed packages count by their names, but for the one that the judge is part of. The
same program has the same fingerprint in every process.
"""

import dis
import functools
import hashlib
import json
import re
import sys
import sysconfig
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePath
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Literal

ATOMS = (type(None), bool, int, float, complex, str, bytes, type(...))
CONTAINERS = (list, set, dict)
LETTERS = 10
"""Digits of a digest: with another one and a runtime they fit into a tag of a session."""
MOST_RUNTIME = 12
MOST_MEMBERS = 10_000
"""Members of a container of other than JSON values that are read."""
_PACKAGES = tuple(
    sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")
)
_Cached = type(functools.cache(len))
_STORES = frozenset({"STORE_GLOBAL", "STORE_DEREF"})
_LOADS = frozenset({"LOAD_GLOBAL", "LOAD_NAME"})


@dataclass(frozen=True, slots=True)
class Comparison:
    """Whether a judge is the one that judged before, and ``why`` that is so."""

    verdict: Literal["same", "changed", "unknown"]
    why: str


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What a judge is known by; ``unread`` names what of it could not be read."""

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


def fingerprint(judge: object) -> Fingerprint:
    """Return the fingerprint of a function, or of whatever describes a judge in plain values."""
    runtime = (sys.implementation.cache_tag or "")[:MOST_RUNTIME] if callable(judge) else "data"
    whose = judge if hasattr(judge, "__module__") else type(judge)
    reader = _Reader(str(getattr(whose, "__module__", "")).partition(".")[0])
    try:
        code = reader.read("the judge", judge)
    except (OSError, RecursionError, ValueError):
        return Fingerprint(runtime, "", "", ("the judge",))
    values = "" if reader.unread else _digest(reader.values)
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
        self._seen: dict[int, int] = {}
        self._alive: list[object] = []
        """What was seen, so that no other object gets its id."""

    def read(  # noqa: PLR0911 -- one a kind of value
        self, name: str, value: object, *, stays: bool = True
    ) -> object:
        """Return a value under its name as JSON; what may not stay goes to ``values``."""
        if isinstance(value, ATOMS) and type(value) in ATOMS:
            return self._kept(name, [type(value).__name__, repr(value)], stays=stays)
        if isinstance(value, tuple | frozenset):
            inner = [self.read(name, one, stays=stays) for one in value]
            return [type(value).__name__, _sorted(inner) if isinstance(value, frozenset) else inner]
        if isinstance(value, re.Pattern):
            return ["pattern", str(value.pattern), value.flags]
        if isinstance(value, PurePath):
            return ["path", str(value)]
        if id(value) in self._seen:
            return ["seen", self._seen[id(value)]]
        self._seen[id(value)] = len(self._seen)
        self._alive.append(value)
        if isinstance(value, CONTAINERS):
            return self._kept(name, self._container(name, value), stays=stays)
        return self._code(name, value)

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
        inner = [self.read(name, one) for one in value]
        return [kind, _sorted(inner) if isinstance(value, set) else inner]

    def _code(  # noqa: PLR0911 -- one a kind of value
        self, name: str, value: object
    ) -> object:
        if isinstance(value, FunctionType):
            return self._function(value)
        if isinstance(value, MethodType):
            return [self.read(name, value.__func__), self.read(name, value.__self__)]
        if isinstance(value, functools.partial):
            parts = (value.func, value.args, value.keywords)
            return ["partial", *(self.read(name, part) for part in parts)]
        if isinstance(value, _Cached):
            return ["cached", self.read(name, value.__wrapped__)]
        if isinstance(value, BuiltinFunctionType):
            owner = value.__self__
            whose = None if isinstance(owner, ModuleType) else self.read(name, owner)
            return ["builtin", value.__name__, whose]
        if isinstance(value, ModuleType):
            return self._module(value)
        if isinstance(value, type):
            return self._class(value)
        if self._installed(type(value).__module__, _file_of(type(value))) or not hasattr(
            value, "__dict__"
        ):
            self.unread.append(name)
            return ["unread", type(value).__qualname__]
        members = [
            [member, self.read(f"{name}.{member}", one, stays=isinstance(one, str))]
            for member, one in sorted(vars(value).items())
        ]
        return ["object", self._class(type(value)), members]

    def _function(self, function: FunctionType) -> object:
        code = function.__code__
        if self._installed(function.__module__, code.co_filename):
            return ["installed", function.__module__, function.__qualname__]
        loaded, stored = _names(code, _LOADS), _names(code, _STORES)
        scope = {name: function.__globals__[name] for name in loaded & function.__globals__.keys()}
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            try:
                scope[name] = cell.cell_contents
            except ValueError:
                # Not yet bound
                scope[name] = None
        return [
            _bytecode(code),
            [
                self.read(name, value, stays=_stays(name, value, stored))
                for name, value in sorted(scope.items())
            ],
            [
                self.read("a default", value, stays=not isinstance(value, CONTAINERS))
                for value in (
                    *(function.__defaults__ or ()),
                    *(value for _, value in sorted((function.__kwdefaults__ or {}).items())),
                )
            ],
        ]

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
            if isinstance(function, FunctionType) or not name.startswith("__"):
                members.append([name, self._member(f"{kind.__name__}.{name}", function)])
        return [*named[:1], [self.read(kind.__name__, base) for base in kind.__bases__], members]

    def _member(self, name: str, member: object) -> object:
        # The slots of a class have no contents of their own
        plain = isinstance(member, (*ATOMS, FunctionType, tuple, list, dict, set, frozenset))
        return self.read(name, member) if plain else ["member", type(member).__name__]

    def _module(self, module: ModuleType) -> object:
        file = getattr(module, "__file__", None)
        if self._installed(module.__name__, file):
            return ["installed", module.__name__]
        return ["module", hashlib.sha256(Path(str(file)).read_bytes()).hexdigest()]


def _bytecode(code: CodeType) -> object:
    """Return the bytecode and its constants, without names of files and numbers of lines."""
    reader = _Reader()
    constants = [
        _bytecode(one) if isinstance(one, CodeType) else reader.read("", one)
        for one in code.co_consts
    ]
    names = [code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars]
    counts = [code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags]
    table = getattr(code, "co_exceptiontable", b"")
    return [code.co_code.hex(), table.hex(), constants, names, counts]


def _names(code: CodeType, operations: frozenset[str]) -> set[str]:
    """Return the names that code, and the code within it, loads or stores by these operations."""
    names = {one.argval for one in dis.get_instructions(code) if one.opname in operations}
    inner = (one for one in code.co_consts if isinstance(one, CodeType))
    return names.union(*(_names(one, operations) for one in inner))


def _stays(name: str, value: object, stored: set[str]) -> bool:
    """Return True of constants, and of values that nothing changes while the judge runs."""
    return name.isupper() or (name not in stored and not isinstance(value, CONTAINERS))


def _file_of(kind: type) -> str | None:
    module = sys.modules.get(kind.__module__)
    # What is typed at a prompt has no file, and is nobody else's
    return getattr(module, "__file__", "" if kind.__module__ == "__main__" else None)


def _sorted(values: Iterable[object]) -> list[object]:
    return sorted(values, key=json.dumps)
