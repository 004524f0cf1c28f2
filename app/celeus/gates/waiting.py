"""A service asked until it answers, or until the wait is over."""

import asyncio
import time
from typing import Any

import httpx2

from celeus.client.asynchronous import AsyncClient
from celeus.client.blocking import Client
from celeus.client.exchange import Flow
from celeus.client.refusals import Problem, Unanswered
from celeus.client.service import check_session
from celeus.errors import Refusal
from celeus.gates.documents import Part, document
from celeus.gates.questions import ExtraQuestion, Outcome, Replacement, outcome_of

POLL_SECONDS = 2.0
REQUEST_SECONDS = 10.0


class Gate:
    """A session at a service, read with a key; of a table one claim of it."""

    def __init__(self, url: str, session: str, key: str | None, part: Part | None = None) -> None:
        self._url, self._session, self._part = url.rstrip("/"), session, part
        self._key = key

    def outcome(self, question: ExtraQuestion | Replacement | None, wait: float = 0.0) -> Outcome:
        """The answers when they are there or cannot come, else after ``wait`` seconds.

        Without a question these are the answers to the session's own. Raises Refusal: at once
        where another try changes nothing, else when the wait is over. The key is in none of it.
        """
        try:
            check_session(self._session)
            client = AsyncClient(self._url, self._key, retry=False)
            with asyncio.Runner() as runner:
                try:
                    return self._awaited(runner, client, question, wait)
                finally:
                    runner.run(client.close())
        except Refusal as refusal:
            veil(self._key, refusal)
            raise

    def _awaited(
        self,
        runner: asyncio.Runner,
        client: AsyncClient,
        question: ExtraQuestion | Replacement | None,
        wait: float,
    ) -> Outcome:
        deadline = time.monotonic() + wait
        while True:
            pause = POLL_SECONDS
            try:
                outcome = outcome_of(runner.run(self._document(client)), question)
            except (Problem, Unanswered) as error:
                asked = error.retry_after if isinstance(error, Problem) else 0.0
                remaining = deadline - time.monotonic()
                passing = isinstance(error, Unanswered) or error.passing
                # Whoever asks to be left alone for longer than we wait is not asked again.
                if not passing or remaining <= 0.0 or asked > remaining:
                    raise
                pause = max(pause, asked)
            else:
                remaining = deadline - time.monotonic()
                if outcome.final or remaining <= 0.0:
                    return outcome
            time.sleep(min(pause, remaining))

    async def _document(self, client: AsyncClient) -> dict[str, Any]:
        flow = document(self._url, self._session, self._part)
        try:
            # Of all requests: a timeout of the socket starts anew with every byte
            async with asyncio.timeout(REQUEST_SECONDS):
                found = await client.run(flow)
        except TimeoutError:
            message = f"{self._url} does not answer within {REQUEST_SECONDS:.3g} seconds"
            raise Unanswered(message) from None
        known: dict[str, Any] = without(self._key, found)
        return known


def check_reachable(url: str, key: str | None) -> None:
    """Refuse an address at which no Celeus of this series answers."""

    def nothing() -> Flow[None]:
        yield from ()

    try:
        with httpx2.Client(timeout=REQUEST_SECONDS) as http:
            # Before the first flow a client greets the service
            Client(url, key, http=http).run(nothing())
    except Refusal as refusal:
        veil(key, refusal)
        raise


def veil(key: str | None, refusal: Refusal) -> None:
    """Take the key out of all that a refusal says."""
    for name in ("detail", "field", "rule", "value"):
        setattr(refusal, name, without(key, getattr(refusal, name)))


def without(key: str | None, value: Any) -> Any:  # noqa: ANN401 -- JSON
    """A stranger's value that holds the key nowhere: what comes of it is shown to others."""
    if not key:
        return value
    if isinstance(value, str):
        return value.replace(key, "…")
    if isinstance(value, list):
        return [without(key, entry) for entry in value]
    if isinstance(value, dict):
        return {without(key, name): without(key, entry) for name, entry in value.items()}
    return value
