"""The item as the contract shows it; what it must mean is checked by `core.pools.rows`."""

from typing import Any

from celeus.core.pools.rows.validation import (
    MAX_PAYLOAD_DEPTH,
    MAX_PAYLOAD_VALUES,
    MAX_SURROGATES,
    MAX_TEXT,
    SUM_TOLERANCE,
)
from celeus.core.pools.table_pool import MOST_VALUES
from celeus.core.pools.weights import LARGEST_RATIO, LARGEST_WEIGHT, LEAST_WEIGHT

ITEM_EXAMPLE: dict[str, Any] = {
    "id": "question-17",
    "payload": {"question": "What is the capital of Australia?"},
    "target_probs": [0.7, 0.2, 0.1],
    "surrogate_probs": [0.6, 0.1, 0.3],
}

PAIR_EXAMPLE: dict[str, Any] = {
    "id": "question-17",
    "payload": {"question": "What is the capital of Australia?"},
    "a": {"answer": "Canberra.", "surrogate": 0.1},
    "b": {"answer": "Sydney.", "surrogate": 0.7},
}

LINEUP_EXAMPLE: dict[str, Any] = {
    "id": "question-17",
    "payload": {"question": "What is the capital of Australia?"},
    "answers": {
        "qwen-72b": {"prediction": 2},
        "llama-70b": {"prediction": 0},
        "yi-34b": {"prediction": 2},
    },
}

TABLE_EXAMPLE: dict[str, Any] = {
    "id": "text-17",
    "payload": {"text": "...", "summary": "..."},
    "surrogates": {"faithful": 0.1, "stars": 1.5},
    "groups": {"language": "en", "topic": "law"},
}

_SCORE = "on the scale of the loss"
_PROBABILITIES = {
    "type": ["array", "null"],
    "items": {"type": "number", "minimum": 0, "maximum": 1},
    "minItems": 2,
}


CARRIED = (
    "carry the same: a `prediction`, an `answer`, or neither, and a `surrogate` of their loss or"
    " none. `payload` may be left out anywhere."
)


def _system(name: str) -> dict[str, Any]:
    """Return the schema of an item's part about one of two systems."""
    return {
        "description": f"What system {name} answered, in every item of a pool of two `systems` and"
        f" in no other. Both {CARRIED}",
        **_answered(),
    }


def _answered() -> dict[str, Any]:
    """Return the schema of an item's part about a system."""
    return {
        "type": ["object", "null"],
        "additionalProperties": False,
        "properties": {
            "prediction": {
                "type": ["integer", "null"],
                "minimum": 0,
                "description": "Its class, for zero_one losses: a label gives the losses of all.",
            },
            "answer": {
                "type": ["string", "null"],
                "description": "Its answer as text, which the judge is shown. Where all answers are"
                " equal there is no difference: such items are known, and are never drawn.",
            },
            "payload": {
                "type": ["object", "string", "null"],
                "description": "What else the judge is shown of this system's answer.",
            },
            "surrogate": {
                "type": ["number", "null"],
                "description": "A guess of the loss of this system, on its scale.",
            },
        },
    }


ITEM_SCHEMA: dict[str, Any] = {
    "type": "object",
    "title": "Item",
    "description": (
        "One unit of the population. All items of a pool carry the same optional fields, but for "
        "`known`, `loss_lower`, `loss_upper` and `bound_reason`; "
        "`payload` may be left out anywhere, and null counts as left out. Losses can only follow "
        "from labels where `prediction` or `target_probs` is given."
    ),
    "required": ["id"],
    "additionalProperties": False,
    "properties": {
        "id": {
            "type": ["string", "integer"],
            "minLength": 1,
            "maxLength": MAX_TEXT,
            "description": "Names the item; no other of its pool has the same; a whole"
            " number is the text of it.",
        },
        "payload": {
            "description": (
                "What the judge is shown: any JSON object or string, at most 1 MiB with every"
                f" number written out, {MAX_PAYLOAD_VALUES} members and elements, and"
                f" {MAX_PAYLOAD_DEPTH} levels. Numbers in it are smaller than 2^53 in size; longer"
                " ones, such as 64-bit ids, go as strings."
            ),
            "type": ["object", "string", "null"],
        },
        "surrogate": {"type": ["number", "null"], "description": f"A guess of the loss, {_SCORE}."},
        "surrogates": {
            "type": ["array", "object", "null"],
            "items": {"type": "number"},
            "minItems": 1,
            "maxItems": MAX_SURROGATES,
            "additionalProperties": {"type": ["number", "null"]},
            "description": f"Several guesses in place of one, {_SCORE}. In a pool of `metrics` an"
            " object: a guess of the loss of each, or of some, the same in all items.",
        },
        "proxy": {
            "type": ["number", "null"],
            "description": f"A proxy of the target's loss, {_SCORE}; items whose surrogate is far "
            "from it are drawn more often.",
        },
        "target_probs": _PROBABILITIES
        | {
            "description": "The target's probability of every class. Their sum may miss 1 by "
            f"{SUM_TOLERANCE:g}; they are divided by it."
        },
        "surrogate_probs": _PROBABILITIES
        | {"description": "The same of a small surrogate model, together with target_probs."},
        "prediction": {
            "type": ["integer", "null"],
            "minimum": 0,
            "description": "The target's class, for zero_one losses from labels.",
        },
        "group": {
            "type": ["string", "null"],
            "minLength": 1,
            "maxLength": MAX_TEXT,
            "description": "A part of the pool that policies may tell from the others; with it a"
            " session may make a claim of every part, as with `groups`.",
        },
        "groups": {
            "type": ["object", "null"],
            "additionalProperties": {"type": ["string", "integer", "null"]},
            "description": "The item's value in every group column, the same columns in all items:"
            f" a session may make a claim of every value. At most {MOST_VALUES} values a column.",
        },
        "weight": {
            "type": ["number", "null"],
            "minimum": LEAST_WEIGHT,
            "maximum": LARGEST_WEIGHT,
            "description": "How much the item counts: its traffic, its money, how often another"
            " population has its like. The claim is then about the weighted mean loss of the pool."
            f" In one pool the largest is at most {LARGEST_RATIO:g} times the least.",
        },
        "a": _system("a"),
        "b": _system("b"),
        "answers": {
            "type": ["object", "null"],
            "description": "What every system answered, by its name, in every item of a pool of"
            f" several `systems` and in no other. All {CARRIED}",
            "additionalProperties": _answered(),
        },
        "known": {
            "description": "The loss of this item, or the true label it follows from, where it is"
            " known beforehand; the item is never drawn. That it is true is an assumption, which"
            " every certificate names with its reasons. Items without it stand beside such. In a"
            " pool of `metrics` the losses that are known, by metric.",
            "anyOf": [
                {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {
                        "loss": {"type": "number", "description": f"The loss, {_SCORE}."},
                        "label": {
                            "type": "integer",
                            "minimum": 0,
                            "description": "The true class, in place of the loss.",
                        },
                        "reason": {
                            "type": "string",
                            "minLength": 1,
                            "maxLength": MAX_TEXT,
                            "description": "How it is known, for the certificate.",
                        },
                    },
                },
                {"type": "object", "additionalProperties": {"type": ["number", "null"]}},
                {"type": "null"},
            ],
        },
        "loss_lower": {
            "type": ["number", "null"],
            "description": f"The loss of this item is known to be at least this, {_SCORE}.",
        },
        "loss_upper": {
            "type": ["number", "null"],
            "description": f"The loss of this item is known to be at most this, {_SCORE}.",
        },
        "bound_reason": {
            "type": ["string", "null"],
            "minLength": 1,
            "maxLength": MAX_TEXT,
            "description": "Why its loss has these bounds: an assumption, as with `known`.",
        },
    },
    "examples": [ITEM_EXAMPLE, PAIR_EXAMPLE, LINEUP_EXAMPLE, TABLE_EXAMPLE],
}

BYTES: dict[str, Any] = {"type": "string", "format": "binary"}
"""A file: generators of clients make it bytes, whatever is in them."""

UPLOAD_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": (
            "Items, one `Item` on every line or row. CSV and Parquet spread lists over columns "
            "(`target_probs.0`, `target_probs.1`, …) and may spread a payload "
            "(`payload.question`). What is known of a loss goes into `known_loss` or `known_label`"
            " and `known_reason`, what two systems answered into `answer_a` or `prediction_a`,"
            " `payload_a`, `surrogate_a`, and the same for b, and what several answered into"
            " `answers.NAME.answer` or `answers.NAME.prediction`, and so on."
        ),
        "content": {
            "application/x-ndjson": {
                "schema": BYTES,
                "example": '{"id": "a", "surrogate": 0.2}\n{"id": "b", "surrogate": 0.7}\n',
            },
            "text/csv": {
                "schema": BYTES,
                "example": "id,surrogate,payload.question\na,0.2,Why?\nb,0.7,How?\n",
            },
            "application/vnd.apache.parquet": {"schema": BYTES},
        },
    }
}


FILE_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": (
            "Any table: CSV with any separator, JSON, JSON Lines, Parquet, one of these packed with"
            " gzip, or a log of lm-eval, Inspect, promptfoo or DeepEval; as the body, or as the one"
            " file of a form; JSON that is no object goes as `application/octet-stream`. Rows"
            " that are items are read as the items of a pool."
        ),
        "content": UPLOAD_BODY["requestBody"]["content"]
        | {
            # Without a type, generators have one that no program can check
            "application/json": {"schema": {"type": "object"}},
            "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
            "multipart/form-data": {
                "schema": {
                    "title": "FileForm",
                    "type": "object",
                    "required": ["file"],
                    "properties": {
                        "file": {
                            "type": "string",
                            "format": "binary",
                            "description": "The file; beside it members of the query.",
                        }
                    },
                }
            },
        },
    }
}
