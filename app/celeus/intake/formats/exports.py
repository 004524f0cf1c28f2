"""Files that other tools export, known by their columns: what the format itself settles of them.

A file is taken for one of a tool by its marks only: columns that no other tool has together. A mark
may hold `*` for any characters. Columns that have no role here are hidden: labels, verdicts,
explanations, people, models.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import islice
from typing import Any

from celeus.errors import InvalidValue, NeedsAnswer
from celeus.intake.formats import export_rows
from celeus.intake.formats.export_rows import each, joined, several
from celeus.intake.rows import Options
from celeus.intake.sources.files import LONGEST_LINE, Source
from celeus.intake.sources.sheet import BadRow, Known, Score, Sheet, SheetRow, refused
from celeus.intake.table.columns import Column, columns_of, flat, number_of
from celeus.intake.table.roles import MANY, SHOWN, SIDES, Kind, guessed

LOOKED_AT = 50
"""Rows by which a tool is known."""
_BFCL = frozenset({"id", "model_name", "test_category", "valid", "error"})
_UNIT = Score(True, (0.0, 1.0))
_UNIT_LOSS = Score(False, (0.0, 1.0))
_OPEN = Score()
_GRADE = Score(True, (1.0, 5.0))
_HARM = Score(False, (0.0, 7.0))


@dataclass(frozen=True, slots=True)
class Export:
    """A tool's file.

    ``called`` is how it is named to people. ``marks`` are sets of columns, each of which is enough
    to know it. ``roles`` are columns by role: the first that is there has it. ``shown`` picks the
    columns under which the tool keeps what people are shown, whose roles follow from their names.
    ``repeats`` are columns in which rows of one id differ, ``texts`` those that hold texts or
    chats: under the same names others have numbers.
    """

    form: str
    called: str
    marks: tuple[tuple[str, ...], ...]
    roles: Mapping[str, str]
    scores: Mapping[str, Score] = field(default_factory=dict)
    shown: Callable[[Sequence[str]], list[str]] | None = None
    repeats: tuple[str, ...] = ()
    unfold: export_rows.Unfolding | None = None
    texts: tuple[str, ...] = ()

    def fits(self, names: set[str]) -> bool:
        """Return True if a file with these columns is one of the tool."""
        return any(_has(names, marks) for marks in self.marks)

    def holds(self, rows: Sequence[Mapping[str, Any]]) -> bool:
        """Return True if texts stand where the tool has texts."""
        values = [row.get(name) for row in rows for name in self.texts]
        return all(
            isinstance(value, list) or (isinstance(value, str) and not is_whole(value))
            for value in values
        )

    def sheet_of(self, sheet: Sheet, options: Options) -> Sheet:
        """The sheet with what the format settles; refuses a metric that it has not."""
        told: tuple[str, ...] = ()
        if self.unfold is not None:
            rows, told = self.unfold(sheet)
            sheet = replace(sheet, rows=rows)
        columns = columns_of(sheet)
        names = [column.name for column in columns]
        roles = self._roles(columns)
        metrics = self._metrics(columns)
        metric = _chosen(metrics, options, pair=not set(SIDES).isdisjoint(roles.values()))
        if metric is not None:
            roles[metric] = "score"
        elif len(metrics) > 1:
            told += (f"scores {', '.join(metrics)}: none is a guess unless `metric` names it",)
        score = metrics.get(metric or "", _OPEN)
        repeats = tuple(name for name in self.repeats if name in names)
        known = Known(roles, score.higher, score.scale, score.missing, metrics, repeats)
        return replace(
            sheet, form=self.form, read_as=(self.called, *sheet.read_as, *told), known=known
        )

    def _roles(self, columns: Sequence[Column]) -> dict[str, str]:
        names = [column.name for column in columns]
        roles: dict[str, str] = {}
        for role, candidates in self.roles.items():
            found = [name for name in candidates.split() if name in names]
            roles |= dict.fromkeys(found if role in MANY else found[:1], role)
        if self.shown is not None:
            inner = set(self.shown(names))
            guess = guessed([column for column in columns if column.name in inner], Kind())
            kept = {*SHOWN, "payload"}
            roles |= {column.name: column.role for column in guess if column.role in kept}
        return roles

    def _metrics(self, columns: Sequence[Column]) -> dict[str, Score]:
        """The columns with numbers that are scores, by the first name that fits."""
        found = {}
        for column in columns:
            fitting = [
                score for name, score in self.scores.items() if fnmatchcase(column.name, name)
            ]
            numbers = (column.number(value) for value in column.values)
            if fitting and any(isinstance(number, int | float) for number in numbers):
                found[column.name] = fitting[0]
        return found


def _has(names: set[str], marks: Sequence[str]) -> bool:
    """All marks are among the names; those with `*` are looked for last, one name at a time."""
    exact = {mark for mark in marks if "*" not in mark and "[" not in mark}
    return names >= exact and all(
        any(fnmatchcase(name, mark) for name in names) for mark in marks if mark not in exact
    )


def sheet_of(source: Source, options: Options, table: Callable[[Options], Sheet]) -> Sheet:
    """The rows of a file that is no log: as those of the tool that is known by its marks, if any.

    ``table`` reads the file as a table. Refuses by name a file that holds a part of the results.
    """
    document = document_of(source, options)
    if document is not None:
        return document
    try:
        return recognised(table(options), options)
    except NeedsAnswer:
        # Rows of several kinds, which a tool that writes events has
        if options.rows is not None:
            raise
        sheet = _of_all_rows(table, options)
        if sheet is None:
            raise
        return sheet


def _of_all_rows(table: Callable[[Options], Sheet], options: Options) -> Sheet | None:
    """The sheet of all rows, of whatever kinds, if a tool is known by them."""
    try:
        sheet = recognised(table(replace(options, rows="all")), options)
    except NeedsAnswer:
        return None
    return None if sheet.known is None else sheet


def recognised(sheet: Sheet, options: Options) -> Sheet:
    """The sheet as that of the tool whose marks it has; as it is where it has those of none.

    Refuses by name a file that holds only a part of the results.
    """
    if sheet.known is not None:
        return sheet
    rows = [row for _, row in islice(sheet.rows(), LOOKED_AT) if not isinstance(row, BadRow)]
    for row in rows:
        check_whole(row)
    names = {name for row in rows for name in (*row, *(path for path, _ in flat(row)))}
    if names >= _BFCL and not any(_is_valid(row) for _, row in sheet.rows()):
        raise _failures_only()
    export = next((export for export in EXPORTS if export.fits(names) and export.holds(rows)), None)
    return sheet if export is None else export.sheet_of(sheet, options)


def is_whole(value: object) -> bool:
    """Return True for a whole number, also as text."""
    try:
        return float(str(value)).is_integer()
    except ValueError:
        return False


def _is_valid(row: SheetRow) -> bool:
    """A case of BFCL passed, so that somebody has joined the verdicts to all cases."""
    return isinstance(row, dict) and number_of(row.get("valid")) == 1


_OF_HELM = (
    {"adapter_spec", "metric_specs"},
    {"adapter_spec", "request_states"},
    {"name", "description", "tags", "definition_path"},
    {"name", "count", "sum", "sum_squared"},
    {"instance_id", "train_trial_index", "stats"},
)
"""Members of the files of a run folder of HELM, or of their rows."""


def check_whole(value: Mapping[str, Any]) -> None:
    """Refuse by name a document, or a line of one, that holds a part of the results, or none."""
    names = value.keys()
    if names == {"accuracy", "correct_count", "total_count"}:
        raise _failures_only()
    if names >= {"custom_id", "method", "url", "body"}:
        raise refused(
            "An input file of OpenAI's batch API holds requests, not answers. Take the output file"
            " of the batch, and join to it by custom_id what was asked.",
            "answers, such as the output file of the batch",
        )
    if names >= {"resolved", "no_generation"} and isinstance(value["resolved"], list):
        raise refused(
            "results.json of the SWE-bench board lists the resolved instances, and not all that"
            " were tried. Take the report of the run, MODEL.RUN_ID.json, which has unresolved_ids.",
            "a report of SWE-bench",
        )
    if any(names >= members for members in _OF_HELM):
        raise refused(
            "The file is a part of a run of HELM, whose answers and scores stand in several files."
            " Give the whole run folder: `celeus import helm FOLDER`.",
            "a run folder of HELM",
        )
    if names >= {"results", "versions", "config"} and isinstance(value["results"], dict):
        raise refused(
            "A results file of lm-eval holds means, and no items. Take the samples_*.jsonl of the"
            " run, which --log_samples writes beside it.",
            "samples of lm-eval",
        )


def _failures_only() -> InvalidValue:
    return refused(
        "A score file of BFCL lists the failures only, and not the cases that passed. Join its"
        " verdicts to the result file of the same run, a row for every case.",
        "a row for every case, passed or failed",
    )


def document_of(source: Source, options: Options) -> Sheet | None:
    """The rows of a JSON document that is known as a tool's; None for any other file."""
    head = source.head()
    named = any(f'"{name}"'.encode() in head for name in _NAMED)
    if not named or not head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") or _of_lines(source):
        return None
    try:
        document = source.document()
    except InvalidValue:
        return None
    check_whole(document)
    found = next((found for found in _DOCUMENTS if found.fits(document)), None)
    if found is None:
        return None
    try:
        rows = found.rows(document)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        rule = f"{found.export.called} as the tool writes them"
        what = f"{type(error).__name__}: {error}"
        raise refused("The file lacks members that its tool writes.", rule, what) from error
    numbered = [*enumerate(rows, 1)]
    sheet = Sheet("json", lambda: iter(numbered))
    if "correct" in found.export.scores:
        name = "accuracy"
        told = export_rows.agreement(numbered, "correct", document.get(name), f"the file's {name}")
        sheet = replace(sheet, read_as=tuple(told))
    return found.export.sheet_of(sheet, options)


def _of_lines(source: Source) -> bool:
    """The second line begins an object, as in JSON Lines."""
    with source.open() as file:
        file.readline(LONGEST_LINE)
        return file.read(2).startswith(b"{")


def _chosen(metrics: Mapping[str, Score], options: Options, *, pair: bool) -> str | None:
    """The metric asked for, or the only one of items with one answer."""
    if options.columns.score in metrics:
        return options.columns.score
    wanted = options.metric
    if wanted is None or not metrics:
        return next(iter(metrics)) if len(metrics) == 1 and not pair else None
    for name in metrics:
        if wanted in {name, name.rpartition(".")[2], name.partition("/")[0]}:
            return name
    listed = ", ".join(metrics)
    raise refused("The file has no such metric.", f"one of {listed}", wanted, "metric")


def _under(prefix: str) -> Callable[[Sequence[str]], list[str]]:
    return lambda names: [name for name in names if name.startswith(prefix)]


def _fields_of_argilla(names: Sequence[str]) -> list[str]:
    """Columns of a flat export that belong to no question and are not the record's own."""
    endings = (".suggestion", ".responses", "-suggestion")
    asked = {name.removesuffix(end) for name in names for end in endings if name.endswith(end)}
    own = ("id", "_server_id", "status", "external_id", "inserted_at", "updated_at")
    before = (
        "metadata",
        "vectors",
        *(f"{name}." for name in asked),
        *(f"{name}-" for name in asked),
    )
    return [name for name in names if name not in {*asked, *own} and not name.startswith(before)]


_RAGAS = {
    **dict.fromkeys(("noise_sensitivity*", "harmfulness", "maliciousness"), _UNIT_LOSS),
    **dict.fromkeys(("answer_relevancy", "response_relevancy"), Score(True)),
    **dict.fromkeys(("faithfulness*", "context_*", "answer_*", "factual_correctness*"), _UNIT),
    **dict.fromkeys(("semantic_similarity", "*llm_context_*", "id_based_context_*"), _UNIT),
    **dict.fromkeys(("nv_*", "bleu_score", "rouge_score*", "exact_match", "string_present"), _UNIT),
    **dict.fromkeys(("summary_score", "topic_adherence*", "tool_call_accuracy"), _UNIT),
    **dict.fromkeys(("agent_goal_accuracy*", "non_llm_string_similarity"), _UNIT),
    **dict.fromkeys(("coherence", "conciseness", "correctness"), _UNIT),
}
_RAGAS_MARKS = ("faithfulness*", "answer_relevancy", "context_precision", "context_recall")
_AZURE = {
    **dict.fromkeys(("relevance", "groundedness", "coherence", "fluency"), _GRADE),
    **dict.fromkeys(("similarity", "retrieval", "response_completeness"), _GRADE),
    **dict.fromkeys(("f1_score", "bleu_score", "gleu_score", "rouge_score", "meteor_score"), _UNIT),
    **dict.fromkeys(("violence", "sexual", "self_harm", "hate_unfairness"), _HARM),
    **dict.fromkeys(("violence_score", "sexual_score", "self_harm_score"), _HARM),
    "hate_unfairness_score": _HARM,
}
_COMPASS = {
    "id": "index",
    "question": "prompt origin_prompt",
    "answer": "origin_prediction prediction pred predictions",
    "reference": "references gold refr answer",
}
_ARENA = {
    "id": "question_id id",
    "question": "question",
    "answer_a": "answer_a",
    "answer_b": "answer_b",
}
_LIGHTEVAL = {
    f"{member}.{name}": _UNIT
    for member in ("metric", "metrics")
    for name in ("acc", "acc_norm*", "em", "*exact_match*", "extractive_match*", "f1*", "pass@*")
}
_TAU = {"id": "task_id", "question": "info.task.instruction", "messages": "traj messages"}

_EVALPLUS = Export(
    "evalplus",
    "results of EvalPlus",
    (("task_id", "solution", "base_status", "plus_status"),),
    {"id": "task_id", "answer": "solution"},
    {"base": _UNIT, "plus": _UNIT},
    repeats=("sample", "completion_id"),
)

EXPORTS: tuple[Export, ...] = (
    replace(_EVALPLUS, unfold=each(export_rows.plus_sample)),
    Export(
        "openai-evals",
        "a log of OpenAI evals",
        (("sample_id", "event_id", "type", "data*"),),
        {"id": "sample_id", "question": "prompt", "answer": "sampled", "reference": "expected"},
        {"correct": _UNIT, "metrics.accuracy": _UNIT, "metrics.*": _OPEN},
        unfold=joined(export_rows.openai_events),
    ),
    Export(
        "openai-batch",
        "output of OpenAI's batch API",
        (
            ("custom_id", "error*", "response.status_code"),
            ("custom_id", "response", "error.message"),
        ),
        {"id": "custom_id", "answer": "answer"},
        unfold=joined(export_rows.batch_answers),
    ),
    Export(
        "ragas",
        "a table of RAGAS",
        (
            ("user_input", "response", "retrieved_contexts"),
            *(("user_input", "response", name) for name in _RAGAS_MARKS),
            *(("question", "answer", "contexts", name) for name in _RAGAS_MARKS),
        ),
        {
            "question": "user_input question",
            "answer": "response answer",
            "text": "retrieved_contexts contexts",
            "reference": "reference ground_truth ground_truths",
        },
        _RAGAS,
    ),
    Export(
        "humaneval",
        "results of HumanEval",
        (("task_id", "completion", "passed"),),
        {"id": "task_id", "question": "prompt", "answer": "completion"},
        {"passed": _UNIT},
        repeats=("sample",),
        unfold=export_rows.counted_samples,
    ),
    Export(
        "livecodebench",
        "results of LiveCodeBench",
        (("question_id", "question_content", "code_list", "graded_list"),),
        {
            "id": "question_id",
            "question": "question_content",
            "answer": "output",
            "group": "difficulty",
        },
        {"graded": _UNIT},
        repeats=("sample",),
        unfold=several(export_rows.code_samples),
    ),
    Export(
        "tau-bench",
        "results of tau-bench",
        (("task_id", "trial", "reward", "traj"),),
        _TAU,
        {"reward": _UNIT},
        repeats=("trial",),
    ),
    Export(
        "terminal-bench",
        "results of Terminal-Bench",
        (("task_id", "trial_name", "is_resolved"),),
        {"id": "task_id", "question": "instruction"},
        {"is_resolved": _UNIT},
        repeats=("trial_name",),
        unfold=export_rows.resolved_or_failed,
    ),
    Export(
        "lighteval",
        "details of lighteval",
        (("doc.query", "model_response.text", "metric*"),),
        {
            "id": "doc.id",
            "question": "doc.query",
            "choices": "doc.choices",
            "reference": "gold",
            "answer": "model_response.text",
        },
        _LIGHTEVAL | {"metric.*": _OPEN},
        unfold=each(export_rows.gold_choice),
    ),
    Export(
        "lighteval",
        "details of lighteval",
        (("example", "full_prompt", "predictions", "metrics*"),),
        {"question": "example", "choices": "choices", "reference": "gold", "answer": "predictions"},
        _LIGHTEVAL | {"metrics.*": _OPEN},
    ),
    Export(
        "opencompass",
        "predictions of OpenCompass",
        (("origin_prompt", "prediction", "gold"),),
        _COMPASS,
    ),
    Export(
        "mt-bench",
        "single judgments of MT-Bench",
        (("question_id", "judge", "user_prompt", "judgment", "score", "turn"),),
        {"id": "question_id", "text": "user_prompt"},
        {"score": Score(True, (1.0, 10.0), (-1,))},
        repeats=("turn", "model"),
    ),
    Export(
        "mt-bench",
        "pair judgments of MT-Bench",
        (("question_id", "model_1", "model_2", "g1_winner", "g1_user_prompt"),),
        _ARENA,
        repeats=("turn", "model_1", "model_2"),
        unfold=each(export_rows.judged_pair),
    ),
    Export(
        "arena",
        "votes of the Arena",
        (("winner_model_a", "winner_model_b", "winner_tie", "response_a", "response_b"),),
        {"id": "id", "question": "prompt", "answer_a": "response_a", "answer_b": "response_b"},
        unfold=each(export_rows.arena_votes),
    ),
    Export(
        "arena",
        "battles of the Arena",
        (("conversation_a", "conversation_b", "winner"),),
        _ARENA,
        repeats=("turn", "judge", "model_a", "model_b"),
        unfold=each(export_rows.arena_battle),
    ),
    Export(
        "alpaca-eval",
        "annotations of AlpacaEval",
        (
            ("instruction", "output_1", "output_2", "preference", "generator_*"),
            ("instruction", "output_1", "output_2", "preference", "annotator"),
        ),
        {"question": "instruction", "answer_a": "output_1", "answer_b": "output_2"},
        # The more of it, the better the second answer
        {"preference": Score(False, (1.0, 2.0))},
        repeats=("annotator", "generator_1", "generator_2"),
    ),
    Export(
        "preference-pairs",
        "pairs of a chosen and a rejected answer, as of HH-RLHF",
        (("chosen", "rejected"),),
        {
            "id": "id prompt_id",
            "question": "question prompt instruction",
            "answer_a": "chosen",
            "answer_b": "rejected",
        },
        unfold=each(export_rows.chosen_rejected),
        texts=("chosen", "rejected"),
    ),
    Export(
        "label-studio",
        "an export of Label Studio",
        (
            ("id", "data.*", "annotations", "predictions"),
            ("id", "data.*", "annotations", "project"),
        ),
        {"id": "id"},
        shown=_under("data."),
        unfold=each(export_rows.labelled_task),
    ),
    Export(
        "argilla",
        "records of Argilla",
        (("fields.*", "suggestions*", "responses*"),),
        {"id": "id"},
        shown=_under("fields."),
        unfold=each(export_rows.answered_record),
    ),
    Export(
        "argilla",
        "records of Argilla",
        (
            ("*.suggestion", "*.responses", "status"),
            ("*-suggestion", "*-suggestion-metadata", "external_id"),
        ),
        {"id": "id _server_id external_id"},
        shown=_fields_of_argilla,
    ),
    Export(
        "prodigy",
        "annotations of Prodigy",
        (("_input_hash", "_task_hash", "answer"),),
        {
            "id": "_task_hash",
            "text": "text html",
            "image": "image",
            "choices": "choices",
            "answer": "accepted label accept spans",
        },
        repeats=("_session_id", "_annotator_id"),
        unfold=each(export_rows.accepted_options),
    ),
    Export(
        "doccano",
        "an export of doccano",
        (
            ("id", "text", "label", "Comments"),
            ("id", "data", "label", "Comments"),
            ("id", "text", "entities", "relations", "Comments"),
        ),
        {"id": "id", "text": "text data"},
    ),
    Export(
        "mturk",
        "a batch of Mechanical Turk",
        (("HITId", "WorkerId", "Input.*"), ("HITId", "AssignmentId", "Input.*")),
        {"id": "HITId"},
        shown=_under("Input."),
        unfold=joined(export_rows.hits),
    ),
    Export(
        "phoenix",
        "evaluations of Phoenix",
        (
            ("context.span_id", "label", "score"),
            ("context.span_id", "attributes.input.value", "label"),
            ("label", "explanation", "exceptions", "execution_status"),
        ),
        {
            "id": "context.span_id",
            "question": "attributes.input.value input",
            "answer": "attributes.output.value output",
            "text": "reference",
        },
        {"score": Score(missing=("NOT_PARSABLE",))},
    ),
    Export(
        "mqm",
        "ratings of MQM",
        (
            ("system", "seg_id", "rater", "source", "target", "category", "severity"),
            ("system", "docSegId", "rater", "source", "target", "category", "severity"),
        ),
        {"id": "segment", "question": "source", "answer": "target"},
        {"mqm": Score(False, (0.0, 25.0))},
        repeats=("system",),
        unfold=joined(export_rows.segments),
    ),
    Export(
        "squad",
        "predictions for SQuAD",
        (("question", "context", "answers.text", "prediction_text"),),
        {
            "id": "id",
            "text": "context",
            "question": "question",
            "reference": "answers.text",
            "answer": "prediction_text",
        },
        {"exact_match": Score(True), "f1": Score(True)},
    ),
    Export(
        "mlflow",
        "a table of MLflow",
        (
            ("inputs*", "outputs", "*/v[0-9]/score"),
            ("inputs*", "predictions", "*/v[0-9]/score"),
            ("trace_id", "request", "response", "*/value"),
        ),
        {
            "id": "trace_id",
            "question": "inputs request",
            "answer": "outputs predictions response",
            "reference": "ground_truth targets expected_response/value",
        },
        {
            "expected_*": _OPEN,
            **dict.fromkeys(("exact_match/v[0-9]/score", "rouge*/v[0-9]/score"), _UNIT),
            "toxicity/v[0-9]/score": _UNIT_LOSS,
            **dict.fromkeys(("*/v[0-9]/score", "*/value"), _OPEN),
        },
    ),
    Export(
        "langsmith",
        "an experiment of LangSmith",
        (("inputs.*", "outputs.*", "feedback.*"),),
        {"id": "example_id id"},
        {
            **{f"feedback.{name}": _UNIT for name in ("accuracy", "exact_match", "correct")},
            "feedback.*": _OPEN,
        },
        shown=lambda names: [
            name
            for name in names
            if name.startswith(("inputs.", "outputs.", "reference_outputs.", "reference."))
        ],
    ),
    Export(
        "azure-evaluation",
        "results of Azure AI evaluation",
        tuple(("inputs.*", f"outputs.*.{name}") for name in _AZURE),
        {
            "id": "line_number",
            "question": "inputs.query inputs.question",
            "answer": "inputs.response outputs.response inputs.answer",
            "text": "inputs.context",
            "reference": "inputs.ground_truth",
        },
        {f"outputs.*.{name}": score for name, score in _AZURE.items()},
    ),
    Export(
        "braintrust",
        "an experiment of Braintrust",
        (
            ("input*", "output*", "expected*", "scores.*", "metadata*", "tags"),
            ("input*", "output*", "expected*", "scores.*", "root_span_id"),
        ),
        {"id": "id", "question": "input", "answer": "output", "reference": "expected"},
        {"scores.*": _UNIT},
        unfold=each(export_rows.only_input),
    ),
    Export(
        "vlmevalkit",
        "results of VLMEvalKit",
        (("index", "question", "answer", "prediction", "hit"),),
        {
            "id": "index",
            "image": "image",
            "question": "question",
            "choices": "choices",
            "reference": "answer",
            "answer": "prediction",
        },
        {"hit": _UNIT},
        unfold=each(export_rows.options_of),
    ),
)
"""The tables that are known, the first of them first."""


@dataclass(frozen=True, slots=True)
class _Document:
    """A JSON document that is no list of rows: its marks, its rows, and what is settled of them."""

    fits: Callable[[dict[str, Any]], bool]
    rows: Callable[[dict[str, Any]], list[dict[str, Any]]]
    export: Export


def _first(value: object) -> Mapping[str, Any]:
    """The first object within an object or a list."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return next((member for member in inner if isinstance(member, dict)), {})


def _is_evalplus(document: dict[str, Any]) -> bool:
    samples = _first_value(document.get("eval"))
    if isinstance(samples, dict):
        return samples.keys() >= {"nfiles", "base"}
    return "base_status" in _first(samples)


def _is_bigcodebench(document: dict[str, Any]) -> bool:
    return _first(_first_value(document.get("eval"))).keys() >= {"task_id", "solution", "status"}


def _first_value(value: object) -> object:
    """The first member of an object; None for anything else."""
    return next(iter(value.values()), None) if isinstance(value, dict) else None


def _is_compass(document: dict[str, Any]) -> bool:
    row = _first(document.get("details"))
    predicted = not row.keys().isdisjoint(
        {"prediction", "predictions", "origin_prediction", "pred"}
    )
    return predicted and not row.keys().isdisjoint(
        {"correct", "references", "gold", "refr", "answer"}
    )


_COMPASS_DETAILS = Export("opencompass", "details of OpenCompass", (), _COMPASS, {"correct": _UNIT})
_DOCUMENTS = (
    _Document(
        _is_evalplus,
        export_rows.plus_samples,
        _EVALPLUS,
    ),
    _Document(
        _is_bigcodebench,
        lambda document: [row for rows in document["eval"].values() for row in rows],
        Export(
            "bigcodebench",
            "results of BigCodeBench",
            (),
            {"id": "task_id", "answer": "solution"},
            {"status": _UNIT},
            repeats=("sample",),
            unfold=export_rows.counted_samples,
        ),
    ),
    _Document(_is_compass, export_rows.compass_details, _COMPASS_DETAILS),
    _Document(
        lambda document: _first(document).keys() >= {"origin_prompt", "prediction", "gold"},
        export_rows.compass_details,
        replace(_COMPASS_DETAILS, called="predictions of OpenCompass", scores={}),
    ),
    _Document(
        lambda document: (
            document.keys() >= {"tasks", "simulations"}
            and _first(document["simulations"]).keys() >= {"task_id", "trial", "messages"}
        ),
        export_rows.simulations,
        Export(
            "tau-bench", "results of tau2-bench", (), _TAU, {"reward": _UNIT}, repeats=("trial",)
        ),
    ),
)
_NAMED = (
    *("eval", "details", "origin_prompt", "tasks", "no_generation", "resolved"),
    *("results", "adapter_spec", "definition_path"),
)
"""Members of which one stands near the beginning of such a document."""
