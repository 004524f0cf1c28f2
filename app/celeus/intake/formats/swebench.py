"""Reports of SWE-bench: <model>.<run_id>.json, with the instances by how they ended.

A report holds no texts, so that nothing tells two versions of a data set apart but its ids.
"""

from celeus.intake.rows import Log, Options, Row, refused
from celeus.intake.sources.files import Source, under

LOSSES = {
    "resolved_ids": 0.0,
    "unresolved_ids": 1.0,
    "empty_patch_ids": 1.0,
    "error_ids": None,
    "incomplete_ids": None,
}
INFRASTRUCTURE = "infra_failure_ids"
"""Some of the unresolved and of the errors: the machine failed there, not the model."""


def read(source: Source, options: Options) -> Log:
    """The rows of a report; an instance that could not be run has no score."""
    del options
    document = source.document()
    under(source, document, "resolved_ids")
    model = source.stem.rpartition(".")[0] or source.stem
    losses: dict[str, float | None] = {}
    for ending, loss in LOSSES.items():
        for name in document.get(ending) or ():
            if losses.get(name, loss) != loss:
                raise refused(f"item {name} of {source.name} stands under two endings", "log")
            losses[str(name)] = loss
    losses |= dict.fromkeys(map(str, document.get(INFRASTRUCTURE) or ()))
    if not losses:
        raise refused(f"{source.name} has no instances", "log")
    return Log(source.name, [Row(name, model, loss) for name, loss in losses.items()])
