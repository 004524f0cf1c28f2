"""Strategies for pools that somebody made to break something.

Rows come in two kinds: coherent ones, which mostly make a pool, so that what lies behind the door
is reached, and those with one or more fields spoilt. Every encoding may be spoilt once more as
bytes.
"""

import csv
import decimal
import io
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

Row = dict[str, Any]

NDJSON = "application/x-ndjson"
CSV = "text/csv"
PARQUET = "application/vnd.apache.parquet"

TEXTS = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=12),
    st.sampled_from(
        [
            "",
            " ",
            "\0",
            "a\0b",
            "\ud800",
            "x\udfff",
            "\u202egnp.exe",
            "\ufeffid",
            "é",
            "e\u0301",
            "\U0010ffff",
            "\x1b[2J",
            "\\N",
            "\\.",
            "\\",
            "a\tb\nc\rd",
            "'; DROP TABLE items; --",
            '"',
            "{",
            "null",
            "NaN",
            "1_000",
            "x" * 256,
            "x" * 257,
        ]
    ),
)
FLOATS = st.one_of(
    st.floats(),
    st.sampled_from(
        [0.0, -0.0, 5e-324, -5e-324, 2.2e-308, 1e-300, 1e308, -1e308, 1 + 2**-52, 1 - 2**-53]
    ),
)
WHOLES = st.one_of(
    st.integers(-3, 3),
    st.sampled_from([2**31 - 1, 2**31, 2**53 + 1, 2**63, 2**64, 10**400, -(10**400)]),
)
SCALARS = st.one_of(st.none(), st.booleans(), WHOLES, FLOATS, TEXTS)
JUNK = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=6,
)
FIELDS = (
    "id",
    "payload",
    "surrogate",
    "surrogates",
    "proxy",
    "target_probs",
    "surrogate_probs",
    "prediction",
    "group",
)
SCALES: dict[str, dict[str, Any]] = {
    "zero_one": {"kind": "zero_one"},
    "cross_entropy": {"kind": "cross_entropy", "upper": 3.0},
    "bounded": {"kind": "bounded", "lower": -2.0, "upper": 7.0},
    "tiny": {"kind": "bounded", "lower": 0.0, "upper": 1e-14},
    "huge": {"kind": "bounded", "lower": -1e15, "upper": 1e15},
    "offset": {"kind": "bounded", "lower": 1e6, "upper": 1e6 + 1e-2},
}


def limits(scale: str) -> tuple[float, float]:
    """Least and greatest loss of a scale."""
    loss = SCALES[scale]
    return float(loss.get("lower", 0.0)), float(loss.get("upper", 1.0))


def losses(scale: str) -> st.SearchStrategy[float]:
    """Losses a judge may find, the ends of the scale among them."""
    lower, upper = limits(scale)
    if scale == "zero_one":
        return st.sampled_from([0.0, 1.0])
    return st.one_of(st.sampled_from([lower, upper]), st.floats(lower, upper))


@st.composite
def probabilities(draw: st.DrawFn, classes: int) -> list[float]:
    """Numbers that add up to 1, or miss it by no more than is allowed."""
    if draw(st.booleans()):
        chosen = draw(st.integers(0, classes - 1))
        return [float(position == chosen) for position in range(classes)]
    weights = draw(st.lists(st.floats(1e-9, 1.0), min_size=classes, max_size=classes))
    total = sum(weights) * draw(st.sampled_from([1.0, 1.0005, 0.9995]))
    return [min(weight / total, 1.0) for weight in weights]


@st.composite
def coherent_rows(draw: st.DrawFn, scale: str, most: int = 7) -> list[Row]:
    """Rows of one shape, within the scale: a pool, if a strange one."""
    lower, upper = limits(scale)
    scores = st.one_of(st.sampled_from([lower, upper]), st.floats(lower, upper))
    fields: dict[str, st.SearchStrategy[Any]] = {
        "surrogate": scores,
        "proxy": scores,
        "group": st.sampled_from(["a", "b", "\u202e", "'", "x" * 256]),
        "payload": st.dictionaries(st.text("ab", max_size=2), st.integers(-3, 3), max_size=2),
    }
    several = draw(st.integers(1, 3))
    fields["surrogates"] = st.lists(scores, min_size=several, max_size=several)
    if scale in {"zero_one", "cross_entropy"}:
        classes = draw(st.integers(2, 4))
        fields["target_probs"] = probabilities(classes)
        fields["surrogate_probs"] = probabilities(classes)
        if scale == "zero_one":
            fields["prediction"] = st.integers(0, classes - 1)
    chosen = draw(st.sets(st.sampled_from(sorted(fields))))
    if "surrogate_probs" in chosen:
        chosen.add("target_probs")
    chosen -= {"surrogates"} if "surrogate" in chosen else set()
    names = draw(
        st.lists(
            st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=9),
            min_size=1,
            max_size=most,
            unique=True,
        )
    )
    return [
        {"id": name} | {field: draw(fields[field]) for field in sorted(chosen)} for name in names
    ]


@st.composite
def spoilt_rows(draw: st.DrawFn, scale: str) -> list[Row]:
    """Coherent rows of which some fields are spoilt, left out, doubled or made up."""
    rows = draw(coherent_rows(scale))
    for _ in range(draw(st.integers(1, 3))):
        row = rows[draw(st.integers(0, len(rows) - 1))]
        field = draw(st.one_of(st.sampled_from(FIELDS), TEXTS))
        match draw(st.sampled_from(["junk", "gone", "double", "bad sum"])):
            case "junk":
                row[field] = draw(JUNK)
            case "gone":
                row.pop(field, None)
            case "double":
                rows.append(dict(row))
            case _:
                row["target_probs"] = draw(st.lists(FLOATS, max_size=3))
    return rows


def rows_of(scale: str) -> st.SearchStrategy[list[Row]]:
    """Rows that may or may not make a pool."""
    return st.one_of(coherent_rows(scale), spoilt_rows(scale))


def as_ndjson(rows: list[Row]) -> bytes:
    """One row on every line; NaN and infinities as JavaScript would write them."""
    return "\n".join(json.dumps(row) for row in rows).encode()


def as_csv(rows: list[Row]) -> bytes:
    """A table of the union of all columns, lists spread."""
    flat = [_spread(row) for row in rows]
    header = list(dict.fromkeys(name for row in flat for name in row))
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(header)
    for row in flat:
        writer.writerow([_cell(row.get(name)) for name in header])
    return out.getvalue().encode(errors="replace")


def as_parquet(rows: list[Row]) -> bytes:
    """A table in which lists and payloads are nested; unmixable columns become text."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {name: _column([row.get(name) for row in rows]) for name in names}
    # Names that UTF-8 cannot hold are no names of columns
    safe = {name.encode(errors="replace").decode(): column for name, column in columns.items()}
    out = io.BytesIO()
    pq.write_table(pa.table(safe), out)
    return out.getvalue()


ENCODERS: dict[str, Callable[[list[Row]], bytes]] = {
    NDJSON: as_ndjson,
    CSV: as_csv,
    PARQUET: as_parquet,
}


@st.composite
def odd_parquet(draw: st.DrawFn) -> bytes:
    """A true Parquet file whose columns have types that no item has, or odd ways to write them."""
    count = draw(st.integers(0, 4))
    table = {"id": pa.array([f"i{i}" for i in range(count)], draw(st.sampled_from(_ID_TYPES)))}
    for _ in range(draw(st.integers(0, 3))):
        name = draw(st.one_of(st.sampled_from((*FIELDS, *_SPREAD)), st.text("a.b", max_size=3)))
        kind = draw(st.sampled_from(sorted(_ODD)))
        table[name] = _ODD[kind](count)
    out = io.BytesIO()
    pq.write_table(
        pa.table(table),
        out,
        compression=draw(st.sampled_from(["none", "snappy", "gzip", "zstd", "brotli", "lz4"])),
        use_dictionary=draw(st.booleans()),
        row_group_size=draw(st.sampled_from([None, 1])),
        data_page_version=draw(st.sampled_from(["1.0", "2.0"])),
    )
    return out.getvalue()


@st.composite
def spoilt_bytes(draw: st.DrawFn, content: bytes) -> bytes:
    """The file cut off, with other bytes in it, with more before or behind it, or none at all."""
    place = draw(st.integers(0, max(0, len(content) - 1)))
    match draw(st.sampled_from(["cut", "head cut", "changed", "before", "behind", "empty"])):
        case "cut":
            return content[:place]
        case "head cut":
            return content[place:]
        case "changed":
            return content[:place] + draw(st.binary(min_size=1, max_size=4)) + content[place + 1 :]
        case "before":
            return draw(st.sampled_from([b"\0", b"PAR1", b"\xef\xbb\xbf", b"\xff\xfe"])) + content
        case "behind":
            return content + draw(st.sampled_from([b"\0", b"PAR1", b"\xff", b'{"id":', b'"\n']))
        case _:
            return b""


@st.composite
def uploads(draw: st.DrawFn, scale: str) -> tuple[str, bytes]:
    """Media type and bytes of an upload."""
    # For every Parquet file the server starts a process, which is bounded and slow
    media = draw(st.sampled_from([NDJSON, NDJSON, NDJSON, CSV, CSV, CSV, PARQUET]))
    content = ENCODERS[media](draw(rows_of(scale)))
    match draw(st.integers(0, 5)):
        case 0:
            content = draw(spoilt_bytes(content))
        case 1:
            media = draw(st.sampled_from(sorted(ENCODERS)))
    return media, content


def tables() -> st.SearchStrategy[bytes]:
    """Parquet files of items, of anything, or of nothing any more."""
    sound = st.sampled_from(sorted(SCALES)).flatmap(rows_of).map(as_parquet)
    whole = st.one_of(odd_parquet(), sound)
    return st.one_of(whole, whole.flatmap(spoilt_bytes))


def _spread(row: Row) -> Row:
    flat: Row = {}
    for name, value in row.items():
        if name in {"surrogates", "target_probs", "surrogate_probs"} and isinstance(value, list):
            flat |= {f"{name}.{position}": one for position, one in enumerate(value)}
        elif name == "payload" and isinstance(value, dict):
            flat |= {f"payload.{key}": one for key, one in value.items()}
        else:
            flat[name] = value
    return flat


def _cell(value: object) -> object:
    if isinstance(value, dict | list):
        return json.dumps(value)
    # More digits than Python writes at once would stop the test, not the service
    return f"{value:e}" if isinstance(value, int) and abs(value) > 10**300 else value


def _column(values: list[Any]) -> pa.Array:
    try:
        column = pa.array(values)
        # Parquet knows no struct without fields
        pq.write_table(pa.table({"column": column}), io.BytesIO())
    except (pa.ArrowException, OverflowError, ValueError, UnicodeError, TypeError):
        text = [None if one is None else json.dumps(one, default=str) for one in values]
        return pa.array(text, pa.string())
    return column


_SPREAD = ("target_probs.0", "target_probs.1", "surrogates.0", "payload.a", "payload.b")
_ID_TYPES = [pa.string(), pa.large_string(), pa.binary(), pa.string_view()]
_NOW = datetime(2026, 11, 21, tzinfo=UTC)
_ODD: dict[str, Callable[[int], pa.Array]] = {
    "dictionary": lambda n: pa.array(["a", "b", "a", "b"][:n]).dictionary_encode(),
    "numbers by dictionary": lambda n: pa.array([0.0, 1.0, 0.0, 1.0][:n]).dictionary_encode(),
    "decimal": lambda n: pa.array([decimal.Decimal("0.5")] * n, pa.decimal128(38, 18)),
    "wide decimal": lambda n: pa.array([decimal.Decimal(1)] * n, pa.decimal256(76, 0)),
    "timestamp": lambda n: pa.array([_NOW] * n, pa.timestamp("ns", "UTC")),
    "odd nanosecond": lambda n: pa.array([1] * n, pa.int64()).cast(pa.timestamp("ns")),
    "year 300000": lambda n: pa.array([2**63 - 1] * n, pa.int64()).cast(pa.timestamp("us")),
    "date": lambda n: pa.array([_NOW.date()] * n),
    "duration": lambda n: pa.array([2**62] * n, pa.int64()).cast(pa.duration("us")),
    "time": lambda n: pa.array([1] * n, pa.int64()).cast(pa.time64("ns")),
    "bytes": lambda n: pa.array([b"\xff\xfe"] * n),
    "fixed bytes": lambda n: pa.array([b"ab"] * n, pa.binary(2)),
    "half": lambda n: pa.array([0.5] * n, pa.float32()).cast(pa.float16()),
    "float": lambda n: pa.array([0.5] * n, pa.float32()),
    "unsigned": lambda n: pa.array([2**64 - 1] * n, pa.uint64()),
    "bool": lambda n: pa.array([True] * n),
    "null": pa.nulls,
    "NaN": lambda n: pa.array([float("nan")] * n),
    "list": lambda n: pa.array([[0.5, 0.5]] * n),
    "list with null": lambda n: pa.array([[None, 1.0]] * n),
    "fixed list": lambda n: pa.array([[0.5, 0.5]] * n, pa.list_(pa.float64(), 2)),
    "list of lists": lambda n: pa.array([[[0.5], [0.5]]] * n),
    "struct": lambda n: pa.array([{"a": 1, "b": {"c": None}}] * n),
    "empty struct list": lambda n: pa.array([[{"a": b"x"}]] * n),
    "map": lambda n: pa.array([[("a", 1), ("a", 2)]] * n, pa.map_(pa.string(), pa.int64())),
}
