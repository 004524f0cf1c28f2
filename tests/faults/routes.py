"""Every route that needs the database, to be asked while there is none."""

from httpx import AsyncClient, Response

from tests.faults.loads import Load, assert_worth_repeating

Route = tuple[str, str, dict[str, object] | None]
EVERY_ROUTE: list[Route] = [
    ("GET", "/readyz", None),
    ("GET", "/v1/pools", None),
    ("GET", "/v1/pools/{pool}", None),
    ("GET", "/v1/pools/{pool}/items", None),
    ("GET", "/v1/pools/{pool}/columns.npz", None),
    ("POST", "/v1/pools", {"name": "new", "loss": {"kind": "zero_one"}}),
    ("POST", "/v1/pools/{pool}/seal", None),
    ("GET", "/v1/sessions", None),
    ("GET", "/v1/sessions/{session}", None),
    ("GET", "/v1/sessions/{session}/trajectory", None),
    ("GET", "/v1/sessions/{session}/ledger", None),
    ("GET", "/v1/sessions/{session}/stream", None),
    ("POST", "/v1/sessions", {"pool_id": "{pool}"}),
    ("POST", "/v1/sessions/{session}/next", {"worker": "ada"}),
    ("POST", "/v1/sessions/{session}/observe", {"round": 1, "loss": 0, "worker": "ada"}),
    (
        "POST",
        "/v1/sessions/{session}/amendments",
        {"round": 1, "loss": 0, "author": "ada", "reason": "typo"},
    ),
    ("PATCH", "/v1/sessions/{session}", {"budget": 100}),
]


async def asked(client: AsyncClient, route: Route, load: Load) -> int:
    """Ask while there is no database: the status, which is worth repeating."""
    answer = await sent(client, route, load)
    assert_worth_repeating(answer)
    return answer.status_code


async def sent(client: AsyncClient, route: Route, load: Load) -> Response:
    """The answer of a route about the load's pool and session."""
    names = {"{pool}": load.pool.id, "{session}": load.session}
    method, path, body = route
    for name, real in names.items():
        path = path.replace(name, real)
    told = None if body is None else {key: names.get(str(it), it) for key, it in body.items()}
    return await client.request(method, path, json=told)
