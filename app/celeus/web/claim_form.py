"""The claims that a pool allows on the page of a new session, and what is said of them there."""

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from functools import cached_property
from typing import Any, Final, NamedTuple, TypeVar

from celeus.api.insights.planning import PlanningRequest
from celeus.api.pools.losses import LineupOut, SystemsOut
from celeus.api.pools.pools import PoolOut
from celeus.api.sessions.opening_models import ClaimsIn, SessionOpening
from celeus.core.insights.figures import count
from celeus.core.plans.subject import DIGITS
from celeus.core.pools.surrogates import strategies_for
from celeus.errors import Busy, RateLimited, Refusal, Unavailable
from celeus.web.forms import number_in, validated
from celeus.web.wording import counted, sentence

GUESSES: Final = ("surrogate.", "surrogate_", "dispersion_f", "entropy_f")
"""Beginnings of the names of columns that say something of the losses."""
_GROUP: Final = "group"
_PRESET: Final = 0.05
"""Width to begin with, as a share of the scale."""
_RUNS: Final = 20
_BOTH: Final = ("sharp", "uniform")
"""Policies that are planned beside the chosen one."""
_PRESETS: Final = {
    "target": "pool",
    "precision": "0.05",
    "suggested": "0.05",
    "alpha": "0.05",
    "account": "each",
    "decide": "on",
    "decide.margin": "0.02",
    "policy": "sharp",
    "judges": "people",
}
_STRATEGIES: Final = {
    "": "The uploaded surrogate",
    "A": "A: where target and surrogate model disagree (default)",
    "B": "B: how unsure the target is",
    "C": "C: how unlikely the target finds the surrogate model's answer",
}
_NUMBERS: Final = frozenset(
    {
        "precision",
        "alpha",
        "group_precision",
        "reserve",
        "decide",
        "questions.threshold",
        "budget",
        "lease_seconds",
        "risk",
    }
)
"""Fields with numbers, by the first part of the name or all of it."""
_REQUIRED: Final = frozenset({"alpha", "decide.margin", "questions.threshold"})
_NO_PLAN: Final = frozenset({"subject", "fixed"})
"""Members of an opening that change no plan."""
_OF_ONE: Final = frozenset({"target", "audit", "policy", "strategy", "risk"})
"""Fields of a session with a single claim."""
_PLACES: Final = {
    "decide": "decide.margin",
    "margin": "decide.margin",
    "questions": "questions.threshold",
    "threshold": "questions.threshold",
}
"""Fields of the page by the names that refusals give them."""

M = TypeVar("M", bound=ClaimsIn)


class MetricField(NamedTuple):
    """A metric whose widths are asked for; the one loss of a pool without metrics has no name."""

    name: str | None
    score: str
    width: float

    @property
    def preset(self) -> str:
        """Return the width to begin with."""
        return f"{_PRESET * self.width:.3g}"

    def field(self, of: str) -> str:
        """Return the name of the field with a width `of` this metric."""
        return of if self.name is None else f"{of}.{self.name}"


class ClaimForm:
    """The fields that suit a pool; without one, those of a single claim."""

    def __init__(
        self,
        pool: PoolOut | None = None,
        fields: Mapping[str, list[str]] | None = None,
        fault: Refusal | None = None,
    ) -> None:
        self._pool = pool
        self._fields = dict(fields or {})
        self._presets = _PRESETS
        self.fault = fault
        self.id = "" if pool is None else pool.id
        named = None if pool is None else pool.systems
        self.several = named.names if isinstance(named, LineupOut) else None
        self.systems = (named.a, named.b) if isinstance(named, SystemsOut) else ("A", "B")
        if self.makes == "metrics":
            widths = {metric.field("precision"): metric.preset for metric in self.metrics}
            self._presets = _PRESETS | widths

    def __getitem__(self, name: str) -> str:
        """Return what stands in a field, or what it begins with."""
        if not self._fields:
            return self._presets.get(name, "")
        return self._fields.get(name, [""])[0].replace("\r\n", "\n")

    def __setitem__(self, name: str, value: str) -> None:
        """Write into a field."""
        self._fields[name] = [value]

    @property
    def groups_chosen(self) -> list[str]:
        """The group columns of which every value gets claims."""
        return self._fields.get("groups", [])

    @property
    def is_table(self) -> bool:
        """True if the session makes several claims."""
        return self.makes == "metrics" or (self.makes != "best" and bool(self.groups_chosen))

    @property
    def suggests(self) -> bool:
        """True if nobody has chosen a precision, and the session needs one to stop at."""
        unchosen = self["precision"].strip() == self["suggested"]
        return unchosen and not self.is_table and not self._stops_at_answers

    @property
    def _stops_at_answers(self) -> bool:
        return self._suits("decide.margin") or self._suits("questions.side")

    def _suits(self, name: str) -> bool:
        """Return whether the page shows this field, for what is chosen in the others."""
        part = name.partition(".")[0]
        if name in {"precision", "risk"} and self.makes in {"best", "metrics"}:
            return False
        if part in _OF_ONE - {"risk"}:
            return self.makes != "best" and not self.is_table
        if part in {"account", "reserve", "group_precision"}:
            needs = {"account": True, "reserve": self["account"] == "together"}
            return self.is_table and needs.get(part, bool(self.groups_chosen))
        if part == "questions":
            return self.makes != "best" and self["questions.side"] != ""
        if part == "decide":
            return self.makes == "difference" and self["decide"] != "" and name != part
        # The field for a file has this name, too
        return name not in {"subject", "pool_id"}

    def _request(
        self,
        model: type[M],
        more: dict[str, Any],
        *,
        but: AbstractSet[str] = frozenset(),
        required: AbstractSet[str] = frozenset(),
    ) -> M:
        """Return what the fields ask for as a request of the interface; refuses what is none."""
        given: dict[str, Any] = {}
        for name, texts in self._fields.items():
            part, _, member = name.partition(".")
            text = self[name].strip()
            fits = part in model.model_fields.keys() - but and self._suits(name)
            if not fits or not (text or name in _REQUIRED | required):
                continue
            value: object = texts if part == "groups" else text
            if {part, name} & _NUMBERS:
                value = number_in(text, name)
            if member:
                given.setdefault(part, {})[member] = value
            else:
                given[part] = value
        if question := given.pop("questions", None):
            of_groups = self.groups_chosen and self["question_of"] == "groups"
            given["group_questions" if of_groups else "questions"] = [question]
        if subject := given.pop("subject", None):
            # An algorithm is always chosen
            given["subject"] = [] if subject.keys() == {"algorithm"} else [subject]
        return validated(model, given | more)

    @property
    def planning(self) -> PlanningRequest:
        """The request of a plan: without a precision where it shall suggest one."""
        more: dict[str, Any] = {"runs": _RUNS}
        if not self.is_table:
            more["policies"] = list(dict.fromkeys([self["policy"], *_BOTH]))
        but = _NO_PLAN | ({"precision"} if self.suggests else set())
        return self._request(PlanningRequest, more, but=but)

    def opening(self, labels: Mapping[str, int] | None) -> SessionOpening:
        """Return the request that opens the session, for which so many labels are planned."""
        best = self.makes == "best"
        more = {"pool_id": self["pool_id"], "planned_labels": labels, "best": best}
        single = not (best or self.is_table or self._stops_at_answers)
        return self._request(SessionOpening, more, required={"precision"} if single else set())

    @property
    def wrong(self) -> str:
        """The field at which a refusal stands; empty where that is none of those shown."""
        field = re.sub(r"\.\d+(?=\.|$)", "", (self.fault and self.fault.field) or "")
        for name in (field.replace("group_questions", "questions"), field.rpartition(".")[2]):
            place = _PLACES.get(name, name)
            if place in self._fields and self._suits(place):
                return place
        return ""

    @property
    def why(self) -> str:
        """The words of a refusal."""
        return "" if self.fault is None else sentence(self.fault.detail)

    @property
    def passing(self) -> bool:
        """True if the same may well succeed in a moment."""
        return isinstance(self.fault, Busy | RateLimited | Unavailable)

    @property
    def algorithms(self) -> dict[str, str]:
        """Return the algorithms of digests, the usual one first."""
        return {name: name for name in DIGITS}

    @property
    def makes(self) -> str:
        """Return what a session on this pool is about, unless groups are chosen.

        One of ``best``, ``metrics``, ``difference`` and ``mean``; where the pool is not at hand, as
        the form says.
        """
        if self._pool is None:
            return self["makes"] or "mean"
        if self.several is not None:
            return "best"
        if self._pool.loss is not None:
            return "difference" if self._pool.loss.kind == "difference" else "mean"
        return "metrics"

    @property
    def target(self) -> str:
        """Return what the choice of a target is called."""
        if self.makes == "difference":
            a, b = self.systems
            return f"The difference, {a} less {b}, on"
        score = None if self._pool is None else self._pool.score
        return f"The {score.name if score else 'mean loss'} of"

    @cached_property
    def metrics(self) -> list[MetricField]:
        """The metrics of the pool, or its one loss."""
        if self._pool is None or self._pool.loss is not None:
            loss = self._pool and self._pool.loss
            score = self._pool and self._pool.score
            width = loss.upper - loss.lower if loss else 1.0
            return [MetricField(None, score.name if score else "mean loss", width)]
        return [
            MetricField(name, metric.score.name, metric.upper - metric.lower)
            for name, metric in (self._pool.metrics or {}).items()
        ]

    @property
    def groups(self) -> list[tuple[str, str]]:
        """The group columns that claims may be made of, with how many values each has."""
        pool = self._pool
        if pool is None or pool.systems or pool.based_on or "weight" in pool.columns:
            return []
        columns = {name: len(values) for name, values in pool.group_columns.items()}
        if pool.groups:
            columns.setdefault(_GROUP, len(pool.groups))
        return [(name, counted(values, "value")) for name, values in columns.items()]

    @property
    def known(self) -> str:
        """Return how many items are known, and why; empty where none is."""
        if self._pool is None or self._pool.known is None or not self._pool.known.items:
            return ""
        known = self._pool.known
        return (
            f"Of {counted(self._pool.items, 'item')}, {count(known.items)} are known"
            f" ({', '.join(known.reasons)}) and never asked for. An audit asks for them like for"
            " all others."
        )

    @property
    def drawn(self) -> tuple[int, int]:
        """Return how many items a session draws from: without an audit, and with one."""
        if self._pool is None:
            return 0, 0
        known = self._pool.known.items if self._pool.known else 0
        return self._pool.items - known, self._pool.items

    @property
    def strategies(self) -> dict[str, str]:
        """The ways to a surrogate, in words; "" is the one that was uploaded."""
        if self._pool is None or self._pool.loss is None:
            return {}
        columns = self._pool.columns
        able = strategies_for(self._pool.loss.kind, columns)
        uploaded = any(column.startswith("surrogate.") for column in columns)
        return {name: _STRATEGIES[name] for name in ["", *able] if name or uploaded} if able else {}

    @property
    def risk(self) -> tuple[str, str]:
        """Return what the expected risk is called, and what is assumed where it is left empty."""
        compared = self.makes == "difference"
        columns = () if self._pool is None else self._pool.columns
        assumed = "None" if compared else "The middle of the scale"
        if any(column.startswith(GUESSES) for column in columns):
            assumed = "As the surrogate predicts"
        return f"Expected {'difference' if compared else 'mean loss'}", assumed
