"""Certificates that somebody made fit, hostile files to verify, and the search for the seed."""

import base64
import io
import json
import pickle
import zipfile
from collections.abc import Callable
from typing import Any

import httpx
import numpy as np
import psycopg
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from celeus.core.certificate.chain import chain_head, chain_start
from celeus.core.certificate.document import signed
from celeus.core.certificate.verify import verify
from celeus.core.randomness import commitment
from celeus.errors import Refusal
from celeus.operations.certificates.npz import read_archive
from tests.api.contract import MISSING, ROUTES
from tests.attacks.tally import TRIES
from tests.attacks.world import World, build, judge, made
from tests.keys import ADMIN, bearer
from tests.nightly import NIGHTLY

STRANGER = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
Document = dict[str, Any]


@pytest.fixture
def world(client: httpx.Client) -> World:
    return build(client)


def closed_session(client: httpx.Client, pool: str, rounds: int = 12, **plan: object) -> bytes:
    """The final certificate of a session of its own."""
    session = made(client, "/v1/sessions", {"pool_id": pool} | plan)["id"]
    judge(client, session, rounds)
    client.patch(f"/v1/sessions/{session}", json={"state": "closed"})
    return client.get(f"/v1/sessions/{session}/certificate").content


def draws_of(document: Document) -> list[Document]:
    return [one for one in document["ledger"] if one["kind"] == "draw"]


def swap_draws(document: Document) -> None:
    first, second = draws_of(document)[:2]
    first["item"], second["item"] = second["item"], first["item"]


def another_commitment(document: Document) -> None:
    document["seed"] = "ab" * 32
    document["commitment"] = document["plan"]["commitment"] = commitment(bytes.fromhex("ab" * 32))


def better_loss(document: Document) -> None:
    judged = next(one for one in document["ledger"] if one["kind"] == "observation")
    judged["loss"] = 0.0


def narrower(document: Document) -> None:
    document["claim"]["interval"]["upper"] = document["claim"]["interval"]["lower"] + 0.01


def surer(document: Document) -> None:
    document["claim"]["alpha"] = document["plan"]["alpha"] = 1e-6


FORGERIES: dict[str, Callable[[Document, Document], object]] = {
    "draws swapped": lambda it, _: swap_draws(it),
    "another probability": lambda it, _: draws_of(it)[3].update(q=1.5 * draws_of(it)[3]["q"]),
    "a huge probability": lambda it, _: draws_of(it)[0].update(q=1e308),
    "a tiny probability": lambda it, _: draws_of(it)[0].update(q=5e-324),
    "another seed": lambda it, _: it.update(seed="ab" * 32),
    "another commitment": lambda it, _: another_commitment(it),
    "the end cut off": lambda it, _: it.update(ledger=it["ledger"][:-3]),
    "a record cut out": lambda it, _: it["ledger"].pop(4),
    "a better loss": lambda it, _: better_loss(it),
    "a narrower interval": lambda it, _: narrower(it),
    "a smaller alpha": lambda it, _: surer(it),
    "another's ledger": lambda it, other: it.update(ledger=other["ledger"]),
    "another's rounds": lambda it, other: it.update(rounds=other["rounds"]),
    "another's claim": lambda it, other: it.update(claim=other["claim"], plan=other["plan"]),
    "two ledgers": lambda it, other: it["ledger"].extend(other["ledger"]),
    "another pool": lambda it, _: it["pool"].update(items=1000 * it["pool"]["items"]),
}


def signed_by_stranger(document: Document) -> bytes:
    """With the chain computed again and a signature that fits, if of somebody else."""
    session = bytes.fromhex(document["session_id"].removeprefix("ses_"))
    start = chain_start(session, bytes.fromhex(document["plan_digest"]))
    head = chain_head(start, document["ledger"])
    body = {name: value for name, value in document.items() if name != "signature"}
    return signed(body | {"chain": {"start": start.hex(), "head": head.hex()}}, STRANGER)


def verified(
    client: httpx.Client, certificate: bytes, pool: bytes | None, *, over_http: bool = NIGHTLY
) -> Document:
    """The report of the service, or at once what its process would find: each takes its time."""
    if not over_http:
        try:
            archive = None if pool is None else io.BytesIO(pool)
            evidence = None if archive is None else read_archive(archive)
            return verify(certificate, evidence).to_dict()
        except Refusal as refusal:
            return {"valid": False, "refused": refusal.code}
    files = {"certificate": ("c.json", certificate)}
    if pool is not None:
        files["pool"] = ("p.npz", pool)
    answer = client.post("/v1/certificates/verify", files=files)
    assert answer.status_code in {200, 413, 422}, answer.text
    assert len(answer.content) < 10_000
    report: Document = answer.json()
    return {"valid": False, "refused": report["code"]} if answer.is_error else report


def test_no_forged_certificate_holds_before_its_pool(client: httpx.Client, world: World) -> None:
    pool = world.pools["scored"]
    true, other = closed_session(client, pool), closed_session(client, pool, 9, policy="celeus")
    columns = client.get(f"/v1/pools/{pool}/columns.npz").content
    assert verified(client, true, columns, over_http=True)["valid"]
    for name, forge in FORGERIES.items():
        document = json.loads(true)
        forge(document, json.loads(other))
        assert document != json.loads(true), name
        TRIES["forged certificates"] += 1
        report = verified(client, signed_by_stranger(document), columns)
        assert not report["valid"], name
        assert report["difference"]["where"], name


def test_the_true_certificate_signed_by_somebody_else_is_not_the_services(
    client: httpx.Client, world: World
) -> None:
    true = closed_session(client, world.pools["scored"])
    key = client.get("/v1/certificates/key").json()["public_key"]
    again = signed_by_stranger(json.loads(true))
    for content, valid in ((true, True), (again, False), (true + true, False)):
        answer = client.post(
            "/v1/certificates/verify",
            params={"key": key},
            content=content,
            headers={"Content-Type": "application/json"},
        )
        assert answer.json()["valid"] is valid


def npz(**arrays: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, content in arrays.items():
            archive.writestr(f"{name}.npy", content)
    return file.getvalue()


def npy(array: object, version: tuple[int, int] = (1, 0), *, pickled: bool = False) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asarray(array), version, allow_pickle=pickled)
    return file.getvalue()


class Evil:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, place: str) -> None:
        self.place = place

    def __reduce__(self) -> tuple[Any, ...]:
        return (open, (self.place, "w"))


def hostile_archives(place: str) -> dict[str, bytes]:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("groups.npy", b"\0" * (64 << 20))
    evil = np.empty(1, dtype=object)
    evil[0] = Evil(place)
    objects = npy(evil, pickled=True)
    digest = npy(np.array("00" * 32))
    names = npy(np.array([], dtype="<U1"))
    sized = npy(np.zeros(4)).replace(b"(4,)", b"(4000000000,)")
    return {
        "a bomb": packed.getvalue(),
        "a pickle": pickle.dumps(Evil(place)),
        "an array of objects": npz(groups=objects, items_digest=digest),
        "a size that is not there": npz(groups=names, items_digest=digest, proxy=sized),
        "complex numbers": npz(groups=names, items_digest=digest, proxy=npy(np.zeros(4, "c16"))),
        "other endians": npz(groups=names, items_digest=digest, proxy=npy(np.zeros(4, ">f8"))),
        "NaN": npz(groups=names, items_digest=digest, proxy=npy(np.full(40, np.nan))),
        "a digest that is none": npz(groups=names, items_digest=npy(np.array("zz"))),
        "a way out": npz(**{"../../../tmp/x": names, "groups": names, "items_digest": digest}),
        "nothing": b"",
        "an end without a beginning": packed.getvalue()[-22:],
        "a later version": npz(groups=npy(np.array(["a"]), (3, 0)), items_digest=digest),
    }


def test_hostile_archives_are_refused_and_execute_nothing(
    client: httpx.Client,
    world: World,
    tmp_path: Any,  # noqa: ANN401 - pytest's own
) -> None:
    true = closed_session(client, world.pools["scored"])
    place = tmp_path / "executed"
    archives = hostile_archives(str(place))
    for name, content in archives.items():
        TRIES["hostile archives"] += 1
        over_http = NIGHTLY or name == "an array of objects"
        assert not verified(client, true, content, over_http=over_http)["valid"], name
        assert not place.exists(), name


def hostile_documents(true: bytes) -> dict[str, bytes]:
    document = json.loads(true)
    return {
        "numbers": true.replace(b'"round":1', b'"round":' + b"1" * 5000, 1),
        "a great exponent": true.replace(b'"round":1', b'"round":1e400', 1),
        "NaN": true.replace(b'"round":1', b'"round":NaN', 1),
        "twice the same name": b'{"kind":"final",' + true[1:],
        "a mark before it": b"\xef\xbb\xbf" + true,
        "two glued": true + b"\n" + true,
        "a list of two": b"[" + true + b"," + true + b"]",
        "deep": b'{"ledger":' + b"[" * 50_000 + b"]" * 50_000 + b"}",
        "many members": json.dumps({str(i): i for i in range(50_000)}).encode(),
        "lone surrogates": json.dumps(document | {"kind": "\ud800"}).encode(),
        "a huge pool": json.dumps(
            document | {"pool": document["pool"] | {"items": 2**31 - 1}}
        ).encode(),
        "many draws": json.dumps(document | {"ledger": document["ledger"] * 400}).encode(),
        "text": b'"x"',
        "null": b"null",
    }


def test_hostile_documents_get_a_report_and_none_is_valid(
    client: httpx.Client, world: World
) -> None:
    true = closed_session(client, world.pools["scored"])
    for name, content in hostile_documents(true).items():
        TRIES["hostile documents and forms"] += 1
        assert not verified(client, content, None)["valid"], name


def test_hostile_forms_are_refused(client: httpx.Client) -> None:
    boundary = "multipart/form-data; boundary=x"
    part = b'--x\r\nContent-Disposition: form-data; name="certificate"; filename="c"\r\n\r\n'
    bodies = [
        (boundary, part * 5000),
        (boundary, part + b"a" * 100_000),
        (boundary, b"--x\r\n" + b"A: b\r\n" * 100_000),
        (boundary, b"--x\r\n" + b"A" * (1 << 20)),
        (boundary, b'--x\r\nContent-Disposition: form-data; name="key"\r\n\r\n' + b"k" * (1 << 20)),
        ("multipart/form-data; boundary=" + "x" * 10_000, b"--"),
        ("multipart/form-data; boundary*=utf-8''%ff", b"--"),
        ("multipart/form-data; charset=nothing; boundary=x", part + b"{}\r\n--x--\r\n"),
    ]
    for media, content in bodies:
        TRIES["hostile documents and forms"] += 1
        headers = {"Content-Type": media}
        answer = client.post("/v1/certificates/verify", content=content, headers=headers)
        assert answer.status_code in {200, 400, 413, 415, 422}, (media[:60], answer.text)
        assert answer.is_error or not answer.json()["valid"]


def spellings(seed: bytes) -> set[bytes]:
    """A seed, half a seed and its words, in every writing that an answer may hold."""
    found: set[bytes] = set()
    for part in (seed, seed[:16], seed[16:], seed[::-1]):
        found |= {part, part.hex().encode(), part.hex().upper().encode(), repr(part).encode()[2:-1]}
        found |= {str(int.from_bytes(part, order)).encode() for order in ("big", "little")}
        # Wherever it begins among other bytes, some letters of base64 are the same
        for before in range(3):
            middle = base64.b64encode(bytes(before) + part)[4:-4]
            found |= {middle, middle.replace(b"+", b"-").replace(b"/", b"_")}
    words = [seed[place : place + 8] for place in range(0, 32, 8)]
    found |= {str(int.from_bytes(word, "little")).encode() for word in words}
    found |= {str(int.from_bytes(word, "big")).encode() for word in words}
    return found | {", ".join(map(str, seed[:8])).encode(), ",".join(map(str, seed[:8])).encode()}


def test_no_answer_about_an_open_session_holds_its_seed(
    client: httpx.Client, world: World, database_url: str
) -> None:
    heard: list[bytes] = []

    def hear(answer: httpx.Response) -> None:
        heard.append(answer.read() + repr(answer.headers.multi_items()).encode())

    client.event_hooks["response"].append(hear)
    for name, session in world.sessions.items():
        if name == "closed":
            continue
        judge(client, session, 2)
        for path in ("", "/ledger", "/trajectory", "/certificate"):
            client.get(f"/v1/sessions/{session}{path}")
        for route in ROUTES:
            # The only answer that does not end is that of a stream
            if "{session_id}" in route.path and not route.path.endswith("/stream"):
                path = route.path.format_map(MISSING | {"session_id": session, "round": 1})
                client.request(route.method, path, json={"round": 1, "loss": 7, "worker": "w"})
        heard.append(beginning_of_stream(client, session))
        client.patch(f"/v1/sessions/{session}", json={"precision": 0.9})
    client.get("/v1/sessions")
    client.get("/metrics")
    TRIES["answers searched for a seed"] += len(heard)
    everything = b"".join(heard)
    assert everything.count(b"ledger_head") > 10
    with psycopg.connect(database_url) as db:
        seeds = db.execute("SELECT seed FROM sessions WHERE lifecycle <> 'closed'").fetchall()
    assert len(seeds) == len(world.sessions) - 1
    for (seed,) in seeds:
        assert not [one for one in spellings(bytes(seed)) if one in everything]


def beginning_of_stream(client: httpx.Client, session: str) -> bytes:
    with httpx.stream(
        "GET",
        client.base_url.join(f"/v1/sessions/{session}/stream"),
        headers=bearer(ADMIN),
        trust_env=False,
        timeout=20,
    ) as answer:
        found: bytes = next(answer.iter_bytes())
    return found
