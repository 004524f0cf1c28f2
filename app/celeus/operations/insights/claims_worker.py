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
    """Return the job of the intervals of every part at its own ``levels``."""
    values: list[dict[str, Any]] = []
    arrays: Arrays = {}
    for index, part in enumerate(parts):
        rules = [asdict(rule) for rule in part.rounds.rules]
        values.append({"plan": part.plan.to_dict(), "rules": rules, "strata": part.rounds.strata})
        named = {f"scores.{name}": array for name, array in part.scores.arrays.items()}
        arrays |= {
            f"{index}.{name}": array for name, array in (named | part.rounds.columns).items()
        }
    return Frame({"sessions": values, "levels": list(levels)}, arrays)


def work(job: Frame, files: Files) -> Iterator[Frame]:
    """Yield for every session its rank and its claims at each of its levels."""
    del files
    of_all = zip(job.values["sessions"], job.values["levels"], strict=True)
    for index, (values, levels) in enumerate(of_all):
        columns = {
            name.removeprefix(f"{index}."): array
            for name, array in job.arrays.items()
            if name.startswith(f"{index}.")
        }
        scores = Scores(
            **{
                name.removeprefix("scores."): array
                for name, array in columns.items()
                if name.startswith("scores.")
            }
        )
        rules = [StoppingRule(**rule) for rule in values["rules"]]
        rounds = Rounds.from_columns(columns, values["strata"], rules)
        plan = Plan.from_dict(values["plan"])
        found = intervals(plan, scores, rounds, levels)
        yield Frame(
            {
                "rank": rank(plan, found, rounds.ready),
                "by_shown": [
                    _claim_of(Answers.of(plan, interval, rounds.ready)) for interval in found
                ],
            }
        )


def _claim_of(answers: Answers) -> dict[str, Any]:
    return {
        "lower": answers.interval.lower,
        "upper": answers.interval.upper,
        "answers": [
            asdict(decision.question) | {"answer": decision.answer}
            for decision in answers.decisions
        ],
        "verdict": answers.verdict,
    }


if __name__ == "__main__":
    serve(work)
