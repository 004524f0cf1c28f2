"""The assumptions of a session's claim beside its draws, in plain sentences."""

from collections.abc import Mapping
from types import MappingProxyType

from celeus.core.plans.panel_plan import PANEL, PROTOCOLS, SOURCES
from celeus.core.plans.plan import Plan
from celeus.core.plans.success import Success
from celeus.core.pools.loss_bounds import Basis, KnownLosses
from celeus.core.session.best.best_question import Best
from celeus.core.session.mean import Mean
from celeus.core.session.session import AnySession
from celeus.core.session.table.table_question import Table

Assumption = dict[str, str]
"""An assumption as ``{code, text}``."""

THESE_ANSWERS = (
    "Where a system answers by chance (temperature above 0, an agent), the claim is about the"
    " answers that came, one to each item, and not about those it would give next."
)
DRAWS = (
    " A draw is up to {} runs, and succeeds if {} of them {}: the runs of a draw do not share"
    " state, or the claim is about runs made in this way."
)
"""The assumption of a success of several runs, added to the text."""
TEXTS: Mapping[str, str] = MappingProxyType(
    {
        "these_answers": THESE_ANSWERS,
        "iid_sample": (
            "The pool is an iid sample of the population the claim speaks of, and whoever chose"
            " alpha, precision and bound did so without regard to which items it holds."
        ),
        "runs": (
            "Each run is a fresh draw of chance, independent of the others: given everything seen"
            " before, its expected loss is that of its item. None came from a cache or a fixed"
            " seed, none was repeated or left out because of how it came out or how long it took,"
            " and the system did not change meanwhile. The claim is about the mean over chance on"
            " these items: not about the answers that came, and not about other items."
        ),
        "repeated_runs": (
            "Each run is a fresh draw of chance: given everything seen before, its expected loss is"
            " that of its item, the same for the first run and the last. None came from a cache or"
            " a fixed seed, none was repeated or left out because of how it came out or how long it"
            " took, and the system did not change meanwhile. The claim is about the mean over"
            " chance on these items: not about the answers that came, and not about other items."
        ),
        "margin": "Pool risk and population risk differ by at most the margin stated in the plan.",
        "known_losses": "What is stated of losses that nobody judges is true.",
        "earlier_judgements": (
            "Judgements of an earlier version were carried over: its judges and those of this"
            " session follow one rule."
        ),
        "labels_seen": (
            "Whether the makers of the new version saw labels of this pool, or those of an earlier"
            " one that it is compared with, is as stated by who made the pool."
        ),
        "same_answers": "Systems that gave the same answer to an item have the same loss there.",
        "verdicts_fixed": (
            "The verdicts of the judge that is checked were fixed before the first draw, and what"
            " people say of an item does not rest on them."
        ),
        "raters": "Several raters could judge an item.",
        "unforeseen_draws": (
            "Precision, budget or stop were changed while the session ran: whoever changed them"
            " could not foresee its draws."
        ),
        "later_claims": (
            "Claims were added while the session ran: whoever added them could not foresee its"
            " draws."
        ),
        "signed_losses": (
            "The draws were fixed before any loss and do not depend on losses, so they are no"
            " evidence of what the judges said: the losses rest on the signature alone."
        ),
        "one_version": (
            "Losses were corrected: the claim holds for this version of the losses and not for"
            " all versions at once."
        ),
        "independent_corrections": (
            "Whether and how a loss was corrected did not depend on the draws, the interval or"
            " the decisions."
        ),
    }
)
"""The assumptions a claim may have, and what it may be about, by code."""
OWN_PROCESS: Mapping[str, str] = MappingProxyType(
    {
        "code": "own_process",
        "text": (
            "The session ran in a process of whoever pushed it, who had its seed and its file: that"
            " its plan was fixed before its losses were seen, that these are what its judge gave,"
            " and that it was not picked from several, is their word."
        ),
    }
)
"""The further assumption of the claim of a pushed session."""
SEEN: Mapping[str, str] = MappingProxyType(
    {
        "yes": "They did: the claim is about these items and no others, which it may be made for.",
        "no": "They did not.",
        "unknown": "That is not known: the claim is about these items and no others.",
    }
)


def assumptions_of(session: AnySession, *, pushed: bool = False) -> list[Assumption]:
    """The assumptions of the session's claim, in a fixed order.

    ``pushed``: it ran in a process of whoever brought its file here.
    """
    match session.question:
        case Mean() as mean:
            facts = _of_mean(mean.plan)
        case Best() as best:
            facts = _of_best(best)
        case Table() as table:
            facts = _of_table(table)
    if not isinstance(session.plan, Plan) or session.plan.target == "pool":
        facts["these_answers"] = ""
    if session.drawn and not (session.question.adaptive and session.rounds.follow_losses):
        facts["signed_losses"] = ""
    if session.changes:
        facts["unforeseen_draws"] = ""
    if session.corrections:
        facts |= dict.fromkeys(("one_version", "independent_corrections"), "")
    assumptions = [
        {"code": code, "text": TEXTS[code] + facts[code]} for code in TEXTS if code in facts
    ]
    return [*assumptions, dict(OWN_PROCESS)] if pushed else assumptions


def _of_mean(plan: Plan) -> dict[str, str]:
    """Return the assumptions of a claim of one mean: by code, the facts added to the text."""
    facts: dict[str, str] = {}
    if plan.bound.kind == "margin":
        facts["margin"] = f" The reason given: {plan.bound.assumption}"
    elif plan.target == "population":
        facts["iid_sample"] = ""
    elif plan.target == "runs":
        facts["repeated_runs" if plan.repeats else "runs"] = _of_success(plan.success)
    if plan.believed is not None:
        facts["known_losses"] = f" {stated(plan.believed, plan.items)}"
    if plan.based_on is not None:
        facts["labels_seen"] = f" {SEEN[plan.based_on.labels_seen]}"
        if plan.believed is not None:
            facts["earlier_judgements"] = f" {_source(plan.based_on)}"
    if plan.raters is not None:
        facts["raters"] = f" {SOURCES[plan.raters]}"
    if plan.protocol is not None:
        facts["raters"] += f" {PROTOCOLS[plan.protocol].format(len(plan.panel))}{PANEL}"
    return facts


def _of_success(success: Success | None) -> str:
    """A sentence on draws of several runs; empty where a draw is one run."""
    if success is None:
        return ""
    return DRAWS.format(success.runs, success.needs, "do" if success.needs == "all" else "does")


def _of_best(best: Best) -> dict[str, str]:
    """The same of the claim which of several systems is best."""
    if not best.candidates.shared:
        return {}
    plan, known = best.plan, ""
    if plan.known:
        known = (
            f" To {plan.known} of {plan.items} items all gave the same: these were known before"
            " the first draw."
        )
    return {"same_answers": known}


def _of_table(table: Table) -> dict[str, str]:
    """The same of the claims about a table."""
    plan, facts = table.plan, dict[str, str]()
    if plan.check is not None:
        facts["verdicts_fixed"] = ""
    judged = zip(plan.metrics, plan.claims, strict=False)
    known = [(metric, claim) for metric, claim in judged if claim.known]
    if known:
        counts = ", ".join(f"{metric.name} ({claim.known})" for metric, claim in known)
        facts["known_losses"] = (
            f" Losses of {counts} of {plan.items} items were known before the first draw."
        )
    later = "; ".join(
        f"{claim.name} (at level {claim.level:g}, after {after} label{'' if after == 1 else 's'})"
        for claim, after in zip(table.added, table.added_after, strict=True)
    )
    if later:
        facts["later_claims"] = f" They are {later}."
    return facts


def _source(basis: Basis) -> str:
    """A sentence naming the session that the judgements are from."""
    if basis.certificate is None:
        return f"They are those of {basis.session}, which has no certificate."
    return (
        f"They are those of {basis.session}, whose certificate has the digest {basis.certificate}."
    )


def stated(known: KnownLosses, items: int) -> str:
    """Sentences counting the known and bounded losses, with their reasons."""
    parts = []
    if known.items:
        reasons = ", ".join(
            f"{reason} ({known.reasons[reason]})" for reason in sorted(known.reasons)
        )
        parts.append(
            f"The losses of {known.items} of {items} items were known before the first draw:"
            f" {reasons}."
        )
    if known.bounded:
        given = [f"{reason} ({known.bounds[reason]})" for reason in sorted(known.bounds)]
        without = known.bounded - sum(known.bounds.values())
        given += [f"without a reason ({without})"] if given and without else []
        reasons = f": {', '.join(given)}" if given else ""
        parts.append(f"Those of {known.bounded} items lie within bounds stated of each{reasons}.")
    return " ".join(parts)
