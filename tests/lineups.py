"""Pools of several systems whose true losses the test knows, made as a user makes them."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from httpx import AsyncClient

NAMES = ("qwen-72b", "llama-70b", "yi-34b", "tiny")
JUDGED = ("label", "answers", "losses")
ABLE = (0.85, 0.75, 0.6, 0.3)


@dataclass(frozen=True)
class Field:
    """A sealed pool of several systems; ``truth`` is the class, or the option, that is right."""

    id: str
    judged: str
    names: tuple[str, ...]
    items: list[dict[str, Any]]
    truth: list[int]
    losses: list[list[float]]

    @property
    def known(self) -> list[bool]:
        """Items that all systems answer the same, where answers are given."""
        own = {"label": "prediction", "answers": "answer"}.get(self.judged)
        return [
            own is not None and len({one[own] for one in item["answers"].values()}) == 1
            for item in self.items
        ]

    def said(self, item: int) -> dict[str, Any]:
        """A judgement of an item, by whoever is told the names."""
        if self.judged == "label":
            return {"label": self.truth[item]}
        return {"losses": dict(zip(self.names, self.losses[item], strict=True))}

    def said_blind(self, draw: dict[str, Any]) -> dict[str, Any]:
        """A judgement of what a draw shows."""
        item = int(draw["item"]["id"].removeprefix("item-"))
        if self.judged == "label":
            return {"label": self.truth[item]}
        right = f"option {self.truth[item]}"
        return {"losses": [float(one["answer"] != right) for one in draw["answers"]]}


def body_of(
    judged: str, size: int = 80, seed: int = 0, able: tuple[float, ...] = ABLE
) -> tuple[dict[str, Any], Field]:
    """The request that makes a pool of several systems, and what is true of it."""
    chance = np.random.default_rng(seed)
    names = NAMES[: len(able)] if len(able) <= len(NAMES) else tuple(map(str, range(len(able))))
    truth = chance.integers(0, 4, size)
    right = chance.random((size, len(able))) < able
    wrong = (truth[:, None] + chance.integers(1, 4, (size, len(able)))) % 4
    chosen = np.where(right, truth[:, None], wrong)
    items: list[dict[str, Any]] = []
    for at in range(size):
        answers: dict[str, Any] = {}
        for place, name in enumerate(names):
            own: dict[str, Any] = {"surrogate": round(float(chance.random()), 3)}
            if judged == "label":
                own["prediction"] = int(chosen[at, place])
            if judged == "answers":
                own["answer"] = f"option {chosen[at, place]}"
            answers[name] = own
        payload = {"question": f"question {at}"}
        items.append({"id": f"item-{at}", "payload": payload, "answers": answers})
    losses = (chosen != truth[:, None]).astype(float).tolist()
    systems = {"names": list(names), "normalisation": "exact"}
    body: dict[str, Any] = {"name": "field", "systems": systems, "items": items}
    body |= {"loss": {"kind": "zero_one"}, "sealed": True}
    return body, Field("", judged, names, items, truth.tolist(), losses)


async def field(client: AsyncClient, judged: str, size: int = 80, **more: Any) -> Field:  # noqa: ANN401
    """A sealed pool of several systems."""
    body, made = body_of(judged, size, **more)
    answer = await client.post("/v1/pools", json=body)
    assert answer.status_code == 201, answer.text
    return replace(made, id=answer.json()["id"])
