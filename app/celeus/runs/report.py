"""The report of a session in this process: one HTML page that loads nothing."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from celeus.client.picture import picture
from celeus.client.reading import read
from celeus.client.results import Point, Status
from celeus.core.certificate.report import pool_sessions_line
from celeus.runs.run import Run

STYLE = (
    "body{margin:2rem auto;max-width:48rem;padding:0 1rem;font:1rem/1.5 system-ui,sans-serif}"
    "table{border-collapse:collapse}td,th{padding:.2rem .8rem .2rem 0;text-align:left}"
    "svg{max-width:100%;height:auto}"
)
EXPECTED = "Items by judge and people, as expected in the pool, without any claim"
POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def report(run: Run, points: Sequence[Point]) -> str:
    """Return the page: the claim, its course or its table, assumptions, and the plan's settings."""
    document = run.status()
    status = read(Status, document)
    claims = [] if document["table"] is None else run.claims()["data"]
    promises = () if document["table"] is None else document["table"]["promises"].values()
    name = escape(status.name or run.form["name"])
    settings = {
        "session": status.id,
        "state": status.state,
        "opened": status.created_at[:16].replace("T", " ") + " UTC",
        "items": f"{status.items}, {status.rounds.judged} "
        + ("draws judged" if status.repeats else "of them judged"),
        "alpha": f"{status.alpha:g}",
        "precision": "none" if status.precision is None else f"{status.precision:g}",
        "budget": status.budget,
        "method": status.method_version,
        "pool": run.plan.pool_digest,
    }
    parts = [
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{name}</title>',
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
        f"<style>{STYLE}</style></head><body><h1>{name}</h1>",
        picture(status, points).html,
        _list([status.words.holds, *promises, *status.warnings]),
        _claims(claims),
        _verdicts((document["table"] or {}).get("check")),
        "<h2>What it rests on</h2>",
        _list(
            [
                *(assumption["text"] for assumption in document["assumptions"]),
                pool_sessions_line(None),
            ]
        ),
        "<h2>Settings</h2>",
        _table(settings.items()),
        "</body></html>\n",
    ]
    return "\n".join(part for part in parts if part)


def _claims(claims: Iterable[Mapping[str, Any]]) -> str:
    rows = [
        (
            claim["metric"] if claim["value"] is None else f"{claim['metric']}, {claim['value']}",
            claim["sentence"],
            f"{claim['rounds']['judged']} of {claim['items']} judged",
        )
        for claim in claims
    ]
    return f"<h2>The claims</h2>{_table(rows)}" if rows else ""


def verdict_rows(check: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return the items by judge (a row each, below a head) and people, in the pool and judged."""
    counts = {(count["judge"], count["people"]): count for count in check["counts"]}
    positive = check["positive"]
    rows: list[tuple[str, ...]] = [("", f"people: {positive}", "people: not")]
    for judge, name in ((True, positive), (False, "not")):
        cells = (counts[judge, people] for people in (True, False))
        texts = (f"{cell['expected']:.0f} ({cell['judged']} judged)" for cell in cells)
        rows.append((f"judge: {name}", *texts))
    return rows


def _verdicts(check: Mapping[str, Any] | None) -> str:
    return f"<h2>{EXPECTED}</h2>{_table(verdict_rows(check))}" if check else ""


def _list(lines: Iterable[str | None]) -> str:
    return "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in lines if line) + "</ul>"


def _table(rows: Iterable[Sequence[object]]) -> str:
    lines = (
        f'<tr><th scope="row">{escape(str(first))}</th>'
        + "".join(f"<td>{escape(str(cell))}</td>" for cell in cells)
        + "</tr>"
        for first, *cells in rows
    )
    return f"<table>{''.join(lines)}</table>"
