"""Certify a score, or compare two systems, in this process: one call, a file, and no server."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from celeus.client.blocking import Session
from celeus.client.fingerprint import LOG, check_resume, counted, taken_up
from celeus.client.label_loop import Turn, check_concurrency, finite, unboxed
from celeus.core.canonical import digest_of
from celeus.core.interval import Interval
from celeus.core.plans.judge_check import JudgeCheck, positive_loss
from celeus.core.plans.plan import Claim
from celeus.core.plans.plan_request import SessionRequest, TableRequest
from celeus.core.plans.stopping import Question, Side
from celeus.core.pools.losses import LossScale
from celeus.core.pools.metrics import Metric, check_metric_name
from celeus.core.pools.score import Better, Score, declared_score, default_score
from celeus.core.pools.systems import AnySystems, Lineup, Systems
from celeus.core.runs.run_file import PoolForm
from celeus.errors import InvalidValue
from celeus.intake.table.items import LABELLED
from celeus.runs.items import Row, bounded, item_rows, plain_rows, scale_of
from celeus.runs.ledger_file import set_aside, unwritten
from celeus.runs.local import check_key, session_of
from celeus.runs.run import Run
from celeus.shorten import shortened
from celeus.subjects import Named, subjects_of
from celeus.units import SHARES, Ends, check_threshold, number_on

POSITIVE = frozenset({"1", "1.0", "true", "yes"})
"""Verdicts that call an item positive and need no other word for it."""
SIGNS = POSITIVE | {"0", "0.0", "false", "no"}
FOLDER = Path(".celeus")
"""Folder of session files whose path was not given."""

Budget = int | Literal["all"] | None
"""Most items to judge; `all` for a session that need not stop before."""
Amount = float | str
"""A number on the scale; where that is one of shares also text, such as "10%" or "2pt"."""
Judge = Callable[[Turn], object]
"""Function from an item to its loss, or to its score if one is named; for two answers `left`, `tie`
or `right`, or two losses."""


def certify(  # noqa: PLR0913 -- what a session is opened with, each by its name
    items: object,
    judge: Judge | None,
    *,
    precision: Amount | Mapping[str, Amount] | None = None,
    at_most: Amount | None = None,
    at_least: Amount | None = None,
    score_at_most: Amount | None = None,
    score_at_least: Amount | None = None,
    loss: str | tuple[float, float] = "zero_one",
    metrics: Mapping[str, str | tuple[float, float]] | None = None,
    groups: Sequence[str] = (),
    group_precision: Amount | Mapping[str, Amount] | None = None,
    account: str = "each",
    score: tuple[str, Better] | None = None,
    target: str = "pool",
    repeats: bool = False,
    success: str | None = None,
    alpha: Amount = 0.05,
    budget: Budget = None,
    fixed: bool = False,
    subject: Named | Sequence[Named] | None = None,
    concurrency: int = 1,
    name: str = "items",
    file: str | os.PathLike[str] | None = None,
    key: str | os.PathLike[str] | None = None,
    keep: bool = False,
    fresh: bool = False,
) -> Session:
    """Judge items until the interval of their mean loss is narrow enough; return the session.

    ``items``: a frame, a Dataset, dicts, or the path of a table or a log. Rows with ``id``,
    ``payload`` and perhaps ``surrogate`` are taken as they are; others are read as by
    `celeus.read_items`, which is given the answers where they leave a question open (NeedsAnswer).
    ``judge`` is given an item and returns its loss; without one nothing is
    judged yet, and `session.draws()` asks. ``precision`` is the width of the interval to stop at;
    ``at_most`` and ``at_least`` are questions of it whose answers stop it as well,
    ``score_at_most`` and ``score_at_least`` the same of its score; ``budget`` is the most items to
    judge; `budget="all"` has all of them judged where nothing else is to stop it. A number on a
    scale of shares may be text, such as "10%" or, of points, "2pt".
    ``loss`` is the kind, or the ends of a bounded one. ``score``, as `("accuracy", "higher")`,
    names the score between the same ends that is reported, and that ``judge`` returns in place of
    the loss: 1.0 of an answer that is right; where higher is better a question is asked of it.
    `Turn.observe` takes the loss all the same.
    ``name`` is what the pool is called: items of another name have a session of their own.
    Where ``judge`` runs a system that answers by chance (temperature above 0, an agent), the claim
    is about the answers that came, one to each item, and not about those it would give next. With
    ``target`` `runs` it is about the mean over all runs on these items, from one run of each; with
    ``repeats`` any item may be run again, ``judge`` has to run the system afresh each time it is
    called, and ``budget`` counts draws (default: twice those that the precision takes at worst).
    With ``success`` `all of 4` (pass^4) or `any of 4` (pass@4) a draw is up to four runs: ``judge``
    is called until one failure, or one success, settles it.

    Where a judge gives several losses, ``metrics`` has the kind or the ends of each by name in
    place of ``loss``; it returns them by name, and ``precision`` may be one for each. ``groups``
    are names in the `groups` of the items: every value of theirs gets an interval, to be
    ``group_precision`` wide. ``account`` says what holds of all these together: docs/api.md.

    ``subject`` is what is evaluated, one thing or several, each a file or `NAME@sha256:DIGEST`: it
    is fixed now and stands in the certificate.

    The session lies in ``file``, by default in the folder `.celeus`: whoever is stopped or killed
    and calls again with the same arguments goes on where they were, and judges nothing twice. A
    judge whose code or constants changed since is refused, until ``keep`` says that the earlier
    judgements count all the same, or ``fresh`` begins anew.

    Certificates are signed with the key in ``key``, which is made beside the file if it is not
    there. Raises `celeus.Refusal` for what cannot be certified; what ``judge`` raises comes
    through, and its item is not judged.
    """
    measured = tuple(_metric(name, measure) for name, measure in (metrics or {}).items())
    scale = measured[0].scale if measured else scale_of(loss)
    if measured and (score is not None or loss != "zero_one"):
        rule = "left out beside metrics, each of which is a loss by its name"
        field = "loss" if score is None else "score"
        raise InvalidValue(f"{field} must be {rule}", field=field, rule=rule, value=score or loss)
    named = score_of(score, scale, None)
    scales: dict[str | None, Ends] = {metric.name: _ends(metric.scale) for metric in measured}
    scales = scales or {None: _ends(scale)}
    table = None
    if measured or groups:
        table = TableRequest(
            groups=tuple(groups),
            precision=_widths(precision, "precision", scales),
            group_precision=_widths(group_precision, "group_precision", scales),
            # The plan refuses any other value by name
            account=account,  # type: ignore[arg-type]
        )
    thresholds = {
        "at_most": at_most,
        "at_least": at_least,
        "score_at_most": score_at_most,
        "score_at_least": score_at_least,
    }
    claim = Claim(
        target,  # type: ignore[arg-type]  # the plan checks it
        _alpha(alpha),
        _number(precision, "precision", _ends(scale)) if table is None else None,
        questions=tuple(
            _question(name, given, scale, None if measured else named or default_score(scale, None))
            for name, given in thresholds.items()
            if given is not None
        ),
        budget=_budget(budget),
        fixed=fixed,
        subject=subjects_of(subject),
        repeats=repeats,
        success=success,
    )
    form = PoolForm(name, scale, score=named, metrics=measured)
    request = SessionRequest(claim, table=table)
    widths = {"precision": precision, "group_precision": group_precision}
    stops = {**widths, **thresholds, "budget": budget}
    if repeats and budget == "all":
        rule = "a number of runs where items are run again: there is no last one"
        raise InvalidValue(f"budget must be {rule}", field="budget", rule=rule, value=budget)
    rows = item_rows(items, scale, target=claim.target)
    return _judged(form, rows, request, judge, RunFiles(file, key, concurrency, keep, fresh), stops)


def compare(  # noqa: PLR0913 -- what a session is opened with, each by its name
    a: object,
    b: object,
    judge: Judge | None,
    *,
    margin: Amount | None = None,
    precision: Amount | None = None,
    loss: str | tuple[float, float] = "preference",
    score: tuple[str, Better] | None = None,
    names: tuple[str, str] = ("a", "b"),
    normalisation: str | None = None,
    alpha: Amount = 0.05,
    budget: Budget = None,
    fixed: bool = False,
    subject: Named | Sequence[Named] | None = None,
    concurrency: int = 1,
    file: str | os.PathLike[str] | None = None,
    key: str | os.PathLike[str] | None = None,
    keep: bool = False,
    fresh: bool = False,
) -> Session:
    """Judge answers of two systems to the same questions until it is clear which is better.

    ``a`` and ``b``: answers by id, or rows, or the path of a table of them, with ``id``, ``answer``
    and perhaps ``payload``, which is what both were asked. ``judge`` is given an item with its
    answers as ``left`` and ``right``, in an order drawn by item, and returns the better one or
    `tie`, or `both_bad`, a tie that is kept apart; with ``loss`` `zero_one`, or the ends of a
    bounded one, the losses by these names, or what ``score`` names; of rows without answers, which
    are made as they are judged, those of `a` and `b`.
    ``normalisation``: where the text of an answer decides its loss, equal ones (`exact`, or but for
    `whitespace`, or `casefold`) make no difference and need no judge; default: all are judged.
    ``margin``: stop once one is at least as good as the other or both are equivalent within it, on
    the scale of the difference of losses;
    ``precision``: stop at this width of the interval of the difference, a less b; ``score`` is
    what the mean of such losses is called. All else is as in `certify`.
    """
    kind = (loss, None, None) if isinstance(loss, str) else bounded(loss)
    systems = Systems.of(names, kind, normalisation)
    claim = Claim(
        "pool",
        _alpha(alpha),
        _number(precision, "precision", _ends(systems.scale)),
        decide=_number(margin, "margin", _ends(systems.scale)),
        budget=_budget(budget),
        fixed=fixed,
        subject=subjects_of(subject),
    )
    form = PoolForm(
        f"{names[0]} and {names[1]}",
        systems.scale,
        systems,
        score_of(score, systems.scale, systems),
    )
    rows = _pairs(_answers(a), _answers(b), names)
    stops = {"precision": precision, "margin": margin, "budget": budget}
    files = RunFiles(file, key, concurrency, keep, fresh)
    return _judged(form, rows, SessionRequest(claim), judge, files, stops)


def best(  # noqa: PLR0913 -- what a session is opened with, each by its name
    systems: Mapping[str, object],
    judge: Judge | None,
    *,
    loss: str | tuple[float, float] = "zero_one",
    normalisation: str | None = None,
    score: tuple[str, Better] | None = None,
    alpha: Amount = 0.05,
    budget: Budget = None,
    fixed: bool = False,
    subject: Named | Sequence[Named] | None = None,
    concurrency: int = 1,
    file: str | os.PathLike[str] | None = None,
    key: str | os.PathLike[str] | None = None,
    keep: bool = False,
    fresh: bool = False,
) -> Session:
    """Judge answers of several systems to the same questions until one is left.

    No other is better than that one, with probability 1 - ``alpha``; another one may be as good.

    ``systems``: by the name of each its answers, as ``a`` and ``b`` of `compare`. ``judge`` is
    given an item with the answers as ``answers``, with ``normalisation`` equal ones once, in an
    order drawn by item, and returns their losses, or what ``score`` names, in that order.
    ``normalisation`` is as in `compare`; all else as in `certify`.
    """
    scale = scale_of(loss)
    lineup = Lineup.of(tuple(systems), (scale.kind, scale.lower, scale.upper), normalisation)
    subjects = subjects_of(subject)
    claim = Claim("pool", _alpha(alpha), budget=_budget(budget), fixed=fixed, subject=subjects)
    form = PoolForm(f"the best of {len(systems)}", scale, lineup, score_of(score, scale, lineup))
    rows = _lineups({name: _answers(given) for name, given in systems.items()})
    request = SessionRequest(claim, best=True)
    return _judged(form, rows, request, judge, RunFiles(file, key, concurrency, keep, fresh))


def judge_check(  # noqa: PLR0913 -- what a session is opened with, each by its name
    items: object,
    ask: Judge | None,
    *,
    verdict: str,
    positive: object = None,
    people: str | None = None,
    tpr: Amount | None = None,
    tnr: Amount | None = None,
    ppv: Amount | None = None,
    npv: Amount | None = None,
    agreement: Amount | None = None,
    f1: Amount | None = None,
    jaccard: Amount | None = None,
    kappa: Amount | None = None,
    precision: Amount | Mapping[str, Amount] | None = None,
    account: str = "each",
    score: tuple[str, Better] = ("correct", "higher"),
    alpha: Amount = 0.05,
    budget: Budget = None,
    fixed: bool = False,
    subject: Named | Sequence[Named] | None = None,
    concurrency: int = 1,
    name: str = "items",
    file: str | os.PathLike[str] | None = None,
    key: str | os.PathLike[str] | None = None,
    keep: bool = False,
    fresh: bool = False,
) -> Session:
    """Check an automatic judge against people until it is clear how good it is.

    ``items`` are as in `certify`, with the automatic judge's verdict of each in the column
    ``verdict``, or in their `groups` of that name; nobody sees it. ``positive`` is the verdict that
    means the same as a score of 1; of true and false, yes and no, or 1 and 0, it need not be given.
    ``ask`` asks a person: it is given an item and returns ``score``, 1 where they call it positive,
    else 0. ``people`` is the column, or the group, of labels that people gave before, in the words
    of the verdicts: they count however their items were chosen, and only the others are drawn.

    ``tpr`` and ``tnr`` (true-positive and true-negative rate), ``ppv`` (precision) and ``npv``,
    ``agreement``, ``f1``, ``jaccard`` and ``kappa`` are the least values asked of the judge, each
    answered yes or no with probability 1 - ``alpha``; so is the yes to all of them. ``precision``
    is the width of the intervals to stop at, or that of each by its measure. Intervals that are to
    hold at once take ``account`` `together`. All else is as in `certify`; `session.claims()` has
    the intervals and answers.
    """
    least = {"tpr": tpr, "tnr": tnr, "ppv": ppv, "npv": npv, "agreement": agreement}
    least |= {"f1": f1, "jaccard": jaccard, "kappa": kappa}
    asked = {measure: value for measure, value in least.items() if value is not None}
    wanted = asked.keys() | (precision.keys() if isinstance(precision, Mapping) else set())
    measures = tuple(measure for measure in least if measure in wanted)
    scale = scale_of("zero_one")
    rows = item_rows(items, scale, (verdict,) if people is None else (verdict, people))
    _check_verdicts(rows, verdict)
    check = JudgeCheck(verdict, _positive(rows, verdict, positive), measures)
    named = score_of(score, scale, None)
    if people is not None:
        rows = _labelled(rows, people, check, Metric("loss", scale, named))
    metrics = {metric.name: metric for metric in check.metrics}
    table = TableRequest(
        precision=_widths(precision, "precision", {n: _ends(m.scale) for n, m in metrics.items()}),
        questions=[(measure, _least(metrics[measure], value)) for measure, value in asked.items()],
        account=account,  # type: ignore[arg-type]
        check=check,
    )
    subjects = subjects_of(subject)
    claim = Claim("pool", _alpha(alpha), budget=_budget(budget), fixed=fixed, subject=subjects)
    form = PoolForm(name, scale, score=named)
    request = SessionRequest(claim, table=table)
    return _judged(form, rows, request, ask, RunFiles(file, key, concurrency, keep, fresh))


def _check_verdicts(rows: Sequence[Row], column: str) -> None:
    """Refuse items without a verdict among their groups."""
    for number, row in enumerate(rows, start=1):
        if column not in row.get("groups", {}):
            rule = f"{column}, the verdict of the judge that is checked"
            message = f"item {number} has no verdict {column}"
            raise InvalidValue(message, field="verdict", rule=rule)


def _positive(rows: Sequence[Row], column: str, given: object) -> str:
    """The verdict that calls an item positive, as items have it; refused where nobody says it."""
    verdicts = sorted({str(row["groups"][column]) for row in rows})
    signs = [verdict for verdict in verdicts if verdict.lower() in POSITIVE]
    if {verdict.lower() for verdict in verdicts} <= SIGNS and signs and given in (None, True):
        return signs[0]
    if str(given) in verdicts:
        return str(given)
    rule = "the verdict that calls an item positive: one of " + ", ".join(verdicts[:5])
    message = f"positive must be {rule}"
    raise InvalidValue(message, field="positive", rule=rule, value=given)


def _labelled(
    rows: Sequence[Row], people: str, check: JudgeCheck, metric: Metric
) -> list[dict[str, Any]]:
    """The rows with people's labels as known losses; refuses a word that is no verdict."""
    groups = [dict(row["groups"]) for row in rows]
    labels = [group.pop(people, None) for group in groups]
    verdicts = [group[check.column] for group in groups]
    words = {str(word) for word in (*verdicts, *labels) if word is not None}
    positives = {check.positive}
    if check.positive.lower() in POSITIVE:
        # A column with gaps often has 1.0 where another has 1
        positives |= {word for word in words if word.lower() in POSITIVE}
    negatives = words - positives
    if len(negatives) > 1 and not {word.lower() for word in negatives} <= SIGNS:
        rule = f"labels in the words of {check.column}: {check.positive}, and one for all others"
        named = ", ".join(sorted(negatives)[:5])
        message = f"beside {check.positive}, people and judge say {named}: expected {rule}"
        raise InvalidValue(message, field="people", rule=rule)
    if labels.count(None) == len(labels):
        rule = "a column in which people labelled some items"
        raise InvalidValue(f"no item has a label in {people}", field="people", rule=rule)
    positive = positive_loss(metric)
    losses = (positive if str(label) in positives else 1.0 - positive for label in labels)
    known = [
        {} if label is None else {"known": {"loss": loss, "reason": LABELLED}}
        for label, loss in zip(labels, losses, strict=True)
    ]
    parts = zip(rows, groups, known, strict=True)
    return [{**row, "groups": group, **fact} for row, group, fact in parts]


def _least(metric: Metric, given: object) -> Question:
    """The question whether a measure is at least this."""
    ends = _ends(metric.scale)
    threshold = finite(_number(given, metric.name, ends), metric.name, metric.name)
    check_threshold(threshold, ends, metric.name)
    return Question("at_most", metric.measured.at(threshold, Interval(*ends)))


@dataclass(frozen=True, slots=True)
class RunFiles:
    """A session's file, the key that signs its certificate, and the number of parallel judges.

    ``keep`` goes on with judgements of another judge, ``fresh`` begins anew.
    """

    file: str | os.PathLike[str] | None
    key: str | os.PathLike[str] | None
    concurrency: int
    keep: bool
    fresh: bool


def _judged(  # noqa: PLR0913, PLR0917 -- what `certify`, `compare` and `best` were given
    form: PoolForm,
    rows: Sequence[Row],
    request: SessionRequest,
    judge: Judge | None,
    files: RunFiles,
    stops: Mapping[str, object] | None = None,
) -> Session:
    """Return the session, judged; ``stops`` are the settings of which one has to be given."""
    if not rows:
        raise InvalidValue("there are no items", field="items", rule="at least one item")
    _check_judge(judge)
    switches = {"repeats": request.claim.repeats, "fixed": request.claim.fixed}
    for name, value in (switches | {"keep": files.keep, "fresh": files.fresh}).items():
        _check_switch(name, value)
    check_concurrency(files.concurrency)
    _check_stop(len(rows), stops)
    check_resume(True, keep=files.keep, fresh=files.fresh)
    file = _file_of(form, rows, request) if files.file is None else Path(files.file)
    key = files.key or os.environ.get("CELEUS_SIGNING_KEY_FILE")
    signing = file.parent / f"{file.name}.pem" if key is None else Path(key)
    check_key(signing)
    if files.fresh and (aside := set_aside(file)) is not None and aside[1]:
        LOG.warning("celeus: begun anew: the %s before are in %s", counted(aside[1]), aside[0])
    run = Run.open(file, form, rows, request)
    taken_up(run.taken_up, file, run.last_at)
    session = session_of(run, signing, keep=files.keep)
    if judge is not None:
        try:
            session.judge(judge, concurrency=files.concurrency, worker="process")
        except BaseException:
            run.close_file()
            raise
    return session


def _file_of(form: PoolForm, rows: Sequence[Row], request: SessionRequest) -> Path:
    """Return the path of the session's file, the same for the same items and settings."""
    # Without defaults, so that a later field leaves the names of earlier files as they are
    claim = _differing(asdict(request.claim), asdict(Claim()))
    asked: list[Any] = [form.to_dict(), claim, [dict(row) for row in rows]]
    if request.table is not None:
        table = _differing(asdict(request.table), asdict(TableRequest()))
        asked.append([[name, repr(value)] for name, value in table.items()])
    name = digest_of(asked)[:16]
    return session_folder() / f"{name}.jsonl"


def _differing(given: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value != defaults[name]}


def session_folder() -> Path:
    """Return `FOLDER`, which is there then."""
    try:
        FOLDER.mkdir(exist_ok=True)
    except OSError as error:
        raise unwritten(FOLDER, error) from error
    return FOLDER


def _answers(system: object) -> dict[str, Row]:
    """Return the rows of answers by id."""
    if isinstance(system, Mapping):
        system = [{"id": name, "answer": answer} for name, answer in system.items()]
    rows: dict[str, Row] = {}
    for number, row in enumerate(plain_rows(system), start=1):
        if "id" not in row:
            rule = "the id of the item that is answered"
            raise InvalidValue(f"row {number} has no id", field="id", rule=rule)
        name = str(row["id"])
        if name in rows:
            rule = "an id no other item has"
            raise InvalidValue(f"{name!r} is there twice", field="id", rule=rule, value=name)
        rows[name] = row
    return rows


def _pairs(
    a: Mapping[str, Row], b: Mapping[str, Row], names: tuple[str, str]
) -> list[dict[str, Any]]:
    """Return the items of a comparison; refuses ids of one system alone, and differing payloads."""
    for ids, other_ids, name in ((a, b, names[1]), (b, a, names[0])):
        alone = next((item for item in ids if item not in other_ids), None)
        if alone is not None:
            message = f"{name} has no answer to {alone!r}"
            rule = "answers of both systems to the same items"
            raise InvalidValue(message, field="id", rule=rule, value=alone)
    pairs = []
    for name, row in a.items():
        asked = [answer["payload"] for answer in (row, b[name]) if "payload" in answer]
        if len(asked) == 2 and asked[0] != asked[1]:
            message = f"{name!r} is another question of {names[1]}"
            rule = "the payload that the other system has"
            raise InvalidValue(message, field="payload", rule=rule, value=name)
        pair = {"id": name, "a": _answer_of(row), "b": _answer_of(b[name])}
        pairs.append(pair | ({"payload": asked[0]} if asked else {}))
    return pairs


def _lineups(answers: Mapping[str, Mapping[str, Row]]) -> list[dict[str, Any]]:
    """Return the items of several systems; refuses missing answers, and differing payloads."""
    (first, first_rows), *others = answers.items()
    paired = {name: _pairs(first_rows, rows, (first, name)) for name, rows in others}
    items = []
    for place, (item, row) in enumerate(first_rows.items()):
        pairs = {name: rows[place] for name, rows in paired.items()}
        answered = {first: _answer_of(row)} | {name: pair["b"] for name, pair in pairs.items()}
        asked = [pair["payload"] for pair in pairs.values() if "payload" in pair][:1]
        items.append({"id": item, "answers": answered} | ({"payload": asked[0]} if asked else {}))
    return items


def _metric(name: str, loss: object) -> Metric:
    check_metric_name(name)
    return Metric(name, scale_of(loss))


def _widths(
    given: object, name: str, scales: Mapping[str | None, Ends]
) -> dict[str | None, float | None]:
    """Return the width by metric; a number for all has the name None."""
    if isinstance(given, Mapping):
        # The plan refuses the name of another metric
        pairs = [(str(metric), width) for metric, width in given.items()]
        return {
            metric: _number(width, name, scales.get(metric, SHARES[0])) for metric, width in pairs
        }
    if isinstance(given, str):
        return {metric: number_on(scale, given, name) for metric, scale in scales.items()}
    return {} if given is None else {None: finite(given, name, name)}


def _question(name: str, given: object, scale: LossScale, score: Score | None) -> Question:
    """Return the question of the mean loss that the argument ``name`` asks.

    Raises InvalidValue for a threshold that is not inside the scale, and where higher is better
    for one of the loss: it would be taken for one of the score.
    """
    side: Side = "at_most" if name.endswith("at_most") else "at_least"
    threshold = finite(_number(given, name, _ends(scale)), name, name)
    check_threshold(threshold, _ends(scale), name)
    of_score, other = name.startswith("score_"), {"at_most": "at_least", "at_least": "at_most"}
    if of_score and score is None:
        rule = "left out beside metrics, which have no score"
        raise InvalidValue(f"{name} must be {rule}", field=name, rule=rule, value=given)
    if score is None or score.better == "lower":
        return Question(side, threshold)
    # The score of a score is the loss: the scale is turned over twice
    turned = score.at(threshold, Interval(scale.lower, scale.upper))
    if not of_score:
        message = (
            f"{name} is asked of the mean loss, and higher is better of {score.name}: give"
            f" score_{side}={threshold:.12g}, or score_{other[side]}={turned:.12g} for that loss"
        )
        raise InvalidValue(message, field=name, value=threshold)
    return Question(other[side], turned)  # type: ignore[arg-type]


def _ends(scale: LossScale) -> Ends:
    return scale.lower, scale.upper


def _alpha(alpha: object) -> float:
    return finite(_number(alpha, "alpha", SHARES[0]), "alpha", "alpha")


def _answer_of(row: Row) -> dict[str, Any]:
    """Return a system's answer from a row, with its surrogate or prediction if there is one."""
    return {name: value for name, value in row.items() if name not in {"id", "payload"}}


def score_of(score: object, scale: LossScale, systems: AnySystems | None) -> Score | None:
    """Return the score that was named for losses on a scale; None for none."""
    if score is None:
        return None
    rule = "its name and the better direction, as ('accuracy', 'higher')"
    if not isinstance(score, tuple | list) or len(score) != len(("name", "better")):
        raise InvalidValue(f"score must be {rule}", field="score", rule=rule, value=score)
    name, better = score
    return declared_score(name, better, scale, systems)


def _check_judge(judge: object) -> None:
    if judge is not None and not callable(judge):
        rule = "a function of an item, or None"
        raise InvalidValue(f"judge must be {rule}", field="judge", rule=rule, value=type(judge))


def _check_switch(name: str, value: object) -> None:
    """Refuse text and numbers, of which most would count as True."""
    if not isinstance(unboxed(value), bool):
        rule = "True or False"
        message = f"{name} must be {rule}, and is {shortened(value)}"
        raise InvalidValue(message, field=name, rule=rule, value=value)


def _number(value: object, name: str, scale: Ends) -> float | None:
    """Return a number on the scale, or None; text may have it in percent or points."""
    if isinstance(value, str):
        return number_on(scale, value, name)
    return None if value is None else finite(value, name, name)


def _budget(value: object) -> int | None:
    if value is None or value == "all":
        return None
    number = value if isinstance(value, bool | str) else finite(value, "budget", "budget")
    if isinstance(number, bool | str) or not number.is_integer():
        rule = 'a whole number, or "all"'
        message = f"budget must be {rule}, and is {shortened(number)}"
        raise InvalidValue(message, field="budget", rule=rule, value=number)
    return int(number)


def _check_stop(items: int, stops: Mapping[str, object] | None) -> None:
    """Refuse a session that would judge all items without anybody having said so."""
    if stops is not None and all(stop is None or stop == {} for stop in stops.values()):
        rule = f'{", ".join(stops)}; or budget="all" to judge all'
        message = (
            f"nothing would stop this session before all {items} items are judged: give {rule}"
        )
        raise InvalidValue(message, field="precision", rule=rule)
