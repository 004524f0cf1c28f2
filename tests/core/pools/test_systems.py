"""What judges may say of two systems' answers, and when two texts are one answer."""

import numpy as np
import pytest

from celeus.core.interval import Interval
from celeus.core.pools.comparison import difference_scale, stated_loss, surrogate_columns
from celeus.core.pools.losses import LossScale
from celeus.core.pools.pool import CHAIN_START, Pool
from celeus.core.pools.strata import DIFFERENCE_BINS, strata_of
from celeus.core.pools.surrogates import Scores
from celeus.core.pools.systems import Side, Systems
from celeus.errors import InvalidValue, LossOutsideScale, Refusal


def systems(kind: str = "zero_one", upper: float | None = None, same: str = "exact") -> Systems:
    return Systems.of(("one", "two"), (kind, 0.0 if kind == "bounded" else None, upper), same)


def pool(made: Systems, **columns: list[int]) -> Pool:
    arrays = {name: np.array(values, dtype="<i4") for name, values in columns.items()}
    return Pool(2, made.scale, arrays, (), CHAIN_START, (), made)


@pytest.mark.parametrize(
    ("normalisation", "one", "other", "same"),
    [
        ("exact", "Paris", "Paris", True),
        ("exact", "Paris", "Paris ", False),
        ("whitespace", " Paris,\n France", "Paris, France\t", True),
        ("whitespace", "Paris", "paris", False),
        ("casefold", "PARIS  now", "paris now ", True),
        ("casefold", "Stra\N{LATIN SMALL LETTER SHARP S}e", "STRASSE", True),
        ("casefold", "a b", "ab", False),
    ],
)
def test_normalisations(normalisation: str, one: str, other: str, *, same: bool) -> None:
    assert systems(same=normalisation).same(one, other) is same
    assert systems(same=normalisation).same(other, one) is same


def test_they_read_back_as_they_were_written() -> None:
    for made in (systems(), systems("bounded", 5.0), systems("preference", 2.0, "casefold")):
        assert Systems.from_dict(made.to_dict()) == made


@pytest.mark.parametrize("left", ["a", "b"])
def test_the_difference_that_words_say(left: Side) -> None:
    turned = 1.0 if left == "a" else -1.0
    classes = pool(systems(), prediction_a=[1, 2], prediction_b=[0, 3])
    assert stated_loss(classes, 0, {"label": 1}, left) == -1.0
    assert stated_loss(classes, 0, {"label": 0}, left) == 1.0
    assert stated_loss(classes, 0, {"label": 3}, left) == 0.0
    assert stated_loss(classes, 1, {"loss_a": 1, "loss_b": 0}, left) == 1.0
    assert stated_loss(classes, 1, {"loss_left": 1, "loss_right": 0}, left) == turned
    assert str(stated_loss(classes, 1, {"loss_left": 1, "loss_right": 1}, left)) == "0.0", "no -0.0"
    graded = pool(systems("bounded", 5.0))
    assert stated_loss(graded, 1, {"loss_left": 0.5, "loss_right": 4.5}, left) == -4.0 * turned
    liked = pool(systems("preference", 2.0))
    assert stated_loss(liked, 0, {"preference": "a"}, left) == -1.0
    assert stated_loss(liked, 0, {"preference": "b", "grade": 2}, left) == 2.0
    assert stated_loss(liked, 0, {"preference": "tie"}, left) == 0.0
    assert stated_loss(liked, 0, {"preference": "left", "grade": 2}, left) == -2.0 * turned
    assert stated_loss(liked, 0, {"preference": "right"}, left) == turned


@pytest.mark.parametrize(
    ("kind", "said", "field", "asked"),
    [
        ("zero_one", {"preference": "left"}, "preference", "`label`"),
        ("zero_one", {"loss": 0.5}, "loss", "`label`"),
        ("bounded", {"label": 1}, "label", "`losses`"),
        ("bounded", {"preference": "a"}, "preference", "`losses`"),
        ("preference", {"label": 1}, "label", "`preference`"),
        ("preference", {"loss_a": 0.0, "loss_b": 1.0}, "losses", "`preference`"),
        ("preference", {"loss": -1.0}, "loss", "`preference`"),
    ],
)
def test_what_a_pool_does_not_ask_for_is_refused_with_what_it_asks_for(
    kind: str, said: dict[str, object], field: str, asked: str
) -> None:
    columns = {"prediction_a": [0, 1], "prediction_b": [1, 1]} if kind == "zero_one" else {}
    with pytest.raises(InvalidValue) as refused:
        stated_loss(pool(systems(kind, 1.0), **columns), 0, said, "a")
    assert refused.value.field == field
    assert asked in str(refused.value.rule)


def test_pools_of_one_system_know_no_preference() -> None:
    plain = Pool(2, LossScale.of("difference"), {}, (), CHAIN_START)
    assert stated_loss(plain, 0, {"loss": -0.5}, None) == -0.5
    for said in ({"preference": "a"}, {"loss_a": 0, "loss_b": 1}):
        with pytest.raises(InvalidValue, match="A judgement of this pool"):
            stated_loss(plain, 0, said, None)


@pytest.mark.parametrize(
    ("kind", "said", "field"),
    [
        ("zero_one", {"loss_a": 0.5, "loss_b": 0}, "losses.a"),
        ("zero_one", {"loss_left": 0, "loss_right": True}, "losses.right"),
        ("bounded", {"loss_a": 0.0, "loss_b": float("nan")}, "losses.b"),
        ("bounded", {"loss_a": 0.0}, "losses.b"),
        ("bounded", {"loss_a": 0.0, "loss_right": 1.0}, "loss_left"),
        ("preference", {"preference": "left", "grade": 3}, "grade"),
        ("preference", {"preference": "tie", "grade": 2}, "preference"),
        ("preference", {"preference": "one"}, "preference"),
        ("preference", {"grade": 1}, "preference"),
    ],
)
def test_words_that_say_nothing_are_refused_by_name(
    kind: str, said: dict[str, object], field: str
) -> None:
    with pytest.raises((InvalidValue, LossOutsideScale)) as refused:
        stated_loss(pool(systems(kind, 2.0 if kind == "preference" else 1.0)), 0, said, "a")
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("names", "loss", "same", "field"),
    [
        (("one", "one"), ("zero_one", None, None), "exact", "systems.b"),
        (("one", "two"), ("cross_entropy", None, 3.0), "exact", "loss.kind"),
        (("one", "two"), ("difference", None, 1.0), "exact", "loss.kind"),
        (("one", "two"), ("preference", None, 2.5), "exact", "loss.upper"),
        (("one", "two"), ("preference", -1.0, 1.0), "exact", "loss.lower"),
        (("one", "two"), ("bounded", None, 1.0), "exact", "loss.lower"),
        (("one", "two"), ("zero_one", None, None), "stemmed", "systems.normalisation"),
    ],
)
def test_systems_that_cannot_be_compared_are_refused_by_name(
    names: tuple[str, str], loss: tuple[str, float | None, float | None], same: str, field: str
) -> None:
    with pytest.raises(Refusal) as refused:
        Systems.of(names, loss, same)
    assert refused.value.field == field


PAIR = Interval(-1.0, 1.0)


def test_the_chance_of_a_difference_follows_from_both_surrogates() -> None:
    a, b = np.array([0.2, 1.0, 0.9]), np.array([0.9, 0.0, 0.9])
    found = surrogate_columns(a, b, Interval(0.0, 1.0), exclusive=False)
    assert found["surrogate.0"] == pytest.approx([-0.7, 1.0, 0.0])
    assert found["change"] == pytest.approx([0.2 * 0.1 + 0.9 * 0.8, 1.0, 0.18])
    exclusive = surrogate_columns(a, b, Interval(0.0, 1.0), exclusive=True)
    assert exclusive["change"] == pytest.approx([0.9, 1.0, 0.2])
    scaled = surrogate_columns(10 * a - 4, 10 * b - 4, Interval(-4.0, 6.0), exclusive=False)
    assert scaled["surrogate.0"] == pytest.approx(10 * found["surrogate.0"])
    assert scaled["change"] == pytest.approx(found["change"])


def test_strata_are_five_bins_of_the_difference_cut_once_by_its_chance() -> None:
    chance = np.random.default_rng(2)
    a, b = chance.random(2000), chance.random(2000)
    columns = surrogate_columns(a, b, Interval(0.0, 1.0), exclusive=True)
    scores = Scores(columns["surrogate.0"], np.zeros(2000), change=columns["change"])
    strata = strata_of(scores, PAIR, most_bins=DIFFERENCE_BINS)
    assert strata.count == 10
    assert strata.size.min() >= 25
    for stratum in range(strata.count):
        inside = columns["surrogate.0"][strata.code == stratum]
        assert strata.base[stratum] == pytest.approx((1.0 + inside.mean()) / 2.0)
    few = strata_of(scores.of(np.arange(60)), PAIR, most_bins=DIFFERENCE_BINS)
    assert few.count <= 4


def test_the_scale_of_a_difference_is_symmetric() -> None:
    scale = difference_scale(LossScale.of("bounded", -2.0, 6.0))
    assert (scale.kind, scale.lower, scale.upper) == ("difference", -8.0, 8.0)
    assert LossScale.of("difference").lower == -1.0
    with pytest.raises(InvalidValue) as refused:
        LossScale.of("difference", -1.0, 2.0)
    assert refused.value.field == "loss.lower"
