"""What verification finds: one byte, one value, and what somebody with the key could try."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st

from celeus.core.canonical import canonical_json
from celeus.core.certificate.chain import chain_head, chain_start, strata_hex
from celeus.core.certificate.document import signed
from celeus.core.certificate.ed25519 import OF_DIGEST, public_of
from celeus.core.certificate.pool_checks import Evidence
from celeus.core.certificate.report import CHECKS
from celeus.core.certificate.verify import verify
from celeus.core.ledger import Draw, Observation
from celeus.core.plans.plan import Claim
from celeus.core.randomness import commitment
from tests.core.certifying import (
    KEY,
    OTHER_KEY,
    SESSION,
    Case,
    World,
    graded_world,
    opened,
    where_of,
    zero_one_world,
)
from tests.nightly import NIGHTLY

PUBLIC = public_of(KEY)
RANGES = ("range_lower", "range_upper")
Document = dict[str, Any]
Path = tuple[str | int, ...]


def _case(policy: str = "sharp", world: World | None = None) -> Case:
    case = opened(world or zero_one_world(120), policy)
    case.go(10, hidden=[4])
    case.draw(3)
    case.judge([12, 11, 13])
    case.amend(2, 1.0)
    case.change(0.09)
    case.go(4)
    case.draw(2)
    case.judge([19])
    return case


@pytest.fixture(scope="module")
def case() -> Case:
    case = _case()
    case.close()
    return case


@pytest.fixture(scope="module")
def data(case: Case) -> bytes:
    return case.certificate()


def _body(data: bytes) -> Document:
    body: Document = json.loads(data)
    del body["signature"]
    return body


def _resigned(body: Document) -> bytes:
    """As somebody with the key would sign it, the chain being computed again."""
    start = chain_start(SESSION, bytes.fromhex(body["plan_digest"]))
    head = chain_head(start, body["ledger"])
    return signed(body | {"chain": {"start": start.hex(), "head": head.hex()}}, KEY)


def test_one_changed_byte_anywhere_is_found(data: bytes) -> None:
    chance = np.random.default_rng(7)
    places = chance.choice(len(data), 400, replace=False)
    for place in [0, 1, len(data) - 1, *places.tolist()]:
        other = int(chance.integers(1, 256))
        changed = bytearray(data)
        changed[place] = (changed[place] + other) % 256
        report = verify(bytes(changed))
        assert not report.valid, (place, bytes(changed[place - 20 : place + 20]))
        assert report.difference is not None


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_cut_or_grown_file_is_found(data: bytes, drawn: st.DataObject) -> None:
    place = drawn.draw(st.integers(0, len(data)))
    extra = drawn.draw(st.binary(max_size=8))
    changed = data[:place] + extra + data[place:]
    assert verify(changed).valid is (changed == data)
    assert not verify(data[:place] + data[place + 1 :]).valid or place == len(data)


@pytest.mark.parametrize(
    "respelled",
    [
        lambda data: data + b"\n",
        lambda data: b" " + data,
        lambda data: b"\xef\xbb\xbf" + data,
        lambda data: data.replace(b'"final":true', b'"final": true'),
        lambda data: data.replace(b'"kind":"final"', b'"kind":"fin\\u0061l"', 1),
        lambda data: data.replace(b'"alpha":0.05', b'"alpha":0.050', 1),
        lambda data: data.replace(b'"alpha":0.05', b'"alpha":5e-2', 1),
        lambda data: data.replace(b'"budget":120', b'"budget":120.0', 1),
        lambda data: data.replace(b'"seen":0', b'"seen":-0', 1),
        lambda data: data.replace(b'"final":true', b'"final":true,"final":true', 1),
        lambda data: json.dumps(json.loads(data), separators=(",", ":")).encode()[:-1] + b" }",
        lambda data: json.dumps(dict(reversed(json.loads(data).items()))).encode(),
    ],
)
def test_any_other_spelling_of_the_same_document_is_found(
    data: bytes, respelled: Callable[[bytes], bytes]
) -> None:
    changed = respelled(data)
    assert changed != data
    assert where_of(verify(changed)).startswith(("byte ", "the document", "the file"))


def _leaves(value: object, path: Path = ()) -> Iterator[tuple[Path, object]]:
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _leaves(inner, (*path, name))
    elif isinstance(value, list) and value:
        for place, inner in enumerate(value):
            yield from _leaves(inner, (*path, place))
    else:
        yield path, value


def _put(value: Any, path: Path, new: object) -> Any:  # noqa: ANN401 -- JSON
    if not path:
        return new
    if isinstance(value, dict):
        return value | {str(path[0]): _put(value[path[0]], path[1:], new)}
    return [_put(one, path[1:], new) if at == path[0] else one for at, one in enumerate(value)]


def _other(value: object) -> object:
    """A value of the same kind that might stand there."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return value * 1.001 + 1e-3
    if isinstance(value, str) and value[-1:].isdigit() and value.isalnum():
        return value[:-1] + ("0" if value[-1] != "0" else "1")
    if isinstance(value, str):
        return value[:-14] + "7" + value[-13:] if value.endswith("+00:00") else value + "x"
    return 1


def _changed_everywhere(body: Document) -> Iterator[tuple[str, Document]]:
    """The document with one value changed: every member, and of lists the first few."""
    told: dict[str, int] = {}
    for path, value in _leaves(body):
        kind = ".".join("#" if isinstance(one, int) else one for one in path)
        told[kind] = told.get(kind, 0) + 1
        if told[kind] <= 2 and _other(value) != value:
            yield kind, _put(body, path, _other(value))


NOT_COMPUTED = {"issued_at"}
"""What follows from nothing else: the signature alone vouches for it."""


def test_one_changed_value_is_found_even_when_it_is_signed_again(case: Case, data: bytes) -> None:
    """By the same key: whoever holds it cannot change a value and leave the others."""
    missed: dict[bool, set[str]] = {False: set(), True: set()}
    kinds: set[str] = set()
    for kind, body in _changed_everywhere(_body(data)):
        kinds.add(kind)
        again = signed(body, KEY)
        for pool in (False, True):
            if verify(again, case.world.evidence if pool else None).valid:
                missed[pool].add(kind)
    assert len(kinds) > 90
    assert missed[True] == NOT_COMPUTED
    # A wider range is as valid as a narrow one; that it was not chosen later, the pool tells.
    wider = {f"rounds.{one}.#" for one in RANGES} | {f"rounds.other.{one}.#" for one in RANGES}
    assert missed[False] <= NOT_COMPUTED | wider


def test_a_document_signed_by_somebody_else_is_not_the_one_trusted(data: bytes) -> None:
    for _, body in _changed_everywhere(_body(data)):
        assert not verify(signed(body, OTHER_KEY), trusted=PUBLIC).valid
    assert not verify(signed(_body(data), OTHER_KEY), trusted=PUBLIC).valid


# What somebody with the key could do, everything that follows being computed again.


def test_swapped_draws_are_found_with_the_pool(case: Case, data: bytes) -> None:
    body = _body(data)
    first, second = (one for one in body["ledger"] if one["kind"] == "draw" and one["round"] <= 2)
    first["item"], second["item"] = second["item"], first["item"]
    again = _resigned(body)
    assert verify(again).valid, "which item it was says nothing without the pool"
    assert where_of(verify(again, case.world.evidence)) == "ledger[0].item"


def test_a_swap_before_the_seed_is_known_is_found_by_its_probabilities(case: Case) -> None:
    other = _case()
    body = _body(other.certificate(final=False))
    draws = [one for one in body["ledger"] if one["kind"] == "draw"]
    # In the first draw all items are equally probable
    first = draws[5]
    place = body["ledger"].index(first)
    second = next(one for one in draws[5:] if abs(one["q"] / first["q"] - 1.0) > 0.1)
    first["item"], second["item"] = second["item"], first["item"]
    again = _resigned(body)
    assert verify(again).valid
    assert where_of(verify(again, case.world.evidence)) == f"ledger[{place}].q"


def _with_draw(other: Callable[[Draw], Draw], rounds: int = 12) -> Case:
    """A session whose fifth draw was written down as another one, and went on from there."""
    case = opened(zero_one_world(120))
    case.go(4)
    case.enter(other(case.state.propose()), worker="ada")
    case.judge([5])
    case.go(rounds - 5)
    return case


def _doubled(draw: Draw) -> Draw:
    assert draw.strata_q is not None
    strata_q = np.where(draw.strata_q == draw.q, 2.0 * draw.q, draw.strata_q)
    return replace(draw, q=2.0 * draw.q, strata_q=strata_q)


def test_a_changed_probability_is_found_with_the_pool() -> None:
    case = _with_draw(_doubled)
    for data in (case.certificate(final=False), case.certificate()):
        assert verify(data).valid, "any probability may have been the one"
        assert where_of(verify(data, case.world.evidence)) == "ledger[8].q"


def test_a_probability_changed_in_the_ledger_alone_is_found_without_the_pool(data: bytes) -> None:
    body = _body(data)
    draw = body["ledger"][0]
    packed = np.frombuffer(bytes.fromhex(draw["strata_q"]), dtype="<f8")
    draw["strata_q"] = strata_hex(np.where(packed == draw["q"], 1.5 * draw["q"], packed))
    assert where_of(verify(_resigned(body))) == "ledger[0].strata_q"
    draw["q"] *= 1.5
    assert where_of(verify(_resigned(body))).startswith("rounds.")


def test_an_item_picked_by_hand_is_found_with_the_pool() -> None:
    """One of the same stratum: without the pool it is as likely as the other."""

    def preferred(draw: Draw) -> Draw:
        surrogate = zero_one_world(120).pool.columns["surrogate.0"]
        nearest = np.argsort(np.abs(surrogate - surrogate[draw.item]), kind="stable")
        return replace(draw, item=int(nearest[1]))

    case = _with_draw(preferred)
    assert verify(case.certificate()).valid
    assert where_of(verify(case.certificate(), case.world.evidence)) == "ledger[8].item"


def test_another_seed_is_found_by_the_commitment_and_else_by_the_draws(
    case: Case, data: bytes
) -> None:
    other = bytes(32)
    body = _body(data) | {"seed": other.hex()}
    assert where_of(verify(_resigned(body))) == "commitment"
    body["commitment"] = commitment(other)
    assert where_of(verify(_resigned(body))) == "commitment"
    plan = replace(case.plan, commitment=commitment(other))
    body |= {"plan": plan.to_dict(), "plan_digest": plan.digest}
    assert verify(_resigned(body)).valid, "the plan published at the opening was another one"
    assert where_of(verify(_resigned(body), case.world.evidence)) == "ledger[0].item"


def test_a_cut_ledger_is_found(data: bytes) -> None:
    body = _body(data)
    body["ledger"] = body["ledger"][:-1]
    assert where_of(verify(_resigned(body))) == "final"
    body |= {"final": False, "kind": "interim", "seed": None}
    assert verify(_resigned(body)).valid, "it is what an earlier interim certificate said"
    body["ledger"] = body["ledger"][:-1]
    assert where_of(verify(_resigned(body))) == "claim.rounds.judged"
    body["ledger"] = body["ledger"][:-4]
    assert where_of(verify(_resigned(body))) == "the length of rounds.q"
    body["ledger"] = [*body["ledger"][:3], *body["ledger"][4:]]
    assert where_of(verify(_resigned(body))) == "ledger[3].sequence"


def test_what_was_noted_as_the_session_went_shows_what_was_written_anew_since() -> None:
    """The cut, the other plan and the other loss that a file alone cannot show."""
    case = _lied("celeus")
    start = chain_start(SESSION, bytes.fromhex(case.plan.digest))
    noted = {at: chain_head(start, case.records[:at]) for at in (0, 12, 30)}
    told = verify(case.certificate(), noted=noted)
    assert told.valid, told.difference
    assert "noted" in told.checked
    shorter = opened(zero_one_world(120), "celeus")
    shorter.go(10)
    assert where_of(verify(shorter.certificate(), noted=noted)) == "the head after ledger[11]"
    assert where_of(verify(shorter.certificate(), noted={30: noted[30]})) == "the length of ledger"
    honest = opened(zero_one_world(120), "celeus")
    honest.go(15)
    assert where_of(verify(honest.certificate(), noted=noted)) == "the head after ledger[11]"
    planned = opened(zero_one_world(120), "celeus", Claim(alpha=0.1, precision=0.1))
    planned.go(15)
    assert where_of(verify(planned.certificate(), noted=noted)) == "the head after chain.start"


def test_a_changed_loss_is_found_by_what_followed_from_it(data: bytes) -> None:
    body = _body(data)
    judged = next(one for one in body["ledger"] if one.get("round") == 9 and "loss" in one)
    judged["loss"] = 1.0 - judged["loss"]
    assert where_of(verify(_resigned(body))).startswith("rounds.")


def _lied(policy: str, *, labels: bool = False) -> Case:
    """A session in which the loss of round 5 was another one than the judge's."""
    case = opened(zero_one_world(120), policy)
    case.labels = labels
    case.go(4)
    round_ = case.draw()[0].round
    lie = 1.0 - float(case.world.losses[case.state.rounds[4].draw.item])
    detail = {"label": int(1.0 - lie)} if labels else {}
    case.enter(Observation(round_, lie), **detail, worker="ada")
    case.go(10)
    return case


def test_a_loss_that_does_not_follow_from_its_label_is_found_with_the_pool() -> None:
    case = _lied("celeus", labels=True)
    assert verify(case.certificate()).valid
    assert where_of(verify(case.certificate(), case.world.evidence)) == "ledger[9].loss"


def test_a_loss_changed_afterwards_is_found_where_later_draws_rest_on_it() -> None:
    case = _lied("sharp")
    body, told = _body(case.certificate()), _body(_lied("sharp").certificate())
    honest = float(case.world.losses[case.state.rounds[4].draw.item])
    # All is written anew for the other loss, but the draws, which were handed out already.
    anew = opened(zero_one_world(120))
    for record in told["ledger"][:-1]:
        if record["kind"] == "draw":
            strata_q = np.frombuffer(bytes.fromhex(record["strata_q"]), dtype="<f8")
            round_, item, seen = record["round"], record["item"], record["seen"]
            anew.enter(Draw(round_, item, record["q"], seen, strata_q), worker="ada")
        else:
            loss = honest if record["round"] == 5 else record["loss"]
            anew.enter(Observation(record["round"], loss), worker="ada")
    forged = anew.certificate()
    assert body["claim"] != _body(forged)["claim"]
    assert verify(forged).valid
    assert where_of(verify(forged, case.world.evidence)) == "ledger[10].q"


@pytest.mark.parametrize("end", ["lower", "upper"])
@pytest.mark.parametrize("by", [-0.01, 0.01])
def test_a_widened_or_narrowed_interval_is_found(data: bytes, end: str, by: float) -> None:
    body = _body(data)
    body["claim"]["interval"][end] += by
    assert where_of(verify(signed(body, KEY))) == f"claim.interval.{end}"
    body["rounds"][end][-1] += by
    assert where_of(verify(signed(body, KEY))).startswith(f"rounds.{end}, round ")


@pytest.mark.parametrize(
    ("field", "value"),
    [("alpha", 0.1), ("alpha1", 0.025), ("cell", 1e-3), ("budget", 119), ("upper", 2.0)],
)
def test_a_changed_plan_is_found(data: bytes, field: str, value: float) -> None:
    body = _body(data)
    body["plan"][field] = value
    assert where_of(verify(_resigned(body))).startswith("plan")


def test_a_bound_that_does_not_fit_the_claim_is_found() -> None:
    case = opened(zero_one_world(), "celeus", Claim("population", precision=0.3))
    body = _body(case.certificate(final=False))
    body["plan"]["alpha1"] = body["plan"]["alpha"]
    assert where_of(verify(_resigned(body))) == "plan.alpha1"
    body["plan"]["bound"]["alpha2"] = 0.0
    assert where_of(verify(_resigned(body))).startswith("plan.alpha2")


def test_a_change_of_fixed_settings_is_found() -> None:
    case = opened(zero_one_world(), claim=Claim(precision=0.2, fixed=True))
    case.go(5)
    case.close()
    assert verify(case.certificate()).valid
    case = opened(zero_one_world(), claim=Claim(precision=0.2, fixed=True))
    case.go(5)
    case.change(0.1)
    found = verify(case.certificate(final=False))
    assert where_of(found).endswith(".detail of a fixed session")


def test_sessions_of_the_pool_are_told_by_whoever_signed_and_add_up(data: bytes) -> None:
    body = _body(data)
    assert verify(data).pool_sessions == body["pool_sessions"]
    body["pool_sessions"] |= {"number": 3, "total": 4, "others_open": 3}
    assert verify(signed(body, KEY)).valid
    for name, value in (("number", 5), ("number", 0), ("total", 3), ("others_open", 1)):
        wrong = body | {"pool_sessions": body["pool_sessions"] | {name: value}}
        assert where_of(verify(signed(wrong, KEY))).startswith("pool_sessions")


def test_other_items_are_found(case: Case, data: bytes) -> None:
    lines = case.world.lines
    assert "items" in verify(data, items=lines).checked
    assert "items" in verify(data).unchecked
    other = lines[0].replace(b'"n": 0', b'"n": 1')
    assert other != lines[0]
    for wrong in ([other, *lines[1:]], lines[:-1], [lines[1], lines[0], *lines[2:]], []):
        assert where_of(verify(data, items=wrong)) == "pool.items_digest"
    twice = b'{"id": "item 2", "payload": 7, "payload": {"n": 2}}'
    for junk in (twice, b"", b"7", b"{}", b"\xff", b"[" * 100_000):
        report = verify(data, items=[*lines[:2], junk])
        assert report.line.startswith("cannot be checked: the file of items is line 3: ")


NO_TIMES = (
    "9999-99-99T99:99:99.999999+00:00",
    "0000-01-01T00:00:00.000000+00:00",
    "2026-02-29T00:00:00.000000+00:00",
    "2026-11-21T24:00:00.000000+00:00",
    "\u0662\u0660\u0662\u0666-11-21T00:00:00.000000+00:00",
)


@pytest.mark.parametrize("at", NO_TIMES)
def test_a_time_that_no_calendar_has_is_found(data: bytes, at: str) -> None:
    body = _body(data)
    assert where_of(verify(_resigned(_put(body, ("issued_at",), at)))) == "issued_at"
    assert where_of(verify(_resigned(_put(body, ("ledger", 3, "at"), at)))) == "ledger[3].at"


def test_a_certificate_from_before_its_last_event_is_found(data: bytes) -> None:
    body = _body(data)
    last = body["ledger"][-1]["at"]
    assert verify(signed(body | {"issued_at": last}, KEY)).valid
    early = signed(body | {"issued_at": "2001-01-01T00:00:00.000000+00:00"}, KEY)
    assert where_of(verify(early)) == "issued_at"


def test_nothing_is_superseded_where_nothing_was_corrected(data: bytes) -> None:
    case = opened(zero_one_world())
    case.go(5)
    case.close()
    older = {"supersedes": "ab" * 32}
    assert where_of(verify(signed(_body(case.certificate()) | older, KEY))) == "supersedes"
    assert verify(signed(_body(data) | older, KEY)).valid


@pytest.mark.parametrize(
    ("kind", "detail", "at"),
    [
        ("unjudgeable", {"unjudgeable": "torn", "loss": 0}, "loss"),
        ("unjudgeable", {"unjudgeable": "torn", "label": 0}, "label"),
        ("observation", {"worker": "ada", "unjudgeable": "no"}, "unjudgeable"),
        ("observation", {"worker": "ada", "loss": 0}, "loss"),
        ("draw", {"worker": "ada", "loss": 0}, "loss"),
        ("draw", {"worker": "ada", "label": 0}, "label"),
        ("draw", {"worker": "ada", "unjudgeable": "no"}, "unjudgeable"),
        ("amendment", {"author": "ada", "reason": "typo", "unjudgeable": "no"}, "unjudgeable"),
        ("amendment", {"author": "ada", "reason": "typo", "runs": 99}, "runs"),
        ("amendment", {"author": "ada"}, "reason"),
        ("amendment", {"reason": "typo"}, "author"),
        ("amendment", {"author": "ada", "reason": 7}, "reason"),
        ("amendment", None, "author"),
    ],
)
def test_words_that_contradict_their_event_are_found(
    data: bytes, kind: str, detail: Document | None, at: str
) -> None:
    body = _body(data)
    n, record = next((n, one) for n, one in enumerate(body["ledger"]) if one["kind"] == kind)
    record.pop("detail")
    record |= {} if detail is None else {"detail": detail}
    assert where_of(verify(_resigned(body))) == f"ledger[{n}].detail.{at}"


def test_a_key_that_everybody_can_sign_for_signs_nothing(data: bytes) -> None:
    body = _body(data)
    # The neutral point: R = the same and S = 0 is a signature of it under any message
    public = (1).to_bytes(32, "little").hex()
    value = (1).to_bytes(32, "little").hex() + bytes(32).hex()
    forged = body | {"signature": {"algorithm": OF_DIGEST, "public_key": public, "value": value}}
    assert where_of(verify(canonical_json(forged))) == "signature.public_key"


def test_no_other_way_of_signing_is_taken(data: bytes) -> None:
    document: Document = json.loads(data)
    document["signature"]["algorithm"] = "Ed25519"
    assert where_of(verify(canonical_json(document))) == "signature.algorithm"


def test_times_that_run_backwards_are_found(data: bytes) -> None:
    body = _body(data)
    assert verify(_resigned(body)).valid
    body["ledger"][7]["at"] = body["ledger"][6]["at"]
    assert verify(_resigned(body)).valid, "events of one moment"
    body["ledger"][7]["at"] = body["ledger"][5]["at"]
    assert where_of(verify(_resigned(body))) == "ledger[7].at"


def test_an_assumption_left_out_is_found(data: bytes) -> None:
    body = _body(data)
    assert len(body["claim"]["assumptions"]) == 4
    body["claim"]["assumptions"].pop()
    assert where_of(verify(signed(body, KEY))) == "the length of claim.assumptions"


def test_another_pool_is_found_by_its_columns(case: Case, data: bytes) -> None:
    for other in (graded_world(120), zero_one_world(120, seed=9), zero_one_world(121)):
        assert "pool." in where_of(verify(data, other.evidence))
    columns = case.world.evidence.columns
    surrogate = columns["surrogate.0"].copy()
    surrogate[17] = np.nextafter(surrogate[17], 1.0)
    changed = replace(case.world.evidence, columns={**columns, "surrogate.0": surrogate})
    assert where_of(verify(data, changed)).startswith("pool.columns")
    surrogate[17] = np.nan
    assert where_of(verify(data, changed)) == "pool.columns"
    renamed = Evidence(columns, ("a",), case.world.evidence.items_digest)
    assert where_of(verify(data, renamed)) == "the length of pool.groups"


def test_surrogate_columns_are_weighed_again_by_whoever_has_the_pool() -> None:
    one = zero_one_world(120)
    noise = np.random.default_rng(5).random((2, 120))
    columns = {"surrogate.0": one.losses * 0.9, "surrogate.1": noise[0], "surrogate.2": noise[1]}
    pool = replace(one.pool, columns={"prediction": one.pool.columns["prediction"], **columns})
    case = _case(world=replace(one, pool=pool))
    report = verify(case.certificate(), case.world.evidence)
    assert report.valid, report.line
    assert "surrogates" in report.checked


def test_every_check_is_either_made_or_has_a_reason_why_not(case: Case, data: bytes) -> None:
    broken = _body(data)
    broken["ledger"][3]["loss"] = 0.5
    for report in (
        verify(data),
        verify(data, case.world.evidence, PUBLIC),
        verify(signed(broken, KEY)),
        verify(b"no certificate"),
    ):
        assert set(report.checked) | set(report.unchecked) >= set(CHECKS)
        assert not set(report.checked) & set(report.unchecked)
        assert rfc8785.dumps(report.to_dict())
        assert "\n" not in report.line


DEEP = 100_000
HOSTILE = [
    b"",
    b"\x00",
    b"\xff\xfe",
    b"null",
    b"[]",
    b"{}",
    b'"text"',
    b"1e999",
    b"-0",
    b"NaN",
    b'{"a":NaN}',
    b'{"a":Infinity}',
    b"[" * DEEP,
    b'{"a":' * DEEP,
    b"[" * DEEP + b"]" * DEEP,
    b'{"a":' * 900 + b"1" + b"}" * 900,
    b'{"a":"\\ud800"}',
    b'{"\\ud800":1}',
    b"9" * 10_000,
    b'{"a":' + b"9" * 5_000 + b"}",
    b'{"a":1,"a":2}',
]


@pytest.mark.parametrize("hostile", HOSTILE)
def test_bytes_that_are_no_certificate_get_a_report(hostile: bytes) -> None:
    report = verify(hostile)
    assert not report.valid
    assert report.difference is not None
    assert len(report.line) < 1000


JUNK: list[object] = [
    None,
    True,
    -1,
    0.5,
    1e300,
    -1e300,
    1e-300,
    2**53 - 1,
    "",
    "x" * 1000,
    "\x00",
    [],
    {},
    [1, 2],
    {"kind": "draw"},
    [[[[]]]],
]


def test_junk_in_any_member_gets_a_report(case: Case, data: bytes) -> None:
    body, seen = _body(data), set()
    chance = np.random.default_rng(3)
    for path, _ in _leaves(body):
        kind = ".".join("#" if isinstance(one, int) else one for one in path)
        for upto in range(1, len(path) + 1):
            if (kind, upto) in seen:
                continue
            seen.add((kind, upto))
            for place in chance.choice(len(JUNK), 2 if NIGHTLY else 1, replace=False):
                again = signed(_put(body, path[:upto], JUNK[place]), KEY)
                verify(again, case.world.evidence)


EXTREMES: list[Document] = [
    {"items": 2**31 - 1},
    {"items": 10**9, "budget": 10**9},
    {"precision": 1e-300},
    {"precision": 5e-4},
    {"alpha": 1e-300},
    {"alpha": 5e-324},
    {"alpha": 0.9999999999999999},
    {"lower": -1e308, "upper": 1e308},
    {"lower": 0.0, "upper": 5e-324},
    {"budget": 0},
    {"target": "population"},
]


@pytest.mark.parametrize("extreme", EXTREMES, ids=str)
@pytest.mark.parametrize("policy", ["sharp", "celeus", "uniform"])
def test_extreme_plans_get_a_report_in_time(policy: str, extreme: Document) -> None:
    """Signed and consistent as far as anybody can make them."""
    body = _body(_case(policy).certificate(final=False))
    body["plan"] |= extreme
    if "items" in extreme:
        body["pool"]["items"] = extreme["items"]
    body["pool"]["loss"] |= {end: body["plan"][end] for end in ("lower", "upper")}
    report = verify(_resigned(body))
    assert not report.valid


def test_what_is_denser_than_a_certificate_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Objects without members take fifty times the memory of their bytes."""
    read: list[bytes] = []
    monkeypatch.setattr("celeus.core.certificate.parsing.json.loads", read.append)
    beginning = b'{"format":"celeus-certificate-2","chain":['
    for value in (b"{}", b"0"):
        junk = beginning + b",".join([value] * 10_000) + b"]}"
        assert (where_of(verify(junk)), read) == ("the document", [])


def _held() -> Case:
    """Round 8 is skipped while later draws are out."""
    case = opened(zero_one_world(120))
    case.go(6)
    case.draw(5)
    case.judge([7, 8, 9, 10, 11], hidden=[8])
    case.go(8)
    case.close()
    return case


def test_a_skip_after_a_later_draw_takes_no_assumption() -> None:
    report = verify(_held().certificate())
    assert report.valid, report.difference
    assert [one["code"] for one in (report.claim or {})["assumptions"]] == ["these_answers"]


def test_an_assumption_that_the_claim_does_not_rest_on_is_found() -> None:
    body = _body(_held().certificate())
    body["claim"]["assumptions"].append({"code": "one_version", "text": "?"})
    assert where_of(verify(_resigned(body))) == "the length of claim.assumptions"


def test_a_judgement_moved_before_a_later_draw_is_found_with_the_pool() -> None:
    """What a draw and its bet rest on follows from the place of events in the ledger."""
    case = _held()
    body = _body(case.certificate())
    ledger = body["ledger"]
    at = next(i for i, one in enumerate(ledger) if one["kind"] == "draw" and one["round"] == 11)
    draw, judged = ledger[at : at + 2]
    assert judged["kind"] == "observation"
    first, second = ({name: one[name] for name in ("sequence", "at")} for one in (draw, judged))
    ledger[at : at + 2] = [judged | first, draw | second]
    assert where_of(verify(_resigned(body))) == f"ledger[{at + 1}].seen"
    ledger[at + 1]["seen"] = body["rounds"]["seen"][10] = at + 1
    found = where_of(verify(_resigned(body), case.world.evidence))
    assert found.startswith(f"ledger[{at + 1}]")
