"""The files that other tools export: their marks, and what the format itself settles of them.

Marks are columns that no other tool has together, and may hold `*` for any characters. Columns that
have no role here are hidden: labels, verdicts, explanations, people, models.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from celeus.errors import InvalidValue
from celeus.intake.formats import export_rows
from celeus.intake.formats.export_rows import each, joined, several
from celeus.intake.sources.sheet import Score, refused

_UNIT = Score(True, (0.0, 1.0))
_UNIT_LOSS = Score(False, (0.0, 1.0))
_OPEN = Score()
_GRADE = Score(True, (1.0, 5.0))
_HARM = Score(False, (0.0, 7.0))


@dataclass(frozen=True, slots=True)
class Export:
    """A tool's file.

    ``called`` is how it is named to people. ``marks`` are sets of columns, each enough in itself
    to know it. ``roles`` are columns by role: the first that is there has it. ``scores`` are those
    of columns by their names, the first that fit. ``shown`` picks the
    columns under which the tool keeps what people are shown, whose roles follow from their names.
    ``repeats`` are columns in which rows of one id differ, ``calls`` ids that no two runs share,
    ``texts`` columns that hold texts or chats: under the same names others have numbers.
    """

    form: str
    called: str
    marks: tuple[str, ...]
    roles: Mapping[str, str]
    scores: Mapping[str, Score] = field(default_factory=dict)
    shown: Callable[[Sequence[str]], list[str]] | None = None
    repeats: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    unfold: export_rows.Unfolding | None = None
    texts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Document:
    """A JSON document that is no list of rows: its marks, its rows, and what is settled of them."""

    fits: Callable[[dict[str, Any]], bool]
    rows: Callable[[dict[str, Any]], list[dict[str, Any]]]
    export: Export


@dataclass(frozen=True, slots=True)
class Part:
    """A document, or a line of one, that holds a part of a tool's results, or none.

    ``marks`` are members with their types, each set of which is enough to know it; ``only``: it has
    no others. ``begins`` is how a text of one begins, which is enough, too. ``why`` says why it is
    refused, and what to take; ``rule`` is that in a few words.
    """

    marks: tuple[Mapping[str, type], ...]
    why: str
    rule: str
    only: bool = False
    begins: re.Pattern[str] | None = None

    def fits(self, value: Mapping[str, Any]) -> bool:
        """Return True if the value has the members of one of the marks, or a text that tells."""
        if self.begins is not None:
            texts = (text for text in value.values() if isinstance(text, str))
            return any(map(self.begins.match, texts))
        return any(
            all(name in value and isinstance(value[name], kind) for name, kind in marks.items())
            and (len(value) == len(marks) or not self.only)
            for marks in self.marks
        )

    @property
    def refusal(self) -> InvalidValue:
        """The refusal of it."""
        return refused(self.why, self.rule)


def _under(*prefixes: str) -> Callable[[Sequence[str]], list[str]]:
    return lambda names: [name for name in names if name.startswith(prefixes)]


def _fields_of_argilla(names: Sequence[str]) -> list[str]:
    """Columns of a flat export that belong to no question and are not the record's own."""
    endings = (".suggestion", ".responses", "-suggestion")
    asked = {name.removesuffix(end) for name in names for end in endings if name.endswith(end)}
    of_record = ("id", "_server_id", "status", "external_id", "inserted_at", "updated_at")
    before = (
        "metadata",
        "vectors",
        *(f"{name}." for name in asked),
        *(f"{name}-" for name in asked),
    )
    return [
        name for name in names if name not in {*asked, *of_record} and not name.startswith(before)
    ]


_RAGAS = {
    "noise_sensitivity* harmfulness maliciousness": _UNIT_LOSS,
    "answer_relevancy response_relevancy": Score(True),
    "faithfulness* context_* answer_* factual_correctness* semantic_similarity *llm_context_*"
    " id_based_context_* nv_* bleu_score rouge_score* exact_match string_present summary_score"
    " topic_adherence* tool_call_accuracy agent_goal_accuracy* non_llm_string_similarity"
    " coherence conciseness correctness": _UNIT,
}
_RAGAS_MARKS = ("faithfulness*", "answer_relevancy", "context_precision", "context_recall")
_AZURE = {
    f"outputs.*.{name}": score
    for names, score in (
        ("relevance groundedness coherence fluency similarity retrieval", _GRADE),
        ("response_completeness", _GRADE),
        ("f1_score bleu_score gleu_score rouge_score meteor_score", _UNIT),
        ("violence sexual self_harm hate_unfairness", _HARM),
        ("violence_score sexual_score self_harm_score hate_unfairness_score", _HARM),
    )
    for name in names.split()
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
    "metric*.acc metric*.acc_norm* metric*.em metric*.*exact_match* metric*.extractive_match*"
    " metric*.f1* metric*.pass@*": _UNIT,
    "metric*.*": _OPEN,
}
_TAU = {"id": "task_id", "question": "info.task.instruction", "messages": "traj messages"}

_EVALPLUS = Export(
    "evalplus",
    "results of EvalPlus",
    ("task_id solution base_status plus_status",),
    {"id": "task_id", "answer": "solution"},
    {"base": _UNIT, "plus": _UNIT},
    repeats=("sample", "completion_id"),
)

_LABEL_STUDIO = Export(
    "label-studio",
    "an export of Label Studio",
    ("id data.* annotations predictions", "id data.* annotations project", "id data.* completions"),
    {"id": "id"},
    shown=_under("data."),
    unfold=each(export_rows.labelled_task),
)

EXPORTS: tuple[Export, ...] = (
    replace(_EVALPLUS, unfold=each(export_rows.plus_sample)),
    Export(
        "openai-evals",
        "a log of OpenAI evals",
        ("sample_id event_id type data*",),
        {"id": "sample_id", "question": "prompt", "answer": "sampled", "reference": "expected"},
        {"correct": _UNIT, "metrics.accuracy": _UNIT, "metrics.*": _OPEN},
        unfold=joined(export_rows.openai_events),
    ),
    Export(
        "openai-batch",
        "output of OpenAI's batch API",
        ("custom_id error* response.status_code", "custom_id response error.message"),
        {"id": "custom_id", "answer": "answer"},
        unfold=several(export_rows.batch_answer, export_rows.failed_calls),
    ),
    Export(
        "ragas",
        "a table of RAGAS",
        (
            "user_input response retrieved_contexts",
            *(f"user_input response {name}" for name in _RAGAS_MARKS),
            *(f"question answer contexts {name}" for name in _RAGAS_MARKS),
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
        ("task_id completion passed",),
        {"id": "task_id", "question": "prompt", "answer": "completion"},
        {"passed": _UNIT},
        repeats=("sample",),
        unfold=export_rows.counted_samples,
    ),
    Export(
        "livecodebench",
        "results of LiveCodeBench",
        ("question_id question_content code_list graded_list",),
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
        ("task_id trial reward traj",),
        _TAU,
        {"reward": _UNIT},
        repeats=("trial",),
    ),
    Export(
        "terminal-bench",
        "results of Terminal-Bench",
        ("task_id trial_name is_resolved",),
        {"id": "task_id", "question": "instruction"},
        {"is_resolved": _UNIT},
        repeats=("trial_name",),
        unfold=export_rows.resolved_or_failed,
    ),
    Export(
        "lighteval",
        "details of lighteval",
        ("doc.query model_response.text metric*", "example full_prompt predictions metrics*"),
        {
            "id": "doc.id",
            "question": "doc.query example",
            "choices": "doc.choices choices",
            "reference": "gold",
            "answer": "model_response.text predictions",
        },
        _LIGHTEVAL,
        unfold=each(export_rows.gold_choice),
    ),
    Export(
        "opencompass",
        "predictions of OpenCompass",
        ("origin_prompt prediction gold",),
        _COMPASS,
    ),
    Export(
        "mt-bench",
        "single judgments of MT-Bench",
        ("question_id judge user_prompt judgment score turn",),
        {"id": "question_id", "text": "user_prompt"},
        {"score": Score(True, (1.0, 10.0), (-1,))},
        repeats=("turn", "model"),
    ),
    Export(
        "mt-bench",
        "pair judgments of MT-Bench",
        ("question_id model_1 model_2 g1_winner g1_user_prompt",),
        _ARENA,
        repeats=("turn", "model_1", "model_2"),
        unfold=each(export_rows.judged_pair),
    ),
    Export(
        "arena",
        "votes of the Arena",
        ("winner_model_a winner_model_b winner_tie response_a response_b",),
        {"id": "id", "question": "prompt", "answer_a": "response_a", "answer_b": "response_b"},
        unfold=each(export_rows.arena_votes),
    ),
    Export(
        "arena",
        "battles of the Arena",
        ("conversation_a conversation_b winner",),
        _ARENA,
        repeats=("turn", "judge", "model_a", "model_b"),
        unfold=each(export_rows.arena_battle),
    ),
    Export(
        "alpaca-eval",
        "annotations of AlpacaEval",
        (
            "instruction output_1 output_2 preference generator_*",
            "instruction output_1 output_2 preference annotator",
        ),
        {"question": "instruction", "answer_a": "output_1", "answer_b": "output_2"},
        # The more of it, the better the second answer
        {"preference": Score(False, (1.0, 2.0))},
        repeats=("annotator", "generator_1", "generator_2"),
    ),
    Export(
        "preference-pairs",
        "pairs of a chosen and a rejected answer, as of HH-RLHF",
        ("chosen rejected",),
        {
            "id": "id prompt_id",
            "question": "question prompt instruction",
            "answer_a": "chosen",
            "answer_b": "rejected",
        },
        unfold=each(export_rows.chosen_rejected),
        texts=("chosen", "rejected"),
    ),
    _LABEL_STUDIO,
    Export(
        "argilla",
        "records of Argilla",
        ("fields.* suggestions* responses*",),
        {"id": "id"},
        shown=_under("fields."),
        unfold=each(export_rows.answered_record),
    ),
    Export(
        "argilla",
        "records of Argilla",
        ("*.suggestion *.responses status", "*-suggestion *-suggestion-metadata external_id"),
        {"id": "id _server_id external_id"},
        shown=_fields_of_argilla,
    ),
    Export(
        "argilla",
        "records of Argilla 1",
        ("prediction prediction_agent annotation annotation_agent",),
        {"id": "id", "text": "text", "answer": "predicted"},
        unfold=each(export_rows.predicted_record),
    ),
    Export(
        "prodigy",
        "annotations of Prodigy",
        ("_input_hash _task_hash answer",),
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
        ("id text label Comments", "id data label Comments", "id text entities relations Comments"),
        {"id": "id", "text": "text data"},
    ),
    Export(
        "mturk",
        "a batch of Mechanical Turk",
        ("HITId WorkerId Input.*", "HITId AssignmentId Input.*"),
        {"id": "HITId"},
        shown=_under("Input."),
        unfold=joined(export_rows.hits),
    ),
    Export(
        "phoenix",
        "evaluations of Phoenix",
        (
            "context.span_id label score",
            "context.span_id attributes.input.value label",
            "label explanation exceptions execution_status",
        ),
        {
            "id": "context.span_id",
            "question": "attributes.input.value input",
            "answer": "attributes.output.value output",
            "text": "reference",
        },
        {"score": Score(missing=("NOT_PARSABLE",))},
        calls=("context.span_id",),
    ),
    Export(
        "garak",
        "a report of garak",
        ("entry_type probe_classname outputs detector_results*",),
        {"id": "uuid", "question": "prompt", "answer": "output"},
        {"detectors.*": _UNIT_LOSS},
        repeats=("sample",),
        unfold=several(
            export_rows.garak_outputs, lambda _, made: f"{made} outputs that detectors have scored"
        ),
    ),
    Export(
        "qualtrics",
        "answers in Qualtrics",
        ("StartDate EndDate Finished RecordedDate ResponseId",),
        {"id": "ResponseId"},
        shown=lambda _: [],
        unfold=export_rows.without_labels,
    ),
    Export(
        "mqm",
        "ratings of MQM",
        (
            "system seg_id rater source target category severity",
            "system docSegId rater source target category severity",
        ),
        {"id": "segment", "question": "source", "answer": "target"},
        {"mqm": Score(False, (0.0, 25.0))},
        repeats=("system",),
        unfold=joined(export_rows.segments),
    ),
    Export(
        "squad",
        "predictions for SQuAD",
        ("question context answers.text prediction_text",),
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
            "inputs* outputs */v[0-9]/score",
            "inputs* predictions */v[0-9]/score",
            "trace_id request response */value",
        ),
        {
            "id": "trace_id",
            "question": "inputs request",
            "answer": "outputs predictions response",
            "reference": "ground_truth targets expected_response/value",
        },
        {
            "expected_*": _OPEN,
            "exact_match/v[0-9]/score rouge*/v[0-9]/score": _UNIT,
            "toxicity/v[0-9]/score": _UNIT_LOSS,
            "*/v[0-9]/score */value": _OPEN,
        },
        calls=("trace_id",),
    ),
    Export(
        "langsmith",
        "an experiment of LangSmith",
        ("inputs.* outputs.* feedback.*",),
        {"id": "example_id id"},
        {
            "feedback.accuracy feedback.exact_match feedback.correct": _UNIT,
            "feedback.*": _OPEN,
        },
        shown=_under("inputs.", "outputs.", "reference_outputs.", "reference."),
    ),
    Export(
        "azure-evaluation",
        "results of Azure AI evaluation",
        tuple(f"inputs.* {name}" for name in _AZURE),
        {
            "id": "line_number",
            "question": "inputs.query inputs.question",
            "answer": "inputs.response outputs.response inputs.answer",
            "text": "inputs.context",
            "reference": "inputs.ground_truth",
        },
        _AZURE,
    ),
    Export(
        "braintrust",
        "an experiment of Braintrust",
        (
            "input* output* expected* scores.* metadata* tags",
            "input* output* expected* scores.* root_span_id",
        ),
        {"id": "id", "question": "input", "answer": "output", "reference": "expected"},
        {"scores.*": _UNIT},
        unfold=each(export_rows.only_input),
    ),
    Export(
        "vlmevalkit",
        "results of VLMEvalKit",
        ("index question answer prediction hit",),
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


def _is_task(document: dict[str, Any]) -> bool:
    """Return True for one task of Label Studio, as its server keeps it."""
    labelled = not document.keys().isdisjoint({"annotations", "completions"})
    return labelled and isinstance(document.get("data"), dict)


def _is_compass(document: dict[str, Any]) -> bool:
    row = _first(document.get("details"))
    predicted = not row.keys().isdisjoint(
        {"prediction", "predictions", "origin_prediction", "pred"}
    )
    return predicted and not row.keys().isdisjoint(
        {"correct", "references", "gold", "refr", "answer"}
    )


_COMPASS_DETAILS = Export("opencompass", "details of OpenCompass", (), _COMPASS, {"correct": _UNIT})
DOCUMENTS = (
    Document(
        _is_evalplus,
        export_rows.plus_samples,
        _EVALPLUS,
    ),
    Document(
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
    Document(_is_task, lambda document: [document], _LABEL_STUDIO),
    Document(_is_compass, export_rows.compass_details, _COMPASS_DETAILS),
    Document(
        lambda document: _first(document).keys() >= {"origin_prompt", "prediction", "gold"},
        export_rows.compass_details,
        replace(_COMPASS_DETAILS, called="predictions of OpenCompass", scores={}),
    ),
    Document(
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
NAMED = (
    *("eval", "details", "origin_prompt", "tasks", "no_generation", "resolved"),
    *("results", "adapter_spec", "definition_path", "annotations", "completions"),
)
"""Members of which one stands near the beginning of such a document."""

FAILURES = Part(
    (dict.fromkeys(("accuracy", "correct_count", "total_count"), object),),
    "A score file of BFCL lists the failures only, and not the cases that passed. Join its"
    " verdicts to the result file of the same run, a row for every case.",
    "a row for every case, passed or failed",
    only=True,
)
PARTS = (
    FAILURES,
    Part(
        (dict.fromkeys(("custom_id", "method", "url", "body"), object),),
        "An input file of OpenAI's batch API holds requests, not answers. Take the output file"
        " of the batch, and join to it by custom_id what was asked.",
        "answers, such as the output file of the batch",
    ),
    Part(
        ({"resolved": list, "no_generation": object},),
        "results.json of the SWE-bench board lists the resolved instances, and not all that"
        " were tried. Take the report of the run, MODEL.RUN_ID.json, which has unresolved_ids.",
        "a report of SWE-bench",
    ),
    Part(
        tuple(
            dict.fromkeys(members.split(), object)
            for members in (
                "adapter_spec metric_specs",
                "adapter_spec request_states",
                "name description tags definition_path",
                "name count sum sum_squared",
                "instance_id train_trial_index stats",
            )
        ),
        "The file is a part of a run of HELM, whose answers and scores stand in several files."
        " Give the whole run folder: `celeus import FOLDER`.",
        "a run folder of HELM",
    ),
    Part(
        ({"results": dict, "versions": object, "config": object},),
        "A results file of lm-eval holds means, and no items. Take the samples_*.jsonl of the"
        " run, which --log_samples writes beside it.",
        "samples of lm-eval",
    ),
    Part(
        (
            {"hf_subset": object, "main_score": object},
            {"mteb_version": object, "mteb_dataset_name": object},
        ),
        "A results file of MTEB holds means, and no items. Take the predictions of the model, as a"
        " table with a row for every text or query and whether it was right.",
        "a row for every text or query",
    ),
    Part(
        (),
        "A CSV of promptfoo has the verdict, the answer and the reason in one cell. Take the JSON"
        " of the run, which `promptfoo eval --output results.json` writes.",
        "the JSON of promptfoo",
        begins=re.compile(r"\[(?:PASS|FAIL|ERROR)\] \(\d"),
    ),
)
"""Files that are refused by name."""
