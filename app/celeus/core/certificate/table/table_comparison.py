"""The claims that a certificate makes about a table, compared with those its ledger leads to."""

from celeus.core.certificate.read import close
from celeus.core.certificate.table.table_claim import score_values, table_claim
from celeus.core.interval import Interval
from celeus.core.plain import listed, members, same
from celeus.core.session.session import Session
from celeus.core.session.table.table_question import Table

COMPUTED = ("lower", "upper", "estimate")
"""Numbers of a claim that may differ by the slack of logarithms and exponentials."""


def compare_table_claim(claimed: object, session: Session[Table]) -> None:
    """Raise Mismatch unless the claims are those after the events of ``session``.

    Numbers that were computed may differ a little, all others not at all.
    """
    found = table_claim(session)
    claim = members(claimed, "claim", found)
    claims = listed(claim["claims"], "claim.claims", len(found["claims"]))
    for at, (one, due, own) in enumerate(
        zip(claims, found["claims"], session.question.claims, strict=True)
    ):
        where = f"claim.claims[{at}]"
        values = members(one, where, due)
        for name in COMPUTED:
            close(f"{where}.{name}", values[name], due[name], own.plan)
            due[name] = values[name]
        # Of the interval and estimate that it claims: no digit of these is its own.
        interval = Interval(values["lower"], values["upper"])
        due["score"] = score_values(own, session.question, interval, values["estimate"])
        for number, (stage, its) in enumerate(
            zip(listed(values.get("picked", []), where), due.get("picked", []), strict=False)
        ):
            inner = f"{where}.picked[{number}]"
            for name in ("lower", "upper"):
                close(f"{inner}.{name}", members(stage, inner, its)[name], its[name], own.plan)
                its[name] = stage[name]
    same("claim", claim, found)
