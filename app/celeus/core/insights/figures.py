"""Figures as people read them.

Where they bound something they are rounded outwards: what is said stays as true as what was
certified.
"""

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from math import ceil, floor, log10

from celeus.core.interval import Interval
from celeus.core.pools.losses import LossScale
from celeus.units import PERCENT_SIGN

SMALLEST_ALPHA_SAID = 1e-6
NOTHING_LEFT = 1e-9
"""Fraction of the scale below which an interval is shown as a single number."""
RESOLUTION_OF_A_NUMBER = 10**-2.7
"""Fraction of the scale that a single number resolves: four decimals on a scale from 0 to 1."""
_GROUPS = "\N{NARROW NO-BREAK SPACE}"
_MINUS = "\N{MINUS SIGN}"
_HALF = Decimal("0.5")


def count(number: int) -> str:
    """A whole number with its thousands apart."""
    return f"{number:,}".replace(",", _GROUPS)


def ends(lower: float, upper: float) -> str:
    """The ends of an interval to six digits, rounded outwards: "0.2135 to 0.31"."""
    # To twelve digits first: what lies beyond is the rounding of floats, which nobody writes.
    rounded = (
        Context(prec=6, rounding=way).create_decimal(f"{end:.12g}").normalize()
        for end, way in ((lower, ROUND_FLOOR), (upper, ROUND_CEILING))
    )
    return " to ".join(f"{end:f}" for end in rounded)


def sure(alpha: float) -> str:
    """1 - alpha in percent, never rounded up to certainty."""
    if alpha < SMALLEST_ALPHA_SAID:
        return f"more than 99.9999{PERCENT_SIGN}"
    # A part of alpha has digits of binary fractions that nobody chose
    share = Decimal(f"{100 * (1 - alpha):.15g}")
    return f"{share.normalize():f}{PERCENT_SIGN}"


class Figures:
    """Numbers in figures with the decimals a width deserves.

    A share is told in percent where it is a score; what people ask for and what certificates,
    answers and forms hold is the share itself.
    """

    def __init__(self, scale: Interval | LossScale, width: float, shift: int = 0) -> None:
        """``shift`` moves the point to the right: by PERCENT, shares are told in percent."""
        whole = scale.width
        resolution = width if width > NOTHING_LEFT * whole else RESOLUTION_OF_A_NUMBER * whole
        # Two digits of the width, three where the first is a 1
        self._decimals = max(0, ceil(1.3 - log10(resolution) - shift))
        self._shift = shift

    def below(self, value: float) -> str:
        """A figure the value is not under."""
        return self._figure(floor(self._steps(value)))

    def above(self, value: float) -> str:
        """A figure the value is not over."""
        return self._figure(ceil(self._steps(value)))

    def nearest(self, value: float) -> str:
        """The nearest figure."""
        return self._figure(floor(self._steps(value) + _HALF))

    def given(self, value: float | None) -> str:
        """A number somebody chose, as they wrote it, moved as the others are."""
        if value is None:
            return "none"
        moved = Decimal(repr(value)).scaleb(self._shift)
        return f"{float(moved):.10g}".replace("-", _MINUS)

    def _steps(self, value: float) -> Decimal:
        """The value in units of the last decimal, exactly.

        A float means the shortest decimal that reads back as it: 0.28 is 28 hundredths.
        """
        return Decimal(repr(value)).scaleb(self._decimals + self._shift)

    def _figure(self, steps: int) -> str:
        digits = f"{abs(steps):0{self._decimals + 1}d}"
        point = len(digits) - self._decimals
        figure = f"{digits[:point]}.{digits[point:]}" if self._decimals else digits
        return _MINUS + figure if steps < 0 else figure
