"""Every operation as a flow: what to send, and what the answer means."""

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, TypeVar, cast

from celeus.client.exchange import (
    TRIES,
    Answer,
    Flow,
    LostAnswer,
    Request,
    checked,
    created,
    encoded,
    get,
    member,
    once,
    pause_after,
    post,
    sent,
)
from celeus.client.fingerprint import LOG, Fingerprint, check_judge, taken_up
from celeus.client.label_loop import JudgeTask
from celeus.client.reading import read
from celeus.client.refusals import Problem
from celeus.client.results import Plan, Pool, Status, Tombstone
from celeus.client.rows import run_file, upload_of
from celeus.errors import InvalidValue
from celeus.units import SHARES, number_on

T = TypeVar("T")
POOLS, SESSIONS, TOMBSTONES = "/v1/pools", "/v1/sessions", "/v1/tombstones"
PLAN_SECONDS = 150.0
"""A service gives a plan up after two minutes."""
PUSH_SECONDS = 600.0
"""A service computes a long run again before it answers."""
JUDGE = "judge-"
"""Beginning of the tag that holds the fingerprint of a session's last judge."""
MOST_TAGS = 12
MOST_SOUGHT = 200
"""Characters by which a session is sought."""
AMOUNTS = ("alpha", "precision", "group_precision", "margin", "risk", "threshold")
"""Members of an opening that are numbers on the scale, and may be given as text."""
FILE_MEMBERS = {
    "score": {"name": "score_name", "better": "score_better"},
    "based_on": {
        "session": "based_on",
        "labels_seen": "labels_seen",
        "answer": "earlier_answer",
        "system": "earlier_system",
    },
}
"""Names of a new pool's members where they travel beside a file."""
LOSS_MEMBERS = ("kind", "lower", "upper")
ANSWERS = ("metric", "filter", "answer", "better", "scale", "missing", "repeats", "rows")
"""Members that answer a question about a file by its name."""


def pool_form(name: str, **members: Any) -> dict[str, Any]:  # noqa: ANN401 -- members of the contract
    """The members of a new pool; a loss may be its kind alone, several systems their names.

    A loss may be the two ends of a bounded one, and a score its name and direction, as for runs in
    process.
    """
    form: dict[str, Any] = {name: value for name, value in members.items() if value is not None}
    if isinstance(form.get("loss"), str):
        form["loss"] = {"kind": form["loss"]}
    for member_name, parts in (("loss", ("lower", "upper")), ("score", ("name", "better"))):
        value = form.get(member_name)
        if isinstance(value, tuple | list) and len(value) == len(parts):
            form[member_name] = dict(zip(parts, value, strict=True))
            form[member_name] |= {"kind": "bounded"} if member_name == "loss" else {}
    systems = form.get("systems")
    if isinstance(systems, Iterable) and not isinstance(systems, Mapping | str):
        form["systems"] = {"names": list(systems)}
    if "loss" not in form and "metrics" not in form:
        form["loss"] = {"kind": "zero_one"}
    return {"name": name, **form}


def create_filled_pool(form: Mapping[str, Any], items: object) -> Flow[Pool]:
    """A sealed pool with all its items, or none at all: one request makes it.

    Instructions, which are no part of what is sealed, follow in another one: they may be long.
    """
    document = yield from _sent_items("/v1/pool-files", _beside_file(form), items)
    if "instructions" not in form:
        return read(Pool, member(document, "pool"))
    path = f"{POOLS}/{member(document, 'pool')['id']}"
    change = {"instructions": form["instructions"]}
    return read(Pool, (yield from post(path, change, "PATCH")))


def _beside_file(form: Mapping[str, Any]) -> dict[str, Any]:
    """The members of a new pool as the query of a file's upload."""
    query: dict[str, Any] = {"name": form["name"], **_members(form, "loss", *LOSS_MEMBERS)}
    for of, names in FILE_MEMBERS.items():
        members = _members(form, of, *names)
        query |= {names[name]: value for name, value in members.items()}
    systems = _members(form, "systems", "a", "b", "names", "normalisation")
    query |= {"system_a": systems.get("a"), "system_b": systems.get("b")}
    query |= {"system": systems.get("names"), "normalisation": systems.get("normalisation")}
    tables = ("metrics", "levels", "mapping")
    query |= {name: json.dumps(form[name]) for name in tables if name in form}
    query |= file_answers(form)
    return {name: value for name, value in query.items() if value is not None}


def file_answers(members: Mapping[str, Any]) -> dict[str, Any]:
    """The members that answer questions about a file, as the service and the intake take them."""
    answers = {name: members[name] for name in ANSWERS if members.get(name) is not None}
    ways = {"better": _texts, "missing": _texts, "scale": _ends}
    return {name: ways[name](answers[name]) if name in ways else answers[name] for name in answers}


def _texts(values: object) -> list[str]:
    """Return one value, or several, as texts; values of columns as `COLUMN=VALUE`."""
    if isinstance(values, Mapping):
        return [f"{name}={value}" for name, value in values.items()]
    if isinstance(values, Iterable) and not isinstance(values, str):
        return [f"{value}" for value in values]
    return [f"{values}"]


def _ends(scale: object) -> list[str]:
    """The ends of a scale, `(1, 5)`; or of the scales of columns by their names."""
    if isinstance(scale, Mapping):
        return [f"{name}={_ends(ends)[0]}" for name, ends in scale.items()]
    if isinstance(scale, Sequence) and not isinstance(scale, str):
        return [" to ".join(map(str, scale))]
    return [str(scale)]


def _members(form: Mapping[str, Any], name: str, *known: str) -> Mapping[str, Any]:
    """Return the members of a member; refuses any that is not ``known``, as none is sent."""
    value = form.get(name, {})
    if not isinstance(value, Mapping):
        rule = "a mapping of its members"
        raise InvalidValue(f"{name} must be {rule}", field=name, rule=rule, value=value)
    for unknown in value.keys() - {*known}:
        rule = f"one of {', '.join(known)}"
        message = f"{name} has no member {unknown!r}; its members are {', '.join(known)}"
        raise InvalidValue(message, field=f"{name}.{unknown}", rule=rule, value=unknown)
    return value


def add_items(pool: str, items: object) -> Flow[int]:
    """Add items to an open pool, all of them or none; return their number."""
    document = yield from _sent_items(f"{POOLS}/{pool}/items", {}, items)
    added: int = member(document, "added")
    return added


def _sent_items(path: str, query: Mapping[str, Any], items: object) -> Flow[Any]:
    with upload_of(items) as upload:
        headers = {"Content-Type": upload.media} | once()
        return (yield from sent(Request("POST", path, query, headers, upload.parts))).document()


def get_pool(pool: str) -> Flow[Pool]:
    """The pool."""
    return read(Pool, (yield from get(f"{POOLS}/{pool}")))


def delete_session(session: str, purge: str | None) -> Flow[Tombstone]:
    """Return the tombstone of a session; the same when it was deleted already."""
    query = {} if purge is None else {"purge": purge}
    try:
        document = (yield from sent(Request("DELETE", f"{SESSIONS}/{session}", query))).document()
    except Problem as problem:
        if problem.code != "session_not_found":
            raise
        # By a request whose answer was lost, perhaps
        document = yield from get(f"{TOMBSTONES}/{session}")
    return read(Tombstone, document)


def plan(pool: Pool | str, asked: Mapping[str, Any]) -> Flow[Plan]:
    """Return the labels that a session would take."""
    path, headers = f"{POOLS}/{id_of(pool)}/planning", {"Content-Type": "application/json"}
    body = encoded((yield from _in_numbers(pool, asked)), "the plan")
    request = Request("POST", path, headers=headers, body=body, seconds=PLAN_SECONDS)
    return read(Plan, (yield from sent(request)).document())


def open_session(pool: Pool | str, opening: Mapping[str, Any]) -> Flow[Status]:
    """A new session on a sealed pool."""
    form = {"pool_id": id_of(pool), **(yield from _in_numbers(pool, opening))}
    return read(Status, (yield from created(SESSIONS, form)))


def resume_session(
    pool: Pool | str, name: str, opening: Mapping[str, Any], *, fresh: bool = False
) -> Flow[Status]:
    """The session of this name that is not closed, or a new one; refuses one that is different.

    With ``fresh`` the one that is there is closed.
    """
    given = json.loads(encoded((yield from _in_numbers(pool, opening)), "the opening"))
    tag = _settings_tag(given)
    query: dict[str, Any] = {"q": name[:MOST_SOUGHT]}
    while True:
        found, query["after"] = yield from page(Status, SESSIONS, query)
        for status in found:
            if status.name == name and status.state != "closed":
                place = f"{status.id}, named {name},"
                if fresh:
                    yield from change_session(status.id, {"state": "closed"})
                    LOG.warning("celeus: begun anew: %s is closed", place)
                    continue
                yield from _check_resumed(status, pool, tag)
                taken_up(status.rounds.judged, place.rstrip(","), status.active_at)
                return status
        if query["after"] is None:
            tags = given.get("tags", [])
            form = {**given, "name": name}
            if isinstance(tags, list):
                form["tags"] = [*tags, tag]
            return (yield from open_session(pool, form))


def _in_numbers(pool: Pool | str, given: Mapping[str, Any]) -> Flow[Mapping[str, Any]]:
    """The settings of a session or a plan with text such as "10%" as numbers on the pool's scale.

    The pool is asked for its scale only where there is such text.
    """
    found: list[str] = []
    _amounts(given, lambda text, *_: found.append(text))
    if not found:
        return given
    known = pool if isinstance(pool, Pool) else (yield from get_pool(id_of(pool)))
    scales = {name: (metric.lower, metric.upper) for name, metric in known.metrics.items()}
    loss = known.loss
    every = [*scales.values()] if loss is None else [(loss.lower, loss.upper)]
    # One text for all metrics is refused where it means nothing to one of them
    of_all = next((scale for scale in every if scale not in SHARES), every[0])

    def number(text: str, field: str, metric: str | None) -> float:
        # The service refuses a metric that the pool has not
        scale = SHARES[0] if field == "alpha" else scales.get(metric or "", of_all)
        return number_on(scale, text, field)

    return cast("Mapping[str, Any]", _amounts(given, number))


def _amounts(
    given: object,
    number: Callable[[str, str, str | None], object],
    field: str = "",
    metric: str | None = None,
) -> object:
    """Settings with the result of ``number`` in place of every threshold or width that is text.

    It is called with the text, its field, and the metric that it is for, if that is named.
    """
    if isinstance(given, Mapping):
        if field in AMOUNTS:
            return {name: _amounts(value, number, field, name) for name, value in given.items()}
        metric = given.get("metric")
        return {name: _amounts(value, number, name, metric) for name, value in given.items()}
    if isinstance(given, list | tuple):
        return [_amounts(value, number, field, metric) for value in given]
    return number(given, field, metric) if isinstance(given, str) and field in AMOUNTS else given


def _settings_tag(given: Mapping[str, Any]) -> str:
    """A tag that distinguishes settings, whatever they are and however they are changed later."""
    settings = {name: value for name, value in given.items() if name != "planned_labels"}
    text = json.dumps(settings, sort_keys=True)
    return f"settings-{sha256(text.encode()).hexdigest()[:16]}"


def _check_resumed(status: Status, pool: Pool | str, tag: str) -> Flow[None]:
    """Refuse to go on with a session of other items, or with other settings."""
    rule = "what the session was opened with, or another name"
    if status.pool_id != id_of(pool):
        theirs, ours = (yield from get_pool(status.pool_id)), (yield from get_pool(id_of(pool)))
        if theirs.digest != ours.digest:
            message = f"{status.id}, named {status.name}, was opened with other items"
            raise InvalidValue(message, field="pool_id", rule=rule, value=id_of(pool))
    if tag not in status.tags:
        message = (
            f"{status.id}, named {status.name}, was opened with other settings, or without resume:"
            f" it has no tag {tag}"
        )
        raise InvalidValue(message, field="resume", rule=rule, value=status.name)


def take_up(session: str, judge: Fingerprint, *, keep: bool) -> Flow[None]:
    """The session has the tag of this judge; refuses one that is not the last unless ``keep``."""
    status = yield from get_session(session)
    tags = {tag: tag.removeprefix(JUDGE) for tag in status.tags if tag.startswith(JUDGE)}
    if status.rounds.judged:
        check_judge(judge, next(iter(tags.values()), None), keep=keep)
    others = [tag for tag in status.tags if tag not in tags]
    if [*tags] != [f"{JUDGE}{judge}"] and len(others) < MOST_TAGS:
        yield from change_session(session, {"tags": [*others, f"{JUDGE}{judge}"]})


def push(file: str | os.PathLike[str]) -> Flow[Status]:
    """The session that a run's file makes; the same however often it is sent."""
    with run_file(file) as upload:
        headers = {"Content-Type": upload.media}
        path = "/v1/session-files"
        request = Request("POST", path, {}, headers, upload.parts, seconds=PUSH_SECONDS)
        return read(Status, (yield from sent(request)).document())


def get_session(session: str) -> Flow[Status]:
    """Return the status of a session."""
    return read(Status, (yield from get(f"{SESSIONS}/{session}")))


def change_session(session: str, settings: Mapping[str, Any]) -> Flow[Status]:
    """Return the status of a session with its new settings."""
    precision = settings.get("precision")
    if isinstance(precision, str):
        scale = (yield from get_session(session)).scale
        ends = SHARES[0] if scale is None else (scale.lower, scale.upper)
        settings = {**settings, "precision": number_on(ends, precision, "precision")}
    return read(Status, (yield from post(f"{SESSIONS}/{session}", settings, "PATCH")))


def task_of(session: str) -> Flow[JudgeTask]:
    """The facts a session's judge needs."""
    return JudgeTask.of((yield from get(f"{SESSIONS}/{session}/task")))


def body_at(path: str, method: str = "GET") -> Flow[bytes]:
    """An answer as it is."""
    return (yield from sent(Request(method, path))).body


def page(kind: type[T], path: str, query: Mapping[str, Any]) -> Flow[tuple[list[T], Any]]:
    """Some results, and what to send as `after` for those behind them; None: that was all."""
    document = yield from get(path, **query)
    return [read(kind, entry) for entry in member(document, "data")], member(document, "next")


def id_of(thing: object) -> str:
    """The id of a pool or session, given as itself or as its id."""
    found = getattr(thing, "id", thing)
    if not isinstance(found, str):
        rule = "a pool, a session, or an id"
        raise InvalidValue(f"expected {rule}", field="id", rule=rule, value=found)
    return found


class EventStream:
    """The place in a stream of events; it ends when the session is closed."""

    def __init__(self, session: str) -> None:
        self.path = f"{SESSIONS}/{session}/stream"
        self.position: str | None = None
        self.failures = 0
        self.closed = False

    def request(self) -> Request:
        """Return the request for the events after those that came."""
        headers = {"Accept": "text/event-stream"}
        if self.position is not None:
            headers["Last-Event-ID"] = self.position
        return Request("GET", self.path, headers=headers)

    def event(self, position: str, data: str) -> Status:
        """Return the session's status from an event."""
        self.position = position or self.position
        status = read(Status, member(json.loads(data), "session"))
        self.closed = status.state == "closed"
        return status

    def pause(self, outcome: Answer | LostAnswer) -> float:
        """Seconds until the stream is asked for again; raises an error that will not pass."""
        self.failures += 1
        wait = pause_after(outcome, self.failures)
        if wait is None or self.failures == TRIES:
            checked(outcome)
        return wait or 0.0
