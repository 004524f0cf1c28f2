"""The fixture `celeus_gate` of pytest: a test passes where a session answers yes.

pytest imports this wherever Celeus is installed, so what asks a service is imported by the first
test that needs it.
"""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn, TypeVar

import pytest

if TYPE_CHECKING:
    from celeus.gates.questions import Outcome

T = TypeVar("T")
_OPTION = re.compile(r"--([a-z][a-z-]*)")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the fixture."""
    group = parser.getgroup("celeus", "sessions of Celeus as tests (their key is in CELEUS_KEY)")
    group.addoption("--celeus-url", metavar="URL", help="address of the service (CELEUS_URL)")
    group.addoption(
        "--celeus-undecided",
        choices=("fail", "skip", "xfail"),
        default="fail",
        help="what becomes of a test whose session is undecided",
    )
    group.addoption(
        "--celeus-wait",
        type=float,
        default=0.0,
        metavar="SECONDS",
        help="how long a test waits for an answer",
    )


@dataclass(frozen=True, slots=True)
class SessionGate:
    """A session, or one claim of it, to be asked by the method that is called.

    Each fails the test where the answer is no, and does as `--celeus-undecided` says while there is
    none. A threshold is a number inside the session's scale; of a share also text, such as "10%",
    and a margin such as "2pt".
    """

    ask: Callable[..., None]

    def passes(self) -> None:
        """Ask what the session was opened with."""
        self.ask({}, None, None)

    def at_most(self, threshold: float | str) -> None:
        """Ask whether the risk, the mean loss, is at most this."""
        self.ask({"--at-most": threshold}, None, None)

    def at_least(self, threshold: float | str) -> None:
        """Ask whether the risk is at least this."""
        self.ask({"--at-least": threshold}, None, None)

    def score_at_most(self, threshold: float | str) -> None:
        """Ask whether the score is at most this, such as 0.05 or "5%"."""
        self.ask({"--score-at-most": threshold}, None, None)

    def score_at_least(self, threshold: float | str) -> None:
        """Ask whether the score is at least this, such as 0.8 or "80%"."""
        self.ask({"--score-at-least": threshold}, None, None)

    def compare(self, system: str, margin: float | str | None = None) -> None:
        """Ask whether this one of two systems may replace the other.

        It is at least as good, or equivalent within the session's margin; with a ``margin`` the
        interval is asked whether it is worse by no more than that.
        """
        self.ask({}, system, margin)


@pytest.fixture(scope="session")
def _celeus_service(pytestconfig: pytest.Config) -> tuple[str, str | None]:
    """Address and key of a service that answers; an error of every test that needs it else."""
    from celeus.client.service import HERE
    from celeus.gates.waiting import check_reachable

    url = pytestconfig.getoption("celeus_url") or os.environ.get("CELEUS_URL") or HERE
    key = os.environ.get("CELEUS_KEY") or None
    _refused_in_one_line(lambda: check_reachable(url, key))
    return url, key


@pytest.fixture
def celeus_gate(
    request: pytest.FixtureRequest, _celeus_service: tuple[str, str | None]
) -> Callable[..., SessionGate]:
    """A session of Celeus as a test: `celeus_gate("ses_…").at_most(0.1)`.

    Also at_least, score_at_most, score_at_least, compare for two systems, and passes for what the
    session asks itself; with metric="faithful", group="topic=law" of one of several claims.
    """
    url, key = _celeus_service

    def gate(session: str, metric: str | None = None, group: str | None = None) -> SessionGate:
        def ask(
            thresholds: Mapping[str, float | str], system: str | None, margin: float | str | None
        ) -> None:
            __tracebackhide__ = True
            from celeus.gates.documents import part_of
            from celeus.gates.questions import question_of
            from celeus.gates.waiting import Gate

            wait = request.config.getoption("celeus_wait")

            def outcome() -> "Outcome":
                question = question_of(thresholds, system, margin)
                return Gate(url, session, key, part_of(metric, group)).outcome(question, wait)

            found = _refused_in_one_line(outcome)
            request.node.user_properties.append(("celeus", found.line()))
            _show(found, request.config.getoption("celeus_undecided"))

        return SessionGate(ask)

    return gate


def _show(found: "Outcome", undecided: str) -> None:
    __tracebackhide__ = True
    if found.answer == "yes":
        return
    if found.answer == "undecided" and undecided == "skip":
        pytest.skip(found.line())
    if found.answer == "undecided" and undecided == "xfail":
        pytest.xfail(found.line())
    _fail(found.line())


def _refused_in_one_line(work: Callable[[], T]) -> T:
    __tracebackhide__ = True
    from celeus.errors import InvalidValue, Refusal
    from celeus.shorten import one_line

    try:
        return _apart(work)
    except InvalidValue as refusal:
        # The command's options are names of methods and arguments here
        line = _OPTION.sub(lambda option: option[1].replace("-", "_"), refusal.line)
    except Refusal as refusal:
        line = refusal.line
    return _fail(one_line(f"celeus: {line}"))


def _apart(work: Callable[[], T]) -> T:
    """Return the result of ``work``, which runs in a thread if an event loop runs here."""
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return work()
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(work).result()


def _fail(line: str) -> NoReturn:
    __tracebackhide__ = True
    pytest.fail(line, pytrace=False)
