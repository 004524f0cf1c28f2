"""Files and frames as they are become pools by what their columns mean."""

import gzip
from pathlib import Path
from typing import Any

import pytest

from celeus import Client, Problem, Refusal
from celeus.errors import NeedsAnswer

FRAGEN = "Nr;Frage;Antwort\n7;Wer?;Ada\n8;Wo?;Köln\n".encode("cp1252")
MAPPING = {"Frage": "question", "Nr": "id"}


def shown(client: Client, items: object, **members: Any) -> list[tuple[str, Any]]:  # noqa: ANN401
    pool = client.create_pool("Fragen", items, **members)
    return [(item.id, item.payload) for item in client.items(pool)]


@pytest.mark.parametrize("packed", [False, True])
def test_a_file_of_any_form_is_sent_as_it_lies(
    client: Client, tmp_path: Path, *, packed: bool
) -> None:
    path = tmp_path / ("Fragen.csv.gz" if packed else "Fragen.csv")
    path.write_bytes(gzip.compress(FRAGEN) if packed else FRAGEN)
    own = {"Nr": "id", "Antwort": "text"}
    assert shown(client, path, mapping=own) == [("7", {"text": "Ada"}), ("8", {"text": "Köln"})]
    path.write_bytes(b"Prompt,Response\nWhy?,So.\n")
    assert shown(client, path) == [("1", {"question": "Why?", "answer": "So."})]


def test_rows_may_have_columns_of_their_own(client: Client) -> None:
    rows = [{"Nr": 7, "Frage": "Wer?"}, {"Nr": 8, "Frage": "Wo?"}]
    found = [("7", {"question": "Wer?"}), ("8", {"question": "Wo?"})]
    assert shown(client, rows, mapping=MAPPING) == found


def test_a_mapping_that_fits_no_column_is_refused_by_name(client: Client) -> None:
    with pytest.raises(Refusal, match="no such column") as caught:
        client.create_pool("Fragen", [{"Frage": "Wer?"}], mapping=MAPPING)
    assert caught.value.field == "mapping.Nr"


STARS = b"id,question,answer,stars,mood\n" + b"".join(
    b"%d,Why?,So.,%d,%d\n" % (at // 2, 1 + at % 5, at % 2) for at in range(10)
)


def test_what_a_file_leaves_open_is_asked_and_answered_by_name(
    client: Client, tmp_path: Path
) -> None:
    path = tmp_path / "stars.csv"
    path.write_bytes(STARS)
    mapping = {"id": "id", "question": "question", "answer": "answer", "stars": "score"}
    with pytest.raises(NeedsAnswer) as caught:
        client.create_pool("stars", path, mapping=mapping)
    assert isinstance(caught.value, Problem)
    assert [one["name"] for one in caught.value.questions] == ["better", "scale", "repeats"]
    for line in ('better="higher": ', 'scale="1 to 5": ', 'repeats="first": '):
        assert line in str(caught.value)
    answers: dict[str, Any] = {"better": "higher", "scale": (1, 5), "repeats": "first"}
    pool = client.create_pool("stars", path, mapping=mapping, missing=-1, **answers)
    assert (pool.items, pool.sealed) == (5, True)
    assert pool.intake is not None
    assert pool.intake["answers"] == {
        "better": ["higher"],
        "scale": ["1 to 5"],
        "missing": ["-1"],
        "repeats": "first",
    }
