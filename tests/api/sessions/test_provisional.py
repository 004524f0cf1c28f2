"""The interval that is shown while a draw stays open."""

from httpx import AsyncClient

from tests.factories import drawn, judged, known_pool, opened


async def test_judgements_behind_an_open_draw_are_shown_in_a_provisional_interval(
    client: AsyncClient,
) -> None:
    pool = await known_pool(client)
    session = await opened(client, pool, precision=0.2)
    held = (await drawn(client, session, worker="bob"))["draws"][0]
    for number in range(40):
        before = (await client.get(f"/v1/sessions/{session}")).json()
        assert (before["provisional"] is None) == (number < 32)
        draw = (await drawn(client, session))["draws"][0]
        await judged(client, session, pool, draw)
    status = (await client.get(f"/v1/sessions/{session}")).json()
    shown = status["provisional"]
    assert (status["round"], shown["open"], shown["round"]) == (0, 1, 41)
    assert shown["width"] == shown["upper"] - shown["lower"] < status["width"]
    after = (await judged(client, session, pool, held, worker="bob"))["session"]
    assert after["provisional"] is None
    assert shown["lower"] <= after["lower"] <= after["upper"] <= shown["upper"]
