"""What the page of a new session asks of a pool, by what the pool holds."""

import re
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
from httpx import AsyncClient

from tests.keys import ADMIN, bearer

Visiting = Callable[..., AbstractAsyncContextManager[AsyncClient]]
SCORE = {"name": "accuracy", "better": "higher"}
BINARY = {"kind": "zero_one"}
GRADE = {"kind": "bounded", "lower": 0, "upper": 5}
SIDES = {"a": {"answer": "x"}, "b": {"answer": "y"}}
CASES: list[tuple[dict[str, Any], list[str], list[str]]] = [
    (
        {
            "loss": BINARY,
            "score": SCORE,
            "items": [
                {"id": "1", "group": "<b>"},
                {"id": "2", "group": "c", "known": {"loss": 0, "reason": "empty"}},
            ],
        },
        [
            'data-makes="mean"',
            "The accuracy of",
            'name="groups" value="group"',
            "2 values",
            'name="group_precision"',
            "Of 2 items, 1 are known (empty)",
            "Expected mean loss",
            "The middle of the scale",
        ],
        ['id="deciding"', 'name="questions.metric"', "The uploaded surrogate"],
    ),
    (
        {
            "metrics": {"correct": {**BINARY, "score": SCORE}, "gra.de": GRADE},
            "items": [{"id": "1", "surrogates": {"correct": 0.5, "gra.de": 1}}],
        },
        [
            'data-makes="metrics"',
            "The mean loss of",
            "<bdi>correct</bdi>: <bdi>accuracy</bdi>",
            "(on a scale 5 wide)",
            'name="precision.gra.de"',
            'value="0.25" inputmode="decimal" placeholder="as it comes"',
            "<option>correct</option><option>gra.de</option>",
        ],
        ['id="groups-asked"', 'id="audit"'],
    ),
    (
        {"loss": BINARY, "systems": {"a": "old", "b": "<i>"}, "items": [{"id": "1", **SIDES}]},
        [
            'data-makes="difference"',
            "The difference, old less &lt;i&gt;, on",
            "old at least as good as &lt;i&gt;",
            "Expected difference",
            'name="decide.margin"',
        ],
        ['id="best"'],
    ),
    (
        {
            "loss": BINARY,
            "systems": {"names": ["x", "y", "z"]},
            "items": [{"id": "1", "answers": {name: {"answer": name} for name in "xyz"}}],
        },
        ['data-makes="best"', "Which of these 3 systems is the best: x, y, z."],
        ['id="deciding"'],
    ),
    (
        {
            "loss": BINARY,
            "items": [{"id": "1", "target_probs": [0.5, 0.5], "surrogate_probs": [0.1, 0.9]}],
        },
        ['<option value="A">', '<option value="C">', "As the surrogate predicts"],
        ["The uploaded surrogate"],
    ),
]


@pytest.mark.parametrize(("body", "shown", "missing"), CASES)
async def test_a_pool_is_asked_for_what_it_can_tell(
    visiting: Visiting, body: dict[str, Any], shown: list[str], missing: list[str]
) -> None:
    async with visiting(ADMIN) as browser:
        form = {"name": "exam", "sealed": True, "instructions": "Be *fair*."} | body
        pool = (await browser.post("/v1/pools", json=form, headers=bearer())).raise_for_status()
        chosen = (await browser.get(f"/sessions/new?pool={pool.json()['id']}")).text
        assert 'data-instructions="Be *fair*."' in chosen
        claim = chosen[chosen.index('id="claim"') :]
        assert [words for words in shown if words not in claim] == []
        assert [words for words in missing if words in claim] == []


async def test_a_form_opens_one_session_and_says_at_its_field_what_is_wrong(
    visiting: Visiting,
) -> None:
    async with visiting(ADMIN) as browser:
        body = {"name": "exam", "sealed": True, "loss": BINARY, "items": [{"id": "1"}]}
        pool = (await browser.post("/v1/pools", json=body, headers=bearer())).json()["id"]
        page = (await browser.get(f"/sessions/new?pool={pool}")).text
        form = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page))
        form |= {"act": "open", "alpha": "0,1", "precision": "0.5", "subject.digest": ""}
        form |= {"instructions": "One\r\ntwo", "subject": "one", "questions.threshold": "x"}
        for name, value in {
            "precision": "wide",
            "alpha": "",
            "budget": "1.5",
            "subject.name": "a model",
            "questions.side": "at_most",
        }.items():
            refused = await browser.post("/sessions/new", data=form | {name: value})
            assert refused.status_code == 422
            assert refused.text.count('aria-invalid="true"') == 1, name
            assert 'name="instructions"' in refused.text
            assert 'id="open">Open' in refused.text
        places = [
            (await browser.post("/sessions/new", data=form | more)).headers["Location"]
            for more in ({}, {}, {"name": "another"})
        ]
        assert places[0] == places[1] != places[2]
        told = (await browser.get(f"/v1{places[0]}/instructions")).json()
        assert told["instructions"] == "One\ntwo"
        session = (await browser.get(f"/v1{places[0]}")).json()
        assert (session["alpha"], session["precision"], session["subject"]) == (0.1, 0.5, [])
