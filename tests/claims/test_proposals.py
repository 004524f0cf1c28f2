"""However many candidates are proposed: at most alpha that ever one passes that is not better."""

from functools import partial

import pytest

from celeus.core.multiplicity.selection import proposed_level
from tests.claims.counted import note
from tests.claims.proposing import AGENTS, ITEMS, climbed
from tests.claims.sessions import ALPHA, credible
from tests.nightly import NIGHTLY

RUNS = 1000 if NIGHTLY else 4
PROPOSALS = {"ties": 500, "just_worse": 500}
"""Candidates of an agent by night; others have fewer, as all after 60 have alpha / 61 together."""
FEW = 60 if NIGHTLY else 8


@pytest.mark.parametrize("agent", AGENTS)
def test_at_most_alpha_of_the_agents_ever_pass_a_candidate_that_is_not_better(agent: str) -> None:
    proposals = PROPOSALS.get(agent, FEW) if NIGHTLY else FEW
    levels = partial(proposed_level, ALPHA)
    climbs = [climbed(agent, number, proposals, levels) for number in range(RUNS)]
    misled = sum(climb.misled for climb in climbs)
    what = f"{proposals} candidates: {agent.replace('_', ' ')}"
    note("gate for proposals", what, ITEMS, RUNS, f"misled {misled}")
    assert credible(misled, RUNS), misled
    if agent == "mixed" and NIGHTLY:
        assert sum(climb.improved for climb in climbs) > RUNS / 2


def test_a_level_that_is_not_spent_is_caught() -> None:
    misled = sum(climbed("ties", number, 60, lambda _: 0.3).misled for number in range(6))
    assert not credible(misled, 6), misled
