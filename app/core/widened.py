"""The running interval for the pool risk, and the one for the target that follows from it."""

from app.core.eprocess import Interval, Standing
from app.core.plan import Plan


class Widened:
    """What every game keeps that bets on the pool risk and is widened by the plan's bound."""

    __slots__ = ("_plan", "_standing", "interval")

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._standing = Standing(plan.scale)
        self.interval = plan.bound.widen(plan.scale, plan.items, plan.scale)

    @property
    def pool_interval(self) -> Interval:
        """Interval for the pool risk."""
        return self._standing.interval

    @property
    def emptied(self) -> bool:
        """No candidate is left; the last interval stays."""
        return self._standing.emptied

    def cut(self, hull: Interval | None, limits: Interval) -> bool:
        """Cut by what still stands and by the logical limits; says whether anything changed."""
        changed = self._standing.narrow(hull, limits)
        if changed:
            plan = self._plan
            self.interval = plan.bound.widen(self.pool_interval, plan.items, plan.scale)
        return changed
