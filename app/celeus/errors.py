"""What the service declines, by name.

    Refusal
    ├── Invalid         the request breaks a rule                      422
    │   ├── InvalidValue, LossOutsideScale, UnreachablePrecision, BadRows
    │   └── IdempotencyKeyReused
    ├── Unauthenticated no key that works came along                   401
    ├── Forbidden       the key does not allow it                      403
    │   └── ScopeMissing, CsrfMissing
    ├── NotFound        nothing is kept under this name                404
    │   ├── PoolNotFound, SessionNotFound, RoundNotDrawn
    │   └── KeyNotFound, ProjectNotFound
    ├── Conflict        what is kept forbids it                        409
    │   ├── ObservationConflict, RoundNotJudged, SessionClosed
    │   ├── NotLastLabel, SessionStopped
    │   ├── EmptyPool, PoolSealed, PoolNotSealed, PoolBusy
    │   ├── KeyRetired, ProjectExists
    │   ├── LedgerBroken
    │   └── Busy, DataFolderBusy
    ├── TooSlow         the rest of the request does not come          408
    │   └── BodyTooSlow
    ├── TooLarge        more than this service reads at once           413
    │   └── UploadTooLarge, PoolTooLarge, VerificationTooCostly
    ├── Unsupported     a format nobody here can read                  415
    │   └── UnsupportedFormat
    ├── TooMany         too often in too short a time                  429
    │   └── RateLimited
    └── Unavailable     not the caller's fault; try again              503
        ├── DatabaseUnavailable, SchemaBehind, DataFolderUnusable
        ├── SigningKeyMissing, VerificationBusy, PlanningBusy
        └── DiskFull

The status beside each subtree is a reminder only; `app/api/problems.py` decides it.
"""


class Refusal(Exception):
    """The request was understood and declined."""

    code = "refused"

    def __init__(
        self,
        detail: str,
        *,
        field: str | None = None,
        rule: str | None = None,
        value: object = None,
        **more: object,
    ) -> None:
        """Say what is wrong (`detail`), where (`field`), by which `rule`, and with which `value`.

        `more` holds further members for the answer, such as the faults of an upload's rows.
        """
        super().__init__(detail)
        self.detail = detail
        self.field = field
        self.rule = rule
        self.value = value
        self.more = more

    @classmethod
    def title(cls) -> str:
        """The name of this refusal for a reader: the first line of its docstring."""
        return (cls.__doc__ or cls.__name__).strip().splitlines()[0].rstrip(".")


class Invalid(Refusal):
    """The request breaks a rule."""

    code = "invalid"


class Unauthenticated(Refusal):
    """No key that works came with the request."""

    code = "unauthenticated"


class Forbidden(Refusal):
    """The key does not allow this."""

    code = "forbidden"


class NotFound(Refusal):
    """Nothing is kept under this name."""

    code = "not_found"


class Conflict(Refusal):
    """What is kept already forbids this."""

    code = "conflict"


class TooSlow(Refusal):
    """The rest of the request did not come in time."""

    code = "too_slow"


class TooLarge(Refusal):
    """The request is larger than this service reads."""

    code = "too_large"


class Unsupported(Refusal):
    """The format is not one this service reads."""

    code = "unsupported"


class TooMany(Refusal):
    """Too many requests in too short a time."""

    code = "too_many"


class Unavailable(Refusal):
    """The service cannot answer now; try again."""

    code = "unavailable"


class InvalidValue(Invalid):
    """A value breaks the rule of its field."""

    code = "invalid_value"


class LossOutsideScale(Invalid):
    """The loss lies outside the scale its pool declares."""

    code = "loss_outside_scale"


class UnreachablePrecision(Invalid):
    """No risk of this pool could reach the precision asked for."""

    code = "unreachable_precision"


class BadRows(Invalid):
    """Some rows of the upload break a rule; nothing of it was kept."""

    code = "bad_rows"


class IdempotencyKeyReused(Invalid):
    """The idempotency key belongs to another request."""

    code = "idempotency_key_reused"


class ScopeMissing(Forbidden):
    """The key has not the scope this needs."""

    code = "scope_missing"


class CsrfMissing(Forbidden):
    """The request does not show that a page of this service sent it."""

    code = "csrf_missing"


class KeyNotFound(NotFound):
    """There is no such key."""

    code = "key_not_found"


class ProjectNotFound(NotFound):
    """There is no such project."""

    code = "project_not_found"


class PoolNotFound(NotFound):
    """There is no such pool."""

    code = "pool_not_found"


class SessionNotFound(NotFound):
    """There is no such session."""

    code = "session_not_found"


class RoundNotDrawn(NotFound):
    """The round has not been drawn in this session."""

    code = "round_not_drawn"


class ObservationConflict(Conflict):
    """The round already has another loss; correct it with an amendment."""

    code = "observation_conflict"


class RoundNotJudged(Conflict):
    """The round has no judgement yet that could be corrected."""

    code = "round_not_judged"


class SessionClosed(Conflict):
    """The session is closed, which is irrevocable."""

    code = "session_closed"


class NotLastLabel(Conflict):
    """The round is not the last one that this key has judged."""

    code = "not_last_label"


class SessionStopped(Conflict):
    """The losses have stopped the session; its judges correct nothing any more."""

    code = "session_stopped"


class KeyRetired(Conflict):
    """The key is revoked, expired or rotated already."""

    code = "key_retired"


class ProjectExists(Conflict):
    """There is a project of this name already."""

    code = "project_exists"


class EmptyPool(Conflict):
    """The pool has no items."""

    code = "empty_pool"


class PoolSealed(Conflict):
    """The pool is sealed and takes no more items."""

    code = "pool_sealed"


class PoolNotSealed(Conflict):
    """The pool is still open; seal it first."""

    code = "pool_not_sealed"


class PoolBusy(Conflict):
    """Another upload to this pool is under way."""

    code = "pool_busy"


class Busy(Conflict):
    """Another request holds this for too long; try again."""

    code = "busy"


class DataFolderBusy(Conflict):
    """Another process already serves from this data folder."""

    code = "data_folder_busy"


class BodyTooSlow(TooSlow):
    """The body of the request did not come in time."""

    code = "body_too_slow"


class UploadTooLarge(TooLarge):
    """The body is larger than this service accepts."""

    code = "upload_too_large"


class PoolTooLarge(TooLarge):
    """The pool would hold more items than this service accepts."""

    code = "pool_too_large"


class UnsupportedFormat(Unsupported):
    """The body's format is not one this service reads."""

    code = "unsupported_format"


class RateLimited(TooMany):
    """Too many requests; try again when the answer says so."""

    code = "rate_limited"


class DatabaseUnavailable(Unavailable):
    """The database does not answer; try again."""

    code = "database_unavailable"


class SigningKeyMissing(Unavailable):
    """The service has no key to sign certificates with."""

    code = "signing_key_missing"


class VerificationBusy(Unavailable):
    """Another certificate is being verified; try again."""

    code = "verification_busy"


class PlanningBusy(Unavailable):
    """Other plans are being simulated; try again."""

    code = "planning_busy"


class LedgerBroken(Conflict):
    """The ledger no longer leads to its hash chain's head: it was changed behind the service."""

    code = "ledger_broken"


class VerificationTooCostly(TooLarge):
    """Verifying the certificate takes more time or memory than this service gives it."""

    code = "verification_too_costly"


class SchemaBehind(Unavailable):
    """The database has another schema than this service; run `celeus migrate`."""

    code = "schema_behind"


class DiskFull(Unavailable):
    """The server's disk is full; try again later."""

    code = "disk_full"


class DataFolderUnusable(Unavailable):
    """The data folder cannot hold a database."""

    code = "data_folder_unusable"
