"""The labels of a session as the client reads them."""

import sys

import pytest

import celeus
from celeus.client.rows import frame_of
from celeus.errors import InvalidValue
from tests.client.pools import Exam


def test_labels_are_read_page_by_page_with_filters(session: celeus.Session, known: Exam) -> None:
    session.judge(known, concurrency=1, worker="ada")
    labels = list(session.labels())
    assert [one.round for one in labels] == list(range(1, session.status().rounds.judged + 1))
    assert {one.loss for one in labels} == {0, 1}
    assert all(one.loss == known.losses[one.index] for one in labels)
    assert all(0 < one.probability <= 1 for one in labels)
    wrong = [one.round for one in labels if one.loss == 1]
    assert [one.round for one in session.labels(above=0, limit=7)] == wrong
    first = next(session.labels(payload=True, order="newest"))
    assert (first.round, first.payload) == (labels[-1].round, {"number": first.index})


def test_without_pandas_a_frame_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InvalidValue, match="pip install pandas"):
        frame_of([])
