"""Run folders of HELM: run_spec.json, scenario_state.json and per_instance_stats.json.

Which way a metric is better stands nowhere in them. Perturbed instances are other items, and left
out, as in HELM's own tables.
"""

from dataclasses import replace
from typing import Any

from celeus.intake.rows import Log, Options, Row, chosen, digest_of, refused, text_of
from celeus.intake.sources.files import Source, under
from celeus.intake.table.numbers import loss_in_log

STATS = "per_instance_stats.json"
STATE = "scenario_state.json"
SPEC = "run_spec.json"
CORRECT = "correct"


def read(source: Source, options: Options) -> Log:
    """The rows of the folder that ``source`` lies in; a training trial is a repeat."""
    stats, state, spec = (_beside(source, name) for name in (STATS, STATE, SPEC))
    entries = [entry for entry in stats.document() if not entry.get("perturbation")]
    if not entries:
        raise refused(f"{source.name} has no instances", "log")
    names = dict.fromkeys(stat["name"]["name"] for entry in entries for stat in entry["stats"])
    metric = chosen(list(names), options.metric, source.name, "metric")
    higher = options.direction(source.name, metric)
    adapter = under(spec, spec.document(), "adapter_spec")
    shown = _shown(under(state, state.document(), "request_states"))
    model = str(adapter["model"])
    rows = []
    for entry in entries:
        row = _row(source, entry, shown, model)
        place = f"item {row.id} of {source.name}"
        loss = loss_in_log(options, _value(entry, metric, place), place, higher=higher)
        rows.append(replace(row, loss=loss))
    settings = {"examples shown": str(adapter.get("max_train_instances"))}
    return Log(source.name, rows, settings)


def _beside(source: Source, name: str) -> Source:
    found = source.beside(name)
    if found is None:
        raise refused(f"{source.name} has no {name} beside it: give the whole run folder", "log")
    return found


def _shown(states: list[dict[str, Any]]) -> dict[tuple[str, int], dict[str, Any]]:
    """The request of every instance and trial: of several the first one that was not calibrated."""
    shown: dict[tuple[str, int], dict[str, Any]] = {}
    for state in states:
        changed = state["instance"].get("perturbation")
        if changed or state.get("request_mode", "original") != "original":
            continue
        shown.setdefault((state["instance"]["id"], state["train_trial_index"]), state)
    return shown


def _row(
    source: Source,
    each: dict[str, Any],
    shown: dict[tuple[str, int], dict[str, Any]],
    model: str,
) -> Row:
    """The row of an item and its answer, without the loss."""
    name, trial = str(each["instance_id"]), int(each["train_trial_index"])
    request = shown.get((name, trial))
    if request is None:
        why = f"is not in {STATE}: the files are of two runs"
        raise refused(f"item {name} of {source.name} {why}", "log")
    instance = request["instance"]
    references = [
        option["output"]["text"]
        for option in instance.get("references") or ()
        if CORRECT in (option.get("tags") or ())
    ]
    return Row(
        id=name,
        model=model,
        loss=None,
        repeat=trial + 1,
        question=text_of(instance["input"]["text"]),
        reference="\n".join(references) or None,
        answer=_answer(request),
        check=digest_of(instance["input"]["text"], sorted(references)),
    )


def _value(each: dict[str, Any], metric: str, place: str) -> float | None:
    """The mean of the metric on one instance; None where nothing was counted."""
    found = [
        stat
        for stat in each["stats"]
        if stat["name"]["name"] == metric and not stat["name"].get("perturbation")
    ]
    if len(found) > 1:
        raise refused(f"{place} has {metric} {len(found)} times", "metric")
    if not found or not found[0]["count"]:
        return None
    return float(found[0]["sum"] / found[0]["count"])


def _answer(request: dict[str, Any]) -> str | None:
    """The model's answer; of multiple choice the text behind its letter."""
    completions = (request.get("result") or {}).get("completions") or ()
    if not completions:
        return None
    completion = str(completions[0]["text"])
    mapped: str = (request.get("output_mapping") or {}).get(completion.strip(), completion)
    return mapped
