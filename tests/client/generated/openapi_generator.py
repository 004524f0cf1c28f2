"""A session by the client that openapi-generator generated: address, key, labels."""

import sys

import celeus_generated as made

url, key, labels = sys.argv[1:]
with made.ApiClient(made.Configuration(host=url, access_token=key)) as client:
    items = [{"id": f"q-{at}", "surrogate": at / 40} for at in range(40)]
    form = {"name": "generated", "loss": {"kind": "zero_one"}, "items": items, "sealed": True}
    pool = made.PoolsApi(client).create_pool(made.PoolIn.from_dict(form))
    opening = made.SessionOpening(pool_id=pool.id, budget=int(labels))
    session = made.SessionsApi(client).open_session(opening)
    rounds = made.RoundsApi(client)
    told = rounds.next_draws(session.id, made.NextRequest(worker="generated"))
    while told.draws:
        draw = told.draws[0]
        said = {"loss": draw.item.index % 2, "worker": "generated", "next": 1}
        one = made.OneObservation.from_dict({"round": draw.round, **said})
        told = rounds.observe(session.id, made.Body(one))
    now = made.SessionsApi(client).get_session(session.id)
print(told.state, now.rounds.judged, now.lower, now.upper)
