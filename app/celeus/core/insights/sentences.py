"""A session's answer in one sentence: page, report, gate, status and `verify` show the same.

It is written once, with the status, and kept there. Of one system it is the score with its
interval, of two which one is better and by how much, of several which no other beats.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from celeus.core.insights.figures import (
    NOTHING_LEFT,
    Figures,
    count,
    sure,
)
from celeus.core.interval import Interval
from celeus.core.plans.plan import Plan
from celeus.core.pools.losses import LossScale
from celeus.core.pools.score import Score, default_score, win_rate
from celeus.core.pools.systems import AnySystems, Systems
from celeus.units import PERCENT, PERCENT_SIGN

BY_WEIGHT: Final = ", counted by weight"
NOTHING: Final = "Nothing is judged"
NO_LABEL: Final = "No label is in the interval"
KNOWN: Final = ", for certain: what is known beforehand decides it"
UNDECIDED: Final = "Undecided so far. "
UNDECIDED_FOR_GOOD: Final = "Undecided. "

UNIT: Final = Interval(0.0, 1.0)
WIDE: Final = 0.25
"""Share of its scale from which an interval is wide: its estimate says little, and comes last."""
PHRASES: Final[dict[str, dict[str, str]]] = {
    "errors": {
        "ahead": "{better} makes {at} points fewer errors than {worse}",
        "level": "{better} makes at most as many errors as {worse}: {low} to {high} points fewer",
        "open": "{better} makes between {low} points more and {high} points fewer errors than"
        " {worse}",
        "equal": "{better} and {worse} make equally many errors",
        "within": "their error rates differ by at most {margin} points",
    },
    "losses": {
        "ahead": "{better} has a mean loss {at} lower than {worse}",
        "level": "{better} has a mean loss no higher than {worse}: {low} to {high} lower",
        "open": "{better} has a mean loss between {low} higher and {high} lower than {worse}",
        "equal": "{better} and {worse} have the same mean loss",
        "within": "their mean losses differ by at most {margin}",
    },
    "preferences": {
        "ahead": "{better} is preferred on {at} points more of the items than {worse}",
        "level": "{better} is preferred on at least as many of the items as {worse}: {low} to"
        " {high} points more",
        "open": "{better} is preferred on between {low} points fewer and {high} points more of the"
        " items than {worse}",
        "equal": "{better} and {worse} are preferred on equally many items",
        "within": "the shares of items on which each is preferred differ by at most {margin}"
        " points",
    },
    "grades": {
        "ahead": "{better} is {at} grades better than {worse} on average",
        "level": "{better} is at least as good as {worse} on average: {low} to {high} grades"
        " better",
        "open": "{better} is between {low} grades worse and {high} grades better than {worse} on"
        " average",
        "equal": "{better} and {worse} are equally good on average",
        "within": "on average neither is better than the other by more than {margin} grades",
    },
}
"""By what is counted: below 0 of the difference A is better, above 0 B is."""

NAMED: Final[dict[str, str]] = {
    "ahead": "{better}'s {name} is {at}{points} {more} than {worse}'s",
    "level": "{better}'s {name} is no {less} than {worse}'s: {low} to {high}{points} {more}",
    "open": "{better}'s {name} is between {low}{points} {less} and {high}{points} {more} than"
    " {worse}'s",
    "equal": "{better}'s {name} and {worse}'s are the same",
    "within": "their {name} differs by at most {margin}{points}",
}
"""The same where the score of each has a name."""


@dataclass(frozen=True, slots=True)
class Contrast:
    """The two systems as they are called, and the phrases for what their difference counts.

    ``words`` are further words that the phrases hold, by name. Where each item is won or tied, by
    no grades, ``wins`` says how many are won, too.
    """

    a: str
    b: str
    shift: int
    phrases: Mapping[str, str]
    words: Mapping[str, str]
    wins: bool = False

    @classmethod
    def of(cls, scale: LossScale, systems: Systems | None, declared: Score | None) -> Self | None:
        """Return the contrast of a pool of differences; None for the losses of one system."""
        if scale.kind != "difference":
            return None
        a, b = ("A", "B") if systems is None else (systems.a, systems.b)
        if declared is not None:
            higher, share = declared.better == "higher", declared.unit == "share"
            words = {
                "name": declared.name,
                "more": "higher" if higher else "lower",
                "less": "lower" if higher else "higher",
                "points": " points" if share else "",
            }
            return cls(a, b, PERCENT if share else 0, NAMED, words)
        unit = "losses"
        if systems is not None and systems.loss.kind == "preference":
            unit = "preferences" if systems.loss.upper == 1.0 else "grades"
        elif systems is not None and systems.loss.kind == "zero_one":
            unit = "errors"
        shift = PERCENT if unit in {"errors", "preferences"} else 0
        return cls(a, b, shift, PHRASES[unit], {}, unit == "preferences")

    def sentence(self, status: Mapping[str, Any]) -> str:
        """Return what a session says of the two, by its status."""
        lower, upper, scale = status["lower"], status["upper"], status["scale"]
        nothing = NOTHING_LEFT * (scale["upper"] - scale["lower"])
        inside, settled = status["rounds"]["in_interval"], is_settled(status)
        figures = Figures(Interval(**scale), upper - lower, self.shift)
        # What lies beside 0 by less than can be computed lies at 0
        lower, upper = (0.0 if abs(end) <= nothing else end for end in (lower, upper))
        estimate = None if is_wide(lower, upper, Interval(**scale)) else status["estimate"]
        body = self._interval_text(lower, upper, estimate, figures, ends_named=not settled)
        if status.get("effective_items") is not None:
            body += BY_WEIGHT
        if settled:
            return f"{self._prefix(status)}{body}; every item is judged or known."
        if inside == 0:
            decided = (status["verdict"] or {}).get("round") == 0
            return (
                f"{self._prefix(status)}{body}{KNOWN}." if decided else f"{_begun(status)}{body}."
            )
        return f"{self._prefix(status)}{body}, {valid(status['alpha'])}."

    def _interval_text(
        self,
        lower: float,
        upper: float,
        estimate: float | None,
        figures: Figures,
        *,
        ends_named: bool,
    ) -> str:
        """Return the interval in words, led by the estimate if there is one."""
        names = {"better": self.b, "worse": self.a, **self.words}
        if upper <= 0.0 and lower < 0.0:
            names |= {"better": self.a, "worse": self.b}
            lower, upper, estimate = -upper, -lower, None if estimate is None else -estimate
        if lower == 0.0 == upper:
            return self.phrases["equal"].format(better=self.a, worse=self.b, **self.words)
        if lower > 0.0 and estimate is not None:
            ahead = self.phrases["ahead"].format(at=figures.nearest(estimate), **names)
            ends = f" ({figures.below(lower)} to {figures.above(upper)})" if ends_named else ""
            won = self._won(
                names["better"], Interval(lower, upper), estimate, ends_named=ends_named
            )
            return f"{ahead}{ends}{won}"
        phrase = "open" if lower < 0.0 else "level"
        low = figures.above(-lower) if lower < 0.0 else figures.below(lower)
        text = self.phrases[phrase].format(low=low, high=figures.above(upper), **names)
        return text + self._won(names["better"], Interval(lower, upper))

    def _won(
        self, name: str, more: Interval, estimate: float | None = None, *, ends_named: bool = True
    ) -> str:
        """Return the share of items the system wins that is preferred on so many more."""
        if not self.wins:
            return ""
        won = win_rate(more)
        figures = Figures(UNIT, won.width, PERCENT)
        ends = f"{figures.below(won.lower)} to {figures.above(won.upper)}"
        figure = f"{ends}{PERCENT_SIGN}"
        if estimate is not None:
            middle = figures.nearest(win_rate(Interval(estimate, estimate)).lower)
            figure = f"{middle}{PERCENT_SIGN} ({ends})" if ends_named else f"{middle}{PERCENT_SIGN}"
        return f"; with ties as half {name} wins {figure}"

    def _prefix(self, status: Mapping[str, Any]) -> str:
        verdict = status["verdict"]
        if verdict is None:
            return ""
        if verdict["answer"] == "undecided":
            return UNDECIDED_FOR_GOOD if status["state"] == "closed" else UNDECIDED
        if verdict["answer"] != "equivalent":
            return ""
        margin = f"{verdict['margin'] * 10**self.shift:.10g}"
        within = self.phrases["within"].format(margin=margin, **self.words)
        return f"{self.a} and {self.b} are equivalent: {within}. "


OVER: Mapping[str, str] = {
    "pool": "",
    "population": " of the population",
    "runs": " over all runs",
}
"""The words for the set a mean is over, by target, after the name of a score."""


def sentence(
    status: Mapping[str, Any],
    score: Score,
    contrast: Contrast | None,
    *,
    labels: int | None,
) -> str:
    """Return what a session says, by its status; ``score`` is what its pool measures.

    ``labels`` are those in the interval, None where they were not counted.
    """
    if status["best"] is not None:
        return best_sentence(status)
    if status.get("table") is not None:
        return table_sentence(status)
    if contrast is not None:
        return contrast.sentence(status)
    scale = Interval(status["scale"]["lower"], status["scale"]["upper"])
    losses = Interval(status["lower"], status["upper"])
    values = score.values(losses, status["estimate"], scale)
    if is_settled(status):
        text = score_figures(values, scale, settled=True)
        return f"{quantity_of(status, score.name)} {text}; every item is judged or known."
    if status["rounds"]["in_interval"] == 0:
        text = score_figures(values, scale, estimated=False)
        return f"{_begun(status)}{quantity_of(status, score.name)} {text}."
    return score_sentence(status, values, scale, labels=labels)


def valid(alpha: float) -> str:
    """The guarantee of an interval at this level, as sentences end with it."""
    return f"valid at every look with {sure(alpha)} confidence"


def _begun(status: Mapping[str, Any]) -> str:
    """Return the beginning of a sentence that is based on no label."""
    yet = "" if status.get("state") == "closed" else " yet"
    return f"{NO_LABEL if status['rounds'].get('judged') else NOTHING}{yet}: "


def certified_sentence(
    claim: Mapping[str, Any],
    plan: Plan,
    scale: LossScale,
    named: AnySystems | None,
    *,
    closed: bool,
) -> str:
    """Return the words of a certificate's claim as its session had them, ``closed`` or not.

    ``scale`` is that of its pool, whose systems are ``named``.
    """
    status = {
        "best": None,
        "effective_items": None,
        "verdict": None,
        **claim,
        **claim["interval"],
        "scale": {"lower": plan.lower, "upper": plan.upper},
        "state": "closed" if closed else "active",
        "items": plan.items,
        "known": plan.items - plan.drawable,
    }
    systems = named if isinstance(named, Systems) else None
    return sentence(
        status,
        plan.score or default_score(scale, named),
        Contrast.of(scale, systems, plan.score),
        labels=claim["labels"],
    )


def score_sentence(
    claim: Mapping[str, Any],
    values: Mapping[str, Any],
    scale: Interval,
    *,
    labels: int | None,
) -> str:
    """Return the words of a status's or a certificate's claim about the score of one system.

    ``values`` are those of ``Score.values``.
    """
    since = ""
    if labels is not None:
        since = f", based on {count(labels)} label{'' if labels == 1 else 's'}"
        if claim.get("success") is not None:
            since += f" of {count(claim['runs'])} runs"
    measured = quantity_of(claim, values["name"])
    return f"{measured} {score_figures(values, scale)}, {valid(claim['alpha'])}{since}."


def quantity(
    name: str, *, weighted: bool = False, success: str | None = None, target: str = "pool"
) -> str:
    """Return what a session measures, such as "error rate where success is all of 4 runs".

    ``name`` is that of its score, and ``target`` what the mean is over.
    """
    words = f"weighted {name}" if weighted else name
    if success is not None:
        words += f" where success is {success} runs"
        return words + (f",{OVER[target]}," if OVER[target] else "")
    return words + OVER[target]


def quantity_of(claim: Mapping[str, Any], name: str) -> str:
    """Return what the claim of a status or a certificate is about, by the ``name`` of its score."""
    weighted = claim.get("effective_items") is not None
    success, target = claim.get("success"), claim["target"]
    return quantity(name, weighted=weighted, success=success, target=target)


def is_settled(status: Mapping[str, Any]) -> bool:
    """Return whether all that may be drawn is judged, so that the mean is known exactly."""
    whole = status["scale"]["upper"] - status["scale"]["lower"]
    exact = status["upper"] - status["lower"] <= NOTHING_LEFT * whole
    drawable = status["items"] - status.get("known", 0)
    return bool(exact and status["rounds"]["in_interval"] == drawable)


def score_figures(
    values: Mapping[str, Any], scale: Interval, *, settled: bool = False, estimated: bool = True
) -> str:
    """Estimate and interval in figures, of what is ``settled`` the one figure, which is exact.

    A wide interval leads: its middle is no result.
    """
    lower, upper = values["lower"], values["upper"]
    share = values["unit"] == "share"
    figures = Figures(scale, upper - lower, PERCENT if share else 0)
    sign = PERCENT_SIGN if share else ""
    if settled:
        return f"exactly {figures.nearest(values['estimate'])}{sign}"
    ends = f"{figures.below(lower)} to {figures.above(upper)}"
    if not estimated:
        return f"{ends}{sign}"
    estimate = figures.nearest(values["estimate"])
    if is_wide(lower, upper, scale):
        return f"{ends}{sign} (about {estimate})"
    return f"{estimate}{sign} ({ends})"


def is_wide(lower: float, upper: float, scale: Interval) -> bool:
    """Return whether an interval is so wide that its estimate says little."""
    return upper - lower > WIDE * scale.width


def best_sentence(status: Mapping[str, Any]) -> str:
    """Return what a session says of its systems, by its status.

    Proven is that a given best system stays in. Of several that are equally good another one may be
    out, so that a system which is out may be as good as the best, and is never better.
    """
    best = status["best"]
    systems, standing = len(best["systems"]), best["standing"]
    certain = valid(status["alpha"])
    if best["winner"] is not None:
        return (
            f"{best['winner']} is at least as good as every other of {systems} systems, {certain}."
        )
    if status["stop_reason"] == "exhausted":
        return (
            f"{_listed(standing, 'and')} are at least as good as every other of {systems} systems,"
            f" {certain}; they are equally good: every item on which they differ is judged."
        )
    if len(standing) == systems:
        begun = status["rounds"]["in_interval"] > 0
        return (
            f"{'No system is out yet: ' if begun else _begun(status)}any of the {systems} systems"
            " may be the best."
        )
    return f"No system is better than the best of {_listed(standing, 'and')}, {certain}."


def table_sentence(status: Mapping[str, Any]) -> str:
    """Return how many claims of a table met their target, and what holds of their intervals."""
    table, certain = status["table"], sure(status["alpha"])
    holds = {"together": "all intervals hold at once", "closed": "no answer yes is false"}
    promise = holds.get(table["account"], "each interval holds by itself")
    promise = f"{promise}, at every look, with {certain} confidence"
    wanted, claims = table["wanted"], table["claims"]
    begun = "" if status["rounds"]["in_interval"] else _begun(status)
    if not wanted:
        many = f"{count(claims)} claim{'' if claims == 1 else 's'}"
        return f"{begun}{many} without a target; {promise}."
    have = "claim has met its" if wanted == 1 else "claims have met their"
    body = f"{begun}{count(table['met'])} of {count(wanted)} {have} target"
    if rest := claims - wanted:
        body += f", {count(rest)} more {'has' if rest == 1 else 'have'} none"
    return f"{body}; {promise}."


def claim_sentence(
    name: str, values: Mapping[str, Any], scale: Interval, level: float | None
) -> str:
    """Return what one claim of a table says by itself; ``level`` is None where it is certain."""
    certain = "for certain" if level is None else valid(level)
    return f"{name}: {values['name']} {score_figures(values, scale)}, {certain}."


def _listed(names: Sequence[str], word: str) -> str:
    return f"{', '.join(names[:-1])} {word} {names[-1]}"
