"""How the golden certificates were made; run once, never again for a name that is there.

    .venv/bin/python -m tests.golden.make_certificates

A certificate that was issued has to verify for ever, by every later version: from the first release
on a file in `certificates/` is added and never written anew. A change of the method gets another
method version and further files.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from celeus.api.pools.items import archive_of
from celeus.core.certificate.document import certificate
from celeus.core.ledger import Observation, Unjudgeable
from celeus.core.plans.plan import Claim
from celeus.core.plans.stopping import Question
from tests.core.certifying import (
    ISSUED_AT,
    KEY,
    Case,
    World,
    bare_world,
    columns_world,
    graded_world,
    known_world,
    named_world,
    opened,
    paired_world,
    weighted_world,
    zero_one_world,
)
from tests.core.contending import Best
from tests.core.tabling import WISHES, Tabled, added_later

FOLDER = Path(__file__).parent / "certificates"
KINDS = ("interim", "final")
ONCE_FINAL = {
    *("accuracy", "celeus-exact-ahead", "known-losses-audited", "pairs-exhausted"),
    *("sharp-exhausted", "sharp-graded-ahead", "sharp-labels", "sharp-sure"),
    "sharp-without-precision",
}
"""Sessions without an interim certificate: others under the same policy have one."""


def _walked(case: Case) -> Case:
    """Draws ahead of losses, judgements out of order, unjudgeable rounds, corrections, a change."""
    case.go(20, hidden=[3, 11])
    case.draw(5)
    case.judge([23, 21, 25])
    case.amend(5, case.plan.upper)
    case.amend(6, None)
    case.amend(3, case.plan.lower)
    case.change(0.9 * (case.plan.precision or case.plan.scale.width / 10.0))
    case.judge([22])
    case.go(8, hidden=[27])
    return case


def _ahead(case: Case) -> Case:
    """Many draws out, answered late and out of order, some skipped, some corrected."""
    case.go(6)
    case.draw(9)
    case.judge([8, 7, 10, 9], hidden=[8])
    case.draw(4)
    case.judge([19, 11, 12, 15], hidden=[12])
    case.amend(9, None)
    case.change(0.8 * (case.plan.precision or case.plan.scale.width / 10.0))
    case.draw(3)
    case.judge(hidden=[13, 20])
    case.amend(12, case.plan.upper)
    case.go(20, hidden=[30])
    case.draw(2)
    return case


def _repeated(case: Case) -> Case:
    """Items that are run again, also while a run is out; one run that nobody can judge."""
    case.go(30, hidden=[3])
    case.draw(5)
    case.judge([33, 35, 31])
    case.go(25)
    return case


def _succeeding(case: Case) -> Case:
    """Draws of up to three runs, one of which nobody can judge, told out of order."""
    case.draw(5)
    for round_ in (2, 1, 3, 5, 4):
        _made(case, round_)
    for _ in range(45):
        (draw,) = case.draw()
        _made(case, draw.round)
    return case


def _made(case: Case, round_: int) -> None:
    """Make the runs of a draw: all of them, or so many until one fails."""
    loss, until = case.world.losses[case.state.rounds[round_ - 1].draw.item], 1 + round_ % 3
    if round_ == 7:
        case.enter(Unjudgeable(round_, until), unjudgeable="crashed", runs=until, worker="ada")
        return
    runs = until if loss else 3
    case.enter(Observation(round_, float(loss), runs), runs=runs, worker="ada")


def _exhausted(case: Case) -> Case:
    while case.state.drawn < case.plan.items:
        case.go(1, hidden=[7])
    return case


def _labelled(case: Case) -> Case:
    case.labels = True
    case.go(25)
    return case


def _asked(world: World) -> Case:
    questions = (Question("at_most", 0.9), Question("at_least", 0.3))
    return opened(world, claim=Claim(precision=0.1, questions=questions))


def _compared(case: Case) -> Case:
    """Preferences told by side, one of them corrected."""
    case.go(6, hidden=[3])
    case.draw(3)
    case.judge([8, 9, 7])
    case.amend(2, 0.0)
    case.go(20)
    return case


def _tabled(account: str) -> Callable[[], Tabled]:
    """Draws ahead, judgements out of order, some losses that nobody can tell, another budget."""

    def build() -> Tabled:
        tabled = Tabled(WISHES[account]).go(15)
        tabled.budget(90)
        tabled.go(25)
        tabled.enter(tabled.state.propose())
        return tabled

    return build


def _paired(precision: float) -> Claim:
    """Pairs that do not use that losses are 0 or 1."""
    return Claim("population", precision=precision, population_bound="pairs")


CERTIFICATES: Mapping[str, tuple[str, Callable[[World], Case]]] = MappingProxyType(
    {
        "sharp-without-precision": (
            "zero_one",
            lambda world: _walked(opened(world, claim=Claim())),
        ),
        "sharp-sure": (
            "zero_one",
            lambda world: _walked(opened(world, claim=Claim(alpha=1e-5, precision=0.9))),
        ),
        "sharp-exhausted": ("small", lambda world: _exhausted(opened(world))),
        "repeats": (
            "small",
            lambda world: _repeated(
                opened(world, claim=Claim("runs", precision=0.3, repeats=True))
            ),
        ),
        "success": (
            "small",
            lambda world: _succeeding(
                opened(world, claim=Claim("runs", precision=0.3, repeats=True, success="all of 3"))
            ),
        ),
        "columns": ("columns", lambda world: _labelled(_walked(opened(world)))),
        "sharp-labels": ("zero_one", lambda world: _labelled(opened(world))),
        "exact-pairs": (
            "zero_one",
            lambda world: _walked(opened(world, claim=Claim("population", precision=0.3))),
        ),
        "pairs-exhausted": (
            "small",
            lambda world: _exhausted(opened(world, claim=_paired(0.5))),
        ),
        "uniform": ("bare", lambda world: _walked(opened(world, "uniform"))),
        "celeus": (
            "graded",
            lambda world: _walked(opened(world, "celeus", Claim("population", precision=5.0))),
        ),
        "sharp-ahead": ("zero_one", lambda world: _ahead(opened(world))),
        "sharp-graded-ahead": ("graded", lambda world: _ahead(opened(world))),
        "sharp-asked-ahead": ("zero_one", lambda world: _ahead(_asked(world))),
        "pairs-ahead": (
            "zero_one",
            lambda world: _ahead(opened(world, claim=_paired(0.3))),
        ),
        "celeus-ahead": ("graded", lambda world: _ahead(opened(world, "celeus"))),
        "celeus-exact-ahead": (
            "zero_one",
            lambda world: _ahead(opened(world, "celeus", range="exact")),
        ),
        "known-losses": ("known", lambda world: _walked(opened(world))),
        "known-losses-audited": (
            "known",
            lambda world: _walked(opened(world, claim=Claim(precision=0.1, audit=True))),
        ),
        "weights": ("weighted", lambda world: _walked(opened(world))),
        "accuracy": ("named", lambda world: _walked(opened(world))),
        "two-systems": (
            "pair",
            lambda world: _compared(opened(world, claim=Claim(precision=0.2, decide=0.05))),
        ),
        "nothing-drawn": ("zero_one", lambda world: opened(world)),  # noqa: PLW0108 -- alike
    }
)
"""The pool of every certificate, and how its session went."""

BEST: Mapping[str, tuple[str, Callable[[], Best]]] = MappingProxyType(
    {
        "best-by-labels": ("classes", lambda: Best("label").go()),
        "best-by-losses": ("texts", lambda: Best("answers", budget=30).go()),
    }
)
"""The same of sessions that seek the best of several systems, each on a pool of its own."""

TABLES: Mapping[str, tuple[str, Callable[[], Tabled]]] = MappingProxyType(
    {f"table-{account}": ("tabled", _tabled(account)) for account in WISHES}
    | {"table-later": ("tabled", added_later)}
)
"""The same of sessions that make many claims, one under every account, and one with claims added
later."""

PUSHED = ("pushed", "zero_one")
"""Name and pool of the certificate of a session that ran in a process of its own."""

WORLDS: Mapping[str, Callable[[], World]] = MappingProxyType(
    {
        "zero_one": lambda: zero_one_world(150),
        "graded": lambda: graded_world(120),
        "bare": lambda: bare_world(100),
        "columns": lambda: columns_world(150),
        "small": lambda: zero_one_world(40),
        "known": lambda: known_world(120),
        "weighted": lambda: weighted_world(120),
        "named": lambda: named_world(120),
        "pair": lambda: paired_world(120),
    }
)


def main() -> None:
    """Write what is not there yet."""
    FOLDER.mkdir(exist_ok=True)
    worlds = {name: make() for name, make in WORLDS.items()}
    for name, world in worlds.items():
        with archive_of(world.pool) as archive:
            _write(f"{name}.npz", archive.read())
    for name, (pool, build) in CERTIFICATES.items():
        case = build(worlds[pool])
        for kind in kinds_of(name):
            _write(f"{name}.{pool}.{kind}.json", case.certificate(final=kind == "final"))
    _write(f"{'.'.join(PUSHED)}.final.json", pushed(_walked(opened(worlds[PUSHED[1]]))))
    for name, (pool, seek) in BEST.items():
        _keep(name, pool, seek())
    for name, (pool, claim) in TABLES.items():
        _keep(name, pool, claim())


def kinds_of(name: str) -> tuple[str, ...]:
    """The kinds of certificate that are kept of a session."""
    return KINDS[1:] if name in ONCE_FINAL else KINDS


def pushed(case: Case) -> bytes:
    """The certificate of a session as if it had been pushed."""
    case.certificate()
    origin = {"kind": "pushed", "at": ISSUED_AT}
    account = replace(case.account(final=True), pool_sessions=None, origin=origin)
    return certificate(account, KEY)


def _keep(name: str, pool: str, session: Best | Tabled) -> None:
    """The pool and both certificates of a session that has a pool of its own."""
    with archive_of(session.pool) as archive:
        _write(f"{pool}.npz", archive.read())
    for kind in KINDS:
        _write(f"{name}.{pool}.{kind}.json", session.certificate(final=kind == "final"))


def _write(name: str, data: bytes) -> None:
    path = FOLDER / name
    if not path.exists():
        path.write_bytes(data)


if __name__ == "__main__":
    main()
