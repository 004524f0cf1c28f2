"""The questions of a gate, and a session's answers to them."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from celeus.client.service import plain
from celeus.core.interval import Interval
from celeus.core.plans.stopping import Question, rounding
from celeus.core.pools.score_names import UNNAMED
from celeus.errors import InvalidValue
from celeus.units import PERCENT, Amount, Ends, check_margin, check_threshold

SIDES = ("a", "b")


@dataclass(frozen=True, slots=True)
class Outcome:
    """A session's document, and the answers asked for."""

    session: dict[str, Any]
    answers: list[dict[str, Any]]

    @property
    def answer(self) -> str:
        """No when one answer is no, yes when all are, else undecided."""
        given = {answer["answer"] for answer in self.answers}
        if "no" in given:
            return "no"
        return "yes" if given == {"yes"} else "undecided"

    @property
    def final(self) -> bool:
        """Return True if waiting cannot change the outcome."""
        return self.answer != "undecided" or self.session["state"] == "closed"

    def line(self) -> str:
        """Claim, interval and answers for a reader."""
        known = self.session
        # Beside a score that is better the higher it is, a threshold of the risk needs its name
        risk = "risk " if (known["score"] or {}).get("better") == "higher" else ""
        lines = []
        for answer in self.answers:
            named = "score" in answer or "verdict" in answer
            lines.append(f"{'' if named else risk}{asked(answer)}: {answered(answer)}")
        where = f"{known['state']}, settings {self.settings}"
        return f"{known['id']}: {self.sentence} ({where}); {', '.join(lines)}"

    @property
    def sentence(self) -> str:
        """The session's own."""
        return plain(self.session["sentence"]).removesuffix(".")

    @property
    def settings(self) -> str:
        """Say if the settings are fixed or how often they changed, and who vouches for that."""
        line = settings_line(fixed=self.session["fixed"], changes=self.session["changes"])
        if self.session["origin"] is None:
            return line
        return f"{line}, pushed: plan and losses are the word of whoever pushed it"

    def to_dict(self) -> dict[str, Any]:
        """The answer as JSON for a program."""
        names = ("target", "alpha", "lower", "upper", "estimate", "round", "state", "policy")
        more = ("method_version", "revision", "fixed", "changes")
        return {
            "session": self.session["id"],
            "answer": self.answer,
            "answers": self.answers,
            **{name: self.session[name] for name in (*names, *more)},
            **{name: self.session[name] for name in ("score", "sentence")},
            **{
                name: self.session[name]
                for name in ("claim", "origin")
                if self.session[name] is not None
            },
            **({} if self.session["systems"] is None else {"systems": named(self.session)}),
        }


def asked(answer: dict[str, Any]) -> str:
    """The question of an answer."""
    if "verdict" in answer:
        within = f" within {_margin(answer)}" if answer["margin"] else ""
        return f"{answer['system']} at least as good{within}"
    name = f"{answer['score']} " if "score" in answer else ""
    return f"{name}{answer['side'].replace('_', ' ')} {answer['threshold']:g}"


def answered(answer: dict[str, Any]) -> str:
    """The answer itself, the verdict it follows from, and the round that gave it."""
    where = "" if answer["round"] is None else f" (round {answer['round']})"
    verdict = answer.get("verdict")
    more = "" if verdict in (None, "undecided") else f", {verdict}"
    return f"{answer['answer']}{more}{where}"


def _margin(answer: dict[str, Any]) -> str:
    """The margin as the session's sentence has it: of a share in points."""
    if answer["unit"] == "share":
        return f"{100 * answer['margin']:.10g} points"
    return f"{answer['margin']:.10g}"


def named(session: dict[str, Any]) -> dict[str, str]:
    """The names of the two systems compared; a pool of plain differences calls them a and b."""
    names = session["systems"] or {}
    return {side: plain(str(names.get(side, side))) for side in SIDES}


def settings_line(*, fixed: bool, changes: object) -> str:
    """Say if a session's precision, budget and stop are fixed, or how often they changed."""
    if fixed:
        return "fixed"
    if not changes:
        return "never changed"
    return "changed once" if changes == 1 else f"changed {changes} times"


@dataclass(frozen=True, slots=True)
class Replacement:
    """Ask whether ``system`` may replace the other; a margin of None is the session's."""

    system: str
    margin: Amount | None

    def answered(self, session: dict[str, Any]) -> dict[str, Any]:
        """Yes where it is at least as good or equivalent, no where the other is at least as good.

        Raises InvalidValue where the session compares no such system, or the margin is off the
        scale.
        """
        names = named(session)
        if session["systems"] is None and session["verdict"] is None:
            message = f"{session['id']} compares no two systems"
            raise InvalidValue(message, field="session")
        side = self._side(session["systems"] or {}, names)
        if side is None:
            rule = f"{names['a']} or {names['b']}"
            message = f"--compare must be {rule}, the systems of {session['id']}"
            raise InvalidValue(message, field="--compare", rule=rule, value=self.system)
        system = {"system": names[side], "unit": session["score"]["unit"]}
        if self.margin is None:
            return system | self._decided(session, side)
        scale = _scale(session)
        margin = self.margin.on(scale, "--margin")
        check_margin(margin, scale, "--margin")
        return system | self._seen(session, side, margin)

    def _side(self, *names: dict[str, str]) -> str | None:
        """The side so called, by the first kind of name that one is: a system may be named "b"."""
        for of in (*names, dict(zip(SIDES, SIDES, strict=True))):
            sides = [side for side in SIDES if of.get(side) == self.system]
            if sides:
                return sides[0] if len(sides) == 1 else None
        return None

    def _decided(self, session: dict[str, Any], side: str) -> dict[str, Any]:
        """The session's own verdict: its first one, which stays."""
        verdict: dict[str, Any] | None = session["verdict"]
        if verdict is None:
            message = f"{session['id']} asks for no verdict; name a --margin, 0 for none"
            raise InvalidValue(message, field="--margin")
        yes = verdict["answer"] in (f"{side}_at_least_as_good", "equivalent")
        no = "undecided" if verdict["answer"] == "undecided" else "no"
        answer = "yes" if yes else no
        return {
            "margin": verdict["margin"],
            "verdict": verdict["answer"],
            "answer": answer,
            "round": verdict["round"],
        }

    def _seen(self, session: dict[str, Any], side: str, margin: float) -> dict[str, Any]:
        """Answer by the interval: yes if worse by no more than the margin, no if by more."""
        lower, upper = session["lower"], session["upper"]
        widest = max(abs(lower), abs(upper), margin)
        question = Question("at_most", margin) if side == "a" else Question("at_least", -margin)
        answer = question.answer(Interval(lower, upper), rounding(Interval(-widest, widest)))
        return {"margin": margin, "verdict": None, "answer": answer, "round": None}


@dataclass(frozen=True, slots=True)
class ExtraQuestion:
    """A question the session need not have asked: its ``option``, and the threshold as written."""

    option: str
    threshold: Amount

    @property
    def score(self) -> bool:
        """Return True if it is asked of the score in place of the risk."""
        return self.option.startswith("--score")

    def on(self, scale: Ends) -> Question:
        """Return the question on a scale; refuses a threshold that is not inside it."""
        threshold = self.threshold.on(scale, self.option)
        check_threshold(threshold, scale, self.option)
        return Question("at_most" if self.option.endswith("at-most") else "at_least", threshold)

    def answered(self, session: dict[str, Any]) -> dict[str, Any]:
        """Answer by the session's interval of the risk, or of the score.

        Raises InvalidValue where the session has no score of one system, and for a threshold off
        its scale, which is that of the losses.
        """
        found, question = session, self.on(_scale(session))
        name: dict[str, Any] = {}
        if self.score:
            compared = session["systems"] is not None or session["verdict"] is not None
            if compared:
                message = f"{session['id']} has no score of one system"
                raise InvalidValue(message, field="session")
            found = session["score"]
            if found["name"] in UNNAMED and question.side == "at_least":
                raise self._unnamed(found["name"], _scale(session), question.threshold)
            name = {"score": plain(found["name"])}
        interval = Interval(found["lower"], found["upper"])
        slack = rounding(Interval(interval.lower, max(interval.upper, abs(question.threshold))))
        return {
            **name,
            "side": question.side,
            "threshold": question.threshold,
            "answer": question.answer(interval, slack),
            "round": None,
        }

    def _unnamed(self, loss: str, scale: Ends, threshold: float) -> InvalidValue:
        """Return the refusal to ask of a loss what is most likely meant of its opposite."""
        lower, upper = (Decimal(repr(end)) for end in scale)
        turned = lower + upper - Decimal(repr(threshold))
        sign = self.threshold.sign
        way = f"{float(turned.scaleb(PERCENT) if sign else turned):.10g}{sign}"
        rule = (
            f"left out where no score is named, as it would be asked of the {loss}: give --at-most"
            f" {way}, or name the score of the pool, such as accuracy, of which higher is better"
        )
        message = f"{self.option} must be {rule}"
        return InvalidValue(message, field=self.option, rule=rule, value=str(self.threshold))


def _scale(session: dict[str, Any]) -> Ends:
    return float(session["scale"]["lower"]), float(session["scale"]["upper"])


def question_of(
    thresholds: Mapping[str, str | float | None], compare: str | None, margin: str | float | None
) -> ExtraQuestion | Replacement | None:
    """The question of the options by name, None where none is given; refuses several.

    Numbers may be text, such as "10%" or "2pt"; they meet their scale when the session is read.
    """
    given = {name: threshold for name, threshold in thresholds.items() if threshold is not None}
    if len(given) + (compare is not None) > 1:
        rule = f"one of {', '.join(thresholds)} and --compare"
        raise InvalidValue(f"give only {rule}", field="at_most", rule=rule)
    if margin is not None and compare is None:
        raise InvalidValue("--margin needs --compare", field="--margin", rule="with --compare")
    if compare is not None:
        return Replacement(compare, None if margin is None else Amount.of(margin, "--margin"))
    for name, threshold in given.items():
        return ExtraQuestion(name, Amount.of(threshold, name))
    return None


def outcome_of(session: dict[str, Any], question: ExtraQuestion | Replacement | None) -> Outcome:
    """Return the answer to a question, or to the session's own; InvalidValue without any."""
    if question is not None:
        return Outcome(session, [question.answered(session)])
    if not session["decisions"]:
        how = "--at-most or --at-least" if session["verdict"] is None else "--compare"
        raise InvalidValue(f"{session['id']} has no questions; ask one with {how}", field="session")
    return Outcome(session, session["decisions"])
