"""Shares as people write them: 0.1, 10 % or, of a difference, 10 points.

Thresholds, margins and precisions are numbers on a scale. Percent and points are hundredths, and
mean something where the scale is one of shares: from 0 to 1, or from -1 to 1 for differences.
"""

import math
import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Self

from celeus.errors import InvalidValue

PERCENT = 2
"""By how many decimal places a share is moved to be told in percent, or in points."""
PERCENT_SIGN = "\N{NARROW NO-BREAK SPACE}%"
POINT_SIGN = "\N{NARROW NO-BREAK SPACE}pt"
POINTS = " points"
SIGNS = {"%": "%", "percent": "%", "pt": "pt"}
SIGNS |= dict.fromkeys(("percentage points", "percentage point", "points", "point"), "pt")
"""Endings of a number in percent, and of one in percentage points, with how each is written."""
LEAST_DISTANCE = 1e-9
"""Least distance of thresholds from each other and from the scale's ends, as a share of its width.

It exceeds any rounding error."""
MOST_ALPHA = 0.5
SHARES = ((0.0, 1.0), (-1.0, 1.0))
"""The ends of the scales on which a number is a share, or a difference of shares."""

_COMMA = re.compile(
    r"(?![+-]?[1-9][0-9]{0,2},[0-9]{3}(?![0-9]))([+-]?[0-9]*),(?=[0-9]+(?![0-9.,]))", re.ASCII
)
"""The beginning of a number whose comma cannot separate thousands."""

Ends = tuple[float, float]
"""The lower and the upper end of a scale."""


@dataclass(frozen=True, slots=True)
class Amount:
    """A number that somebody wrote, in hundredths if its ``sign`` says so."""

    number: Decimal
    sign: str = ""

    @classmethod
    def of(cls, written: str | float, field: str) -> Self:
        """Read a number, or text such as "0.1", "10%" or "2pt"; raises InvalidValue else."""
        text = written.strip() if isinstance(written, str) else repr(float(written))
        ending = next((ending for ending in SIGNS if text.lower().endswith(ending)), "")
        digits = text[: len(text) - len(ending)].rstrip()
        try:
            # Underscores, which Python allows among digits, are nothing that people write; digits
            # of other scripts are easily taken for others
            number = Decimal(digits if digits.isascii() and "_" not in digits else "nan")
        except InvalidOperation:
            number = Decimal("nan")
        if not math.isfinite(number) or not math.isfinite(float(number)):
            rule = "a finite number, as 0.1, or of a share 10% or 2pt"
            raise InvalidValue(f"{field} must be {rule}", field=field, rule=rule, value=written)
        return cls(number, SIGNS.get(ending, ""))

    def on(self, scale: Ends, field: str) -> float:
        """Return the number on ``scale``; refuses percent and points where it is none of shares.

        Those that are off the scale are refused too: behind a unit nothing else can be meant.
        """
        if not self.sign:
            return float(self.number)
        if scale not in SHARES:
            rule = f"a number on the scale, {scale[0]:g} to {scale[1]:g}"
            message = f"{field} must be {rule}, which is none of shares"
            raise InvalidValue(message, field=field, rule=rule, value=str(self))
        number = float(self.number.scaleb(-PERCENT))
        lower, upper = (0.0, scale[1] - scale[0]) if "precision" in field else scale
        if abs(number) >= upper:
            ends = (f"{100.0 * end:g}{self.sign}" for end in (lower, upper))
            rule = "above {} and below {}".format(*ends)
            message = f"{field} must be {rule}, not {self}"
            raise InvalidValue(message, field=field, rule=rule, value=str(self))
        return number

    def __str__(self) -> str:
        return f"{self.number}{self.sign}"


def number_on(scale: Ends, written: str | float, field: str) -> float:
    """Return what is written as a number on ``scale``."""
    return Amount.of(written, field).on(scale, field)


def with_point(written: str) -> str:
    """Return a number as written, with a point for its decimal comma and a hyphen as its minus.

    A comma that may separate thousands stays, and `Amount` refuses it.
    """
    found = written.strip().replace("\N{MINUS SIGN}", "-")
    return _COMMA.sub(r"\1.", found, count=1) if _COMMA.match(found) else found


def check_threshold(threshold: float, scale: Ends, field: str) -> None:
    """Refuse a threshold that is not inside the scale: its answer is known beforehand."""
    lower, upper = scale
    least = LEAST_DISTANCE * (upper - lower)
    if not lower + least <= threshold <= upper - least:
        rule = f"inside the scale, above {lower:g} and below {upper:g}"
        raise _refused(field, rule, threshold, meant(threshold, scale))


def check_width(precision: float, scale: Ends, field: str = "precision") -> None:
    """Refuse the width of an interval that is not a part of the scale's."""
    width = scale[1] - scale[0]
    if not 0.0 < precision < width:
        rule = f"above 0 and below the scale's width {width:g}"
        raise _refused(field, rule, precision, meant(precision, scale, above=0.0))


def check_margin(margin: float, scale: Ends, field: str) -> None:
    """Refuse a margin below 0, or one that no difference on the scale exceeds."""
    if not 0.0 <= margin < scale[1]:
        rule = f"at least 0 and below {scale[1]:g}"
        raise _refused(field, rule, margin, meant(margin, scale, above=0.0))


def check_asked_alpha(alpha: float) -> None:
    """Refuse an alpha above one half: it is most likely the confidence, or in percent."""
    if alpha > MOST_ALPHA:
        exact = Decimal(repr(float(alpha)))
        share = exact.scaleb(-PERCENT) if exact >= 1 else exact
        probable = 1 - share if share > MOST_ALPHA else share
        hint = f"did you mean {probable.normalize():f}?" if 0 < probable < 1 else ""
        rule = f"at most {MOST_ALPHA:g}, since it is the probability of a wrong interval"
        raise _refused("alpha", rule, alpha, hint)


def meant(number: float, scale: Ends, above: float = -math.inf) -> str:
    """Return the question if a number off the scale was meant in hundredths, "" if it cannot be.

    Hundredths of a difference are points. What was meant is also ``above`` a number.
    """
    if scale not in SHARES or not 1.0 <= abs(number) < math.inf:
        return ""
    sign = PERCENT_SIGN if scale == SHARES[0] else POINT_SIGN
    share = float(Decimal(repr(float(number))).scaleb(-PERCENT))
    inside = max(scale[0], above) < share < scale[1]
    return f"did you mean {number:.10g}{sign} ({share:.10g})?" if inside else ""


def _refused(field: str, rule: str, value: float, hint: str) -> InvalidValue:
    message = f"{field} must be {rule}"
    if hint:
        message += f", not {value:.12g}; {hint}"
    return InvalidValue(message, field=field, rule=rule, value=value)
