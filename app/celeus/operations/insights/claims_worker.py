"""The child process that bets on sessions again, for their intervals at other levels."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from celeus.core.insights.evidence_levels import Answers, intervals, rank
from celeus.core.plans.plan import Plan
from celeus.core.plans.stopping import StoppingRule
from celeus.core.pools.surrogates import Scores
from celeus.core.session.rounds import Rounds
from celeus.operations.runtime.workers import Arrays, Files, Frame, serve


@dataclass(frozen=True, slots=True)
class Part:
    """A session of the job: its plan, what is known of its items, and its rounds."""

    plan: Plan
    scores: Scores
    rounds: Rounds


def job_of(parts: Sequence[Part], levels: Sequence[Sequence[float]]) -> Frame:
    """What the child needs for the intervals of every part at its own ``levels``."""
    values: list[dict[str, Any]] = []
    arrays: Arrays = {}
    for at, part in enumerate(parts):
        rules = [asdict(rule) for rule in part.rounds.rules]
        values.append({"plan": part.plan.to_dict(), "rules": rules, "strata": part.rounds.strata})
        named = {f"scores.{name}": array for name, array in part.scores.arrays.items()}
        arrays |= {f"{at}.{name}": one for name, one in (named | part.rounds.columns).items()}
    return Frame({"sessions": values, "levels": list(levels)}, arrays)


def work(job: Frame, files: Files) -> Iterator[Frame]:
    """Of every session in turn, what it says at each of its levels, and its rank."""
    del files
    of_all = zip(job.values["sessions"], job.values["levels"], strict=True)
    for at, (values, levels) in enumerate(of_all):
        own = {
            name.removeprefix(f"{at}."): array
            for name, array in job.arrays.items()
            if name.startswith(f"{at}.")
        }
        scores = Scores(
            **{
                name.removeprefix("scores."): array
                for name, array in own.items()
                if name.startswith("scores.")
            }
        )
        rules = [StoppingRule(**rule) for rule in values["rules"]]
        rounds = Rounds.from_columns(own, values["strata"], rules)
        plan = Plan.from_dict(values["plan"])
        found = intervals(plan, scores, rounds, levels)
        yield Frame(
            {
                "rank": rank(plan, found, rounds.ready),
                "at": [_said(Answers.of(plan, one, rounds.ready)) for one in found],
            }
        )


def _said(answers: Answers) -> dict[str, Any]:
    return {
        "lower": answers.interval.lower,
        "upper": answers.interval.upper,
        "answers": [asdict(one.question) | {"answer": one.answer} for one in answers.decisions],
        "verdict": answers.verdict,
    }


if __name__ == "__main__":
    serve(work)
