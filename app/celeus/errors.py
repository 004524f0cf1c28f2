"""Refusals: the requests that the service declines, by name.

    Refusal
    ├── Invalid         the request breaks a rule                      422
    │   ├── InvalidValue, NeedsAnswer, LossOutsideScale, BoundContradicted
    │   ├── UnreachablePrecision, BadRows
    │   └── IdempotencyKeyReused
    ├── Unauthenticated no key that works came along                   401
    ├── Forbidden       the key does not allow it                      403
    │   └── ScopeMissing, CsrfMissing
    ├── NotFound        nothing is kept under this name                404
    │   ├── PoolNotFound, SessionNotFound, RoundNotDrawn
    │   ├── KeyNotFound, InvitationNotFound, ProjectNotFound
    │   └── WebhookNotFound, DeliveryNotFound, ShareNotFound
    ├── Conflict        what is kept forbids it                        409
    │   ├── ObservationConflict, RoundNotHeld, RoundNotJudged
    │   ├── SessionClosed, SessionNotClosed, SessionFixed, SessionArchived
    │   ├── SessionNotArchived, SessionCertified, SessionInUse, SessionDeleted
    │   ├── NotLastLabel, TooManyCorrections, SessionStopped, SessionDiffers
    │   ├── EmptyPool, PoolSealed, PoolNotSealed, PoolBusy, PoolNotArchived, PoolInUse
    │   ├── KeyRetired, LastAdmin, ProjectExists
    │   ├── TooManyWebhooks, WebhookDisabled, TooManyShares
    │   ├── LedgerBroken
    │   └── Busy, DataFolderBusy
    ├── Outdated        what is kept is not what the caller saw        412
    │   └── PreconditionFailed
    ├── TooSlow         the rest of the request does not come          408
    │   └── BodyTooSlow
    ├── TooLarge        more than this service reads at once           413
    │   └── UploadTooLarge, PoolTooLarge, VerificationTooCostly, RunTooCostly
    ├── Unsupported     a format nobody here can read                  415
    │   └── UnsupportedFormat
    ├── TooMany         too often in too short a time                  429
    │   └── RateLimited
    └── Unavailable     not the caller's fault; try again              503
        ├── DatabaseUnavailable, SchemaBehind, DataFolderUnusable
        ├── SigningKeyMissing, VerificationBusy, PlanningBusy, Overloaded
        └── DiskFull, Stopping, ProcessEnded

The status beside each subtree is a reminder only; `app/celeus/api/wire/problems.py` decides it.
"""

import math
import re
from typing import Any, Self
from uuid import UUID

MOST_LETTERS = 100
"""Largest number of characters of a value in a refusal's line."""


class Refusal(Exception):
    """The request was understood and declined."""

    code = "refused"
    """Code in every problem: the class name in snake case; a published code never changes."""

    def __init_subclass__(cls) -> None:
        """Derive the code of a new refusal from its class name."""
        super().__init_subclass__()
        cls.code = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()

    def __init__(
        self,
        detail: str,
        *,
        field: str | None = None,
        rule: str | None = None,
        value: object = None,
        **more: object,
    ) -> None:
        """Describe the fault (`detail`), its `field`, the `rule` and the `value` that broke it.

        `more` holds further members for the answer, such as the faults of an upload's rows. A
        traceback shows the rule if `detail` does not.
        """
        super().__init__(detail)
        self.detail = detail
        self.field = field
        self.rule = rule
        self.value = value
        self.more = more
        if rule is not None and rule not in detail:
            self.add_note(rule if field is None else f"{field}: {rule}")

    @property
    def line(self) -> str:
        """Refusal in one line: the fault, the rule, and the value."""
        text = self.detail.rstrip(".")
        number = isinstance(self.value, float)
        value = f"{self.value:.12g}" if number else repr(self.value)[:MOST_LETTERS]
        if self.rule is not None and self.rule not in text:
            subject = "" if self.field is None else f"{self.field} to be "
            text += f"; expected {subject}{self.rule}"
        word = re.escape(value.strip("'"))
        if self.value is not None and not re.search(rf"(?<!\w){word}(?!\w)", text):
            text += f", not {value}"
        return text

    @classmethod
    def title(cls) -> str:
        """Return the title of this refusal for readers: the first line of its docstring."""
        return (cls.__doc__ or cls.__name__).strip().splitlines()[0].rstrip(".")


class Invalid(Refusal):
    """The request breaks a rule."""


class Unauthenticated(Refusal):
    """No key that works came with the request."""


class Forbidden(Refusal):
    """The key does not allow this."""


class NotFound(Refusal):
    """Nothing is kept under this name."""


class Conflict(Refusal):
    """The stored state does not allow this."""


class Outdated(Refusal):
    """The stored state is not the one that the caller saw."""


class TooSlow(Refusal):
    """The rest of the request did not come in time."""


class TooLarge(Refusal):
    """The request is larger than this service reads."""


class Unsupported(Refusal):
    """The format is not one this service reads."""


class TooMany(Refusal):
    """Too many requests in too short a time."""


class Unavailable(Refusal):
    """The service cannot answer now; try again."""


class InvalidValue(Invalid):
    """A value breaks the rule of its field."""


class NeedsAnswer(InvalidValue):
    """The file does not say what a number or a judge's view rests on: answer the questions."""

    @property
    def questions(self) -> list[dict[str, Any]]:
        """The questions: name, text, choices, column and example of each."""
        questions: list[dict[str, Any]] = self.more.get("questions", [])  # type: ignore[assignment]
        return questions


class LossOutsideScale(Invalid):
    """The loss lies outside the scale its pool declares."""


class BoundContradicted(Invalid):
    """The judgement contradicts what the pool states of this item's loss."""

    item = -1
    lower = -math.inf
    upper = math.inf
    """Place of the item, and the bounds that the pool states."""
    metric: str | None = None
    """Metric whose loss it is, if a judgement gives several."""

    def of(self, item: int, lower: float, upper: float, metric: str | None = None) -> Self:
        """Set item, bounds and metric, and return this refusal."""
        self.item, self.lower, self.upper, self.metric = item, lower, upper, metric
        return self

    @property
    def untold(self) -> "BoundContradicted":
        """The same refusal without numbers, for judges who must not see any."""
        detail = "The loss contradicts what the pool states of this item."
        return BoundContradicted(detail, field=self.field, rule="a loss that is not ruled out")


class NothingToJudge(Invalid):
    """The loss of every item is known: the answer is exact, and there is nothing to judge."""


class UnreachablePrecision(Invalid):
    """No risk of this pool could reach the precision asked for."""


class BadRows(Invalid):
    """Some rows of the upload break a rule; nothing of it was kept."""


class IdempotencyKeyReused(Invalid):
    """The idempotency key belongs to another request."""


class ScopeMissing(Forbidden):
    """The key has not the scope this needs."""


class CsrfMissing(Forbidden):
    """The request does not show that a page of this service sent it."""


class KeyNotFound(NotFound):
    """There is no such key."""


class InvitationNotFound(NotFound):
    """There is no such invitation."""


class ProjectNotFound(NotFound):
    """There is no such project."""


class PoolNotFound(NotFound):
    """There is no such pool."""

    @classmethod
    def of(cls, pool_id: UUID) -> Self:
        """Return the refusal of a pool by its id."""
        name = f"pool_{pool_id.hex}"
        rule = "the id of a pool"
        return cls("There is no pool of this id.", field="pool_id", rule=rule, value=name)


class SessionNotFound(NotFound):
    """There is no such session."""

    @classmethod
    def of(cls, session_id: UUID) -> Self:
        """Return the refusal of a session by its id."""
        name = f"ses_{session_id.hex}"
        return cls(f"There is no session {name}.", field="session_id", value=name)


class RoundNotDrawn(NotFound):
    """The round has not been drawn in this session."""


class WebhookNotFound(NotFound):
    """There is no such webhook."""


class DeliveryNotFound(NotFound):
    """There is no such delivery; old ones are deleted."""


class ShareNotFound(NotFound):
    """The link leads nowhere: it is unknown, revoked or expired."""


class ObservationConflict(Conflict):
    """The round already has another judgement, or the runs that are reported."""


class RoundNotHeld(Conflict):
    """The round is not this key's to judge; somebody else may have judged it."""


class RoundNotJudged(Conflict):
    """The round has no judgement yet that could be corrected."""


class SessionClosed(Conflict):
    """The session is closed, which is irrevocable."""


class SessionArchived(Conflict):
    """The session is archived; it takes no draws and no labels until it is restored."""


class SessionNotArchived(Conflict):
    """The session is not archived: only what is archived can be deleted."""


class SessionCertified(Conflict):
    """Certificates were issued for the session: it is deleted only by its name."""


class SessionInUse(Conflict):
    """A pool is based on the session."""


class SessionDeleted(Conflict):
    """The session was deleted for good, and its id is not used again."""


class SessionNotClosed(Conflict):
    """The session is not closed: its judgements may still change."""


class SessionDiffers(Conflict):
    """There is a session of this id, with another ledger."""


class SessionFixed(Conflict):
    """The session was opened with settings that cannot be changed."""


class NotLastLabel(Conflict):
    """The round is not the last one that this key has judged."""


class TooManyCorrections(Conflict):
    """The key has corrected the label as often as a judge may."""


class SessionStopped(Conflict):
    """The losses have stopped the session; its judges correct nothing any more."""


class PoolNotArchived(Conflict):
    """The pool is not archived: only what is archived can be deleted."""


class PoolInUse(Conflict):
    """There are sessions on the pool."""


class KeyRetired(Conflict):
    """The key is revoked, expired or rotated already."""


class LastAdmin(Conflict):
    """The project would be left without a key that administers it."""


class ProjectExists(Conflict):
    """There is a project of this name already."""


class TooManyWebhooks(Conflict):
    """The project has as many webhooks as it may."""


class WebhookDisabled(Conflict):
    """The webhook is disabled; enable it first."""


class TooManyShares(Conflict):
    """The session has as many links as it may."""


class EmptyPool(Conflict):
    """The pool has no items."""


class PoolSealed(Conflict):
    """The pool is sealed and takes no more items."""


class PoolNotSealed(Conflict):
    """The pool is still open; seal it first."""


class PoolBusy(Conflict):
    """Another upload to this pool is under way."""


class Busy(Conflict):
    """Another request holds this for too long; try again."""


class DataFolderBusy(Conflict):
    """Another process already serves from this data folder."""


class PreconditionFailed(Outdated):
    """`If-Match` is not the present ETag, or a condition is not kept here; nothing was changed."""


class BodyTooSlow(TooSlow):
    """The body of the request did not come in time."""


class UploadTooLarge(TooLarge):
    """The body is larger than this service accepts."""


class PoolTooLarge(TooLarge):
    """The pool would hold more items than this service accepts."""


class UnsupportedFormat(Unsupported):
    """The body's format is not one this service reads."""


class RateLimited(TooMany):
    """Too many requests; try again when the answer says so."""


class DatabaseUnavailable(Unavailable):
    """The database does not answer; try again."""


class Overloaded(Unavailable):
    """More requests wait for this service than it answers in time; try again."""


class SigningKeyMissing(Unavailable):
    """The service has no key to sign certificates with."""


class VerificationBusy(Unavailable):
    """Another certificate is being verified; try again."""


class PlanningBusy(Unavailable):
    """Other plans are being simulated; try again."""


class LedgerBroken(Conflict):
    """The ledger no longer leads to its hash chain's head: it was changed behind the service."""


class VerificationTooCostly(TooLarge):
    """Verifying the certificate takes more time or memory than this service gives it."""

    @classmethod
    def of(cls, bound: str) -> Self:
        """Return the refusal of a certificate that meets this bound."""
        return cls(
            "The certificate takes too long or too much memory to verify; `celeus verify --seconds`"
            " may be given more time.",
            field="certificate",
            rule=f"verified within {bound}",
        )


class RunTooCostly(TooLarge):
    """Computing the run again takes more time or memory than this service gives it."""


class SchemaBehind(Unavailable):
    """The database has another schema than this service; run `celeus admin migrate`."""


class DiskFull(Unavailable):
    """The server's disk is full; try again later."""


class Stopping(Unavailable):
    """The server is being stopped; send the request again, to another one or in a while."""


class ProcessEnded(Unavailable):
    """A process that worked for this request has ended by itself; try again."""


class DataFolderUnusable(Unavailable):
    """The data folder cannot hold a database."""


def require(field: str, rule: str, value: object, *, holds: bool) -> None:
    """Refuse ``value`` by name unless the rule ``holds``."""
    if not holds:
        raise InvalidValue(f"{field} must be {rule}", field=field, rule=rule, value=value)
