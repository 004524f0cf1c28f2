"""`make generate`: write what follows from other files anew; with `--check` only compare it.

The client's result types follow from openapi/openapi.json, its blocking client from the one that
does not block.
"""

import argparse
import json
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
CONTRACT = ROOT / "openapi" / "openapi.json"
CLIENT = ROOT / "app" / "celeus" / "client"
WIDTH = 96

RESULTS = {
    "Claim": ["TableClaimOut"],
    "Comment": ["Comment"],
    "Decision": ["Decision"],
    "Draw": ["HeldDraw"],
    "DrawnItem": ["DrawnItem"],
    "Entry": ["LedgerEntry"],
    "Forecast": ["Forecast"],
    "Item": ["ItemOut"],
    "Label": ["Label"],
    "Loss": ["LossOut", "SystemLoss"],
    "Metric": ["MetricOut"],
    "Origin": ["Origin"],
    "Pace": ["RecentPace"],
    "Plan": ["PlanningAnswer"],
    "PlannedPoint": ["PlannedPoint"],
    "Point": ["TrajectoryPoint"],
    "PolicyPlan": ["PolicyPlanOut"],
    "Pool": ["PoolOut"],
    "Provisional": ["Provisional"],
    "QuestionAnswer": ["AnswerWords"],
    "Rounds": ["Rounds"],
    "Scale": ["Scale"],
    "Score": ["ScoreInterval"],
    "ScoreName": ["ScoreOut"],
    "ShownAnswer": ["DrawnAnswer"],
    "Sides": ["PreferredSides"],
    "Spread": ["SpreadOut"],
    "Status": ["Session"],
    "Systems": ["SystemsOut", "LineupOut"],
    "Tombstone": ["Tombstone"],
    "Verdict": ["Verdict"],
    "Words": ["Words"],
}
"""Types of the client and the schemas they are made of; an object of another schema is a dict."""
WITH_RAW = frozenset(
    {"Claim", "Draw", "Entry", "Item", "Label", "Plan", "Pool", "Status", "Tombstone"}
)
"""Types that keep the whole answer in `raw`."""
METHODS = {"Plan": "PlanMethods", "Status": "StatusMethods"}
"""Base classes that add methods, from `celeus.client.reading`."""
EMPTY_FOR_NULL = frozenset({"Entry.detail", "Plan.assumed_risks", "Pool.metrics"})
"""Mappings that are empty where the service sends null. Lists are empty always."""
NAMES = {schema: name for name, schemas in RESULTS.items() for schema in schemas}
SCALARS = {"boolean": "bool", "integer": "int", "null": "None", "number": "float", "string": "str"}
HEAD = '''\
# Generated from openapi/openapi.json by `make generate`: change the contract, not this file.
"""The service's answers as frozen dataclasses, with the members that docs/api.md describes.

Members that a newer service adds are in `raw`, which holds the whole answer.
"""

from dataclasses import dataclass, field
from typing import Any

from celeus.client.reading import PlanMethods, Raw, StatusMethods
'''

BLOCKING_HEAD = '''\
# Generated from asynchronous.py by `make generate`: change that file, not this one.
"""The client of a service over HTTP that blocks: `celeus.Client`."""

import time
'''
REPR_HTML = """\
    def _repr_html_(self) -> str:
        return self.picture().html

"""
UNASYNC = (
    (r"(?s)\n\n\nasync def streamed\(.*$", "\n"),
    (r"    async def _judged", REPR_HTML + r"\g<0>"),
    (r"streamed\(request\.parts\(\)\)", "request.parts()"),
    (r"AsyncGenerator\[(.+), None\]", r"Generator[\1, None, None]"),
    (r"\bAsync(Client|Session|Generator|Iterator)\b", r"\1"),
    (r"\basynccontextmanager\b", "contextmanager"),
    (r"\baclos(e|ing)\b", r"clos\1"),
    (r"\baread\b", "read"),
    (r"\b__a(enter|exit)__", r"__\1__"),
    (r"\basyncio\.sleep\b", "time.sleep"),
    (r"\bclient\.tasks\b", "client.threads"),
    (r"\basync (def|for|with)\b", r"\1"),
    (r"\bawait ", ""),
)
"""Patterns of the asynchronous client and what stands in their place in the blocking one."""

Schema = Mapping[str, Any]


def result_types(contract: Schema) -> str:
    """The module `celeus.client.results`: a type follows those that it refers to."""
    schemas: Schema = contract["components"]["schemas"]
    written: dict[str, str] = {}

    def write(name: str) -> None:
        if name not in written:
            types = member_types(schemas, name)
            for other in RESULTS:
                if any(other in split_type(kind) for kind in types.values()):
                    write(other)
            written[name] = class_of(schemas[RESULTS[name][0]], name, types)

    for name in RESULTS:
        write(name)
    return HEAD + "".join(written.values())


def member_types(schemas: Schema, name: str) -> dict[str, str]:
    """The annotations by member; None is allowed for what not every schema of a type has."""
    types: dict[str, str] = {}
    properties = [schemas[schema]["properties"] for schema in RESULTS[name]]
    for member in {member: None for one in properties for member in one}:
        kinds = {annotation(schemas, one[member]) for one in properties if member in one}
        if len(kinds) > 1:
            raise ValueError(f"the schemas of {name} disagree about {member}: {sorted(kinds)}")
        kind = kinds.pop()
        if not all(member in one for one in properties):
            kind = nullable(kind)
        if f"{name}.{member}" in EMPTY_FOR_NULL:
            kind = kind.removesuffix(" | None")
        types[member] = kind
    return types


def annotation(schemas: Schema, schema: Schema) -> str:
    """A schema as an annotation of Python."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return NAMES.get(name) or annotation(schemas, schemas[name])
    if "anyOf" in schema:
        kinds = dict.fromkeys(annotation(schemas, part) for part in schema["anyOf"])
        others = [kind for kind in kinds if kind != "None"]
        # No reader could tell which of several types an answer is
        only = others[0] if len(others) == 1 else "Any"
        return nullable(only) if "None" in kinds else only
    match schema.get("type"):
        case "array":
            return f"tuple[{annotation(schemas, schema.get('items', {}))}, ...]"
        case "object":
            extra = schema.get("additionalProperties")
            values = list(schema.get("properties", {}).values())
            values += [extra] if isinstance(extra, dict) else []
            kinds = dict.fromkeys(annotation(schemas, value) for value in values)
            return f"dict[str, {next(iter(kinds)) if len(kinds) == 1 else 'Any'}]"
        case kind:
            return SCALARS.get(kind or "", "Any")


def nullable(kind: str) -> str:
    """The annotation where null is sent as well."""
    return kind if kind == "Any" or kind.startswith("tuple[") else f"{kind} | None"


def split_type(kind: str) -> list[str]:
    """The names in an annotation."""
    return re.findall(r"\w+", kind)


def class_of(schema: Schema, name: str, types: Mapping[str, str]) -> str:
    """The source text of a class."""
    base = f"({METHODS[name]})" if name in METHODS else ""
    members = [f"    {member}: {kind}\n" for member, kind in types.items()]
    if name in WITH_RAW:
        members.append("    raw: Raw = field(repr=False)\n")
    head = f"\n\n@dataclass(frozen=True, slots=True)\nclass {name}{base}:\n"
    return head + docstring(schema["description"]) + "\n" + "".join(members)


def docstring(text: str) -> str:
    """A description as a docstring: its first sentence stands on the first line."""
    first, *others = textwrap.dedent(text).strip().split("\n\n")
    flat = " ".join(first.split())
    if len(flat) > WIDTH - 6:
        flat, _, rest = flat.partition(". ")
        flat, others = f"{flat.removesuffix('.')}.", [rest, *others]
    paragraphs = [flat, *("\n".join(textwrap.wrap(other, WIDTH)) for other in others)]
    body = textwrap.indent("\n\n".join(paragraphs), "    ").lstrip()
    end = "\n    " if len(paragraphs) > 1 else ""
    return f'    """{body}{end}"""\n'


def blocking(source: str) -> str:
    """The module `celeus.client.blocking`: the asynchronous client without its `async`."""
    _, _, rest = source.partition('"""\n\nimport asyncio\n')
    for pattern, replacement in UNASYNC:
        rest = re.sub(pattern, replacement, rest)
    return BLOCKING_HEAD + rest


def formatted(text: str) -> str:
    """The text as ruff mends and formats it."""
    ruff = Path(sys.executable).with_name("ruff")
    mend = f"{ruff} check --quiet --fix-only --unsafe-fixes --select I,F401,UP028,C416 -"
    for command in (mend, f"{ruff} format --quiet -"):
        text = subprocess.run(
            command.split(), cwd=ROOT, input=text, capture_output=True, text=True, check=True
        ).stdout
    return text


def results() -> str:
    """The result types of the client as they should be."""
    return formatted(result_types(json.loads(CONTRACT.read_text(encoding="utf-8"))))


def blocking_client() -> str:
    """The blocking client as it should be."""
    return formatted(blocking((CLIENT / "asynchronous.py").read_text(encoding="utf-8")))


GENERATED: Mapping[Path, Callable[[], str]] = {
    CLIENT / "results.py": results,
    CLIENT / "blocking.py": blocking_client,
}


def stale() -> Iterator[tuple[Path, str]]:
    """Generated files that differ from what they should be, and that."""
    for path, make in GENERATED.items():
        wanted = make()
        if not path.exists() or path.read_text(encoding="utf-8") != wanted:
            yield path, wanted


def main() -> int:
    """Write stale files, or name them; with `--check` the exit status says whether there are."""
    parser = argparse.ArgumentParser(prog="python -m tests.generate", description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare and write nothing")
    check = parser.parse_args().check
    found = list(stale())
    for path, wanted in found:
        if not check:
            path.write_text(wanted, encoding="utf-8")
        said = "is not up to date: make generate" if check else "written"
        print(f"{path.relative_to(ROOT)} {said}")  # noqa: T201 - what the command is for
    return int(check and bool(found))


if __name__ == "__main__":
    sys.exit(main())
