"""Closed intervals, and the running intersection that a confidence sequence keeps."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Interval:
    """A closed interval of losses."""

    lower: float
    upper: float

    @property
    def width(self) -> float:
        """Upper end minus lower end."""
        return self.upper - self.lower

    def cut(self, limits: "Interval") -> "Interval":
        """Return the part inside ``limits``; an interval outside shrinks to their nearest end."""
        if limits.lower <= self.lower and self.upper <= limits.upper:
            return self
        return Interval(
            lower=min(max(self.lower, limits.lower), limits.upper),
            upper=max(min(self.upper, limits.upper), limits.lower),
        )

    def meets(self, other: "Interval") -> bool:
        """Return whether the two share at least one point."""
        return self.lower <= other.upper and other.lower <= self.upper


@dataclass(slots=True)
class RunningIntersection:
    """The intersection of all hulls and limits so far; ``emptied`` when a hull left nothing."""

    interval: Interval
    emptied: bool = False

    def narrow(self, hull: Interval | None, limits: Interval) -> bool:
        """Intersect with the candidates' hull and the logical limits; return true if narrower.

        If no candidate is left within the limits, an event of probability at most alpha has
        happened, or the limits are narrower than a cell. Then the last interval stays, cut by the
        limits alone.
        """
        before = self.interval
        if hull is None or not hull.meets(limits):
            self.emptied = True
        else:
            self.interval = self.interval.cut(hull)
        self.interval = self.interval.cut(limits)
        return self.interval is not before and self.interval != before
