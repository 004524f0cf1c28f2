"""Tools of the Model Context Protocol, each a request of the client's with the caller's key.

What a tool may do is what the scopes of its key allow; what the service declines is an error of the
tool in one sentence. Docstrings of tools are what an agent reads.
"""

import functools
import re
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, Literal, ParamSpec, TypeVar

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool

from celeus.agents.evaluation import Evaluation
from celeus.client.blocking import Client
from celeus.client.calls import SESSIONS
from celeus.client.service import check_session, own_version
from celeus.core.plans.subject import Subject
from celeus.errors import InvalidValue, Refusal
from celeus.gates.questions import question_of
from celeus.gates.waiting import Gate, veil
from celeus.shorten import one_line

P = ParamSpec("P")
R = TypeVar("R")
Document = dict[str, Any]

INSTRUCTIONS = (
    "Celeus certifies evaluation scores from few labels. Open a session on a pool, judge the items"
    " it draws until nothing more is drawn, and look at the interval, which is valid at every look."
    " Judge each item by itself, and say that it is unjudgeable where you cannot tell."
)
_OPTION = re.compile(r"(?<![\w-])--([a-z][a-z-]*)")
MOST_CLIENTS = 64
"""Keys whose connections are kept."""
MOST_SECONDS = 600.0
"""Longest wait of the tool `gate`."""


def refusing(tool: Callable[P, R]) -> Callable[P, R]:
    """Return the tool with what is refused as an error that the agent reads."""

    @functools.wraps(tool)
    def answered(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return tool(*args, **kwargs)
        except Refusal as refusal:
            raise ToolError(_in_arguments(one_line(refusal.line))) from None

    return answered


def _in_arguments(line: str) -> str:
    """Return a line with arguments of tools in place of options of the command."""
    return _OPTION.sub(lambda option: option[1].replace("-", "_"), line)


class Tools:
    """Tools on the service at ``url``, with ``key`` where the caller sends none."""

    def __init__(self, url: str, key: str | None) -> None:
        self._url, self._own = url, key
        self._client = functools.lru_cache(MOST_CLIENTS)(lambda key: Client(url, key, retry=False))

    def pools(self, ctx: Context) -> list[Document]:
        """List the pools of items: id, name, number of items, whether sealed. Needs scope read.

        A session is opened on a sealed pool.
        """
        shown = ("id", "name", "items", "sealed", "systems")
        return [{name: pool.raw.get(name) for name in shown} for pool in self._of(ctx).pools()]

    def open_session(  # noqa: PLR0913, PLR0917 -- members of the contract
        self,
        ctx: Context,
        pool: str,
        precision: float | None = None,
        at_most: float | None = None,
        at_least: float | None = None,
        budget: int | None = None,
        alpha: float = 0.05,
        name: str | None = None,
        subject: str | None = None,
    ) -> Document:
        """Open a session that measures the mean loss of a pool. Needs scope manage.

        Give one thing to stop at: precision, the width of the interval; at_most or at_least, a
        threshold of the mean loss to be answered yes or no; or budget, the most items to judge. The
        interval holds at every look with probability 1 - alpha. `subject`, as
        `NAME@sha256:DIGEST`, names in the certificate what is evaluated. Returns the session; its
        `id` is what the other tools take.
        """
        thresholds = {"at_most": at_most, "at_least": at_least}
        questions = [
            {"side": side, "threshold": threshold}
            for side, threshold in thresholds.items()
            if threshold is not None
        ]
        asked: Document = {"precision": precision, "budget": budget, "name": name, "alpha": alpha}
        # A digest alone: the name of a file would be one of this machine's
        asked["subject"] = None if subject is None else [Subject.of(subject).to_dict()]
        if precision is budget is None and not questions:
            rule = "precision, at_most, at_least or budget"
            raise InvalidValue(f"nothing would stop this session: give {rule}", rule=rule)
        return self._opened(ctx, pool, asked | ({"questions": questions} if questions else {}))

    def compare(  # noqa: PLR0913, PLR0917 -- members of the contract
        self,
        ctx: Context,
        pool: str,
        margin: float,
        budget: int | None = None,
        alpha: float = 0.05,
        name: str | None = None,
    ) -> Document:
        """Open a session that says which of a pool's two systems is better. Needs scope manage.

        It ends with one being at least as good as the other, or with both equivalent within the
        margin, a difference of mean losses that does not matter. The pool was made of the answers
        of two systems.
        """
        asked = {"decide": {"margin": margin}, "budget": budget, "name": name, "alpha": alpha}
        return self._opened(ctx, pool, asked)

    def next_item(self, ctx: Context, session: str, worker: str) -> Document:
        """Draw the next item to judge. Needs scope label.

        `draws` has its round, and its item with the payload to be judged; of two systems the
        answers are left and right, and nothing tells whose they are. `worker` is a name of yours,
        the same in every call: what you hold comes back to you. Where `draws` is empty, ask again
        after `retry_after` seconds if `state` is all_leased or waiting; else you are done.
        """
        return self._asked(ctx, "POST", session, "next", {"worker": worker, "count": 1})

    def judge(  # noqa: PLR0913, PLR0917 -- members of the contract
        self,
        ctx: Context,
        session: str,
        worker: str,
        round: int,  # noqa: A002 -- as the contract has it
        loss: float | None = None,
        losses: dict[str, float] | None = None,
        preference: Literal["left", "tie", "both_bad", "right"] | None = None,
        label: int | None = None,
        unjudgeable: str | None = None,
        comment: str | None = None,
    ) -> Document:
        """Judge an item that `next_item` gave you, for good. Needs scope label.

        Give exactly one of: loss (0 is right, 1 is wrong, or a number on the pool's scale), losses
        of `left` and `right`, a preference between them, label (the true class), or unjudgeable
        with the reason, where nobody could tell.
        """
        judgement: Document = {"loss": loss, "losses": losses, "preference": preference}
        judgement |= {"label": label, "unjudgeable": unjudgeable, "comment": comment}
        given = {name: value for name, value in judgement.items() if value is not None}
        body = {"worker": worker, "round": round, "next": 0} | given
        return self._asked(ctx, "POST", session, "observe", body)

    def look(self, ctx: Context, session: str) -> Document:
        """Return how a session stands: interval, estimate, answers and state. Needs scope read.

        Looking costs nothing: the interval is valid at every look. A judge who is to be blind has
        a key that may not look.
        """
        return self._asked(ctx, "GET", session)

    def gate(  # noqa: PLR0913, PLR0917 -- options of `celeus gate`
        self,
        ctx: Context,
        session: str,
        at_most: str | None = None,
        at_least: str | None = None,
        score_at_most: str | None = None,
        score_at_least: str | None = None,
        compare: str | None = None,
        margin: str | None = None,
        wait: float = 0.0,
    ) -> Document:
        """Answer yes, no or undecided to a question about a session. Needs scope read.

        Without a question, to those that the session was opened with. at_most and at_least are
        thresholds of the mean loss, with score_ before them of the pool's score, such as 0.1 or
        10%; compare names the system that may replace the other one if it is worse by at most the
        margin. Waits up to so many seconds for an answer.
        """
        thresholds = {"--at-most": at_most, "--at-least": at_least}
        thresholds |= {"--score-at-most": score_at_most, "--score-at-least": score_at_least}
        question = question_of(thresholds, compare, margin)
        found = Gate(self._url, session, self._key(ctx))
        return found.outcome(question, min(max(wait, 0.0), MOST_SECONDS)).to_dict()

    def _opened(self, ctx: Context, pool: str, asked: Document) -> Document:
        form = {name: value for name, value in asked.items() if value is not None}
        try:
            return self._sent(ctx, "POST", SESSIONS, {"pool_id": pool, **form})
        except Refusal as refusal:
            if refusal.field != "best":
                raise
            rule = "one of a single system, or of two for `compare`"
            message = f"the pool has several systems: these tools measure {rule}"
            raise InvalidValue(message, field="pool", rule=rule) from None

    def _asked(
        self, ctx: Context, method: str, session: str, what: str = "", body: object = None
    ) -> Document:
        check_session(session)
        return self._sent(ctx, method, f"{SESSIONS}/{session}/{what}".rstrip("/"), body)

    def _sent(self, ctx: Context, method: str, path: str, body: object) -> Document:
        document: Document = self._of(ctx).request(method, path, body)
        return document

    def _key(self, ctx: Context) -> str:
        """Return the key that the request was sent with over HTTP; without one the server's own.

        Refuses a request with an `Authorization` that has no key, and one that no key is there for.
        """
        sent = (ctx.headers or {}).get("authorization")
        scheme, _, key = (sent or "").partition(" ")
        given = self._own if sent is None else key.strip() * (scheme.lower() == "bearer")
        if not given:
            rule = "a key of the service, as `Authorization: Bearer ce_…`"
            raise InvalidValue(f"there is no key: send {rule}", field="Authorization", rule=rule)
        return given

    def _of(self, ctx: Context) -> Client:
        key = self._key(ctx)
        try:
            return self._client(key)
        except Refusal as refusal:
            veil(key, refusal)
            raise


class EvaluationTools:
    """Tools to propose candidates to a gate whose items stay hidden."""

    def __init__(self, evaluation: Evaluation) -> None:
        self._evaluation = evaluation

    def propose(self, candidate: str) -> Document:
        """Propose a candidate, the whole text of it, in place of the incumbent.

        It is accepted where it is better on items that you do not see, and is the incumbent then;
        else it is rejected. `lower` and `upper` hold the improvement of the mean loss. However many
        you propose, one that is not better is hardly ever accepted. What is rejected makes the next
        test stricter: propose what you believe in. It may take minutes.
        """
        return asdict(self._evaluation.propose(candidate))

    def budget(self) -> Document:
        """Return what is left: of alpha for all further proposals, and the level of the next."""
        return asdict(self._evaluation.budget())


def server_of(tools: Tools | None, evaluation: Evaluation | None) -> MCPServer:
    """Return the server of these tools; without a service those of the gate alone."""
    offered: list[Callable[..., Any]] = []
    if tools is not None:
        offered += [tools.pools, tools.open_session, tools.compare, tools.next_item]
        offered += [tools.judge, tools.look, tools.gate]
    if evaluation is not None:
        hidden = EvaluationTools(evaluation)
        offered += [hidden.propose, hidden.budget]
    return MCPServer(
        "celeus",
        instructions=INSTRUCTIONS,
        version=own_version(),
        log_level="WARNING",
        tools=[*map(_registered, offered)],
    )


def _registered(function: Callable[..., Any]) -> Tool:
    """Return the tool of a function, which refuses unknown arguments and values of other types."""
    tool = Tool.from_function(refusing(function))
    arguments = tool.fn_metadata.arg_model
    # Else `true` and "1" are losses of 1.0
    arguments.model_config.update(extra="forbid", strict=True)
    arguments.model_rebuild(force=True)
    tool.parameters = arguments.model_json_schema(by_alias=True)
    return tool
