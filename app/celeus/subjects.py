"""The digests of what was evaluated, as people name it."""

import hashlib
from pathlib import Path

from celeus.core.plans.subject import Subject
from celeus.errors import InvalidValue
from celeus.files import open_ending


def subject_of(text: str) -> Subject:
    """Return the subject that is a file, or that NAME@ALGORITHM:DIGEST names."""
    path = Path(text)
    if path.is_file():
        return Subject(path.name, "sha256", sha256_of(path))
    if "@" not in text:
        rule = "a file that is there, or NAME@sha256:DIGEST"
        raise InvalidValue(f"subject must be {rule}", field="subject", rule=rule, value=text)
    return Subject.of(text)


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits; refuses one that cannot be read."""
    with open_ending(path, "subject") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
