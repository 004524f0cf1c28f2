"""A session by the client that openapi-generator generated: address, key, labels."""

import json
import sys

import celeus_generated as made

url, key, labels = sys.argv[1:]
lines = "\n".join(json.dumps({"id": f"q-{at}", "surrogate": at / 40}) for at in range(40))
with made.ApiClient(made.Configuration(host=url, access_token=key)) as client:
    file = made.PoolsApi(client).create_pool_from_file(
        lines.encode(), name="generated", kind="zero_one", idempotency_key="generated-2"
    )
    opening = made.SessionOpening(pool_id=file.pool.id, budget=int(labels))
    session = made.SessionsApi(client).open_session(opening)
    rounds = made.RoundsApi(client)
    told = rounds.next_draws(session.id, made.NextRequest(worker="generated"))
    while told.draws:
        draw = told.draws[0]
        said = {"loss": draw.item.index % 2, "worker": "generated", "next": 1}
        one = made.OneObservation.from_dict({"round": draw.round, **said})
        told = rounds.observe(session.id, made.Body(one))
    now = made.SessionsApi(client).get_session(session.id)
    made.SessionsApi(client).change_session(session.id, made.SessionChange(state="closed"))
    certificates = made.CertificatesApi(client)
    signed = certificates.get_certificate_with_http_info(session.id).raw_data
    # Of two forms of a body it sends JSON unless it is told
    report = certificates.verify_certificate(signed, _content_type="multipart/form-data")
print(told.state, now.rounds.judged, now.lower, now.upper, report.valid, report.kind)
