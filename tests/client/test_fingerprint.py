"""The fingerprint of a judge follows its code and constants, and nothing that is by chance."""

import contextlib
import functools
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from celeus.client.fingerprint import Fingerprint, fingerprint

PROGRAM = """
import json, re
from collections import Counter
from helper import wrong
LIMIT, WORDS = 3, {"yes": 0.0, "no": 1.0}
SAID = frozenset({"maybe", "perhaps", "never", "always"})
seen = {"b", "a", "c"}

class Rubric:
    def __init__(self, prompt):
        self.prompt, self.calls = prompt, 0
    def __call__(self, item):
        self.calls += 1
        return wrong(item, self.prompt) or item.payload in {"x", "y", "z"}

rubric = Rubric("Is it right?")

def judge(item, scale=1.0, *, words=("a", "b")):
    \"\"\"The loss.\"\"\"
    said = json.loads(item.payload)
    seen.add(said)
    if re.fullmatch("y.s", said) and said not in SAID:
        return WORDS[said] * scale
    return max(rubric(word) for word in words) + LIMIT
"""
HELPER = "def wrong(item, prompt):\n    return item.payload != prompt\n"
PRINT = "\nfrom celeus.client.fingerprint import fingerprint\nprint(fingerprint(judge))\n"


def printed(folder: Path, program: str = PROGRAM, helper: str = HELPER, seed: str = "1") -> str:
    """The fingerprint of the program's judge in a process of its own."""
    folder.mkdir(exist_ok=True)
    (folder / "judge.py").write_text(program + PRINT)
    (folder / "helper.py").write_text(helper)
    environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONDONTWRITEBYTECODE": "1"}
    # `celeus serve` sets it for its own processes
    environment.pop("PYTHONSAFEPATH", None)
    command = [sys.executable, str(folder / "judge.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return done.stdout.strip()


def test_processes_and_folders_make_no_difference(tmp_path: Path) -> None:
    found = {printed(tmp_path / f"run {seed}", seed=seed) for seed in ("1", "2", "random")}
    assert len(found) == 1
    commented = PROGRAM.replace("    said = json", "    # What was said\n\n    said = json")
    assert printed(tmp_path / "commented", commented) in found


CHANGES = {
    "code": ("seen.add(said)", "seen.add(said + said)"),
    "a text": ("Is it right?", "Is it wrong?"),
    "a constant": ("LIMIT, WORDS = 3", "LIMIT, WORDS = 4"),
    "a table": ('"no": 1.0', '"no": 0.5'),
    "a set": ('"never", "always"', '"never"'),
    "a default": ("scale=1.0", "scale=2.0"),
    "a keyword's default": ('words=("a", "b")', 'words=("a", "c")'),
    "a class": ('{"x", "y", "z"}', '{"x", "y"}'),
    "an import": ("from helper import wrong", "from helper import wrong as wrong_\nwrong = len"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_another_judge_has_another_fingerprint(tmp_path: Path, change: str) -> None:
    earlier, now = printed(tmp_path), printed(tmp_path, PROGRAM.replace(*CHANGES[change]))
    assert earlier.split("-")[0] != now.split("-")[0]


def test_what_a_judge_calls_is_part_of_it(tmp_path: Path) -> None:
    other = HELPER.replace("!=", "==")
    assert printed(tmp_path).split("-")[0] != printed(tmp_path, helper=other).split("-")[0]


def test_what_may_change_while_it_judges_cannot_be_told(tmp_path: Path) -> None:
    other = PROGRAM.replace('{"b", "a", "c"}', '{"b", "a"}')
    earlier, now = printed(tmp_path), printed(tmp_path, other)
    assert earlier.split("-")[0] == now.split("-")[0]
    assert earlier != now


def counting() -> Callable[[object], int]:
    """A judge that counts its calls."""
    calls, lock = [0], None

    def judge(_: object) -> int:
        nonlocal lock
        lock = 1
        calls.append(1)
        return len(calls)

    return judge


def test_a_judge_that_has_judged_is_not_called_another_one() -> None:
    judge = counting()
    before = fingerprint(judge)
    for _ in range(5000):
        judge(None)
    assert before.against(str(before)).verdict == "same"
    assert fingerprint(judge).against(str(before)).verdict == "unknown"


def test_what_cannot_be_read_is_named() -> None:
    lock = threading.Lock()

    def judge(_: object) -> bool:
        return lock.locked()

    found = fingerprint(judge)
    assert found.unread == ("lock",)
    assert found.against(str(found)).verdict == "unknown"


def test_a_judge_may_refer_to_many_items() -> None:
    items = [{"id": f"q{number}", "payload": {"answer": number}} for number in range(100_000)]
    odd = set(range(100_000))
    assert not fingerprint(lambda item: items[item.index]).unread
    assert fingerprint(lambda item: item.index in odd).unread == ("odd",)
    before = fingerprint(lambda item: items[item.index])
    items[-1]["payload"] = {"answer": -1}
    assert fingerprint(lambda item: items[item.index]).values != before.values


def test_another_python_cannot_tell() -> None:
    found = fingerprint(lambda _: 0.0)
    earlier = Fingerprint("cpython-38", "0" * 16, "0" * 16)
    assert found.against(str(earlier)).verdict == "unknown"
    assert found.against(None).verdict == "unknown"
    assert fingerprint(lambda _: 1.0).against(str(found)).verdict == "changed"


@pytest.mark.parametrize(
    ("judge", "other"),
    [
        (functools.partial(max, 1), functools.partial(max, 2)),
        (functools.cache(lambda _: 1), functools.cache(lambda _: 2)),
        ({"a": 1}.get, {"a": 2}.get),
        (len, max),
        (["program", "abc"], ["program", "abd"]),
    ],
    ids=["partial", "cached", "method", "library", "values"],
)
def test_every_kind_of_judge_is_read(judge: object, other: object) -> None:
    found = fingerprint(judge)
    assert not found.unread
    assert found.against(str(fingerprint(judge))).verdict == "same"
    assert fingerprint(other).against(str(found)).verdict == "changed"


SHARED = "def a(n): return n == 3\ndef b(n): return a(n)\ndef c(n): return a(n) and b(n)\n"


def read(
    folder: Path, judge: str, number: int, *, seed: str = "1", helper: str = ""
) -> Fingerprint:
    """The fingerprint of a judge in which ``NUMBER`` is this one, in a process of its own."""
    judge, helper = (source.replace("NUMBER", str(number)) for source in (judge, helper))
    (folder / "deep").mkdir(parents=True, exist_ok=True)
    (folder / "deep" / "rules.py").write_text(helper)
    (folder / "middle.py").write_text("from deep import rules\nfrom deep.rules import *\n")
    text = printed(folder, f"import functools\n{judge}", helper, seed)
    code, values, runtime = text.split("-", 2)
    return Fingerprint(runtime, code, values, ("it",) * (values == "0"))


@pytest.mark.parametrize(
    "judge",
    [
        "import middle\ndef judge(item): return middle.wrong(item)",
        "import middle\ndef judge(item): return middle.rules.wrong(item)",
        "import deep.rules\ndef judge(item): return deep.rules.wrong(item)",
        "def judge(item):\n    import helper\n    return helper.wrong(item)",
        "def judge(item):\n    from deep.rules import wrong\n    return wrong(item)",
        "from deep import rules\nrules.LIMIT = NUMBER\ndef judge(item): return item > rules.LIMIT",
    ],
    ids=["through another", "attribute", "package", "import", "from", "set on a module"],
)
def test_modules_are_followed_wherever_they_are_imported(tmp_path: Path, judge: str) -> None:
    helper = "def wrong(item): return item == NUMBER\n"
    earlier = read(tmp_path, judge, 3, helper=helper)
    assert read(tmp_path, judge, 3, helper="# The same\n\n" + helper, seed="2") == earlier
    now = read(tmp_path, judge, 4, helper=helper)
    assert now.against(str(earlier)).verdict == "changed"


@pytest.mark.parametrize(
    "member",
    [
        "import re\n    rule = re.compile('NUMBER')",
        "rule = functools.partial(max, NUMBER)",
        "rule = functools.partialmethod(max, NUMBER)",
        "@functools.cache\n    def rule(self): return NUMBER",
        "@functools.cached_property\n    def rule(self): return NUMBER",
        "class Rule:\n        limit = NUMBER",
    ],
    ids=["pattern", "partial", "partialmethod", "cached", "cached property", "class"],
)
def test_whatever_a_class_holds_is_read(tmp_path: Path, member: str) -> None:
    judge = f"class Judge:\n    {member}\n    def __call__(self, item): return 1.0\njudge = Judge()"
    earlier = read(tmp_path, judge, 3)
    assert earlier.against(str(earlier)).verdict == "same"
    assert read(tmp_path, judge, 4).against(str(earlier)).verdict == "changed"


DISPATCH = """@functools.singledispatch
def judge(item): return 1
@judge.register
def _(item: int): return item == NUMBER
"""
SLOT = """class Base: __slots__ = ("limit",)
class Judge(Base):
    def __call__(self, item): return item > self.limit
judge = Judge()
judge.limit = NUMBER
"""
SUBCLASS = """class Limits(list): pass
limits = Limits()
limits.own = NUMBER
def judge(item): return item > limits.own
"""


@pytest.mark.parametrize(
    "judge",
    [
        "def judge(item): return item == judge.limit\njudge.limit = NUMBER",
        DISPATCH,
        SLOT,
        SUBCLASS,
        "def judge(item): return item == globals()['other']\nother = NUMBER",
        "def judge(item): return item in open('rubric.txt').read()",
    ],
    ids=["attribute", "dispatch", "slot", "subclass", "globals", "file"],
)
def test_what_is_reached_by_other_ways_is_never_called_the_same(tmp_path: Path, judge: str) -> None:
    earlier = read(tmp_path, judge, 3)
    assert read(tmp_path, judge, 4).against(str(earlier)).verdict != "same"


def test_a_function_that_an_installed_package_wraps_is_read() -> None:
    def judge(limit: float) -> object:
        def over(item: float) -> Iterator[bool]:
            yield item > limit

        return contextlib.contextmanager(over)

    earlier = fingerprint(judge(3.0))
    assert fingerprint(judge(3.0)).against(str(earlier)).verdict == "same"
    assert fingerprint(judge(4.0)).against(str(earlier)).verdict == "changed"


def test_sets_of_functions_are_read_in_one_order(tmp_path: Path) -> None:
    judge = SHARED + "ALL = {ORDER}\ndef judge(item): return any(one(item) for one in ALL)"
    found = {
        str(read(tmp_path, judge.replace("ORDER", order), 3)) for order in ("a, b, c", "c, b, a")
    }
    assert len(found) == 1
