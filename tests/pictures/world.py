"""A service at work: projects, people, and sessions in every state, made as users make them."""

from dataclasses import dataclass, field
from typing import Any

import httpx
import psycopg

from tests.browser.site import Site
from tests.pictures import pools
from tests.pictures.pools import Known

NOBODY = "ses_" + "0" * 31 + "1"
BY_SUBJECT = {"groups": ["subject"], "precision": {"accuracy": 0.15, "harm": 0.12}}
COMMENTS = ("The reference has an older spelling.", "Right, but for the wrong reason.")
AT_ONCE = 10
PEOPLE = ("Anna Berger", "Ben Okafor", "Chiara Russo")


@dataclass
class World:
    """What the pages show: ``sessions`` by name, and ids and links that addresses need."""

    site: Site
    receiver: str
    sessions: dict[str, str] = field(default_factory=dict)
    pool: str = ""
    shared: str = ""

    @classmethod
    def made(cls, site: Site, receiver: str) -> "World":
        """All of it, in a project that was empty; messages go to a receiver at this address."""
        world = cls(site, receiver)
        key = site.key()
        known_as(site.database_url, key, PEOPLE[2])
        with site.client(key) as client:
            world._fill(client)
        return world

    def _fill(self, client: httpx.Client) -> None:
        self._asked(client)
        self._by_hand(client)
        self._compared(client)
        self._around(client)

    def _asked(self, client: httpx.Client) -> None:
        known = pools.questions()
        self.pool = self._post(client, "/v1/pools", known.body)["id"]
        below = [{"side": "at_most", "threshold": 0.3}]
        planned = {"low": 96, "median": 131, "high": 178}
        opening: dict[str, Any] = {
            "questions": below,
            "stop_when_decided": False,
            "planned_labels": planned,
        }
        running = self._opened(
            client, "running", "Capitals, weekly check", precision=0.12, **opening
        )
        self._judged(client, running, known, 74)
        self._post(client, f"/v1/sessions/{running}/next", {"worker": "Chiara Russo", "count": 2})
        reached = self._opened(client, "reached", "Capitals, release 2.4", precision=0.2, **opening)
        self._judged(client, reached, known, 400)
        closed = self._opened(client, "closed", "Capitals, release 2.3", precision=0.25, **opening)
        self._judged(client, closed, known, 400)
        correction = {"round": 3, "loss": 0, "author": "Chiara Russo", "reason": "misread"}
        self._post(client, f"/v1/sessions/{closed}/amendments", correction)
        self._change(client, closed, state="closed")
        archived = self._opened(client, "archived", "Capitals, first try", precision=0.3)
        self._judged(client, archived, known, 25)
        self._change(client, archived, state="closed")
        self._change(client, archived, archived=True)
        self._opened(client, "empty", "Capitals, tomorrow", precision=0.1, **opening)
        for session, tags in ((running, ["weekly"]), (reached, ["release"]), (closed, ["release"])):
            self._change(client, session, tags=tags)

    def _by_hand(self, client: httpx.Client) -> None:
        for name, title, known, precision in (
            ("chat", "Shop assistant, October", pools.chats(), 0.6),
            ("picture", "Digits by hand", pools.pictures(), 0.2),
            ("formula", "Integrals", pools.formulas(), 0.2),
        ):
            pool = self._post(client, "/v1/pools", known.body)["id"]
            session = self._opened(client, name, title, pool, precision=precision)
            self._judged(client, session, known, 12)

    def _compared(self, client: httpx.Client) -> None:
        opened: tuple[tuple[str, str, Known, int, dict[str, Any]], ...] = (
            (
                "comparison",
                "Summaries: harbour or meadow",
                pools.comparison(),
                60,
                {"precision": 0.3},
            ),
            ("table", "Exam answers by subject", pools.table(), 150, BY_SUBJECT),
            ("best", "Which model reads clauses", pools.lineup(), 40, {"best": True}),
        )
        for name, title, known, labels, opening in opened:
            pool = self._post(client, "/v1/pools", known.body)["id"]
            session = self._opened(client, name, title, pool, **opening)
            self._judged(client, session, known, labels)

    def _around(self, client: httpx.Client) -> None:
        """People, webhooks, and a link that shows a report."""
        roles = (("Anna Berger", ["label"]), ("Ben Okafor", ["label"]), ("Chiara Russo", ["admin"]))
        for name, scopes in roles:
            made = {"name": name, "scopes": scopes, "expires_in_seconds": 7 * 86400}
            self._post(client, "/v1/invitations", made)
        self._post(client, "/v1/keys", {"name": "nightly run", "scopes": ["manage", "label"]})
        hook = {"url": self.receiver, "events": ["session.decided", "session.stopped"]}
        made = self._post(client, "/v1/webhooks", hook)
        self._post(client, f"/v1/webhooks/{made['id']}/test", {})
        path = f"/v1/sessions/{self.sessions['closed']}/shares"
        self.shared = self._post(client, path, {})["url"]

    def _opened(
        self,
        client: httpx.Client,
        name: str,
        title: str,
        pool: str | None = None,
        **opening: Any,  # noqa: ANN401
    ) -> str:
        body = {"pool_id": pool or self.pool, "name": title} | opening
        self.sessions[name] = self._post(client, "/v1/sessions", body)["id"]
        return self.sessions[name]

    def _judged(self, client: httpx.Client, session: str, known: Known, most: int) -> None:
        path = f"/v1/sessions/{session}"
        for start in range(0, most, AT_ONCE):
            worker = PEOPLE[start // AT_ONCE % 3 // 2]
            asked = {"worker": worker, "count": min(AT_ONCE, most - start)}
            draws = self._post(client, f"{path}/next", asked)["draws"]
            if not draws:
                return
            told = [{"round": one["round"]} | known.said(one["item"]["index"]) for one in draws]
            for at, one in enumerate(told, start):
                if at % 17 == 5:
                    one |= {"comment": COMMENTS[at % 2]}
            self._post(client, f"{path}/observe", {"worker": worker, "observations": told})

    @staticmethod
    def _change(client: httpx.Client, session: str, **settings: object) -> None:
        answer = client.patch(f"/v1/sessions/{session}", json=settings)
        assert answer.is_success, answer.text

    @staticmethod
    def _post(client: httpx.Client, path: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = client.post(path, json=body)
        assert answer.is_success, f"{path}: {answer.text}"
        made: dict[str, Any] = answer.json()
        return made


def known_as(database_url: str, key: str, name: str) -> None:
    """Give the holder of a key a name."""
    with psycopg.connect(database_url) as db:
        naming = "UPDATE keys SET name = %s WHERE key_id = %s"
        db.execute(naming, [name, key.split("_")[1]])


def broken(site: Site, session: str) -> None:
    """Have the page of a session fail, as a defect would."""
    with psycopg.connect(site.database_url) as db:
        ruin = "UPDATE sessions SET status = '[]'::jsonb WHERE session_id = %s"
        db.execute(ruin, [session.removeprefix("ses_")])
