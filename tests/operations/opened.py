"""Sessions for operations to work on, made without HTTP."""

from uuid import UUID

from celeus.core.plans.plan_request import SessionRequest
from celeus.core.pools.losses import LossScale
from celeus.core.session.outcome import Judgement
from celeus.operations.pools import pools
from celeus.operations.runtime.context import Context
from celeus.operations.sessions import rounds, sessions
from celeus.operations.sessions.sessions import Opening


async def sealed(context: Context, items: int) -> UUID:
    """A sealed pool of so many items, whose losses are 0 or 1."""
    lines: list[object] = [
        {"id": f"i{number}", "surrogate": number % 10 / 10} for number in range(items)
    ]
    rows = list(range(1, items + 1)), lines
    new = pools.NewPool("p", LossScale.of("zero_one"), rows, sealed=True)
    return (await pools.create_pool(context, new)).pool_id


async def opened(context: Context, request: SessionRequest, items: int = 300) -> UUID:
    """A session on a new pool."""
    opening = Opening(await sealed(context, items), request)
    document = await sessions.open_session(context, opening)
    return UUID(document["id"].removeprefix("ses_"))


def judgement(round_: int, loss: float | None = None) -> Judgement:
    """What is said of a round: that every third one is wrong."""
    return Judgement(round_, loss=float(round_ % 3 == 0) if loss is None else loss)


async def judged(context: Context, session: UUID, count: int, *, held: int = 0) -> None:
    """Judge so many rounds one after the other; so many more are held after each."""
    for _ in range(count):
        [draw] = (await rounds.next_draws(context, session, "ada", 1)).draws
        await rounds.observe(context, session, [judgement(draw["round"])], "ada", held)
