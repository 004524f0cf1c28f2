"""Sessions as people find them: judged in part, many at once, or very long."""

import csv
import io
from typing import Any

import httpx
import numpy as np
import psycopg
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

VIOLATIONS = {"resultTypes": ["violations"]}
"""What axe-core describes: what passes too would take twice as long."""


class Evaluation:
    """A pool whose losses the test knows, and sessions on it."""

    def __init__(
        self,
        client: httpx.Client,
        items: int = 200,
        name: str = "Known",
        **members: Any,  # noqa: ANN401 - whatever the wire takes
    ) -> None:
        rng = np.random.default_rng(0)
        surrogate = rng.beta(0.5, 1.5, items)
        self.client = client
        self.losses = (rng.random(items) < surrogate).astype(int)
        rows = [
            {"id": f"item-{i}", "surrogate": float(surrogate[i]), "payload": {"text": f"Item {i}"}}
            for i in range(items)
        ]
        body = {"name": name, "loss": {"kind": "zero_one"}, "items": rows, "sealed": True} | members
        self.pool = str(self._made("/v1/pools", body)["id"])

    def opened(self, **settings: Any) -> str:  # noqa: ANN401 - whatever the wire takes
        """Id of a new session."""
        return str(self._made("/v1/sessions", {"pool_id": self.pool} | settings)["id"])

    def judged(self, session: str, labels: int, worker: str = "ada") -> dict[str, Any]:
        """Judge up to so many items truly; the session then."""
        body: dict[str, Any] = {"worker": worker, "count": min(labels, 100)}
        for _ in range(0, labels, 100):
            draws = self._made(f"/v1/sessions/{session}/next", body)["draws"]
            if not draws:
                break
            told = [
                {"round": one["round"], "loss": int(self.losses[one["item"]["index"]])}
                for one in draws
            ]
            judged = {"worker": worker, "observations": told}
            self._made(f"/v1/sessions/{session}/observe", judged)
        return self.told(session)

    def told(self, session: str) -> dict[str, Any]:
        """The session as the service tells it."""
        found: dict[str, Any] = self.client.get(f"/v1/sessions/{session}").json()
        return found

    def _made(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = self.client.post(path, json=body)
        assert answer.is_success, answer.text
        found: dict[str, Any] = answer.json()
        return found


def multiplied(database_url: str, session: str, copies: int) -> None:
    """More sessions like this one, each with a name and an id of its own."""
    copying = """
        WITH made AS (
            SELECT number, CAST(left(%(id)s, 20) || lpad(to_hex(number), 12, '0') AS uuid) AS id
            FROM generate_series(1, %(copies)s) AS number
        )
        INSERT INTO sessions (session_id, project_id, pool_id, name, plan, plan_digest, seed,
            commitment, lease_seconds, state, budget, status, ledger_head)
        SELECT made.id, project_id, pool_id, 'Copy ' || number, plan, plan_digest, seed, commitment,
            lease_seconds, state, budget, status || jsonb_build_object(
                'id', 'ses_' || replace(made.id::text, '-', ''), 'name', 'Copy ' || number),
            ledger_head
        FROM sessions CROSS JOIN made WHERE session_id = %(uuid)s
        """
    bare = session.removeprefix("ses_")
    with psycopg.connect(database_url) as db:
        db.execute(copying, {"id": bare, "uuid": bare, "copies": copies})


def long_session(client: httpx.Client, database_url: str, rounds: int) -> str:
    """A session of so many judged rounds, written past the service."""
    items = rounds + rounds // 5
    pool = client.post("/v1/pools", json={"name": "Large", "loss": {"kind": "zero_one"}}).json()
    rows = io.StringIO()
    writer = csv.writer(rows)
    writer.writerow(["id", "surrogate"])
    writer.writerows((f"item-{i}", (i % 1000) / 1000) for i in range(items))
    path = f"/v1/pools/{pool['id']}"
    headers = {"Content-Type": "text/csv"}
    added = client.post(f"{path}/items", content=rows.getvalue(), headers=headers, timeout=120)
    assert added.status_code == 200, added.text
    assert client.post(f"{path}/seal", timeout=120).status_code == 200
    opening = {"pool_id": pool["id"], "precision": 0.005, "name": "Very long"}
    session = str(client.post("/v1/sessions", json=opening, timeout=120).json()["id"])
    asked = {"session": session.removeprefix("ses_"), "rounds": rounds, "items": items}
    with psycopg.connect(database_url) as db:
        for statement in _LONG:
            db.execute(statement.encode(), asked)
    return session


def barriers(page: Page, **context: Any) -> list[str]:  # noqa: ANN401 -- axe's own options
    """What axe-core finds wrong on the page."""
    found = Axe().run(page, options=VIOLATIONS, **context).response["violations"]
    return [
        f"{one['id']}: {one['help']} ({node['html'][:120]})"
        for one in found
        for node in one["nodes"]
    ]


def moment(page: Page, name: str) -> float:
    """Milliseconds until something the browser marks had happened, which is waited for."""
    page.wait_for_function("name => performance.getEntriesByName(name).length > 0", arg=name)
    return float(page.evaluate("name => performance.getEntriesByName(name)[0].startTime", name))


def painted(page: Page) -> tuple[float, float]:
    """Milliseconds until something was painted, and until the page's own code had run."""
    return moment(page, "first-contentful-paint"), moment(page, "usable")


_LONG = (
    """
    INSERT INTO events (session_id, sequence, project_id, kind, round, item, q, seen, loss, detail)
    SELECT session_id, 2 * round - 2 + kind, project_id, kind, round,
           CASE WHEN kind = 1 THEN round - 1 END,
           CASE WHEN kind = 1 THEN 1.0 / (%(items)s - round + 1) END,
           CASE WHEN kind = 1 THEN 2 * round - 2 END,
           CASE WHEN kind = 2 THEN ((round * 7919) %% 1000 < (round - 1) %% 1000)::int END,
           '{"worker": "model"}'
    FROM sessions CROSS JOIN generate_series(1, %(rounds)s) AS round
        CROSS JOIN generate_series(1, 2) AS kind
    WHERE session_id = %(session)s
    """,
    """
    INSERT INTO trajectory (session_id, round, project_id, sequence, estimate, lower, upper)
    SELECT session_id, round, project_id, 2 * round, 0.5,
           0.5 - 0.5 / sqrt(1 + round / 20.0), 0.5 + 0.5 / sqrt(1 + round / 20.0)
    FROM sessions CROSS JOIN generate_series(1, %(rounds)s) AS round
    WHERE session_id = %(session)s
    """,
    """
    UPDATE sessions SET sequence = 2 * %(rounds)s, drawn = %(rounds)s,
        status = status || jsonb_build_object(
            'sequence', 2 * %(rounds)s, 'round', %(rounds)s, 'estimate', 0.5,
            'lower', 0.5 - 0.5 / sqrt(1 + %(rounds)s / 20.0),
            'upper', 0.5 + 0.5 / sqrt(1 + %(rounds)s / 20.0),
            'width', 1.0 / sqrt(1 + %(rounds)s / 20.0),
            'rounds', jsonb_build_object('drawn', %(rounds)s, 'judged', %(rounds)s,
                'in_interval', %(rounds)s, 'pending', 0, 'waiting', 0))
    WHERE session_id = %(session)s
    """,
    "ANALYZE events, trajectory",
)
