import hashlib
import json
from typing import Any

import numpy as np
import pytest
import rfc8785

from celeus.core.certificate.chain import (
    chain_head,
    chain_next,
    chain_start,
    record_of,
    strata_hex,
    strata_of_hex,
)
from celeus.core.ledger import Amendment, Change, Draw, Observation, Unjudgeable

SESSION = bytes(range(16))
DIGEST = bytes(range(32))
AT = "2026-11-21T13:07:00.000001+00:00"
DRAW = Draw(1, 7, 0.1, 0, np.array([0.1, 0.25]))
RECORDS = [
    record_of(1, DRAW, {"worker": "ada"}, AT),
    record_of(2, Observation(1, 1.0), {"worker": "ada", "label": 3}, AT),
    record_of(3, Amendment(1, None), {"author": "bob", "reason": "blurred"}, AT),
    record_of(4, Change(None, 10), {"precision": None, "budget": 10, "state": "active"}, AT),
]


def test_the_chain_begins_with_the_session_and_its_plan() -> None:
    expected = hashlib.sha256(b"celeus-ledger-1" + SESSION + DIGEST).digest()
    assert chain_start(SESSION, DIGEST) == expected


def test_a_link_is_the_hash_of_the_head_and_the_canonical_record() -> None:
    text = (
        '{"at":"2026-11-21T13:07:00.000001+00:00","detail":{"worker":"ada"},"item":7,"kind":"draw",'
        '"q":0.1,"round":1,"seen":0,"sequence":1,'
        '"strata_q":"9a9999999999b93f000000000000d03f"}'
    )
    assert rfc8785.dumps(RECORDS[0]) == text.encode()
    assert chain_next(DIGEST, RECORDS[0]) == hashlib.sha256(DIGEST + text.encode()).digest()


def test_records_leave_out_what_is_null_and_keep_what_a_change_leaves_open() -> None:
    unjudgeable = record_of(2, Unjudgeable(1), None, AT)
    assert unjudgeable == {"sequence": 2, "kind": "unjudgeable", "round": 1, "at": AT}
    assert "loss" not in RECORDS[2]
    assert RECORDS[3]["detail"]["precision"] is None
    assert "round" not in RECORDS[3]


def test_a_record_read_back_from_json_has_the_same_link() -> None:
    for record in RECORDS:
        again = json.loads(rfc8785.dumps(record), parse_int=float)
        assert chain_next(DIGEST, again) == chain_next(DIGEST, record)


def _changed(number: int, member: str, value: object) -> list[dict[str, Any]]:
    changed = RECORDS[number] | {member: value}
    return [changed if record is RECORDS[number] else record for record in RECORDS]


@pytest.mark.parametrize(
    "records",
    [
        RECORDS[:-1],
        RECORDS[1:],
        [RECORDS[1], RECORDS[0], *RECORDS[2:]],
        [*RECORDS, RECORDS[-1]],
        _changed(0, "q", np.nextafter(0.1, 1.0)),
        _changed(0, "item", 8),
        _changed(1, "loss", 0.0),
        _changed(1, "detail", {"worker": "ada", "label": 4}),
        _changed(2, "at", "2026-11-21T13:07:00.000002+00:00"),
    ],
)
def test_any_other_ledger_has_another_head(records: list[dict[str, Any]]) -> None:
    start = chain_start(SESSION, DIGEST)
    assert chain_head(start, records) != chain_head(start, RECORDS)


def test_the_head_of_a_beginning_leads_to_the_head_of_the_whole() -> None:
    start = chain_start(SESSION, DIGEST)
    noted = chain_head(start, RECORDS[:2])
    assert chain_head(noted, RECORDS[2:]) == chain_head(start, RECORDS)


def test_probabilities_of_strata_come_back_to_the_last_digit() -> None:
    q = np.random.default_rng(0).random(40)
    assert (strata_of_hex(strata_hex(q)) == q).all()
