"""A session in process and one of the service, with one seed and the same labels."""

import json
import secrets
from pathlib import Path

import pytest
from httpx import AsyncClient

from celeus.runs.run import Run
from tests.factories import KnownPool, labelled, opened
from tests.runs.test_run import ASKED, FORM, ITEMS, KEY, LOSSES, ROWS, judged


async def test_service_and_process_draw_and_bet_alike(
    client: AsyncClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = {"name": "exam", "loss": {"kind": "zero_one"}, "items": ROWS, "sealed": True}
    pool = (await client.post("/v1/pools", json=body)).json()
    known = KnownPool(pool["id"], LOSSES)
    session = await opened(client, known, precision=0.2)
    await labelled(client, session, known, ITEMS)
    await client.patch(f"/v1/sessions/{session}", json={"state": "closed"})
    theirs = (await client.get(f"/v1/sessions/{session}/certificate")).json()
    monkeypatch.setattr(secrets, "token_bytes", lambda _: bytes.fromhex(theirs["seed"]))
    with Run.open(tmp_path / "same.celeus", FORM, ROWS, ASKED) as ours:
        judged(ours)
        ours.close()
        own = json.loads(ours.certificate(KEY))
    for member in ("plan", "pool", "claim", "rounds", "seed"):
        assert own[member] == theirs[member], member
    of_ledger = [
        [{name: value for name, value in one.items() if name not in {"at", "detail"}} for one in it]
        for it in (own["ledger"], theirs["ledger"])
    ]
    assert of_ledger[0] == of_ledger[1]
