"""Rows of several logs as one pool."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from celeus.core.pools.losses import LossScale
from celeus.core.pools.rows.answers import assemble_pairs
from celeus.core.pools.rows.assembly import assemble
from celeus.core.pools.systems import OneLoss, Systems
from celeus.intake.joining import (
    JoinedItems,
    Pairing,
    arrays,
    compare,
    copies,
    each_output,
    join,
    kind_of,
    ndjson,
)
from celeus.intake.rows import Row
from tests.intake.made import losses, mean, refusal


def row(item: str, model: str, loss: float | None = 0.0, **more: Any) -> Row:  # noqa: ANN401 -- any
    return replace(Row(item, model, loss, question=f"{item}?", answer=f"{loss}"), **more)


def lines(pool: JoinedItems | Pairing) -> list[dict[str, Any]]:
    return [json.loads(line) for line in ndjson(pool).splitlines()]


def test_the_guess_is_the_mean_of_the_models_and_of_the_repeats_of_each() -> None:
    rows = [row("1", "a", 0.2), row("1", "a", 0.4, repeat=2), row("1", "b", 0.9)]
    (item,) = join(rows).items
    assert item.guess == pytest.approx((0.3 + 0.9) / 2)


def test_verdicts_on_the_repeats_of_an_item_count_by_their_mean_as_its_scores_do() -> None:
    known = [1.0, 0.0, None]
    rows = [row("1", "a", 0.5, repeat=at, known=loss) for at, loss in enumerate(known, 1)]
    assert [line["known"]["loss"] for line in lines(join(rows, "a"))] == [0.5]
    assert [kind_of(rows), kind_of(rows, outputs=True)] == ["bounded"] * 2
    hard = [replace(one, loss=0.0) for one in rows]
    assert [kind_of(hard), kind_of(hard, outputs=True)] == ["bounded", "zero_one"]


def test_verdicts_on_the_answers_of_several_models_are_no_one_loss_of_an_item() -> None:
    rows = [row("1", model, known=loss) for model, loss in (("a", 0.0), ("b", 1.0), ("c", None))]
    assert refusal(join, rows) == (
        "verdicts on the answers of a and b to item 1 differ, so that none is its loss: hold one"
        " of them out with --truth, or make an item of every answer with --each-output"
    )
    assert [line["known"]["loss"] for line in lines(join(rows, "b"))] == [1.0]
    alike = [replace(one, known=1.0) for one in rows]
    assert [line["known"]["loss"] for line in lines(join(alike))] == [1.0]
    assert "known" not in lines(join(rows, "c"))[0]


def test_hard_guesses_are_drawn_to_the_mean_of_all_as_by_one_model_more() -> None:
    rows = [row("1", "a", 1.0), row("2", "a", 0.0), row("3", "a", 0.0), row("4", "a", 0.0)]
    joined = join(rows)
    assert joined.hard
    assert [item.guess for item in joined.items] == [0.625, 0.125, 0.125, 0.125]
    several = [replace(one, model=name) for name in "abcd" for one in rows]
    assert join(several).items[0].guess == (4 + 0.25) / 5
    soft = join([*rows, row("5", "a", 0.5)])
    assert not soft.hard
    assert [item.guess for item in soft.items] == [1.0, 0.0, 0.0, 0.0, 0.5]


def test_the_mean_of_tempered_guesses_is_the_mean_of_the_losses() -> None:
    table = losses(500, 3)
    rows = [row(str(at), str(model), loss) for (at, model), loss in np.ndenumerate(table)]
    guesses = [item.guess for item in join(rows).items]
    assert mean(guesses) == pytest.approx(float(table.mean()), abs=1e-12)
    assert min(it for it in guesses if it is not None) > 0


def test_the_model_held_out_takes_no_part_in_the_guess() -> None:
    rows = [row(item, model, 0.5) for item in "123" for model in "ab"]
    guesses = []
    for loss in (0.0, 1.0):
        held = [replace(one, loss=loss) if one.model == "b" else one for one in rows]
        joined = join(held, "b")
        assert [item.loss for item in joined.items] == [loss] * 3
        guesses.append([item.guess for item in joined.items])
    assert guesses == [[0.5] * 3] * 2
    assert refusal(join, rows, "c") == "no log is of 'c', only of a, b"


def test_a_model_without_a_score_is_left_out_and_items_without_any_get_the_mean() -> None:
    rows = [row("1", "a", 0.2), row("1", "b", None), row("2", "a", None), row("3", "b", 0.6)]
    joined = join(rows)
    assert [item.guess for item in joined.items] == [0.2, 0.4, 0.6]
    assert joined.unguessed == 1


def test_one_log_held_out_alone_has_no_surrogate() -> None:
    joined = join([row("1", "a", 0.5)], "a")
    assert joined.items[0].guess is None
    assert "surrogate" not in lines(joined)[0]


def test_rows_without_hashes_join_on_their_ids_and_others_must_agree() -> None:
    rows = [row("1", "a"), row("1", "b", check="x"), row("1", "c", check="y")]
    assert len(join(rows[:2]).items) == 1
    said = refusal(join, rows)
    assert said.startswith("item 1 is not the same in the logs of b and c: the logs are of two")


@pytest.mark.parametrize("name", ["", "x" * 257, "a\0b"])
def test_an_id_that_no_pool_takes_is_refused(name: str) -> None:
    assert "is no text of 1 to 256 characters" in refusal(join, [row(name, "a")])


def test_a_log_of_other_items_than_the_model_held_out_is_refused() -> None:
    rows = [row("1", "a"), row("1", "b"), row("1.0", "c")]
    said = refusal(join, rows, "a")
    assert said == "no item of a is in the log of c: leave it out, or name its items alike"
    joined = join(rows)
    assert joined.partial == 2


def test_models_that_say_the_same_everywhere_are_told() -> None:
    rows = [row(str(at), model, float(at == 1)) for model in "abc" for at in range(10)]
    rows[-1] = replace(rows[-1], loss=1.0)
    (line,) = copies(rows)
    assert line.startswith("a and b have the same answers and scores on all 10 items: if one is a")
    assert copies([replace(one, loss=0.0, answer=None) for one in rows]) == []
    assert copies([one for one in rows if int(one.id) < 9]) == []


def test_the_lines_are_items_of_a_pool_and_show_no_loss() -> None:
    odd = "a\0b\ud800"
    rows = [
        row("1", "a", 1.0, question=odd, reference="x", group="law"),
        row("2", "a", group="law"),
    ]
    told = lines(join(rows, "a"))
    assert told[0] == {
        "id": "1",
        "payload": {"question": "a\\0b\\ud800", "reference": "x", "answer": "1.0"},
        "group": "law",
    }
    for pool in (join(rows), join(rows, "a"), each_output(rows)):
        done = assemble([1, 2], lines(pool), LossScale.of("zero_one"), None)
        assert done.faults == []
    assert "answer" not in lines(join(rows))[0]["payload"], "a new model will answer"


def test_every_output_is_an_item_guessed_by_its_own_score() -> None:
    rows = [row("1", "a", 1.0), row("1", "b", 0.0), row("2", "a", 0.0), row("2", "b", None)]
    told = lines(each_output(rows))
    assert [one["id"] for one in told] == ["a/1", "b/1", "a/2", "b/2"]
    assert [one["payload"]["answer"] for one in told] == ["1.0", "0.0", "0.0", "None"]
    third = 1 / 3
    assert [one["surrogate"] for one in told] == pytest.approx(
        [2 * third, third / 2, third / 2, third]
    )
    repeated = each_output([row("1", "a", repeat=2), row("1", "a")])
    assert [item.name for item in repeated.items] == ["1/2", "1/1"]


def test_what_no_model_said_is_no_output_to_judge() -> None:
    rows = [row("1", "a", 1.0), row("2", "a", None, answer=None), row("3", "a", 0.0, answer="")]
    outputs = each_output(rows)
    assert [item.name for item in outputs.items] == ["1", "3"]
    assert outputs.left_out == 1
    nothing = each_output([replace(one, answer=None) for one in rows])
    assert len(nothing.items) == 3, "a log without any answers is not one of errors"


def test_outputs_that_would_have_one_name_or_one_too_long_are_refused() -> None:
    rows = [row("b/1", "a"), row("1", "a/b")]
    assert refusal(each_output, rows).startswith("two outputs would be called a/b/1: name the mod")
    long = [row("1", "a" * 256), row("1", "b")]
    assert "is no text of 1 to 256 characters" in refusal(each_output, long)
    assert "is no text of 1 to 256 characters" in refusal(join, [row("\ud800" * 50, "a")])


def pairs() -> list[Row]:
    """Four items of two systems, two of them answered alike, and guessed by a third."""
    told = [("x", "x", 0.0, 0.0), ("x", "y", 0.0, 1.0), ("y", "x", 1.0, 0.0), ("z", "z", 1.0, 1.0)]
    rows = []
    for at, (one, other, loss, other_loss) in enumerate(told):
        rows.append(row(str(at), "old", loss, answer=one))
        rows.append(row(str(at), "new", other_loss, answer=other))
        rows.append(row(str(at), "judge", 0.25 * at))
    return rows


def test_two_systems_are_compared_on_what_they_answered() -> None:
    compared = compare(pairs(), "old", "new", text_decides=True)
    assert [pair.same for pair in compared.pairs] == [True, False, False, True]
    assert compared.others == ("judge",)
    told = lines(compared)
    systems = Systems("old", "new", OneLoss("zero_one", 0.0, 1.0), "exact")
    done = assemble_pairs(range(4), told, systems, None)
    assert done.faults == []
    assert done.batch.columns["same"].tolist() == [True, False, False, True]
    assert done.batch.columns["loss_upper"].tolist() == [0.0, 1.0, 1.0, 0.0]
    assert told[1]["a"] == {"surrogate": 0.25, "answer": "x"}


def test_predictions_are_compared_where_there_are_any() -> None:
    rows = [
        replace(one, prediction="xyz".index(str(one.answer)), choices=("x", "y", "z"), answer=None)
        for one in pairs()
        if one.model != "judge"
    ]
    told = lines(compare(rows, "old", "new"))
    assert told[1]["a"] == {"surrogate": 0.25, "prediction": 0}
    systems = Systems("old", "new", OneLoss("zero_one", 0.0, 1.0), "exact")
    assert assemble_pairs(range(4), told, systems, None).faults == []


def test_choices_and_texts_in_one_comparison_are_told_apart() -> None:
    """Tasks of both sorts in one pool: a choice is no missing text, which would equal another."""
    rows = pairs()[:3] + [
        replace(one, prediction=at, choices=("is so", "is so"), answer=None)
        for at, one in enumerate(pairs()[3:5])
    ]
    for some in (rows, [*rows[3:], *rows[:3]]):
        compared = compare(some, "old", "new", text_decides=True)
        assert compared.answers == "answer"
        told = {one["id"]: one for one in lines(compared)}
        assert told["0"]["a"]["answer"] == told["0"]["b"]["answer"] == "x"
        assert (told["1"]["a"]["answer"], told["1"]["b"]["answer"]) == ("1. is so", "2. is so")
        assert {pair.a.id: pair.same for pair in compared.pairs} == {"0": True, "1": False}


def test_items_without_an_answer_of_both_are_left_out_and_counted() -> None:
    rows = [one for one in pairs() if (one.id, one.model) != ("1", "new")]
    rows = [
        replace(one, answer=None) if (one.id, one.model) == ("2", "old") else one for one in rows
    ]
    compared = compare(rows, "old", "new")
    assert [pair.a.id for pair in compared.pairs] == ["0", "3"]
    assert compared.left_out == 2
    nothing = [replace(one, answer=None) for one in pairs()]
    assert compare(nothing, "old", "new").answers is None
    assert "answer" not in lines(compare(nothing, "old", "new"))[0]["a"]


def test_equal_texts_are_no_difference_only_where_texts_decide() -> None:
    """Two agents may both say "Done." of which one has done it; empty texts say nothing at all."""
    assert not any(pair.same for pair in compare(pairs(), "old", "new").pairs)
    empty = [replace(one, answer="") if one.answer == "z" else one for one in pairs()]
    compared = compare(empty, "old", "new", text_decides=True)
    assert [pair.same for pair in compared.pairs] == [True, False, False, False]


def test_equal_answers_with_two_scores_decide_nothing() -> None:
    rows = [
        replace(one, loss=1.0) if (one.id, one.model) == ("0", "new") else one for one in pairs()
    ]
    said = refusal(compare, rows, "old", "new", text_decides=True)
    assert said.startswith("1 equal answers have two scores, that of item 0 first: leave out")
    told = arrays(compare(rows, "old", "new"))
    assert (told["loss_a"], told["loss_b"]) == ([0, 0, 1, 1], [1, 1, 0, 1])
    assert "answer_a" not in told
    assert told["surrogate_a"] == told["surrogate_b"] == [0, 0.25, 0.5, 0.75]


def test_where_texts_decide_it_is_the_part_that_was_scored() -> None:
    rows = [replace(one, extracted="7") if one.id == "1" else one for one in pairs()]
    rows = [replace(one, loss=0.0) if one.id == "1" else one for one in rows]
    compared = compare(rows, "old", "new", text_decides=True)
    assert compared.pairs[1].same
    assert lines(compared)[1]["b"]["answer"] == "7"
    assert lines(compared)[1]["b"]["payload"] == {"whole answer": "y"}
    assert lines(compare(rows, "old", "new"))[1]["b"]["answer"] == "y"


def test_runs_of_several_answers_are_compared_by_their_means_and_make_no_pool() -> None:
    repeated = [*pairs(), row("0", "old", 1.0, repeat=2)]
    compared = compare(repeated, "old", "new")
    assert compared.repeated == 1
    assert compared.differences == [0.5, -1.0, 1.0, 0.0]
    assert "a pool of pairs takes one answer each" in refusal(ndjson, compared)


def test_what_cannot_be_compared_is_refused() -> None:
    assert "is compared with itself" in refusal(compare, pairs(), "old", "old")
    assert "no log is of 'none'" in refusal(compare, pairs(), "old", "none")
    apart = [one for one in pairs() if one.model == "old" or int(one.id) > 7]
    apart += [row("9", "new")]
    assert "no item has an answer of both" in refusal(compare, apart, "old", "new")
