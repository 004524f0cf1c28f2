"""`celeus admin keys`, on a named database and the private one; and the key `serve` shows."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import httpx
import psycopg
import pytest

from celeus.commands.service import serve as serving_command
from celeus.settings import Settings
from celeus.store.embedded import server as embedded
from tests.cli.calling import Answer, Run
from tests.cli.test_serve import Serving, environment, serving
from tests.keys import bearer
from tests.servers import Service, data_folder, free_port, put_cluster

TOKEN = re.compile(r"ce_([0-9a-f]{16})_([A-Za-z0-9_-]{43})")
SHOWN = re.compile(r"^celeus key: (ce_\S+)$", re.MULTILINE)
LINK = re.compile(r"(https?://\S+)/login#invite=([A-Za-z0-9_-]{43})")


@pytest.fixture
def named(run: Run, database_url: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The command line on a named database in which nobody has a key."""
    with psycopg.connect(database_url) as db:
        db.execute("DELETE FROM keys")
    monkeypatch.setenv("CELEUS_DATABASE_URL", database_url)
    return run


def made(answer: Answer) -> tuple[str, str]:
    """Id and secret of the key that a command printed."""
    assert answer.status == 0, answer.err
    found = TOKEN.fullmatch(answer.out.strip())
    assert found is not None, answer.out
    return found[1], found[2]


def test_a_key_is_printed_once_and_listed_without_its_secret(named: Run) -> None:
    assert named("admin", "keys", "list").out == ""
    created = named("admin", "keys", "create", "--name", "label studio", "--scope", "label")
    key_id, secret = made(created)
    assert key_id in created.err
    assert secret not in created.err
    project = ("--project", "vision", "--new-project", "--level", "0.1")
    more = ("--scope", "read", *project, "--expires-in", "30d")
    second = named("admin", "keys", "create", "--name", "b", "--scope", "label", *more, "--json")
    assert second.err == ""
    document = json.loads(second.out)
    assert document["key"].startswith(f"ce_{document['id']}_")
    listed = named("admin", "keys", "list")
    assert secret not in listed.out
    head, *rows = listed.out.splitlines()
    assert head.split() == [
        *("id", "name", "project", "scopes", "created"),
        *("expires", "last_used", "revoked", "replaced_by"),
    ]
    assert rows[0].startswith(f"{key_id}  label studio  default  label ")
    assert re.search(rf"^{document['id']}  b\s+vision\s+label,read ", rows[1])
    told = json.loads(named("admin", "keys", "list", "--json").out)
    assert [row["name"] for row in told] == ["label studio", "b"]
    assert told[0]["expires"] is None
    assert told[1]["expires"][:10] > told[1]["created"][:10]
    assert secret not in str(told)


def test_a_key_is_rotated_and_revoked_by_its_id_or_by_itself(named: Run) -> None:
    created = named("admin", "keys", "create", "--name", "a", "--scope", "read")
    key_id, _ = made(created)
    rotated = named("admin", "keys", "rotate", key_id, "--grace", "90m")
    new_id, _ = made(rotated)
    assert "90m" in rotated.err
    assert named("admin", "keys", "rotate", key_id).status == 1, "only once"
    assert named("admin", "keys", "revoke", created.out.strip()).status == 0
    assert named("admin", "keys", "revoke", key_id).status == 0, "again changes nothing"
    old, new = json.loads(named("admin", "keys", "list", "--json").out)
    assert (old["id"], old["replaced_by"], new["id"]) == (key_id, new_id, new_id)
    assert old["revoked"] is not None
    assert old["expires"] is not None
    assert new["revoked"] is None


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("create", "--name", "a", "--scope", "root"), "admin, manage, label, read"),
        (("create", "--name", "", "--scope", "read"), "name must have"),
        (("create", "--name", "a", "--scope", "read", "--project", "tpyo"), "no project 'tpyo'"),
        (("create", "--name", "a", "--scope", "read", "--expires-in", "soon"), "such as 90m"),
        (("create", "--name", "a", "--scope", "read", "--expires-in", "0d"), "above 0"),
        (("create", "--name", "a", "--scope", "read", "--expires-in", "999999w"), "36500 days"),
        (("revoke", "0123456789abcdef"), "no key '0123456789abcdef'"),
        (("rotate", "0123456789abcdef"), "no key '0123456789abcdef'"),
        (("rotate", "0123456789abcdef", "--grace", "-1h"), "such as 90m"),
        (("invite",), "either --name"),
        (
            ("invite", "--name", "a", "--key-id", "b", "--session", "ses_" + "0" * 32),
            "either --name",
        ),
        (("invite", "--name", "a", "--session", "ses_1"), "no session of this id"),
        (("invite", "--name", "a", "--session", "ses_" + "0" * 32), "no such session"),
        (("invite", "--name", "a", "--scope", "root"), "admin, manage, label, read"),
        (("invite", "--name", "a", "--scope", "read", "--link-expires-in", "0d"), "above 0"),
        (("invite", "--name", "a", "--scope", "read", "--url", "example.org"), "public_url"),
        (("invite", "--key-id", "0123456789abcdef"), "no key '0123456789abcdef'"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(
    named: Run, arguments: tuple[str, ...], told: str
) -> None:
    if arguments[-1] == "-1h":
        arguments = (*arguments[:-2], "--grace=-1h")
    answer = named("admin", "keys", *arguments)
    assert (answer.status, answer.out) == (1, "")
    assert answer.err.startswith("celeus: ")
    assert told in answer.err
    assert answer.err.count("\n") == 1


def test_a_database_without_the_tables_is_told_to_be_behind(
    named: Run, postgres_url: str, emptying: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    emptying.execute("CREATE DATABASE bare")
    try:
        monkeypatch.setenv("CELEUS_DATABASE_URL", postgres_url.replace("/celeus?", "/bare?"))
        answer = named("admin", "keys", "list")
    finally:
        emptying.execute("DROP DATABASE bare WITH (FORCE)")
    assert (answer.status, answer.out) == (1, "")
    assert "celeus admin migrate" in answer.err


def test_a_database_that_does_not_answer_is_told(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CELEUS_DATABASE_URL", f"postgresql://nobody@127.0.0.1:{free_port()}/none")
    answer = run("admin", "keys", "list")
    assert answer.status == 1
    assert "Connection refused" in answer.err


def told_at_a_start(
    capsys: pytest.CaptureFixture[str], url: str, *, host: str = "127.0.0.1", show: bool = True
) -> str:
    """What a start on a named database tells a terminal or, without `show`, a log."""
    settings = Settings(database_url=url, host=host)
    serving_command._tell_keys(settings, url, "http://127.0.0.1:8000", show=show)
    return capsys.readouterr().err


def test_a_named_database_gets_no_key_by_itself_and_none_into_a_log(
    named: Run, database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    told = told_at_a_start(capsys, database_url, show=False)
    assert "there is no key yet; make one: celeus admin keys create" in told
    assert not TOKEN.search(told)
    assert not LINK.search(told)
    made(named("admin", "keys", "create", "--name", "a", "--scope", "read"))
    told = told_at_a_start(capsys, database_url, show=False)
    assert "there is no key yet" not in told
    assert not TOKEN.search(told)
    assert not LINK.search(told)


def test_a_link_for_a_new_key_or_for_one_that_exists_is_printed_alone(named: Run) -> None:
    new = named(
        "admin", "keys", "invite", "--name", "Anna", "--scope", "read", "--url", "https://c.test/"
    )
    assert new.status == 0, new.err
    [(address, token)] = LINK.findall(new.out)
    assert (address, new.out.count("\n")) == ("https://c.test", 1)
    assert token not in new.err
    assert "as Anna" in new.err
    [row] = json.loads(named("admin", "keys", "list", "--json").out)
    assert (row["name"], row["scopes"]) == ("Anna", ["read"])
    assert row["expires"] is not None, "a key that lives on in a browser ends by itself"
    again = named("admin", "keys", "invite", "--key-id", row["id"])
    assert LINK.findall(again.out)[0][0] == "http://127.0.0.1:8000"
    assert len(json.loads(named("admin", "keys", "list", "--json").out)) == 1
    assert named("admin", "keys", "revoke", row["id"]).status == 0
    refused = named("admin", "keys", "invite", "--key-id", row["id"])
    assert (refused.status, refused.out) == (1, "")
    assert "revoked" in refused.err


def test_a_link_that_could_not_be_made_leaves_no_key(named: Run) -> None:
    assert (
        named("admin", "keys", "invite", "--name", "a", "--session", "ses_" + "0" * 32).status == 1
    )
    assert named("admin", "keys", "list").out == ""


def serve(*options: str) -> list[str]:
    return [sys.executable, "-m", "celeus.cli", "serve", *options]


@pytest.mark.timeout(240)
def test_a_private_database_shows_its_first_key_once_and_takes_commands_at_any_time(
    run: Run,
) -> None:
    with data_folder() as folder:
        data = folder / "data"
        where = ("--data-dir", str(data))
        refused = run("admin", "keys", "list", *where)
        assert (refused.status, "there is no database" in refused.err) == (1, True)
        assert not data.exists(), "an errand makes no database"
        put_cluster(data)

        with serving(
            serve(*where, "--show-key", "--port", "0", "--workers", "2"), folder
        ) as server:
            [first] = SHOWN.findall(server.log.read_text())
            assert signs_in_once(server)
            pools = f"{server.url}/v1/pools"
            assert httpx.get(pools, headers=bearer(first)).status_code == 200
            second = run("admin", "keys", "create", "--name", "b", "--scope", "read", *where)
            assert httpx.get(pools, headers=bearer(second.out.strip())).status_code == 200
            assert run("admin", "keys", "revoke", first, *where).status == 0
            deadline = time.monotonic() + 30
            while httpx.get(pools, headers=bearer(first)).status_code != 401:
                assert time.monotonic() < deadline
                time.sleep(0.2)
            assert embedded.pid(data) is not None, "a command stops no server of another"
        assert embedded.pid(data) is None

        third, _ = made(run("admin", "keys", "create", "--name", "c", "--scope", "admin", *where))
        assert third in run("admin", "keys", "list", *where).out
        assert embedded.pid(data) is None, "what a command started it stops"

        with serving(serve(*where, "--show-key", "--port", "0"), folder) as server:
            assert not SHOWN.search(server.log.read_text())
            assert signs_in_once(server), "by a key whose secret nobody knows any more"
            assert httpx.get(f"{server.url}/v1/pools", headers=bearer(first)).status_code == 401
        assert not TOKEN.search(server.log.read_text())


@pytest.mark.timeout(240)
def test_a_log_gets_no_key_and_a_link_has_the_address_at_which_the_service_runs(run: Run) -> None:
    with data_folder() as folder:
        where = ("--data-dir", str(put_cluster(folder / "our data")))
        invite = ("admin", "keys", "invite", "--name", "Anna", "--scope", "read", *where)
        with serving(serve(*where, "--port", "0"), folder) as server:
            log = server.log.read_text()
            assert not TOKEN.search(log)
            assert not LINK.search(log)
            assert f"make one: celeus admin keys create --data-dir '{folder / 'our data'}'" in log
            assert run("admin", "keys", "list", *where).out == "", (
                "a key that nobody sees is not made"
            )
            made(run("admin", "keys", "create", "--name", "me", "--scope", "admin", *where))
            [(address, token)] = LINK.findall(run(*invite).out)
            assert address == server.url
            signed_in = httpx.post(f"{address}/login", data={"invite": token})
            assert signed_in.status_code == 303
        assert server.process.returncode == 128 + signal.SIGTERM
        [(address, _)] = LINK.findall(run(*invite).out)
        assert address == "http://127.0.0.1:8000", "no service runs there any more"


@pytest.mark.nightly
@pytest.mark.timeout(240)
def test_a_terminal_is_shown_the_first_key_and_a_link() -> None:
    ours, its = pty.openpty()
    with data_folder() as folder:
        command = serve("--data-dir", str(put_cluster(folder / "data")), "--port", "0")
        process = subprocess.Popen(command, cwd=folder, env=environment(), stdout=its, stderr=its)
        os.close(its)
        try:
            shown = ""
            while "keys invite" not in shown:
                shown += os.read(ours, 4096).decode()
        finally:
            process.terminate()
            with suppress(OSError):
                # What it says at its end has to go somewhere
                while os.read(ours, 4096):
                    pass
            process.wait(60)
            os.close(ours)
    assert re.search(r"^celeus key: ce_", shown, re.MULTILINE)
    assert LINK.search(shown)


def test_a_first_admin_is_shown_one_link_until_it_was_used(
    named: Run, service: Service, database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    links = []
    for _ in range(3):
        # Nobody opens those of the first two starts
        shown = told_at_a_start(capsys, database_url)
        assert not TOKEN.search(shown), "a key for programs is made on demand"
        links += LINK.findall(shown)
    *earlier, (_, token) = links
    assert [signed_in(service.url, old) for _, old in earlier] == [401, 401]
    assert [signed_in(service.url, token) for _ in range(2)] == [303, 401]
    [key] = json.loads(named("admin", "keys", "list", "--json").out)
    assert (key["name"], key["scopes"], key["project"]) == ("first", ["admin"], "default")
    shown = told_at_a_start(capsys, database_url)
    assert not LINK.search(shown), "somebody is there who invites the others"
    assert "make another key" in shown


def signed_in(url: str, token: str) -> int:
    """Status of signing in by a link."""
    return httpx.post(f"{url}/login", data={"invite": token}, timeout=30).status_code


def test_no_link_is_shown_where_others_are_served_or_somebody_has_a_key(
    named: Run, database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = told_at_a_start(capsys, database_url, host="0.0.0.0")  # noqa: S104
    assert not LINK.search(shown)
    assert "there is no key yet" in shown
    made(named("admin", "keys", "create", "--name", "a", "--scope", "read"))
    assert not LINK.search(told_at_a_start(capsys, database_url))


def signs_in_once(server: Serving) -> bool:
    """Whether the link that the start has shown signs in, and then no more."""
    [(address, token)] = LINK.findall(server.log.read_text())
    assert address == server.url
    answers = [httpx.post(f"{server.url}/login", data={"invite": token}) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [303, 401]
    cookies = {"celeus": answers[0].cookies["celeus"]}
    return httpx.get(f"{server.url}/v1/pools", cookies=cookies).status_code == 200


@pytest.mark.nightly
@pytest.mark.timeout(240)
def test_of_two_servers_at_once_on_one_folder_one_shows_one_key() -> None:
    with data_folder() as folder:
        put_cluster(folder / "data")
        logs = [folder / f"{number}.log" for number in range(2)]
        processes = [started(folder, log) for log in logs]
        try:
            deadline = time.monotonic() + 60
            while all(process.poll() is None for process in processes):
                assert time.monotonic() < deadline, "one of them is refused"
                time.sleep(0.1)
            while not any(SHOWN.search(log.read_text()) for log in logs):
                assert time.monotonic() < deadline, "the other shows a key"
                time.sleep(0.1)
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                process.wait(60)
        told = [log.read_text() for log in logs]
        assert sum(len(SHOWN.findall(text)) for text in told) == 1
        assert any("already serves from" in text for text in told)


def started(folder: Path, log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as written:
        return subprocess.Popen(
            serve("--show-key", "--data-dir", str(folder / "data"), "--port", str(free_port())),
            cwd=folder,
            env=environment(),
            stdout=written,
            stderr=written,
        )
