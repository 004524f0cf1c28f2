"""The report of a session that makes a table of claims."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from celeus.core.insights.figures import Figures, count
from celeus.core.insights.sentences import score_figures, table_sentence
from celeus.core.interval import Interval
from celeus.core.plans.table_plan import TablePlan
from celeus.operations.insights.report import Account
from celeus.operations.pools.record import PoolRecord
from celeus.web.report.wording import Words

WIDE: Final = 200.0
"""Width of the picture of a bar."""
LEAST: Final = 1.5


class Row(NamedTuple):
    """A claim: its figures in words, and the places of its bar and its point."""

    name: str
    figures: str
    asked: str
    added: str
    judged: str
    bar: tuple[float, float]
    at: float


class Part(NamedTuple):
    """The claims about a metric and all items, or the groups of a column, the widest first."""

    title: str
    rows: list[Row]

    @property
    def asks(self) -> bool:
        """True if a precision or a question was asked for in any row."""
        return any(row.asked for row in self.rows)


class TableWording(Words):
    """The wording of one session's report."""

    def __init__(self, account: Account, pool: PoolRecord, plan: TablePlan) -> None:
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
    def parts(self) -> Iterator[Part]:
        """All claims: those about all items, then by metric and group column."""
        claims = self._account.claims
        yield Part(
            "All items", [_row(claim, claim["metric"]) for claim in claims if not claim["column"]]
        )
        for column in self._plan.columns:
            for metric in self._plan.metrics:
                in_column = [
                    claim
                    for claim in claims
                    if (claim["metric"], claim["column"]) == (metric.name, column)
                ]
                in_column.sort(key=lambda claim: claim["lower"] - claim["upper"])
                title = f"{metric.name} by {column}"
                yield Part(title, [_row(claim, claim["value"]) for claim in in_column])


def _row(claim: Mapping[str, Any], name: str) -> Row:
    score, ends = claim["score"], claim["scale"]
    scale = Interval(ends["lower"], ends["upper"])

    def place(value: float) -> float:
        return WIDE * (value - scale.lower) / scale.width

    asked = {None: "", True: "met", False: "not met yet"}[claim["met"]]
    later = claim["added"]
    answers = [
        f"mean loss {answer['side'].replace('_', ' ')} {answer['threshold']:g}: {answer['answer']}"
        for answer in claim["answers"]
    ]
    width = max(place(score["upper"]) - place(score["lower"]), LEAST)
    return Row(
        name=name,
        figures=f"{score['name']} {score_figures(score, scale)}",
        asked="; ".join(filter(None, [asked, *answers])),
        added="" if later is None else f"added after {count(later)} label{'s' * (later != 1)}",
        judged=f"{count(claim['rounds']['judged'])} of {count(claim['items'])}",
        bar=(min(place(score["lower"]), WIDE - width), width),
        at=place(score["estimate"]),
    )
