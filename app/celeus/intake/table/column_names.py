"""Meanings of the names of columns: a role, a direction, a verdict, a model, a place."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache


def words(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


IDS = (
    "id item_id question_id example_id sample_id doc_id qid task_id problem_id prompt_id"
    " instance_id custom_id test_id case_id record_id query_id segment_id seg_id hit_id"
    " conversation_id uid"
)
"""Names of what tells items apart: rows that share one are of one item."""
POSITIONS = "row_id nr no number index line_number"
ROW_NUMBERS = f"{POSITIONS} uuid guid key"
_SYSTEM_RUNS = words("run epoch trial attempt sample completion repeat repetition iteration seed")
"""Names of columns that number the runs of a system on one item."""
_RUNS = (_SYSTEM_RUNS - words("sample completion")) | words(
    "worker annotator rater reviewer labeler labeller coder assignment"
    " turn metric criterion criteria aspect dimension"
)
"""Names of columns by which rows of one item differ: people, runs of a model, or what is scored."""
_NUMBERS = words("id index no number name")
NAMES: Mapping[str, str] = {
    "instructions": "instructions rubric guidelines anleitung",
    "messages": "messages conversation conversations chat dialog dialogue turns history mapping"
    " transcript prompt input request",
    "question": "question prompt query instruction problem user_input user_message user_prompt"
    " request question_text question_content problem_statement input frage pregunta pergunta"
    " domanda questions goal human",
    "answer": "model_answer model_response model_output response actual_output prediction"
    " predicted_answer prediction_text predicted_text pred preds actual"
    " llm_answer llm_response llm_output assistant_response generated_text generated_answer"
    " generation completion output reply answer assistant hypothesis candidate summary"
    " generated_summary translation mt caption antwort respuesta réponse reponse resposta risposta"
    " filtered_resps modellantwort",
    "reference": "reference reference_answer reference_summary gold_summary reference_translation"
    " references expected expected_output expected_answer"
    " ground_truth gold gold_answer golden correct_answer right_answer true_answer best_answer"
    " ideal target truth solution answers musterlösung musterloesung lösung loesung referenz"
    " erwartet",
    "image": "image img picture photo image_url img_url picture_url bild thumbnail",
    "text": "text context contexts retrieved_contexts retrieval_context passage document article"
    " content body source premise story kontext input",
    "choices": "choices options auswahl",
    "weight": "weight weights sample_weight gewicht",
    "surrogate": "surrogate loss predicted_loss error_probability guessed_loss",
    "score": "score correct is_correct confidence probability p_correct acc accuracy exact_match"
    " passed success judge_score predicted_score",
    "group": "group category subject topic task subset domain language lang difficulty kategorie"
    " thema fach sprache section",
}
_HIGHER = words(
    "correct is_correct p_correct accuracy acc acc_norm exact_match em f1 passed pass pass_at_1"
    " success solved resolved correctness"
)
_LOWER = words(
    "loss predicted_loss guessed_loss error is_error error_rate error_probability incorrect"
    " is_incorrect wrong is_wrong failed perplexity"
)
_FORESEEN = words(
    "confidence probability p_correct predicted_score surrogate predicted_loss error_probability"
    " guessed_loss"
)
"""Names of guesses of a score, or of a loss, by who has not seen it."""
ERRORS = words(
    "error errors err has_error is_error had_error error_message error_msg error_text error_type"
    " error_code exception exceptions exception_message"
)
ANSWERS = words("answer antwort respuesta réponse reponse resposta risposta")
"""Names of what a model answered, and as often of what it is held against."""
_REPLIES = words("answer response output completion prediction generation reply")
_RIGHT = words(
    "reference expected correct gold golden right true truth ideal best target incorrect wrong"
)
"""Words for an answer that something is held against."""
REMARKS = words("note notes remark remarks tag tags hint hints")
SUMMARISED = words("review reviews")
"""Names of texts that are summarised, and else of verdicts."""
_GENERIC = words("text value content raw output body completion label message parts string")
"""Names that say less than the one they stand under."""
_CONTAINERS = words(
    "data fields field inputs outputs input_data row record item example doc sample attributes"
    " payload values"
)
_VERDICTS = words(
    "annotator annotation annotated worker rater rating reviewer review labeler labeller coder"
    " evaluator evaluation grader judge judgment judgement verdict label score scored grade graded"
    " vote winner win preference preferred explanation rationale critique feedback comment"
    " justification reason reasoning accept approve approved reject severity confidence agreement"
    " suggestion metric"
)
MARKS = words(
    "hash uuid guid sha md5 digest trace span url uri link href"
    " timestamp tstamp time date datetime created updated completed modified metadata meta vector"
    " embedding logprob latency token cost duration version seed user email session run error"
    " status usage"
)
TIMES = words("timestamp tstamp time date datetime created updated completed submitted modified")
_MODELS = words("model generator engine provider system assistant")
_OF_MODELS = _MODELS | words("name id version family type used a b 1 2 title")
PARTS = words("id category type dataset split subset doc source title language difficulty topic")
"""Names of parts of a file, which nobody judges."""


def is_called_a_reply(path: str) -> bool:
    """Return True for a name that ends as an answer, a response or an output, none of the right."""
    last = snake(path.rpartition(".")[2]).rpartition("_")[2]
    return last.removesuffix("s") in _REPLIES and not tokens_of(path) & _RIGHT


def higher_by_name(name: str) -> bool | None:
    """Return the direction that a name says: True for accuracy, False for loss, else None."""
    names = effective_names(name)[0]
    if _HIGHER & set(names):
        return True
    return False if _LOWER & set(names) else None


def is_foreseen(column: str) -> bool:
    """Return True for the name of a guess that was made before there was a verdict."""
    return not _FORESEEN.isdisjoint(effective_names(column)[0])


def is_of_models(column: str) -> bool:
    """Return True if the rows of one item may differ by the model that this column names."""
    tokens = tokens_of(column)
    return bool(tokens & _MODELS) and tokens <= _OF_MODELS


def is_run(column: str) -> bool:
    """Return True if the rows of one item differ by this column: a worker, an epoch, a trial."""
    named = tokens_of(column) - _NUMBERS
    return bool(named) and named <= _RUNS


def is_system_run(column: str) -> bool:
    """Return True if this column numbers the runs of a system on one item."""
    named = tokens_of(column) - _NUMBERS
    return bool(named) and named <= _SYSTEM_RUNS


def snake(part: str) -> str:
    """A name in lower case with underscores, without a unit in brackets."""
    return _plain(re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", part.strip()))


@lru_cache(maxsize=4096)
def effective_names(path: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names that a column goes by, and those that it stands under.

    A last name that says little gives way to the one that it stands under.
    """
    parts = path.split(".")
    place = len(parts) - 1
    if (
        _plain(parts[place]) == "choices"
        and place
        and _plain(parts[place - 1]) in {"response", "body"}
    ):
        return ("response",), tuple(parts[: place - 1])
    while place and (_plain(parts[place]) in _GENERIC or parts[place].isdigit()):
        place -= 1
    if _plain(parts[place]) in _CONTAINERS and place < len(parts) - 1:
        place += 1
    named = dict.fromkeys((_plain(parts[place]), snake(parts[place])))
    return tuple(named), tuple(parts[:place])


def last_name(path: str) -> str:
    """The name that a column goes by, as it is written."""
    return effective_names(path)[0][0]


def tokens_of(path: str) -> set[str]:
    """The words of a name and of those that it stands under, also without a plural's `s`."""
    split = [word for part in path.split(".") for word in re.split(r"[^\w]|_", snake(part))]
    return {word for word in split if word} | {word.removesuffix("s") for word in split if word}


def names_verdicts(parts: Sequence[str]) -> bool:
    """Return True where one is the name of a verdict, or of what stands beside what is judged."""
    return any(
        tokens_of(part) & (_VERDICTS | {"metadata", "meta", "provenance", "prediction"})
        for part in parts
    )


def names_a_mark(name: str) -> bool:
    """Return True for the name of a hash, an address, a time, a cost, or of a model."""
    return bool(tokens_of(name) & MARKS) or is_of_models(name)


def _plain(part: str) -> str:
    part = re.sub(r"[\s\-/]+", "_", part.strip().lower()).strip("_")
    return re.sub(r"(?<=[a-z])_?\(.*\)$", "", part)
