"""JSON whose objects have each name once: of a repeated one readers keep the first or the last."""

from collections import Counter
from json import JSONDecoder
from typing import Any

from celeus.errors import InvalidValue


def named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of these members; refuses a repeated name."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise InvalidValue(
            "A name stands twice in an object: readers would disagree on its value.",
            field="body",
            rule="every name once in an object",
            value=Counter(name for name, _ in pairs).most_common(1)[0][0],
        )
    return found


_DECODER = JSONDecoder(object_pairs_hook=named_once)


def json_of(text: str | bytes, field: str = "body") -> Any:  # noqa: ANN401 -- any JSON
    """Return the value of a JSON text in UTF-8, NaN allowed; refuses a repeated name.

    ``field`` is what the refusal names.
    """
    try:
        return _DECODER.decode(text if isinstance(text, str) else text.decode("utf-8-sig"))
    except InvalidValue as refusal:
        refusal.field = field
        raise
