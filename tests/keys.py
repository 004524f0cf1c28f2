"""Keys for tests: one that everybody here knows, and as many others as a test wants."""

import hashlib
import json
import secrets
from datetime import timedelta

import psycopg

ADMIN = "ce_0000000000000001_" + "known-to-every-test".ljust(43, "-")
"""An admin key of the default project; the databases of the tests let it in."""


def bearer(token: str = ADMIN) -> dict[str, str]:
    """The header that shows a key."""
    return {"Authorization": f"Bearer {token}"}


def let_in(database_url: str, token: str = ADMIN, *scopes: str, project: str = "default") -> None:
    """Have a database know a key, which may do everything unless scopes are named."""
    with psycopg.connect(database_url) as db:
        add_key(db, token, *scopes, project=project)


def add_key(
    db: psycopg.Connection, token: str = ADMIN, *scopes: str, project: str = "default"
) -> None:
    """The same, by a connection that there is."""
    _, key_id, secret = token.split("_", 2)
    db.execute(
        "INSERT INTO projects (project_id, name) VALUES (gen_random_uuid(), %s)"
        " ON CONFLICT (name) DO NOTHING",
        [project],
    )
    db.execute(
        "INSERT INTO keys (key_id, project_id, name, scopes, secret_hash)"
        " SELECT %s, project_id, 'of a test', %s, %s FROM projects WHERE name = %s"
        " ON CONFLICT (key_id) DO NOTHING",
        [
            key_id,
            json.dumps(scopes or ("admin",)),
            hashlib.sha256(secret.encode()).digest(),
            project,
        ],
    )


def key_in(
    database_url: str, *scopes: str, project: str = "default", life: timedelta | None = None
) -> str:
    """A new key of a project, which is made if need be; it works for ``life``."""
    token = f"ce_{secrets.token_hex(8)}_{secrets.token_urlsafe(32)}"
    let_in(database_url, token, *scopes, project=project)
    if life is not None:
        with psycopg.connect(database_url) as db:
            ending = "UPDATE keys SET expires_at = now() + %s WHERE key_id = %s"
            db.execute(ending, [life, token.split("_")[1]])
    return token
