"""The figures in the README come from the core and the demo's pool, and are measured again here."""

import statistics

import pytest

from celeus.core.plans.plan import Claim
from celeus.core.plans.policies import policy_named
from celeus.demo.comparison import truth_of
from celeus.demo.digits import Digits, digits
from celeus.simulation.sessions import Truth, seed_of, simulate
from tests.docs.pages import README, table_after

POLICIES = ("sharp", "celeus", "uniform", "evalue")
RUNS = 9
TOLERANCE = 0.15
"""The seeds are fixed; medians of 9 others scatter by 2 to 5 %, at 20 points by up to 15 %."""


@pytest.fixture(scope="module")
def material() -> Digits:
    return digits(0)


@pytest.fixture(scope="module")
def truth(material: Digits) -> Truth:
    return truth_of(material)


def test_the_readme_describes_the_pool_of_the_demo(material: Digits, truth: Truth) -> None:
    text = " ".join(README.read_text().split())
    assert truth.scores.proxy is not None
    assert f"an error rate of {100 * material.risk:.1f} %" in text
    assert f"disagrees with the first on {100 * truth.scores.proxy.mean():.0f} %" in text
    assert len(material.items) == 1737
    assert truth.loss.mean() == material.risk


@pytest.mark.parametrize(
    "row", [0, *(pytest.param(row, marks=pytest.mark.nightly) for row in (1, 2, 3))]
)
def test_the_labels_in_the_readme_are_what_sessions_need(row: int, truth: Truth) -> None:
    cells = table_after(README, "<!-- figures:")[row]
    precision = float(cells[0].split()[0]) / 100
    for policy, cell in zip(POLICIES, cells[1:5], strict=True):
        claim = Claim(precision=precision)
        measured = statistics.median(
            simulate(truth, policy_named(policy), claim, seed_of(0, run))[0].labels
            for run in range(RUNS)
        )
        said = int(cell.replace(" ", ""))
        assert abs(measured - said) <= TOLERANCE * said, (policy, precision, measured, said)
