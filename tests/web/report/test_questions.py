"""What a session says that seeks the best of several systems, as its status stands."""

from typing import Any

import pytest

from celeus.commands.verify import _best
from celeus.core.insights.badges import badge_of
from celeus.core.insights.sentences import best_sentence

NAMES = ["one", "two", "three"]


def status(**changed: Any) -> dict[str, Any]:  # noqa: ANN401
    best = {"winner": None, "standing": NAMES, "systems": [{"name": name} for name in NAMES]}
    whole = {"alpha": 0.05, "stop_reason": None, "rounds": {"in_interval": 4}}
    return (
        whole
        | {"best": best | {name: changed.pop(name) for name in best if name in changed}}
        | (changed)
    )


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (
            {"rounds": {"in_interval": 0}},
            "Nothing is judged yet: any of the 3 systems may be the best.",
        ),
        (
            {},
            "No system is out yet: any of the 3 systems may be the best.",
        ),
        (
            {"standing": ["one", "three"]},
            (
                "No system is better than the best of one and three, valid at every look with"
                " 95\u202f% confidence."
            ),
        ),
        (
            {"winner": "two", "standing": ["two"]},
            (
                "two is at least as good as every other of 3 systems, valid at every look with"
                " 95\u202f% confidence."
            ),
        ),
        (
            {"standing": ["one", "two"], "stop_reason": "exhausted"},
            (
                "one and two are at least as good as every other of 3 systems, valid at every look"
                " with 95\u202f% confidence; they are equally good: every item on which they differ"
                " is judged."
            ),
        ),
    ],
)
def test_a_status_is_told_in_a_sentence(changed: dict[str, Any], words: str) -> None:
    assert best_sentence(status(**changed)) == words


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"rounds": {"in_interval": 0}}, "no labels yet"),
        ({}, "all still in"),
        (
            {"standing": ["one", "three"]},
            "none better than the best of 2 still in, 95\u202f%",
        ),
        ({"winner": "two", "standing": ["two"]}, "none better than two, 95\u202f%"),
    ],
)
def test_a_badge_says_no_more_than_the_sentence(changed: dict[str, Any], words: str) -> None:
    told = status(**changed) | {"table": None}
    badge = badge_of(told, labels=None, promised=True, names=None)
    assert (badge.label, badge.message) == ("best of 3", words)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({}, "any of 3 systems may be the best"),
        ({"standing": ["one", "three"]}, "none of 3 systems is better than the best of one, three"),
        ({"winner": "two"}, "two is at least as good as every other of 3 systems"),
    ],
)
def test_a_certificate_that_is_verified_says_no_more(changed: dict[str, Any], words: str) -> None:
    assert _best(status(**changed)["best"]) == words
