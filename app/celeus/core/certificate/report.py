"""The report of a verification: checks made, checks skipped, and the first difference."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Self

CHECKS = (
    "form",
    "plan",
    "pool_header",
    "ledger",
    "chain",
    "commitment",
    "pool_columns",
    "items",
    "labels",
    "draws",
    "probabilities",
    "surrogates",
    "rounds",
    "claim",
    "signature",
    "issuer",
)
"""Everything that can be checked, in this order; docs/certificates.md says what each proves."""

LARGEST_CERTIFICATE_BYTES = 1 << 30
FILE, POOL, ITEMS = "the file", "the pool", "the file of items"
"""Places of differences by which nothing can be checked: another file, or no pool."""
NOT_REACHED = "not reached: something before it differs"


@dataclass(frozen=True, slots=True)
class Difference:
    """The first place where the certificate says something else than what was found."""

    where: str
    claimed: Any
    found: Any


@dataclass(frozen=True, slots=True)
class Signature:
    """The signature; ``trusted`` is None when no trusted key was given."""

    public_key: str | None = None
    valid: bool = False
    trusted: bool | None = None


def compared(claimed: object, found: object) -> str:
    """Two values, or the descriptions of them, as a sentence holds them.

    Numbers have twelve digits, and all where these are the same.
    """
    texts = _shown(claimed, 12), _shown(found, 12)
    if texts[0] == texts[1]:
        texts = _shown(claimed), _shown(found)
    return f"is {texts[0]}, expected {texts[1]}"


def _shown(value: object, digits: int | None = None) -> str:
    if value is None:
        return "missing"
    if isinstance(value, float) and digits is not None:
        return f"{value:.{digits}g}"
    return value if isinstance(value, str) and value else repr(value)


def origin_line(origin: Mapping[str, str]) -> str:
    """A line saying where the session ran, and who had its seed meanwhile."""
    return (
        f"it ran in a process of whoever pushed it, who had its seed and its file, and came to its"
        f" service, closed, on {origin['at']}: the signature is by whoever computed it again, not"
        f" by whoever judged"
    )


def pool_sessions_line(counts: Mapping[str, int] | None) -> str:
    """The session's place among those of its pool, and what became of the others."""
    if counts is None:
        return (
            "a session in a process of its own: how many others ran on this pool, and what they"
            " gave, nobody counted"
        )
    line = f"session {counts['number']} of {counts['total']} that its project opened on this pool"
    fates = [
        f"{counts[f'others_{fate}']} {fate.replace('_', ' ')}"
        for fate in ("open", "certified", "closed_without_certificate", "deleted")
        if counts.get(f"others_{fate}")
    ]
    return f"{line}; of the others {', '.join(fates)}" if fates else line


@dataclass(slots=True)
class Report:
    """The result of a verification. ``claim`` is that of the certificate, whether it holds or not.

    ``sentence`` is what it says for people, None where it does not hold.
    ``pool_sessions`` counts the sessions opened on the pool, by the signer's word only; None where
    nobody counted them. ``origin`` says of a pushed session when it came to the signer.
    ``stamped_at`` is the time in the stamp of its opening, where the roots vouch for it.
    ``unchecked`` gives for every check that was not made the reason why.
    """

    digest: str
    valid: bool = False
    kind: str | None = None
    session_id: str | None = None
    issued_at: str | None = None
    claim: dict[str, Any] | None = None
    sentence: str | None = None
    pool_sessions: dict[str, int] | None = None
    origin: dict[str, str] | None = None
    signature: Signature = field(default_factory=Signature)
    stamped_at: str | None = None
    checked: list[str] = field(default_factory=list)
    unchecked: dict[str, str] = field(default_factory=dict)
    difference: Difference | None = None

    def close(self) -> None:
        """Say of every check what became of it, and whether all that were made have passed."""
        for name in CHECKS:
            if name not in self.checked:
                self.unchecked.setdefault(name, NOT_REACHED)
        self.valid = self.difference is None
        if not self.valid:
            self.sentence = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """The report whose ``to_dict`` gave ``values``."""
        difference = values["difference"]
        inner = {
            "signature": Signature(**values["signature"]),
            "difference": None if difference is None else Difference(**difference),
        }
        return cls(**(values | inner))

    @property
    def verdict(self) -> Literal["holds", "does not hold", "cannot be checked"]:
        """The verdict on the certificate, as far as it could be checked."""
        if self.difference is None:
            return "holds"
        unread = self.difference.where in {FILE, POOL, ITEMS}
        return "cannot be checked" if unread else "does not hold"

    @property
    def line(self) -> str:
        """The verdict in one line."""
        difference = self.difference
        if difference is None:
            return f"{self.verdict}: valid {self.kind} certificate of {self.session_id}"
        words = compared(difference.claimed, difference.found)
        return f"{self.verdict}: {difference.where} {words}"
