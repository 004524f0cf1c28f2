"""The report of a session that makes a table of claims."""

from celeus.core.insights.figures import Figures
from celeus.core.insights.sentences import table_sentence
from celeus.core.plans.table_plan import TablePlan
from celeus.operations.insights.report import ReportedSession
from celeus.operations.pools.record import PoolRecord
from celeus.web.report.grid import Grid, claims_grid
from celeus.web.report.wording import Words


class TableWording(Words):
    """The wording of one session's report."""

    def __init__(self, account: ReportedSession, pool: PoolRecord, plan: TablePlan) -> None:
        super().__init__(account)
        self._plan = plan
        self.figures = Figures(pool.scale, 0.0)
        # A judgement may leave a single metric unjudged
        self.judged = self._status["rounds"]["judged"]
        self.labels_in_interval = self.in_interval

    @property
    def claim(self) -> str:
        """The claims in one sentence."""
        return table_sentence(self._status)

    @property
    def promises(self) -> list[str]:
        """Guarantees of one claim, of all, and of those picked after looking."""
        promises = self._status["table"]["promises"]
        return [promises[name] for name in ("one", "all", "picked")]

    @property
    def standing(self) -> str:
        """Sentence that the certificate is final or interim."""
        if self._account.closed:
            return "Final: the session is closed, and nothing can be added to it."
        return "Interim: the session is open; more labels may narrow the intervals."

    @property
    def scale(self) -> str:
        """The scales of the losses."""
        return "; ".join(
            f"{metric.name}: {metric.scale.lower:.10g} to {metric.scale.upper:.10g}"
            for metric in self._plan.metrics
        )

    @property
    def grid(self) -> Grid:
        """All claims, the widest intervals first."""
        return claims_grid(self._account.claims, "doubt")
