"""Replay of a certificate's ledger on its pool: every draw is checked.

With the seed every draw is proposed again; without it the item is the recorded one, and its
probability is computed again.
"""

from collections.abc import Iterable
from typing import overload

import numpy as np

from celeus.core.certificate.read_ledger import Transcript
from celeus.core.ledger import Amendment, Draw, Event, JointObservation, Observation
from celeus.core.plain import SLACK, Mismatch, refusals, same
from celeus.core.plans.best_plan import BestPlan
from celeus.core.plans.plan import Plan
from celeus.core.plans.table_plan import TablePlan
from celeus.core.pools.comparison import stated_loss, stated_losses
from celeus.core.pools.pool import Pool
from celeus.core.pools.surrogates import Scores, scores
from celeus.core.pools.systems import Lineup
from celeus.core.session.best.best_question import Best
from celeus.core.session.best.candidates import candidates_of
from celeus.core.session.question import AnyPlan
from celeus.core.session.session import AnySession, Session, begin_session
from celeus.core.session.table.table_question import Table
from celeus.errors import Refusal

MOST_ITEMS_UNSEEN = 2_000_000
"""Largest pool that is set up from the number of its items alone."""


def scores_for(plan: Plan, pool: Pool | None) -> Scores | None:
    """The scores of every item before its loss; None when that takes a pool not at hand."""
    if pool is not None:
        with refusals("plan"):
            return scores(pool, plan.strategy)
    stated = plan.known is not None or plan.weights is not None
    if plan.policy.uses_scores or stated or plan.items > MOST_ITEMS_UNSEEN:
        return None
    return Scores(np.full(plan.items, plan.lower), np.zeros(plan.items), None)


@overload
def begun(plan: BestPlan, pool: Pool, seed: bytes | None) -> Session[Best]: ...
@overload
def begun(plan: TablePlan, pool: Pool, seed: bytes | None) -> Session[Table]: ...
@overload
def begun(plan: AnyPlan, pool: Pool, seed: bytes | None) -> AnySession: ...
def begun(plan: AnyPlan, pool: Pool, seed: bytes | None) -> AnySession:
    """The session of a plan on its pool before the first draw; Mismatch where they do not agree."""
    with refusals("plan"):
        return begin_session(plan, pool, seed or b"")


def replay_ledger(session: AnySession, events: Iterable[Event], *, seeded: bool) -> None:
    """Replay a ledger; Mismatch where a draw is not the one due, or unseeded one that could be.

    Rounds are folded as late as the next draw allows, so that a row of corrections costs one fold.
    """
    try:
        for event in events:
            if isinstance(event, Draw):
                if session.question.adaptive:
                    session.fold()
                session.check_draw(event, seeded=seeded)
            session.enter(event)
        session.fold()
    except Refusal as refusal:
        where = f"ledger[{session.sequence - 1}].{refusal.field}"
        raise Mismatch(where, refusal.value, refusal.rule) from refusal


def check_labels(pool: Pool, transcript: Transcript) -> None:
    """Refuse a loss that does not follow from the label or preference its judge gave."""
    for place, words in transcript.words.items():
        event = transcript.events[place]
        where = f"ledger[{place}].loss"
        round_, loss = getattr(event, "round", 0), getattr(event, "loss", None)
        if isinstance(event, JointObservation):
            if len(event.losses) > 1:
                rule = "nothing beside several losses"
                raise Mismatch(f"ledger[{place}].detail", sorted(words), rule)
            where, loss = f"ledger[{place}].losses", event.losses[0]
        left = transcript.left[round_ - 1] if transcript.left else None
        try:
            expected = stated_loss(pool, transcript.draws[round_ - 1].item, words, left)
        except Refusal as refusal:
            field = str(refusal.field).replace("losses.", "loss_")
            where = f"ledger[{place}].detail.{field}"
            raise Mismatch(where, refusal.value, refusal.rule) from refusal
        if loss is None or abs(loss - expected) > SLACK * max(1.0, abs(expected)):
            raise Mismatch(where, loss, expected)


def check_best_labels(pool: Pool, lineup: Lineup, transcript: Transcript) -> None:
    """The losses are those that answers so given can have, and that follow from a label."""
    candidates = candidates_of(pool)
    for place, joint in transcript.losses.items():
        item = transcript.draws[joint.round - 1].item
        words = transcript.words.get(place)
        where = f"ledger[{place}].losses"
        try:
            if words is not None:
                expected = stated_losses(pool, lineup, item, words, None)
                same(where, list(joint.losses), list(expected))
            unit = (np.array(joint.losses) - pool.scale.lower) / pool.scale.width
            candidates.check(item, unit)
        except Refusal as refusal:
            raise Mismatch(where, str(joint.losses), refusal.rule) from refusal


def check_bounds(plan: Plan, pool: Pool, transcript: Transcript) -> None:
    """No known item was drawn, and no judgement shows that the bounds of its item are wrong."""
    bounds = pool.bounds
    if bounds is None or plan.believed is None:
        return
    for place, event in enumerate(transcript.events):
        if isinstance(event, Draw) and bounds.known[event.item]:
            raise Mismatch(f"ledger[{place}].item", event.item, "an item whose loss is not known")
        if isinstance(event, Observation | Amendment) and event.loss is not None:
            try:
                bounds.check(transcript.draws[event.round - 1].item, event.loss)
            except Refusal as refusal:
                raise Mismatch(f"ledger[{place}].loss", event.loss, refusal.rule) from refusal
