"""Keys as they are kept: made, listed, rotated, revoked, and let in."""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import psycopg
import pytest

from celeus.core.plans.plan import Claim
from celeus.core.plans.plan_request import SessionRequest
from celeus.errors import (
    DatabaseUnavailable,
    InvalidValue,
    KeyNotFound,
    KeyRetired,
    ProjectExists,
    ProjectNotFound,
    ScopeMissing,
    Unauthenticated,
)
from celeus.operations.access.authentication import admit
from celeus.operations.access.keys import (
    MadeKey,
    NewKey,
    create_key,
    first_key,
    list_keys,
    revoke_key,
    rotate_key,
)
from celeus.operations.runtime.caller_cache import Caller, CallerCache
from celeus.operations.runtime.context import Context, open_context
from celeus.operations.sessions import rounds, stream
from celeus.settings import Settings
from celeus.store.migrate import any_key
from celeus.store.tables import DEFAULT_PROJECT
from tests.conftest import Execute
from tests.operations.opened import opened
from tests.operations.wire import listening

HOUR = timedelta(hours=1)
NEW = NewKey("test", ("read",))


@pytest.fixture
async def context(database_url: str) -> AsyncIterator[Context]:
    """A context with no caller cached, on a database without keys."""
    with psycopg.connect(database_url) as db:
        db.execute("DELETE FROM keys")
    settings = Settings(database_url=database_url, key_cache_seconds=0)
    async with open_context(settings) as context:
        yield context


def parts(made: MadeKey) -> tuple[str, str]:
    """Id and secret."""
    _, key_id, secret = made.token.split("_", 2)
    return key_id, secret


async def test_a_key_lets_its_holder_into_its_project_with_its_scopes(context: Context) -> None:
    made = await create_key(context, NewKey("ada's", ("label", "read"), "other", new_project=True))
    caller = await admit(context, *parts(made))
    assert caller.key_id == made.record.key_id
    assert caller.project_id != DEFAULT_PROJECT
    assert caller.scopes == {"label", "read"}
    again = await create_key(context, NewKey("bob's", ("admin",), "other"))
    assert (await admit(context, *parts(again))).project_id == caller.project_id
    assert (
        await admit(context, *parts(await create_key(context, NEW)))
    ).project_id == DEFAULT_PROJECT


async def test_the_secret_is_kept_nowhere(context: Context, execute: Execute) -> None:
    made = await create_key(context, NEW)
    await admit(context, *parts(made))
    rotated = await rotate_key(context, made.record.key_id, HOUR)
    kept = str(execute("SELECT * FROM keys").fetchall())
    for key in (made, rotated):
        secret = parts(key)[1]
        assert secret not in kept
        assert secret.encode().hex() not in kept
        assert secret not in repr(key)
    assert len({made.token, rotated.token}) == 2


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        (NewKey("", ("read",)), "name"),
        (NewKey("a\nb", ("read",)), "name"),
        (NewKey("\x00", ("read",)), "name"),
        (NewKey("x" * 201, ("read",)), "name"),
        (NewKey("x", ()), "scope"),
        (NewKey("x", ("read", "root")), "scope"),
        (NewKey("x", ("read",), "\t"), "project"),
        (NewKey("x", ("read",), expires_in=timedelta(0)), "expires_in"),
        (NewKey("x", ("read",), expires_in=timedelta(days=10**6)), "expires_in"),
    ],
)
async def test_a_key_that_cannot_be_is_refused(
    context: Context, wanted: NewKey, field: str
) -> None:
    with pytest.raises(InvalidValue) as refused:
        await create_key(context, wanted)
    assert refused.value.field == field
    assert await list_keys(context) == []


async def test_a_project_is_named_or_made_but_never_by_accident(context: Context) -> None:
    with pytest.raises(ProjectNotFound):
        await create_key(context, NewKey("x", ("read",), "tpyo"))
    with pytest.raises(ProjectExists):
        await create_key(context, NewKey("x", ("read",), "default", new_project=True))
    for wrong in (NewKey("x", ("read",), level=0.1), NewKey("x", ("read",), "y", True, level=0.6)):
        with pytest.raises(InvalidValue) as refused:
            await create_key(context, wrong)
        assert refused.value.field == "level"
    wanted = NewKey("x", ("read",), "new'; DROP TABLE keys; --", new_project=True)
    outcomes = await asyncio.gather(
        *(create_key(context, wanted) for _ in range(4)), return_exceptions=True
    )
    assert sum(isinstance(outcome, ProjectExists) for outcome in outcomes) == 3
    assert len(await list_keys(context)) == 1


async def test_a_key_ends_by_the_clock_of_the_database(context: Context, execute: Execute) -> None:
    made = await create_key(context, NewKey("x", ("read",), expires_in=HOUR))
    assert made.record.expires_at is not None
    assert timedelta() <= made.record.created_at + HOUR - made.record.expires_at < HOUR / 60
    await admit(context, *parts(made))
    execute("UPDATE keys SET expires_at = now()")
    with pytest.raises(Unauthenticated):
        await admit(context, *parts(made))


async def test_a_revoked_key_stays_revoked_since_the_first_time(context: Context) -> None:
    made = await create_key(context, NEW)
    revoked = await revoke_key(context, made.record.key_id)
    assert revoked.revoked_at is not None
    assert await revoke_key(context, made.record.key_id) == revoked
    with pytest.raises(Unauthenticated):
        await admit(context, *parts(made))
    for missing in ("0" * 16, "", "' OR 1=1"):
        with pytest.raises(KeyNotFound):
            await revoke_key(context, missing)


async def test_a_rotated_key_hands_over_everything_and_ends_after_the_grace(
    context: Context, execute: Execute
) -> None:
    wanted = NewKey("x", ("label", "read"), "team", new_project=True, expires_in=24 * HOUR)
    old = await create_key(context, wanted)
    new = await rotate_key(context, old.record.key_id, HOUR)
    old_listed = {listed.key_id: listed for listed in await list_keys(context)}[old.record.key_id]
    assert old_listed.replaced_by == new.record.key_id
    assert old_listed.expires_at is not None
    assert old_listed.expires_at - new.record.created_at == HOUR
    for name in ("name", "project", "scopes"):
        assert getattr(new.record, name) == getattr(old.record, name)
    assert new.record.expires_at is not None
    assert new.record.expires_at - new.record.created_at == 24 * HOUR
    callers = [await admit(context, *parts(key)) for key in (old, new)]
    assert callers[0].project_id == callers[1].project_id
    execute("UPDATE keys SET expires_at = expires_at - interval '1 hour'")
    with pytest.raises(Unauthenticated):
        await admit(context, *parts(old))
    await admit(context, *parts(new))


async def test_a_grace_never_lengthens_a_life(context: Context) -> None:
    old = await create_key(context, NewKey("x", ("read",), expires_in=HOUR))
    await rotate_key(context, old.record.key_id, 24 * HOUR)
    assert (await list_keys(context))[0].expires_at == old.record.expires_at


async def test_only_a_key_in_use_can_be_rotated_and_only_once(context: Context) -> None:
    made = await create_key(context, NEW)
    outcomes = await asyncio.gather(
        *(rotate_key(context, made.record.key_id, HOUR) for _ in range(4)), return_exceptions=True
    )
    assert sum(isinstance(outcome, KeyRetired) for outcome in outcomes) == 3
    assert len(await list_keys(context)) == 2
    revoked = await create_key(context, NEW)
    await revoke_key(context, revoked.record.key_id)
    with pytest.raises(KeyRetired):
        await rotate_key(context, revoked.record.key_id, HOUR)
    with pytest.raises(KeyNotFound):
        await rotate_key(context, "0" * 16, HOUR)
    for grace in (-HOUR, timedelta(days=10**6)):
        with pytest.raises(InvalidValue):
            await rotate_key(context, made.record.key_id, grace)


async def test_without_a_grace_the_old_key_ends_at_once(context: Context) -> None:
    made = await create_key(context, NEW)
    new = await rotate_key(context, made.record.key_id, timedelta(0))
    with pytest.raises(Unauthenticated):
        await admit(context, *parts(made))
    await admit(context, *parts(new))


async def test_of_many_first_starts_at_once_one_makes_a_key(
    context: Context, database_url: str
) -> None:
    assert not any_key(database_url)
    async with open_context(Settings(database_url=database_url)) as other:
        made = await asyncio.gather(*(first_key(database) for database in (context, other) * 4))
    [created] = [key for key in made if key is not None]
    assert (await admit(context, *parts(created))).scopes == {"admin", "manage", "label", "read"}
    assert any_key(database_url)
    assert await first_key(context) is None
    await revoke_key(context, created.record.key_id)
    assert await first_key(context) is not None, "nobody could come in"


async def test_every_key_that_does_not_work_costs_the_same_work(
    database_url: str, tmp_path: Path, execute: Execute
) -> None:
    async with (
        open_context(Settings(database_url=database_url)) as context,
        listening(context.database, tmp_path / "wire") as wire,
    ):
        good, ended, gone = [await create_key(context, NEW) for _ in range(3)]
        await revoke_key(context, ended.record.key_id)
        ending = "UPDATE keys SET expires_at = now() WHERE key_id = %s"
        execute(ending, [gone.record.key_id])
        for _ in range(2):
            await admit(context, *parts(good))
        wire.round_trips()
        await admit(context, *parts(good))
        assert wire.round_trips() == 0, "remembered"
        trips = []
        for key_id, secret in (
            (good.record.key_id, "x" * 43),
            ("0" * 16, parts(good)[1]),
            parts(ended),
            parts(gone),
        ):
            with pytest.raises(Unauthenticated) as refused:
                await admit(context, key_id, secret)
            trips.append((wire.round_trips(), refused.value.detail, refused.value.rule))
        assert len(set(trips)) == 1
        assert trips[0][0] == 3, "begin, one statement, commit"
        await admit(context, *parts(good))
        assert wire.round_trips() == 0, "a guess makes nobody forgotten"


async def test_without_a_database_a_key_is_neither_right_nor_wrong() -> None:
    async with open_context(
        Settings(database_url="postgresql://nobody@127.0.0.1:1/none")
    ) as context:
        with pytest.raises(DatabaseUnavailable):
            await admit(context, "0" * 16, "x" * 43)


async def test_a_database_away_ends_no_memory_before_its_time(database_url: str) -> None:
    settings = Settings(database_url=database_url, key_cache_seconds=3600)
    async with open_context(settings) as context:
        made = await create_key(context, NEW)
        key_id, secret = parts(made)
        let_in = await admit(context, key_id, secret)
        context.callers._known[key_id].refresh_at = 0
        gone = Settings(database_url="postgresql://nobody@127.0.0.1:1/none")
        async with open_context(gone) as nowhere:
            without = replace(nowhere, callers=context.callers)
            assert await admit(without, key_id, secret) == let_in
            with pytest.raises(DatabaseUnavailable):
                await admit(without, key_id, "x" * 43)


def caller(number: int) -> Caller:
    return Caller.of(f"{number:016x}", DEFAULT_PROJECT, ["read"])


def test_those_let_in_are_remembered_up_to_a_number_and_guessers_never() -> None:
    known = CallerCache(60, most=3)
    for number in range(4):
        known.keep(caller(number), bytes([number]), time.monotonic(), None)
        assert known.get(caller(0).key_id, bytes([9])) is None
    assert len(known) == 3
    assert known.get(caller(0).key_id, b"\x00") is None, "the longest unused gives way"
    assert known.get(caller(1).key_id, b"\x01") == caller(1)


def test_one_request_in_the_second_half_looks_again_and_the_others_go_on() -> None:
    known = CallerCache(60)
    known.keep(caller(1), b"1", time.monotonic() - 31, None)
    found = [known.get(caller(1).key_id, b"1") for _ in range(4)]
    assert found == [None, caller(1), caller(1), caller(1)]


@pytest.mark.parametrize(("seconds", "life", "age"), [(0, None, 0), (5, None, 5), (60, 2.0, 2.5)])
def test_nobody_is_remembered_beyond_the_time_or_the_life_of_the_key(
    seconds: float, life: float | None, age: float
) -> None:
    known = CallerCache(seconds)
    known.keep(caller(1), b"1", time.monotonic() - age, life)
    assert known.get(caller(1).key_id, b"1") is None
    assert len(known) == 0


@pytest.mark.parametrize(
    ("granted", "implied", "blind"),
    [
        (["admin"], {"admin", "manage", "label", "read"}, False),
        (["manage"], {"manage", "read"}, False),
        (["label"], {"label"}, True),
        (["label", "read"], {"label", "read"}, False),
        (["label", "manage"], {"label", "manage", "read"}, False),
        (["read"], {"read"}, False),
        (["of a later version"], {"of a later version"}, True),
    ],
)
def test_scopes_imply_what_they_must(granted: list[str], implied: set[str], *, blind: bool) -> None:
    who = Caller.of("0" * 16, UUID(int=1), granted)
    assert who.scopes == implied
    assert who.blind == blind
    for scope in ("admin", "manage", "label", "read"):
        if scope in implied:
            who.require(scope)
        else:
            with pytest.raises(ScopeMissing):
                who.require(scope)


async def test_a_stream_ends_with_its_key(context: Context) -> None:
    session_id = await opened(context, SessionRequest(Claim()), 2)
    made = await create_key(context, NEW)
    with_key = replace(context, key_id=made.record.key_id)
    news = stream.follow(with_key, session_id, (0, None))
    assert (await anext(news)).position[0] == 0
    await rounds.next_draws(context, session_id, "ada", 1)
    assert (await anext(news)).position[0] == 1
    await revoke_key(context, made.record.key_id)
    await rounds.next_draws(context, session_id, "bob", 1)
    with pytest.raises(StopAsyncIteration):
        await anext(news)
