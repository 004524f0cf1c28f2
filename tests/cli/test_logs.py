import logging

from celeus.commands.service.logs import MOST_TARGET, ShortTarget

LINE = '%s - "%s %s HTTP/%s" %d'


def line_of(target: str) -> str:
    arguments = ("127.0.0.1:9", "GET", target, "1.1", 200)
    record = logging.LogRecord("uvicorn.access", logging.INFO, "", 0, LINE, arguments, None)
    assert ShortTarget().filter(record)
    return record.getMessage()


def test_the_target_of_a_request_is_cut_in_the_log() -> None:
    """A query may be 60 KB long, and nobody needs a key to send it."""
    assert line_of("/login?next=/") == '127.0.0.1:9 - "GET /login?next=/ HTTP/1.1" 200'
    long = line_of("/login?" + "a=b&" * 15_000)
    assert len(long) < MOST_TARGET + 60
    assert long.endswith('… HTTP/1.1" 200')
