"""Members are read: a value of another type, or one member more, is found at its very place."""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from celeus.core.certificate.document import signed
from celeus.core.certificate.report import FILE
from celeus.core.certificate.verify import verify
from tests.core.certifying import KEY, where_of
from tests.golden.make_certificates import FOLDER

ISSUED = sorted(path.name for path in FOLDER.glob("*.final.json"))
ELSEWHERE = {"claim", "ledger", "rounds", "seed", "signature", "surrogates"}
"""Members that are compared with what the ledger leads to, or are written anew here."""
EACH = 20
"""Places of a certificate that are tried."""


def _places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:  # noqa: ANN401
    """The members and elements of a document, and one further member of every object."""
    if isinstance(value, dict):
        yield (*path, "zz")
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for name, member in inner:
        yield (*path, name)
        if isinstance(member, dict | list):
            yield from _places(member, (*path, name))


def _spelled(path: tuple[str | int, ...]) -> str:
    inner = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return "".join(inner).removeprefix(".")


@pytest.mark.parametrize("name", ISSUED)
def test_another_type_and_a_further_member_are_found_where_they_are(name: str) -> None:
    """Signed by the very key; without the ledger, which is read after all of these."""
    document = json.loads((FOLDER / name).read_bytes())
    document = {member: value for member, value in document.items() if member not in ELSEWHERE} | {
        "claim": {},
        "ledger": [],
        "rounds": None,
        "seed": None,
        "surrogates": None,
    }
    document |= {"final": False, "kind": "interim"}
    document.pop("origin", None)
    places = [path for path in _places(document) if path[0] not in ELSEWHERE]
    for at in np.random.default_rng(27).choice(len(places), EACH, replace=False):
        path = places[at]
        changed = json.loads(json.dumps(document))
        around = changed
        for step in path[:-1]:
            around = around[step]
        before = around.get(path[-1]) if isinstance(around, dict) else around[path[-1]]
        around[path[-1]] = {} if isinstance(before, str | int | float | list) else []
        # Of another format it is another file
        due = FILE if path == ("format",) else _spelled(path)
        assert where_of(verify(signed(changed, KEY))) == due
