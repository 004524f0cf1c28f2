"""The report of a session that makes a table of claims."""

import pytest
from httpx import AsyncClient

from tests.api.sessions.test_table import claims_of, opened
from tests.factories import judged_all
from tests.tabled import sheet
from tests.web.report.test_page import read


@pytest.mark.parametrize("account", ["each", "together", "selected", "closed"])
async def test_every_claim_stands_in_the_report_with_its_bar(
    client: AsyncClient, account: str
) -> None:
    pool = await sheet(client)
    session = await opened(client, pool, account=account, groups=["topic", "year"])
    empty = read(await client.get(f"/v1/sessions/{session}/report"))
    assert "Nothing is judged yet" in empty.text
    await judged_all(client, session, pool.said, most=8)
    page = read(await client.get(f"/v1/sessions/{session}/report"))
    claims = await claims_of(client, session)
    status = (await client.get(f"/v1/sessions/{session}")).json()
    bars = [one for tag, one in page.seen if tag == "rect" and one.get("class") == "band"]
    assert len(bars) == len(claims) == 2 * (1 + 3 + 2)
    for words in status["table"]["promises"].values():
        assert words in page.text
    assert "By topic" in page.text
    assert "known before the first draw" in page.text
    assert "faithfulness" in page.text


async def test_the_names_of_groups_are_shown_as_text(client: AsyncClient) -> None:
    hostile = "<script>alert(1)</script>"
    items = [
        {"id": str(at), "surrogate": 0.5, "group": hostile if at % 2 else "plain"}
        for at in range(80)
    ]
    body = {"name": "p", "loss": {"kind": "zero_one"}, "items": items, "sealed": True}
    pool = (await client.post("/v1/pools", json=body)).json()["id"]
    asked = {"pool_id": pool, "groups": ["group"]}
    made = await client.post("/v1/sessions", json=asked)
    assert made.status_code == 201, made.text
    page = read(await client.get(f"/v1/sessions/{made.json()['id']}/report"))
    assert hostile in page.text
