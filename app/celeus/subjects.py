"""The digests of what was evaluated, as people name it."""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from celeus.core.plans.subject import Subject
from celeus.errors import InvalidValue
from celeus.files import open_file_or_pipe

Named = str | os.PathLike[str]
"""A file, or NAME@ALGORITHM:DIGEST."""


def subjects_of(given: Named | Sequence[Named] | None) -> tuple[Subject, ...]:
    """Return the subjects that are given, one or several; none for None."""
    if given is None:
        return ()
    each = [given] if isinstance(given, str | os.PathLike) else given
    return tuple(subject_of(named) for named in each)


def subject_of(named: Named) -> Subject:
    """Return the subject that is a file, or that NAME@ALGORITHM:DIGEST names."""
    path, text = Path(named), os.fspath(named)
    if path.is_file():
        return Subject(path.name, "sha256", sha256_of(path))
    if "@" not in text:
        rule = "a file that is there, or NAME@sha256:DIGEST"
        raise InvalidValue(f"subject must be {rule}", field="subject", rule=rule, value=text)
    return Subject.of(text)


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal digits; refuses one that cannot be read."""
    with open_file_or_pipe(path, "subject") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
