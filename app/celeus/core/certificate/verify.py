"""Verification of a certificate: against itself, its pool and its signing key.

Everything is computed again from the document alone, by the fold that the service runs; with the
pool's columns also what the recorded surrogates, probabilities and draws rest on. The report names
the checks that could not be made, each with its reason, and the first difference.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from cryptography import x509

from celeus.core.canonical import canonical_json
from celeus.core.certificate.chain import chain_heads, chain_start
from celeus.core.certificate.claim import check_claim
from celeus.core.certificate.document import digest_of, rounds_of, signs
from celeus.core.certificate.layout import Certificate, certificate_in
from celeus.core.certificate.pool_checks import (
    Evidence,
    check_answers,
    check_carried,
    check_known,
    check_same,
    check_table_pool,
    check_weights,
    items_digest,
    pool_of,
)
from celeus.core.certificate.read import (
    close,
    compare_rounds,
    header_digest,
    header_of,
    plan_of,
    recorded_of,
)
from celeus.core.certificate.read_ledger import Transcript
from celeus.core.certificate.recording import recorded_engine
from celeus.core.certificate.replay import (
    begun,
    check_best_labels,
    check_bounds,
    check_labels,
    replay_ledger,
    scores_for,
)
from celeus.core.certificate.report import POOL, Difference, Report, Signature
from celeus.core.certificate.stamps import (
    NotAStamp,
    check_issuer,
    from_text,
    stamp_of,
    time_of,
)
from celeus.core.insights.sentences import best_sentence, certified_sentence
from celeus.core.ledger import Draw, Observation, Rating, Unjudgeable
from celeus.core.plain import Mismatch, equal, listed, whole
from celeus.core.plans.best_plan import BestPlan
from celeus.core.plans.plan import Plan
from celeus.core.plans.table_plan import TablePlan
from celeus.core.pools.losses import LossScale
from celeus.core.pools.pool import STATED, Pool, PoolHeader
from celeus.core.pools.systems import Lineup
from celeus.core.randomness import commitment
from celeus.core.session.mean import Mean, ratings_of
from celeus.core.session.outcome import loss_in
from celeus.core.session.question import AnyPlan
from celeus.core.session.session import AnySession, Session, begin_mean

LARGEST_CLAIM = 8 << 20
"""Bytes: that of 600 claims with 20 questions each has a quarter of it."""

NOTHING_NOTED: Final[Mapping[int, bytes]] = MappingProxyType({})
NO_POOL = "it takes the pool's columns"
NO_BOUNDS = "its columns, as the claim rests on bounds of single losses that only they hold"
NO_ANSWERS = "its columns, as the claim rests on what every system answered, which only they hold"
NO_GROUPS = "its columns, as the claims rest on what is known of every item, which only they hold"
NO_WEIGHTS = "its columns, as the claim is of a weighted mean and only they hold the weights"
NO_ITEMS = "it takes the pool's items"
NO_SEED = "the seed is revealed by the final certificate only"
NO_ROOTS = "it says {}; no roots of a timestamping service were given"
NO_OLDER = "the certificate it supersedes is not at hand"


def verify(  # noqa: PLR0913 -- one parameter for each thing that may be known
    data: bytes,
    evidence: Evidence | None = None,
    trusted: bytes | None = None,
    noted: Mapping[int, bytes] = NOTHING_NOTED,
    items: Iterable[bytes] | None = None,
    *,
    roots: Sequence[x509.Certificate] = (),
) -> Report:
    """Check a certificate, with what else is known: columns of its pool, a key to be trusted.

    ``noted`` are heads of the ledger's chain that somebody noted as the session went, by sequence;
    ``items`` the pool's items in their order, each a line of JSON with ``id`` and ``payload``;
    ``roots`` certificates that vouch for who stamped the opening, which must then be stamped.
    Always a report: whatever the bytes are, they differ somewhere or they do not.
    """
    inspection = _Inspection(data, evidence, trusted, noted, items, roots)
    # Hostile numbers end in NaN, which equals nothing, and not in warnings.
    with np.errstate(all="ignore"):
        inspection.run()
    return inspection.report


class PoolMissing(Mismatch):
    """The claim takes a pool that was not given."""

    def __init__(self, rule: str) -> None:
        super().__init__(POOL, None, rule)


@dataclass(slots=True)
class _Inspection:
    """One verification under way."""

    _data: bytes
    _evidence: Evidence | None
    _trusted: bytes | None
    _noted: Mapping[int, bytes]
    _items: Iterable[bytes] | None
    _roots: Sequence[x509.Certificate]
    _document: Certificate = field(init=False)
    _place: str = "form"
    _same: list[Any] = field(default_factory=list)
    report: Report = field(init=False)

    def __post_init__(self) -> None:
        self.report = Report(digest_of(self._data))

    def run(self) -> None:
        """Check until something differs."""
        try:
            self._check()
        except Mismatch as found:
            self.report.difference = Difference(found.where, found.claimed, found.found)
        except (ArithmeticError, ValueError) as error:
            # Numbers that no session leads to break the arithmetic: there is no finer place.
            self.report.difference = Difference(
                self._place, None, f"numbers that a session leads to ({str(error)[:200]})"
            )
        self.report.close()

    @contextmanager
    def _checking(self, *names: str) -> Iterator[None]:
        self._place = names[0]
        yield
        self.report.checked += names

    def _check(self) -> None:
        with self._checking("form"):
            self._document = document = certificate_in(self._data)
            self._describe()
        header = header_of(document.pool)
        with self._checking("plan"):
            plan = self._plan(header)
        with self._checking("pool_header"):
            equal("pool_digest", document.pool_digest, header_digest(document.pool))
            equal("plan.pool_digest", plan.pool_digest, document.pool_digest)
            if isinstance(plan, Plan):
                self._check_stated(plan, header)
        self._check_items(header)
        with self._checking("ledger"):
            transcript = self._ledger(Transcript(plan, header.loss))
        with self._checking("chain"):
            self._chain(plan, transcript)
        if self._roots or document.timestamp is not None:
            self._timestamp(bytes.fromhex(document.chain.start))
        missing = None
        try:
            self.report.sentence = self._claimed(plan, header, transcript)
        except PoolMissing as found:
            missing = found
        with self._checking("signature"):
            equal("signature", self.report.signature.valid, found=True)
        self._issuer()
        if missing is not None:
            raise missing

    def _claimed(self, plan: AnyPlan, header: PoolHeader, transcript: Transcript) -> str | None:
        """Check what the plan's question claims; the claim as pages say it, if in one sentence."""
        seed = self._seed(plan)
        session: AnySession
        if isinstance(plan, Plan):
            pool = self._pool(plan, header.loss, transcript)
            self._raters(plan, seed, transcript)
            session = self._session(plan, transcript, seed, pool)
            self._arrangements(session, seed, transcript)
        else:
            session = self._joint(plan, header.loss, seed, transcript)
            self._arrangements(session, seed, transcript)
            self._nothing_recorded()
        with self._checking("claim"):
            check_claim(self._document.claim, session)
        claim = self.report.claim
        if claim is None or isinstance(plan, TablePlan):
            return None
        if isinstance(plan, BestPlan):
            return best_sentence(claim)
        systems, closed = header.systems, transcript.closed
        return certified_sentence(claim, plan, header.loss, systems, closed=closed)

    def _joint(
        self,
        plan: BestPlan | TablePlan,
        scale: LossScale,
        seed: bytes | None,
        transcript: Transcript,
    ) -> AnySession:
        """The session with several losses a round after its ledger, which takes its pool."""
        if self._evidence is None:
            missing = NO_ANSWERS if isinstance(plan, BestPlan) else NO_GROUPS
            raise PoolMissing(missing)
        with self._checking("pool_columns"):
            pool = pool_of(self._evidence, self._document.pool, scale)
            if isinstance(plan, BestPlan):
                texts = None if self._items is None else self._same
                check_answers(plan, pool, _lineup_of(pool), texts)
            else:
                check_table_pool(pool)
        with self._checking("labels"):
            if isinstance(plan, BestPlan):
                check_best_labels(pool, _lineup_of(pool), transcript)
            else:
                check_labels(pool, transcript)
        with self._replaying(seed):
            session = begun(plan, pool, seed)
            replay_ledger(session, transcript.events, seeded=seed is not None)
        return session

    @contextmanager
    def _replaying(self, seed: bytes | None) -> Iterator[None]:
        """A replay of the ledger on its pool, that makes every draw again where there is a seed."""
        with self._checking("probabilities", *(["draws"] if seed is not None else [])):
            yield
        if seed is None:
            self.report.unchecked["draws"] = NO_SEED

    def _nothing_recorded(self) -> None:
        """Refuse rounds and surrogates recorded where only the pool can verify anything."""
        with self._checking("rounds", "surrogates"):
            for name in ("rounds", "surrogates"):
                equal(name, getattr(self._document, name), None)

    @staticmethod
    def _check_stated(plan: Plan, header: PoolHeader) -> None:
        """Known losses have three columns and weights one, where the plan says there are any."""
        columns = STATED & {column.name for column in header.columns}
        if columns != (frozenset() if plan.known is None else STATED):
            rule = "nothing known" if plan.known is None else ", ".join(sorted(STATED))
            raise Mismatch("pool.columns", ", ".join(sorted(columns)), rule)
        weighted = any(column.name == "weight" for column in header.columns)
        equal("whether pool.columns hold a weight", weighted, plan.weights is not None)
        if plan.known is not None and header.loss.kind == "zero_one" and not weighted:
            whole(plan.known.total, "plan.known.total")

    def _check_items(self, header: PoolHeader) -> None:
        if self._items is None:
            self.report.unchecked["items"] = NO_ITEMS
            return
        with self._checking("items"):
            digest = items_digest(self._items, header.systems, self._same)
            equal("pool.items_digest", header.items_digest, digest)
            equal("pool.items", header.items, len(self._same))

    def _describe(self) -> None:
        """Fill in the parts of the report that do not depend on the verdict."""
        report, document = self.report, self._document
        report.kind = document.kind
        report.session_id = document.session_id
        report.issued_at = document.issued_at
        claim = canonical_json(document.claim)
        if isinstance(document.claim, dict) and len(claim) <= LARGEST_CLAIM:
            # Read anew, so that counts are whole numbers.
            report.claim = json.loads(claim)
        if document.pool_sessions is not None:
            report.pool_sessions = document.pool_sessions.to_dict()
        if document.origin is not None:
            report.origin = document.origin.to_dict()
            # All before it is what the ledger leads to; that it stands there, the form has seen
            del document.claim["assumptions"][-1]
        if document.supersedes is not None:
            report.unchecked["supersedes"] = NO_OLDER
        valid = signs(document, self._data)
        public = document.signature.public_key
        trusted = None if self._trusted is None else bytes.fromhex(public) == self._trusted
        report.signature = Signature(public, valid, trusted)

    def _plan(self, header: PoolHeader) -> AnyPlan:
        document = self._document
        plan = plan_of(document.plan, header)
        equal("method_version", document.method_version, plan.method_version)
        equal("plan_digest", document.plan_digest, plan.digest)
        equal("commitment", document.commitment, plan.commitment)
        return plan

    def _ledger(self, transcript: Transcript) -> Transcript:
        for record in listed(self._document.ledger, "ledger"):
            transcript.read(record)
        equal("final", self._document.final, transcript.closed)
        self._check_head(transcript)
        return transcript

    def _check_head(self, transcript: Transcript) -> None:
        """Check the members beside the ledger that it determines."""
        issued_at, superseded = self._document.issued_at, self._document.supersedes
        last = transcript.records[-1]["at"] if transcript.records else issued_at
        if issued_at < last:
            raise Mismatch("issued_at", issued_at, f"not before the last event, at {last}")
        if superseded is not None and not transcript.amendments:
            raise Mismatch("supersedes", superseded, "nothing: no label was corrected")

    def _chain(self, plan: AnyPlan, transcript: Transcript) -> None:
        session = bytes.fromhex(self._document.session_id.removeprefix("ses_"))
        start = chain_start(session, bytes.fromhex(plan.digest))
        chain = self._document.chain
        equal("chain.start", chain.start, start.hex())
        heads = list(chain_heads(start, transcript.records))
        equal("chain.head", chain.head, heads[-1].hex())
        for sequence, noted in sorted(self._noted.items()):
            with self._checking("noted"):
                if sequence >= len(heads):
                    rule = f"at least the {sequence} events that were noted"
                    raise Mismatch("the length of ledger", len(transcript.records), rule)
                where = "chain.start" if sequence == 0 else f"ledger[{sequence - 1}]"
                claimed, found = (head.hex() for head in (heads[sequence], noted))
                equal(f"the head after {where}", claimed, found)

    def _timestamp(self, start: bytes) -> None:
        """Somebody else's word on when the chain's start was there; by whom needs the roots."""
        self._place = "timestamp"
        claimed = self._document.timestamp
        if claimed is None:
            raise Mismatch("timestamp", None, "a time stamp of the opening")
        try:
            stamp = stamp_of(from_text(claimed), start)
            if self._roots:
                check_issuer(stamp, start, self._roots)
        except NotAStamp as reason:
            raise Mismatch("timestamp", str(reason), f"a time stamp of {start.hex()}") from reason
        if not self._roots:
            self.report.unchecked["timestamp"] = NO_ROOTS.format(time_of(stamp))
            return
        self.report.stamped_at = time_of(stamp)
        self.report.checked.append("timestamp")

    def _seed(self, plan: AnyPlan) -> bytes | None:
        if not self._document.final:
            self.report.unchecked["commitment"] = NO_SEED
            return None
        with self._checking("commitment"):
            seed = bytes.fromhex(self._document.seed)
            equal("commitment", plan.commitment, commitment(seed))
        return seed

    def _arrangements(
        self, session: AnySession, seed: bytes | None, transcript: Transcript
    ) -> None:
        """Check that the order of the answers in every round was drawn from the seed."""
        question, name = session.question, transcript.arrangement
        if name is None or (name == "order" and not question.orders_answers):
            return
        if seed is None:
            self.report.unchecked["sides"] = NO_SEED
            return
        with self._checking("sides"):
            claimed = transcript.left if name == "left" else transcript.order
            for draw, shown in zip(transcript.draws, claimed, strict=True):
                due = question.arrangement(draw.round, draw.item)[name]
                equal(f"the {name} of round {draw.round}", shown, due)

    def _raters(self, plan: Plan, seed: bytes | None, transcript: Transcript) -> None:
        """Every outcome is that of its raters; with the seed, of those whose turn it was."""
        ratings = ratings_of(plan, seed or b"")
        if ratings is None:
            return
        with self._checking("raters", *(["turns"] if seed is not None else [])):
            for event in transcript.events:
                if isinstance(event, Draw):
                    ratings.draw(event.round, event.item)
                elif isinstance(event, Rating):
                    ratings.rate(event)
                elif isinstance(event, Observation | Unjudgeable):
                    ratings.settle(event.round, loss_in(event))
            ratings.must_be_settled()
        if seed is None:
            self.report.unchecked["turns"] = NO_SEED

    def _pool(self, plan: Plan, scale: LossScale, transcript: Transcript) -> Pool | None:
        if self._evidence is None:
            self.report.unchecked |= {"pool_columns": NO_POOL, "labels": NO_POOL}
            return None
        with self._checking("pool_columns"):
            pool = pool_of(self._evidence, self._document.pool, scale)
            check_known(plan, pool)
            check_weights(plan, pool)
            check_same(pool, None if self._items is None else self._same)
            check_carried(pool)
        with self._checking("labels"):
            check_labels(pool, transcript)
            check_bounds(plan, pool, transcript)
        return pool

    def _session(
        self, plan: Plan, transcript: Transcript, seed: bytes | None, pool: Pool | None
    ) -> Session[Mean]:
        """The session after the ledger, from the pool, or from what was recorded of it."""
        document = self._document
        if pool is None and plan.believed is not None and plan.believed.bounded:
            raise PoolMissing(NO_BOUNDS)
        if pool is None and plan.weights is not None:
            raise PoolMissing(NO_WEIGHTS)
        self._place = "rounds"
        recorded = recorded_of(document.rounds, document.surrogates, plan, transcript.folded)
        item_scores = scores_for(plan, pool)
        if item_scores is None:
            missing = dict.fromkeys(("draws", "probabilities", "surrogates"), NO_POOL)
            self.report.unchecked |= missing
            with self._checking("rounds"):
                losses = transcript.outcomes[: transcript.folded]
                engine = recorded_engine(plan, recorded, losses, transcript.strata)
                session = Session.of(Mean.begun(plan, engine, seed or b""), b"")
                self._rounds(session.replay(transcript.events), transcript)
            return session
        with self._replaying(seed):
            session = begin_mean(plan, item_scores, seed or b"")
            replay_ledger(session, transcript.events, seeded=seed is not None)
        with self._checking("surrogates", "rounds"):
            self._rounds(session, transcript)
        return session

    def _rounds(self, session: Session[Mean], transcript: Transcript) -> None:
        document, question, plan = self._document, session.question, session.question.plan
        points = question.points
        q, seen = ([getattr(draw, name) for draw in transcript.draws] for name in ("q", "seen"))
        compare_rounds(document.rounds, rounds_of(points, q, seen), plan)
        start = points[0].surrogates_left if points else question.fold.surrogates_left
        close("surrogates", document.surrogates, start, plan, column="left")

    def _issuer(self) -> None:
        key = self.report.signature.public_key
        if self._trusted is None:
            self.report.unchecked["issuer"] = f"signed by {key}; no trusted key was given"
            return
        with self._checking("issuer"):
            equal("signature.public_key", key, self._trusted.hex())


def _lineup_of(pool: Pool) -> Lineup:
    if pool.lineup is None:
        raise Mismatch("pool.systems", None, "the names of several systems")
    return pool.lineup
