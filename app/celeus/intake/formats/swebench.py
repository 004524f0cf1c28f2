"""Reports of SWE-bench: <model>.<run_id>.json, with the instances by how they ended, or by name.

What did not resolve its issue failed, as on the board: an empty patch, an error and an instance
that was not run as well. A report holds no texts, so that nothing tells two versions of a data set
apart but its ids.
"""

from typing import Any

from celeus.intake.rows import Log, Options, Row, refused
from celeus.intake.sources.files import Source, under

ENDINGS = ("resolved", "unresolved", "failed", "empty_patch", "error", "incomplete")
"""Endings of an instance: it stands in the list `<ending>_ids`; `failed` is sb-cli's."""
INFRASTRUCTURE = "infra_failure"
"""Some of the unresolved and of the errors: the machine failed there, not the model."""
BY_INSTANCE = frozenset({"patch_successfully_applied", "resolved"})
"""Members of what a run says of an instance."""
NO_VERDICTS = (INFRASTRUCTURE, "error", "incomplete", "empty_patch")
"""Endings that say nothing of a patch, and that ``Options.missing`` may leave without a score."""


def read(source: Source, options: Options) -> Log:
    """The rows of a report; those that end as one of ``options.missing`` have no score."""
    document = source.document()
    if is_by_instance(document):
        return _by_instance(source, document, options)
    under(source, document, "resolved_ids")
    model = source.stem.rpartition(".")[0] or source.stem
    for name in options.missing:
        if name not in NO_VERDICTS:
            raise refused(f"missing is one of {', '.join(NO_VERDICTS)}, not {name!r}", "missing")
    endings: dict[str, str] = {}
    for ending in ENDINGS:
        for name in map(str, document.get(f"{ending}_ids") or ()):
            before = endings.setdefault(name, ending)
            if (before == "resolved") != (ending == "resolved"):
                raise refused(f"item {name} of {source.name} stands under two endings", "log")
    if not endings:
        raise refused(f"{source.name} has no instances", "log")
    _check_counts(source, document, endings)
    broken = set(map(str, document.get(f"{INFRASTRUCTURE}_ids") or ()))
    rows = []
    for name, ending in endings.items():
        ends = {ending, INFRASTRUCTURE} if name in broken else {ending}
        loss = None if ends & {*options.missing} else float(ending != "resolved")
        rows.append(Row(name, model, loss))
    return Log(source.name, rows, notes=_unjudged(endings, broken, options))


def is_by_instance(document: object) -> bool:
    """Return True for what a run says of its instances, each under its name."""
    if not isinstance(document, dict) or not document:
        return False
    found = list(document.values())
    return all(isinstance(instance, dict) and "resolved" in instance for instance in found) and any(
        instance.keys() >= BY_INSTANCE for instance in found
    )


def _by_instance(source: Source, document: dict[str, Any], options: Options) -> Log:
    """The rows of a document with what was found of every instance, under its name."""
    if options.missing:
        what = f"{source.name} does not say how an instance ended: leave out --given missing=…"
        raise refused(what, "missing")
    rows = []
    for name, found in document.items():
        resolved = found.get("resolved") if isinstance(found, dict) else None
        if not isinstance(resolved, bool):
            raise refused(f"item {name} of {source.name} does not say if it is resolved", "log")
        rows.append(Row(name, source.stem, float(not resolved)))
    note = f"{len(rows)} instances with a report; those that were not run are not in {source.name}"
    return Log(source.name, rows, notes=(note,))


def _check_counts(source: Source, document: dict[str, object], endings: dict[str, str]) -> None:
    """Refuse a report that counts other instances than it lists."""
    counts = {"resolved_instances": list(endings.values()).count("resolved")}
    counts["total_instances"] = len(endings)
    for name, listed in counts.items():
        counted = document.get(name)
        if isinstance(counted, int) and counted != listed:
            what = f"{source.name} counts {counted} {name.replace('_', ' ')} and lists {listed}"
            raise refused(f"{what}: is it whole?", "log")


def _unjudged(endings: dict[str, str], broken: set[str], options: Options) -> tuple[str, ...]:
    """A sentence on what fails without a verdict, and how to leave it out."""
    counts = {name: list(endings.values()).count(name) for name in NO_VERDICTS[1:]}
    counts = {INFRASTRUCTURE: len(broken)} | counts
    failed = {name: of for name, of in counts.items() if of and name not in options.missing}
    if not failed:
        return ()
    listed = ", ".join(f"{of} {name}" for name, of in failed.items())
    leaves_out = f"--given missing={next(iter(failed))} leaves them out"
    return (f"{listed}: failed, as on the board; {leaves_out}",)
