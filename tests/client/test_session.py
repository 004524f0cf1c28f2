"""A session followed live, read, corrected and deleted."""

import sys
import threading

import httpx2
import pytest

import celeus
from celeus import Client, Problem
from celeus.client.rows import frame_of
from celeus.errors import InvalidValue
from tests.client.pools import Exam
from tests.keys import ADMIN
from tests.servers import Service


class Breaking(httpx2.HTTPTransport):
    """Breaks every stream of events behind its first one."""

    class _Cut(httpx2.SyncByteStream):
        def __init__(self, answer: httpx2.Response) -> None:
            self.answer = answer

        def __iter__(self):  # type: ignore[no-untyped-def] # noqa: ANN204
            for part in self.answer.iter_raw():
                yield part
                if b"\n\n" in part and b"data:" in part:
                    raise httpx2.ReadError("the line is dead")

        def close(self) -> None:
            self.answer.close()

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        answer = super().handle_request(request)
        if not request.url.path.endswith("/stream"):
            return answer
        return httpx2.Response(
            answer.status_code, headers=answer.headers, stream=self._Cut(answer), request=request
        )


def test_a_broken_stream_goes_on_where_it_was(
    service: Service, session: celeus.Session, known: Exam
) -> None:
    def judge() -> None:
        for number, item in enumerate(session.draws()):
            if number == 3:
                break
            item.observe(known(item))
        session.close()

    with httpx2.Client(transport=Breaking()) as http, Client(service.url, ADMIN, http=http) as seen:
        judging = threading.Thread(target=judge)
        judging.start()
        statuses = list(seen.session(session.id).follow())
        judging.join()
    assert statuses[-1].state == "closed"
    sequences = [status.sequence for status in statuses]
    assert sequences == sorted(sequences)


def test_a_stream_that_is_refused_says_why(client: Client) -> None:
    with pytest.raises(Problem) as refused:
        next(client.session(f"ses_{'0' * 32}").follow())
    assert refused.value.code == "session_not_found"


def test_a_session_is_read_changed_and_corrected(session: celeus.Session, known: Exam) -> None:
    item = next(draws := session.draws())
    item.observe(known(item))
    draws.close()
    corrected = session.amend(item.round, "misread", loss=1 - known(item))
    assert corrected is not None
    assert corrected.revision == 2
    assert session.change(precision=0.15).precision == 0.15
    session.judge(known, concurrency=2)
    points = session.trajectory()
    assert [point.round for point in points] == list(range(1, len(points) + 1))
    assert len(session.trajectory(10)) <= 12
    assert "<svg" in session._repr_html_()
    assert session.close().state == "closed"
    assert "<html" in session.report()
    assert [listed.id for listed in session.client.sessions(known.pool, state="closed")] == [
        session.id
    ]


def test_an_id_that_is_none_is_refused_before_it_is_asked(client: Client) -> None:
    with pytest.raises(celeus.Refusal, match="session must be"):
        client.session("pool_1")


def test_labels_are_read_page_by_page_with_filters(session: celeus.Session, known: Exam) -> None:
    session.judge(known, concurrency=1, worker="ada")
    labels = list(session.labels())
    assert [label.round for label in labels] == list(range(1, session.status().rounds.judged + 1))
    assert {label.loss for label in labels} == {0, 1}
    assert all(label.loss == known.losses[label.index] for label in labels)
    assert all(0 < label.probability <= 1 for label in labels)
    wrong = [label.round for label in labels if label.loss == 1]
    assert [label.round for label in session.labels(above=0, limit=7)] == wrong
    first = next(session.labels(payload=True, order="newest"))
    assert (first.round, first.payload) == (labels[-1].round, {"number": first.index})


def test_without_pandas_a_frame_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InvalidValue, match="pip install pandas"):
        frame_of([])


def test_a_session_is_deleted_once_and_told_of_as_often_as_asked(
    session: celeus.Session, known: Exam
) -> None:
    client = session.client
    session.judge(known, concurrency=1, worker="ada")
    final = session.close()
    with pytest.raises(Problem, match="not archived") as refused:
        session.delete()
    assert refused.value.code == "session_not_archived"
    session.change(archived=True)
    stone = session.delete(purge=session.id)
    assert (stone.id, stone.state, stone.sequence) == (session.id, "closed", final.sequence)
    assert session.delete() == stone
    assert list(client.tombstones(final.pool_id)) == [stone]
    with pytest.raises(Problem) as gone:
        session.status()
    assert gone.value.code == "session_not_found"
    client.request("PATCH", f"/v1/pools/{final.pool_id}", {"archived": True})
    client.delete_pool(final.pool_id)
    assert final.pool_id not in [pool.id for pool in client.pools()]
    assert list(client.tombstones()) == [stone]
