"""What a session says that seeks the best of several systems, as its status stands."""

from typing import Any

import pytest

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
            (
                "The best of 3 systems is one, two or three, valid at every look with 95\u202f%"
                " confidence."
            ),
        ),
        (
            {"standing": ["one", "three"]},
            "The best of 3 systems is one or three, valid at every look with 95\u202f% confidence.",
        ),
        (
            {"winner": "two", "standing": ["two"]},
            "two is the best of 3 systems, valid at every look with 95\u202f% confidence.",
        ),
        (
            {"standing": ["one", "two"], "stop_reason": "exhausted"},
            (
                "one and two are the best of 3 systems, valid at every look with 95\u202f%"
                " confidence; they are equally good: every item on which they differ is judged."
            ),
        ),
    ],
)
def test_a_status_is_told_in_a_sentence(changed: dict[str, Any], words: str) -> None:
    assert best_sentence(status(**changed)) == words
