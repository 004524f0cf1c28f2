"""The messages about work that is resumed, and the check of the judge that resumes it."""

import logging

from celeus.client.fingerprint import Fingerprint
from celeus.errors import InvalidValue

LOG = logging.getLogger("celeus")
"""Its warnings are lines on stderr, unless the program has its own logging."""
IN_PYTHON = "keep=True goes on with the earlier judgements, fresh=True begins anew"


def taken_up(judgements: int, place: object, last: str | None) -> None:
    """Say how many judgements there are already, where, and from when the last one is."""
    if judgements:
        when = "" if last is None else f", the last at {last[:16].replace('T', ' ')} UTC"
        LOG.warning("celeus: taken up: %s from %s%s", counted(judgements), place, when)


def check_judge(
    judge: Fingerprint, earlier: str | None, *, keep: bool, ways: str = IN_PYTHON
) -> None:
    """Refuse a judge that is not the earlier one unless ``keep`` is said; say what is not known."""
    found = judge.against(earlier)
    if found.verdict == "unknown":
        LOG.warning("celeus: cannot tell whether the judge changed: %s", found.why)
    elif found.verdict == "changed" and not keep:
        message = f"the judge changed since the earlier judgements ({found.why}): {ways}"
        raise InvalidValue(message, field="judge", rule=ways)


def check_resume(resume: object, *, keep: bool, fresh: bool) -> None:
    """Refuse contradictions in how work is to go on; ``resume`` is None where it is not to."""
    if keep and fresh:
        rule = "one of them, or none"
        raise InvalidValue(f"keep and fresh must be {rule}", field="keep", rule=rule)
    if resume is None and (keep or fresh):
        field, rule = "keep" if keep else "fresh", "left out, or beside resume"
        raise InvalidValue(f"{field} must be {rule}", field=field, rule=rule)


def counted(judgements: int) -> str:
    """Return a number of judgements in words."""
    return "1 judgement" if judgements == 1 else f"{judgements} judgements"
