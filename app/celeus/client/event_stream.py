"""A session followed live: where a broken stream goes on."""

import json

from celeus.client.calls import SESSIONS
from celeus.client.exchange import TRIES, Answer, LostAnswer, Request, checked, member, pause_after
from celeus.client.reading import read
from celeus.client.results import Status


class EventStream:
    """The place in a stream of events; it ends when the session is closed."""

    def __init__(self, session: str) -> None:
        self.path = f"{SESSIONS}/{session}/stream"
        self.position: str | None = None
        self.failures = 0
        self.closed = False

    def request(self) -> Request:
        """Return the request for the events after those that came."""
        headers = {"Accept": "text/event-stream"}
        if self.position is not None:
            headers["Last-Event-ID"] = self.position
        return Request("GET", self.path, headers=headers)

    def event(self, position: str, data: str) -> Status:
        """Return the session's status from an event."""
        self.position = position or self.position
        status = read(Status, member(json.loads(data), "session"))
        self.closed = status.state == "closed"
        return status

    def pause(self, outcome: Answer | LostAnswer) -> float:
        """Seconds until the stream is asked for again; raises an error that will not pass."""
        self.failures += 1
        wait = pause_after(outcome, self.failures)
        if wait is None or self.failures == TRIES:
            checked(outcome)
        return wait or 0.0
