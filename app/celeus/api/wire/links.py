"""Links of the contract: what of an answer the next request takes.

Documentation shows them, and generated clients and tests walk along them: from a pool to its
sessions, from a session to its draws, from a draw to its observation.
"""

from collections.abc import Iterator
from typing import Any

_BODY = "$response.body#"
_POOL = {"pool_id": f"{_BODY}/id"}
_SESSION = {"session_id": f"{_BODY}/id"}
_SAME_POOL = {"pool_id": "$request.path.pool_id"}
_SAME_SESSION = {"session_id": "$request.path.session_id"}
_OF_POOL = ("get_pool", "add_items", "seal_pool", "list_items", "get_columns")
_OF_SESSION = (
    "get_session",
    "change_session",
    "get_task",
    "next_draws",
    "get_trajectory",
    "get_ledger",
    "stream_session",
    "get_surrogate",
    "list_workers",
    "get_certificate",
    "get_report",
)

Link = tuple[str, str, dict[str, Any]]
"""From which operation to which, and what it takes along."""


def linked(contract: dict[str, Any], *, bodies: bool = False) -> dict[str, Any]:
    """The contract with its links; those to operations it does not have are left out.

    With ``bodies`` they say what the next body takes, too: openapi-generator refuses a contract in
    which such a body is an object, although the specification allows it.
    """
    operations = {
        operation["operationId"]: operation
        for path in contract["paths"].values()
        for operation in path.values()
    }
    for source, target, taken in _links():
        known = source in operations and target in operations
        members = taken if bodies else {"parameters": taken.get("parameters")}
        if known and (bodies or "parameters" in taken):
            answers = operations[source]["responses"]
            status = next(status for status in answers if status.startswith("2"))
            answers[status].setdefault("links", {})[target] = {"operationId": target} | members
    return contract


def _links() -> Iterator[Link]:
    for target in _OF_POOL:
        yield "create_pool", target, {"parameters": _POOL}
    for source in ("create_pool", "seal_pool"):
        yield source, "open_session", {"requestBody": {"pool_id": f"{_BODY}/id"}}
    yield "add_items", "seal_pool", {"parameters": _SAME_POOL}
    for target in _OF_SESSION:
        yield "open_session", target, {"parameters": _SESSION}
    for source in ("next_draws", "observe"):
        first = {"round": f"{_BODY}/draws/0/round", "worker": "$request.body#/worker"}
        yield source, "observe", _judged(first)
    yield "observe", "amend", _judged({"round": f"{_BODY}/receipt/round"})
    yield "observe", "get_session", {"parameters": _SAME_SESSION}
    for page in ("list_pools", "list_sessions", "get_ledger", "list_keys", "list_invitations"):
        along = _SAME_SESSION if page == "get_ledger" else {}
        yield page, page, {"parameters": along | {"after": f"{_BODY}/next"}}


def _judged(body: dict[str, str]) -> dict[str, Any]:
    description = "What the judge says is to be added to the body."
    return {"parameters": _SAME_SESSION, "requestBody": body, "description": description}
