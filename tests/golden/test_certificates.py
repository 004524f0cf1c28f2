"""Certificates that were issued; they must verify for ever."""

import json
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rfc8785

from celeus.core.certificate.document import signed
from celeus.core.certificate.ed25519 import public_of
from celeus.core.certificate.report import FILE, Report
from celeus.core.certificate.verify import verify
from celeus.core.session.assumptions import OWN_PROCESS
from celeus.operations.certificates.npz import read_archive
from tests.core.certifying import KEY, where_of
from tests.golden.make_certificates import BEST, CERTIFICATES, FOLDER, PUSHED, TABLES, kinds_of

ISSUED = sorted(path.name for path in FOLDER.glob("*.json"))
WITHOUT_SCORES = {"uniform"}
"""Of these nothing but the columns themselves takes the pool."""
NEEDS_POOL = {"weights", *BEST, *TABLES}
"""These are nothing without it."""


def _with_pool(path: Path) -> Report:
    _, pool, _, _ = path.name.split(".")
    with (FOLDER / f"{pool}.npz").open("rb") as archive:
        return verify(path.read_bytes(), read_archive(archive), public_of(KEY))


@pytest.mark.parametrize("name", ISSUED)
def test_every_digest_is_taken_over_rfc_8785(name: str) -> None:
    """By the library alone, as somebody else's verifier would."""
    data = (FOLDER / name).read_bytes()
    document = json.loads(data)
    assert rfc8785.dumps(document) == data
    for part in ("plan", "pool"):
        assert document[f"{part}_digest"] == sha256(rfc8785.dumps(document[part])).hexdigest()
    session = bytes.fromhex(document["session_id"].removeprefix("ses_"))
    head = sha256(b"celeus-ledger-1" + session + bytes.fromhex(document["plan_digest"])).digest()
    assert document["chain"]["start"] == head.hex()
    for record in document["ledger"]:
        head = sha256(head + rfc8785.dumps(record)).digest()
    assert document["chain"]["head"] == head.hex()


def test_every_certificate_that_was_made_is_kept() -> None:
    made = {
        f"{name}.{pool}.{kind}.json"
        for name, (pool, _) in (*CERTIFICATES.items(), *BEST.items(), *TABLES.items())
        for kind in kinds_of(name)
    }
    assert made | {f"{'.'.join(PUSHED)}.final.json"} == set(ISSUED)


def test_a_certificate_of_a_pushed_session_says_whose_word_it_rests_on() -> None:
    path = FOLDER / f"{'.'.join(PUSHED)}.final.json"
    report = _with_pool(path)
    assert report.origin == {"kind": "pushed", "at": report.issued_at}
    assert report.pool_sessions is None
    assert report.claim is not None
    assert report.claim["assumptions"][-1] == dict(OWN_PROCESS)


def _counted(document: dict[str, Any]) -> None:
    others = ("others_open", "others_certified", "others_closed_without_certificate")
    document["pool_sessions"] = {"number": 1, "total": 1, **dict.fromkeys(others, 0)}


@pytest.mark.parametrize(
    "change",
    [
        _counted,
        lambda it: it["claim"]["assumptions"].pop(),
        lambda it: it["claim"].update(assumptions=[]),
        lambda it: it["claim"]["assumptions"].insert(0, it["claim"]["assumptions"].pop()),
        lambda it: it["claim"]["assumptions"][-1].update(text="It ran here."),
        lambda it: it["origin"].update(kind="native"),
        lambda it: it["origin"].update(at="2026-01-01T00:00:00.000000+00:00"),
        lambda it: it["origin"].update(by="us"),
        lambda it: it.pop("origin"),
        lambda it: it.update(timestamp="AAAA"),
        lambda it: it.update(supersedes="ab" * 32),
    ],
)
def test_a_pushed_session_whose_certificate_says_more_is_not_valid(
    change: Callable[[dict[str, Any]], object],
) -> None:
    """Signed by the very key, as a service would that hides where it ran."""
    path = FOLDER / f"{'.'.join(PUSHED)}.final.json"
    document = json.loads(path.read_bytes())
    change(document)
    del document["signature"]
    assert where_of(verify(signed(document, KEY))) != "signature"


@pytest.mark.parametrize("name", ISSUED)
def test_a_certificate_once_issued_verifies_for_ever(name: str) -> None:
    final = ".final." in name
    policy = name.split(".", maxsplit=1)[0]
    beside = _with_pool(FOLDER / name)
    assert beside.valid, beside.difference
    of_the_seed = set() if final else {"commitment", "draws"}
    if policy in {"two-systems", "best-by-losses"} and not final:
        of_the_seed |= {"sides"}
    assert set(beside.unchecked) == {"items"} | of_the_seed
    alone = verify((FOLDER / name).read_bytes())
    if policy in NEEDS_POOL:
        assert alone.difference is not None
        assert alone.difference.where == "the pool"
        return
    assert alone.valid, alone.difference
    missing = {"pool_columns", "items", "labels", "issuer"} | of_the_seed
    if policy not in WITHOUT_SCORES:
        missing |= {"draws", "probabilities", "surrogates"}
    assert set(alone.unchecked) == missing


FINAL = sorted(path.name for path in FOLDER.glob("*.final.json"))
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


@pytest.mark.parametrize("name", FINAL)
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
