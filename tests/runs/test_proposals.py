"""`celeus.Proposals`: a gate for hill climbing, whose account outlives the program."""

import json
import os
import pickle
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

import celeus
from celeus import seeds
from celeus.errors import Busy, LedgerBroken
from celeus.runs.ledger_file import AppendedFile
from celeus.runs.proposals import Item, Proposals

ITEMS: list[dict[str, Any]] = [{"id": f"q{number}", "payload": number} for number in range(120)]
ALPHA = 0.05


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own to work in, and a seed for every session."""
    monkeypatch.chdir(tmp_path)
    count = iter(range(1000))
    monkeypatch.setattr(seeds, "new_seed", lambda: next(count).to_bytes(32, "big"))
    return tmp_path


def wrong_below(share: int) -> dict[str, str]:
    """Outputs of which so many in a hundred are wrong, among the first items of every ten."""
    return {
        str(item["id"]): "wrong" if item["payload"] % 10 < share // 10 else "right"
        for item in ITEMS
    }


def judge(item: Item, output: object) -> float:
    assert item.id == f"q{item.payload}"
    return float(output == "wrong")


def gate(incumbent: object = None, **settings: Any) -> Proposals:  # noqa: ANN401
    start = wrong_below(50) if incumbent is None else incumbent
    return celeus.Proposals(ITEMS, judge, incumbent=start, margin=0.1, **settings)


def test_a_better_candidate_is_accepted_at_no_cost_and_is_the_next_incumbent() -> None:
    with gate() as climb:
        first = climb.propose(wrong_below(20))
        assert first.accepted
        assert 0.0 <= first.lower <= 0.3 <= first.upper
        assert first.level == pytest.approx(ALPHA / 2)
        assert climb.incumbent == wrong_below(20)
        left = climb.budget()
        assert (left.left, left.level, left.proposals, left.accepted) == (ALPHA, ALPHA / 2, 1, 1)
        assert left.judged == first.judged


def test_a_worse_candidate_is_rejected_early_and_the_next_has_a_smaller_level() -> None:
    with gate() as climb:
        worse = climb.propose(wrong_below(80))
        assert not worse.accepted
        assert worse.lower < -0.3 < worse.upper
        assert worse.judged < 60
        assert climb.propose(wrong_below(60)).level == pytest.approx(ALPHA / 6)
        assert climb.budget().left == pytest.approx(ALPHA / 3)
        assert climb.incumbent == wrong_below(50)
        assert str(worse).startswith("proposal 1 rejected: better by -")


def test_only_rounded_figures_are_shown() -> None:
    with gate() as climb:
        shown = climb.propose(wrong_below(80))
        assert all(
            round(1000 * end) == pytest.approx(1000 * end) for end in (shown.lower, shown.upper)
        )


def test_the_account_goes_on_after_a_restart_with_the_incumbent_accepted_last() -> None:
    with gate() as climb:
        climb.propose(wrong_below(80))
        climb.propose(wrong_below(20))
        before = climb.budget()
    with pytest.raises(celeus.Refusal, match="The incumbent is not the one") as refused:
        gate()
    assert refused.value.rule == "the candidate accepted last, to go on where the gate was"
    with gate(wrong_below(20)) as climb:
        assert climb.budget() == before


@pytest.mark.parametrize(
    ("field", "settings"),
    [
        ("alpha", {"alpha": 0.1}),
        ("loss", {"loss": (0, 2)}),
        ("score", {"score": ("accuracy", "higher")}),
    ],
)
def test_other_settings_are_no_way_to_a_new_account(field: str, settings: dict[str, Any]) -> None:
    gate().close()
    with pytest.raises(celeus.Refusal, match=f"a gate with other {field}"):
        gate(**settings)


def test_items_in_another_order_have_the_same_account(caplog: pytest.LogCaptureFixture) -> None:
    with gate() as climb:
        climb.propose(wrong_below(80))
        before = climb.budget()
    assert ["a new account of alpha begins in" in line for line in caplog.messages] == [True]
    with celeus.Proposals(ITEMS[::-1], judge, incumbent=wrong_below(50), margin=0.1) as climb:
        assert climb.budget() == before


def test_another_judge_has_an_account_of_its_own(folder: Path) -> None:
    def mild(_: Item, output: object) -> float:
        return float(output == "very wrong")

    gate().close()
    settings: dict[str, Any] = {"incumbent": wrong_below(50), "margin": 0.1}
    with pytest.raises(celeus.Refusal, match=r"the judge changed .* another file"):
        celeus.Proposals(ITEMS, mild, **settings)
    celeus.Proposals(ITEMS, mild, file=folder / "mild.jsonl", **settings).close()


def test_a_proposal_that_was_not_brought_to_its_end_is_spent(folder: Path) -> None:
    asked: list[str] = []

    def broken(item: Item) -> str:
        asked.append(item.id)
        if len(asked) > 3:
            raise ConnectionError
        return "right"

    with gate() as climb:
        with pytest.raises(ConnectionError):
            climb.propose(broken)
        assert climb.budget().judged == 3
    (file,) = (folder / ".celeus").iterdir()
    *lines, last = file.read_bytes().splitlines(keepends=True)
    # As if killed while the answer was written
    file.write_bytes(b"".join(lines) + last[:12])
    with gate() as climb:
        assert climb.budget().left == pytest.approx(ALPHA / 2)
        assert climb.propose(wrong_below(20)).accepted
    assert all(json.loads(line) for line in file.read_bytes().splitlines())


def test_one_process_at_a_time_has_the_account(folder: Path) -> None:
    path = folder / "mine.jsonl"
    gate(file=path).close()
    path.write_bytes(b"a page of text\n")
    with pytest.raises(LedgerBroken, match="no file of proposals"):
        gate(file=path)
    assert path.read_bytes() == b"a page of text\n"
    assert issubclass(Busy, celeus.Refusal)
    assert AppendedFile(path).path == path


def test_equal_outputs_that_decide_their_loss_are_never_judged() -> None:
    judged: list[str] = []

    def watched(item: Item, output: object) -> float:
        judged.append(item.id)
        return judge(item, output)

    with celeus.Proposals(
        ITEMS, watched, incumbent=wrong_below(50), margin=0.1, normalisation="exact"
    ) as climb:
        assert climb.propose(wrong_below(50)).judged == 0
        assert climb.budget().level == ALPHA / 2
        climb.propose(wrong_below(20))
    assert judged
    assert {int(name[1:]) % 10 for name in judged} <= {2, 3, 4}


def test_functions_and_texts_are_candidates_and_the_incumbent_is_judged_once_an_item() -> None:
    judged: list[tuple[str, object]] = []

    def scored(item: Item, prompt: object) -> float:
        judged.append((item.id, prompt))
        return float(item.payload % 10 < {"terse": 3, "kind": 9}.get(str(prompt), 5))

    settings: dict[str, Any] = {"margin": "5pt", "score": ("accuracy", "higher"), "budget": 40}
    with celeus.Proposals(ITEMS, scored, incumbent="plain", **settings) as climb:
        assert not climb.propose("terse").accepted
        assert climb.propose(lambda _: "kind").accepted
        assert callable(climb.incumbent)
    assert len(set(judged)) == len(judged)
    assert climb.budget().judged <= 80


def test_a_candidate_changed_in_place_is_another_one() -> None:
    def length(item: Item, output: Any) -> float:  # noqa: ANN401 -- any candidate
        return float(item.payload % 10 < output[0])

    words = [6]
    with celeus.Proposals(ITEMS, length, incumbent=words, margin=0.1) as climb:
        words[0] = 2
        assert climb.incumbent == [6]
        assert climb.propose(words).accepted
        words[0] = 9
        assert climb.incumbent == [2]


@pytest.mark.parametrize(
    ("candidate", "what"),
    [({"q0": "right"}, "no output for 'q1'"), (lambda _: None, "is it right or wrong")],
)
def test_a_candidate_without_outputs_and_a_bool_are_refused(candidate: object, what: str) -> None:
    def doubtful(_: Item, output: object) -> object:
        return True if output is None else 0.0

    climb = celeus.Proposals(ITEMS, doubtful, incumbent="x", margin=0.1)
    with climb, pytest.raises(celeus.Refusal, match=what):
        climb.propose(candidate)


def test_items_that_count_differently_or_twice_or_have_losses_are_refused() -> None:
    for rows, what in (
        ([{"id": "a", "payload": 1, "weight": 2.0}], "a weight"),
        ([{"id": "a", "payload": 1}] * 2, "twice"),
        ([{"id": "a", "payload": 1}, {"payload": 1}], "no id"),
        ([{"id": "a", "payload": 1, "surrogate": 0.5}], "surrogate, which a gate does not use"),
        ([{"id": "a", "payload": 1, "known": 1}], "known, which a gate does not use"),
    ):
        with pytest.raises(celeus.Refusal, match=what):
            celeus.Proposals(rows, judge, incumbent="x", margin=0.1)


def test_a_file_of_something_else_stays_as_it_is(folder: Path) -> None:
    path = folder / "mine.jsonl"
    unread = (b"a page\nof text", b'{"alpha": 1}', b'{"alpha":1}\n{"alpha', b"[" * 100_000 + b"\n")
    for content in unread:
        path.write_bytes(content)
        with pytest.raises(LedgerBroken, match="no file of proposals"):
            gate(file=path)
        assert path.read_bytes() == content


def test_a_header_that_was_not_written_whole_is_written_anew(folder: Path) -> None:
    path = folder / "mine.jsonl"
    gate(file=path).close()
    header = path.read_bytes()
    for size in (0, 9, len(header) - 1):
        path.write_bytes(header[:size])
        gate(file=path).close()
        assert path.read_bytes() == header


def test_an_account_that_does_not_follow_is_refused(folder: Path) -> None:
    path = folder / "mine.jsonl"
    with gate(file=path) as climb:
        climb.propose(wrong_below(80))
        climb.propose(wrong_below(20))
        climb.propose(wrong_below(20))
    header, proposed, answered, *others = path.read_bytes().splitlines(keepends=True)
    for lines in (
        [header, *others],
        [header, proposed, answered, answered],
        [header, answered],
        [header, proposed, answered.replace(b'"judged":', b'"judged":-')],
        [header, proposed, answered.replace(b"answered", b"said")],
        [header, proposed.replace(b"0.025", b"NaN")],
        [header, proposed.replace(b"0.025", b"0.02")],
        [header, proposed, b"[]\n"],
    ):
        path.write_bytes(b"".join(lines))
        with pytest.raises(LedgerBroken, match="was changed"):
            gate(file=path)
        assert path.read_bytes() == b"".join(lines)


def test_what_a_candidate_or_judge_changes_no_other_call_sees() -> None:
    items = [{"id": str(number), "payload": {"expected": 0}} for number in range(60)]

    def cheat(item: Item) -> list[int]:
        item.payload["expected"] = -1
        return [-1]

    judged: set[tuple[int, float]] = set()

    def careless(item: Item, output: Any) -> float:  # noqa: ANN401 -- any candidate
        wrong = float(output != [item.payload["expected"]])
        judged.add((output[0], wrong))
        item.payload["expected"] = output[0] = -1
        return wrong

    with celeus.Proposals(items, careless, incumbent=[0], margin=0.1) as climb:
        for candidate in (cheat, [-1], {item["id"]: [0] for item in items}):
            assert not climb.propose(candidate).accepted
        assert climb.incumbent == [0]
    assert judged == {(0, 0.0), (-1, 1.0)}


class Model:
    """A callable that is wrong on so many items of ten."""

    def __init__(self, wrong: int, held: object = None) -> None:
        self.wrong = wrong
        self.held = held

    def __call__(self, item: Item) -> str:
        return "wrong" if item.payload % 10 < self.wrong else "right"

    def answer(self, item: Item) -> str:
        return self(item)


def test_a_model_changed_in_place_is_another_candidate() -> None:
    model = Model(6)
    with gate(model) as climb:
        model.wrong = 2
        assert climb.propose(model).accepted
        model.wrong = 0
        assert climb.propose(model.answer).accepted
        model.wrong = 9
        assert not climb.propose(model).accepted


def test_what_cannot_be_copied_is_not_proposed_against_itself() -> None:
    model = Model(6, threading.Lock())
    for candidate in (model, model.answer, lambda _: "right"):
        with gate(candidate, file=f"{id(candidate)}.jsonl") as climb:
            same = model.answer if candidate == model.answer else candidate
            with pytest.raises(celeus.Refusal, match="another function or object"):
                climb.propose(same)
            assert climb.budget().proposals == 0


@pytest.mark.parametrize(("field", "value"), [("alpha", 0), ("alpha", 1e-20), ("budget", True)])
def test_a_setting_that_no_proposal_can_have_opens_no_account(
    folder: Path, field: str, value: object
) -> None:
    with pytest.raises(celeus.Refusal, match=f"{field} must be"):
        gate(**{field: value})
    assert not (folder / ".celeus").exists()


def test_the_texts_of_the_incumbent_cost_nothing() -> None:
    with gate() as climb:
        assert str(climb.propose(wrong_below(50))).endswith("better by 0 to 0, 0 items judged")
    with gate("plain", file="text.jsonl") as climb:
        again = climb.propose("plain")
        assert (again.accepted, again.judged, again.level) == (False, 0, 0.0)
        assert climb.propose("plain ").level > 0.0


class Unpicklable:
    """A value whose copy raises what only pickle's module names."""

    def __reduce_ex__(self, _: object) -> str:
        raise pickle.PicklingError


def test_a_value_that_cannot_be_copied_is_refused_whatever_its_copy_raises() -> None:
    with gate() as climb, pytest.raises(celeus.Refusal, match="value that can be copied"):
        climb.propose(Unpicklable())


@pytest.mark.parametrize("settings", [{"alpha": 0.1}, {"incumbent": "plain"}, {"loss": (0, 2)}])
def test_a_header_cut_off_is_taken_up_by_a_gate_with_other_settings(
    folder: Path, settings: dict[str, Any]
) -> None:
    path = folder / "mine.jsonl"
    gate(file=path).close()
    header = path.read_bytes()
    path.write_bytes(header[:-1])
    gate(file=path, **settings).close()
    assert path.read_bytes().endswith(b"}\n")
    assert path.read_bytes() != header


def test_an_account_whose_line_ends_were_changed_is_not_emptied(folder: Path) -> None:
    path = folder / "mine.jsonl"
    with gate(file=path) as climb:
        climb.propose(wrong_below(80))
    content = path.read_bytes().replace(b"\n", b"\r")
    path.write_bytes(content)
    with pytest.raises(LedgerBroken, match="no file of proposals"):
        gate(file=path)
    assert path.read_bytes() == content


def test_a_fork_made_during_a_proposal_is_refused_and_does_not_wait() -> None:
    ends: list[int] = []

    def forking(item: Item, output: object) -> float:
        if not ends:
            child = os.fork()
            if child == 0:
                status = 1
                # Ends a child that waits
                signal.signal(signal.SIGALRM, signal.SIG_DFL)
                signal.alarm(20)
                try:
                    climb.propose(wrong_below(30))
                except Busy:
                    status = 0
                finally:
                    os._exit(status)
            ends.append(os.waitpid(child, 0)[1])
        return judge(item, output)

    with celeus.Proposals(ITEMS, forking, incumbent=wrong_below(50), margin=0.1) as climb:
        climb.propose(wrong_below(20))
    assert ends == [0]


def test_items_with_a_guess_are_taken_with_the_mapping_that_the_refusal_names(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = folder / "pool.csv"
    lines = (f"{number},What is {number}?,0.{number % 10}" for number in range(40))
    table.write_text("\n".join(["id,question,error_probability", *lines]))
    settings: dict[str, Any] = {"incumbent": "x", "margin": 0.1}
    with pytest.raises(celeus.Refusal, match="item 1 has surrogate") as refused:
        celeus.Proposals(str(table), judge, **settings)
    assert "a file that lacks it" in refused.value.line
    assert "where the log names it, celeus.read_items(…, mapping=…)" in refused.value.line
    assert "surrogate: error_probability" in caplog.text
    items = celeus.read_items(str(table), mapping={"id": "id", "question": "question"})
    celeus.Proposals(items, judge, **settings).close()
