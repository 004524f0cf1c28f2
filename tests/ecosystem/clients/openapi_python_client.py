"""A session by the client that openapi-python-client generated: address, key, labels."""

import json
import sys
from io import BytesIO

from celeus_client import AuthenticatedClient, models
from celeus_client.api.certificates import get_certificate, verify_certificate
from celeus_client.api.pools import create_pool_from_file
from celeus_client.api.rounds import next_draws, observe
from celeus_client.api.sessions import change_session, open_session
from celeus_client.types import File

url, key, labels = sys.argv[1:]
client = AuthenticatedClient(base_url=url, token=key)
lines = "\n".join(json.dumps({"id": f"q-{at}", "surrogate": at / 40}) for at in range(40))
made = create_pool_from_file.sync(
    client=client,
    body=File(BytesIO(lines.encode())),
    name="generated",
    kind=models.CreatePoolFromFileKind("zero_one"),
    idempotency_key="generated-1",
)
opening = models.SessionOpening(pool_id=made.pool.id, budget=int(labels))
session = open_session.sync(client=client, body=opening)
asked = models.NextRequest(worker="generated")
told = next_draws.sync(session.id, client=client, body=asked)
while told.draws:
    draw = told.draws[0]
    said = {"loss": float(draw.item.index % 2), "worker": "generated"}
    body = models.OneObservation(round_=draw.round_, next_=1, **said)
    told = observe.sync(session.id, client=client, body=body)
closed = models.SessionChange(state=models.SessionChangeStateType0("closed"))
change_session.sync(session.id, client=client, body=closed)
signed = get_certificate.sync_detailed(session.id, client=client).content
form = models.VerifyCertificateFilesVerificationForm(
    certificate=File(BytesIO(signed), "certificate.json", "application/json")
)
report = verify_certificate.sync(client=client, body=form)
now = told.session
print(told.state, now.rounds.judged, now.lower, now.upper, report.valid, report.kind)
