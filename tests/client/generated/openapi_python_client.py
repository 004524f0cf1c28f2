"""A session by the client that openapi-python-client generated: address, key, labels."""

import sys

from celeus_client import AuthenticatedClient, models
from celeus_client.api.pools import create_pool
from celeus_client.api.rounds import next_draws, observe
from celeus_client.api.sessions import open_session

url, key, labels = sys.argv[1:]
client = AuthenticatedClient(base_url=url, token=key)
items = [{"id": f"q-{at}", "surrogate": at / 40} for at in range(40)]
form = {"name": "generated", "loss": {"kind": "zero_one"}, "items": items, "sealed": True}
pool = create_pool.sync(client=client, body=models.PoolIn.from_dict(form))
opening = models.SessionOpening(pool_id=pool.id, budget=int(labels))
session = open_session.sync(client=client, body=opening)
asked = models.NextRequest(worker="generated")
told = next_draws.sync(session.id, client=client, body=asked)
while told.draws:
    draw = told.draws[0]
    said = {"loss": float(draw.item.index % 2), "worker": "generated"}
    body = models.OneObservation(round_=draw.round_, next_=1, **said)
    told = observe.sync(session.id, client=client, body=body)
print(told.state, told.session.rounds.judged, told.session.lower, told.session.upper)
