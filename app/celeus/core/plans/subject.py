"""The subject of a session: what was evaluated, by its digest."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

from celeus.core.plain import Plain
from celeus.errors import InvalidValue, require

DIGITS: Final = {"sha256": 64, "sha512": 128, "sha1": 40, "gitCommit": 40}
"""Hexadecimal digits of a digest, by its algorithm as in-toto calls it."""
MOST_SUBJECTS: Final = 8
"""Most subjects of a session."""
LONGEST_NAME: Final = 200
"""Most characters of a subject's name, where a session names it."""
_HEX = re.compile("[0-9a-f]+")


@dataclass(frozen=True, slots=True)
class Subject(Plain):
    """The thing evaluated: a model, a data set, an image or a commit, by its digest."""

    name: str
    algorithm: str
    digest: str

    def __post_init__(self) -> None:
        right = len(self.digest) == DIGITS.get(self.algorithm) and _HEX.fullmatch(self.digest)
        if not (self.name and right):
            rule = "NAME@ALGORITHM:DIGEST, in hexadecimal digits: " + ", ".join(
                f"{name} has {digits}" for name, digits in DIGITS.items()
            )
            given = f"{self.name}@{self.algorithm}:{self.digest}"
            raise InvalidValue(f"subject must be {rule}", field="subject", rule=rule, value=given)

    @classmethod
    def of(cls, text: str) -> Self:
        """Read NAME@ALGORITHM:DIGEST."""
        name, _, value = text.rpartition("@")
        algorithm, _, digest = value.partition(":")
        return cls(name, algorithm, digest)

    def __str__(self) -> str:
        return f"{self.name} {self.algorithm}:{self.digest}"


def check_subject(subjects: Sequence[Subject]) -> None:
    """Refuse subjects of a session that are too many, share a name, or have one nobody can read."""
    count = len(subjects)
    require("subject", f"at most {MOST_SUBJECTS}", count, holds=count <= MOST_SUBJECTS)
    names = [(subject.name, subject.algorithm) for subject in subjects]
    rule = "one digest of an algorithm for every name"
    require("subject", rule, list(map(str, subjects)), holds=len(set(names)) == count)
    for name, _ in names:
        rule = f"named by at most {LONGEST_NAME} printable characters"
        holds = len(name) <= LONGEST_NAME and name.isprintable()
        require("subject", rule, name, holds=holds)
