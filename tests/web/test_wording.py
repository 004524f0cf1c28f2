"""Words that pages share."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from celeus.web.people import does, until
from celeus.web.wording import ago, labels_done


@pytest.mark.parametrize(
    ("past", "words"),
    [
        (timedelta(seconds=20), "just now"),
        (timedelta(minutes=1), "1 minute ago"),
        (timedelta(minutes=59), "59 minutes ago"),
        (timedelta(hours=35), "35 hours ago"),
        (timedelta(hours=40), "2 days ago"),
    ],
)
def test_how_long_ago_something_was_is_said_roughly(past: timedelta, words: str) -> None:
    moment = datetime.now(UTC) - past
    assert ago(moment) == ago(moment.isoformat()) == words


@pytest.mark.parametrize(
    ("ahead", "words"),
    [
        (timedelta(seconds=-1), "over"),
        (timedelta(minutes=30), "less than an hour left"),
        (timedelta(hours=47), "47 hours left"),
        (timedelta(days=7), "7 days left"),
    ],
)
def test_until_when_something_works_is_said_roughly(ahead: timedelta, words: str) -> None:
    assert until(datetime.now(UTC) + ahead) == words


def test_what_somebody_does_is_said_in_the_order_of_the_roles() -> None:
    assert does(["admin"]) == "administers"
    assert does(["read", "label"]) == "labels and views"
    assert does(["manage", "label", "read"]) == "labels, views and manages"
    assert until(None) == "no end"


@pytest.mark.parametrize(
    ("labels", "share", "words"),
    [
        (12, 1, "12 labels"),
        (30, 0.25, "30 of about 120 labels"),
        (3, None, "3 of 1\u202f000 items judged"),
        (0, 0.0, "0 of 1\u202f000 items judged"),
    ],
)
def test_labels_are_said_of_those_likely_to_be_needed(
    labels: int, share: float | None, words: str
) -> None:
    session: dict[str, Any] = {"items": 1_040, "known": 40, "repeats": False}
    assert labels_done(session | {"words": {"labels": labels, "share": share}}) == words


def test_where_items_are_run_again_draws_are_counted_of_the_budget() -> None:
    session: dict[str, Any] = {"items": 30, "known": 0, "repeats": True, "budget": 800}
    words = labels_done(session | {"words": {"labels": 39, "share": None}})
    assert words == "39 of at most 800 draws judged"
