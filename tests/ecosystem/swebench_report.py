"""Have SWE-bench report on a made-up run: `python -m tests.ecosystem.swebench_report FOLDER`.

It wrote `fixtures/swebench` with swebench 5.0.2, whose harness keeps a report of every instance
that was run and makes one of them all.
"""

import json
import os
import shutil
import sys
from pathlib import Path

from swebench.harness.constants import LOG_REPORT, LOG_TEST_OUTPUT, RUN_EVALUATION_LOG_DIR
from swebench.harness.reporting import make_run_report

FIXTURES = Path(__file__).parent / "fixtures" / "swebench"
MODEL, RUN = "org/model-1.5", "run1"
RESOLVED, UNRESOLVED = ("d__d-1", "d__d-2", "d__d-3"), ("d__d-4", "d__d-5")
WITHOUT_MEMORY = "d__d-5"
EMPTY, ERROR, INCOMPLETE = "d__d-6", "d__d-7", "d__d-8"


def run(folder: Path) -> Path:
    """The report, written to ``folder``."""
    os.chdir(folder)
    names = [*RESOLVED, *UNRESOLVED, EMPTY, ERROR, INCOMPLETE]
    predictions = {
        name: {
            "instance_id": name,
            "model_name_or_path": MODEL,
            "model_patch": "" if name == EMPTY else "diff --git a/a b/a",
        }
        for name in names
        if name != INCOMPLETE
    }
    for name in (*RESOLVED, *UNRESOLVED):
        place = RUN_EVALUATION_LOG_DIR / RUN / MODEL.replace("/", "__") / name
        place.mkdir(parents=True)
        (place / LOG_REPORT).write_text(json.dumps({name: {"resolved": name in RESOLVED}}))
        if name == WITHOUT_MEMORY:
            (place / LOG_TEST_OUTPUT).write_text("OSError: [Errno 12] Cannot allocate memory\n")
    instances = [{"instance_id": name} for name in names]
    return Path(make_run_report(predictions, instances, RUN)).resolve()


if __name__ == "__main__":
    made = Path(sys.argv[1])
    made.mkdir(parents=True)
    report = run(made.resolve())
    FIXTURES.mkdir(exist_ok=True)
    shutil.copyfile(report, FIXTURES / report.name)
