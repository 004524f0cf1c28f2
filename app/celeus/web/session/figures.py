"""The numbers of a session that are looked at first."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from celeus.core.insights.figures import count, sure
from celeus.core.insights.remarks import Measure
from celeus.core.insights.sentences import Contrast
from celeus.operations.insights.surrogate import Opening
from celeus.web.report.interval import IntervalFigures
from celeus.web.wording import counted, labels_done


class Figure(NamedTuple):
    """A number with its name, what follows it in small letters, and notes.

    ``share`` is drawn as a bar; ``kind`` sets the look.
    """

    name: str
    value: str
    small: str = ""
    notes: Sequence[str] = ()
    kind: str = ""
    share: float | None = None


def figures_of(session: Mapping[str, Any], opening: Opening) -> list[Figure]:
    """Return the figures of a session of any kind."""
    if session["best"] is not None:
        return _best_figures(session)
    if session["table"] is not None:
        return _table_figures(session)
    words = interval_of(session, opening)
    return [] if words is None else _interval_figures(session, words, opening)


def interval_of(session: Mapping[str, Any], opening: Opening) -> IntervalFigures | None:
    """Return the figures of the interval of a session that has one."""
    if session["estimate"] is None:
        return None
    weighted = opening.plan.get("weights") is not None
    success = session["success"]
    measure = Measure(opening.scale, opening.systems, opening.score, weighted, success)
    return IntervalFigures(session, measure)


def _interval_figures(
    session: Mapping[str, Any], words: IntervalFigures, opening: Opening
) -> list[Figure]:
    plan, weights = opening.plan, opening.plan.get("weights")
    width = f"width {words.width(session['width'])}"
    judged = _judged(session)
    notes = [*judged.notes, *_known_notes(session, plan)]
    if weights is not None:
        effective = count(round(weights["effective_items"]))
        notes.append(f"by weight the pool amounts to {effective} equal items")
    confidence = f"{sure(session['alpha'])} confidence, at all times at once"
    return [
        _measured("Interval", words.ends, [f"{width}; {confidence}"], kind="wide-figure"),
        _estimate(session, words, opening.contrast),
        _precision(session, words),
        judged._replace(notes=notes),
    ]


def _measured(name: str, value: str, notes: Sequence[str], kind: str = "") -> Figure:
    """Return a figure with its unit in small letters where that is a word."""
    number, unit, _ = value.partition(" points")
    return Figure(name, number, unit, notes, kind)


def _estimate(
    session: Mapping[str, Any], words: IntervalFigures, contrast: Contrast | None
) -> Figure:
    kind = "wide" if words.wide else ""
    if not session["rounds"]["in_interval"]:
        why = "no label is in the interval yet"
        if not session["rounds"]["judged"]:
            why = "none before the first label"
        elif session["state"] == "closed":
            why = "no label is in the interval"
        return Figure("Estimate", "–", notes=[why], kind=kind)
    note = f"{words.quantity}; {words.score.better} is better"
    if contrast is not None:
        note = f"{contrast.a} less {contrast.b}: above 0 the latter is better"
    return _measured("Estimate", words.estimate, [note], kind)


def _precision(session: Mapping[str, Any], words: IntervalFigures) -> Figure:
    wanted = session["precision"]
    if wanted is None:
        return Figure("Precision", "–", notes=["none set"])
    note = "reached" if session["width"] <= wanted else labels_done(session)
    figure = _measured("Precision", words.asked(wanted), [note])
    return figure._replace(share=session["words"]["share"])


def _judged(session: Mapping[str, Any]) -> Figure:
    rounds, drawable = session["rounds"], session["items"] - session["known"]
    notes, noun, whole = [], "item", count(drawable)
    if session["repeats"]:
        noun, whole = "draw", f"at most {counted(session['budget'], 'draw')}"
    elif session["budget"] < drawable:
        notes.append(f"budget {count(session['budget'])}")
    if rounds["pending"]:
        notes.append(f"{counted(rounds['pending'], noun)} with judges")
    if rounds["waiting"]:
        inside, waiting = count(rounds["in_interval"]), count(rounds["waiting"])
        notes.append(f"{inside} in the interval; {waiting} waiting for an earlier one")
    note = "; ".join(notes) or f"nobody holds {'a draw' if noun == 'draw' else 'an item'}"
    return Figure("Judged", count(rounds["judged"]), f" of {whole}", [note])


def _known_notes(session: Mapping[str, Any], plan: Mapping[str, Any]) -> list[str]:
    known = session["known"]
    if not known or not plan.get("known"):
        return []
    reasons = ", ".join(
        reason if items == known else f"{reason} ({count(items)})"
        for reason, items in plan["known"]["reasons"].items()
    )
    return [f"{count(known)} more never asked for: {reasons}"]


def _best_figures(session: Mapping[str, Any]) -> list[Figure]:
    best, known = session["best"], session["known"]
    alike = ["all systems gave the same answer"] if known else []
    return [
        Figure("Still in", str(len(best["standing"])), f" of {len(best['systems'])}"),
        _judged(session),
        Figure("Never asked for", count(known), f" of {count(session['items'])}", alike),
    ]


def _table_figures(session: Mapping[str, Any]) -> list[Figure]:
    table = session["table"]
    groups = f"groups by {', '.join(table['groups'])}" if table["groups"] else "no groups"
    claims = f"{counted(table['claims'], 'claim')} in all"
    return [
        Figure("Targets met", count(table["met"]), f" of {count(table['wanted'])}", [claims]),
        _judged(session),
        Figure("Metrics", count(len(table["metrics"])), notes=[groups]),
    ]
