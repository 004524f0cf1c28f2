"""The picture of the method: it is drawn, and shows what the page beside it says."""

from pathlib import Path

import numpy as np
import pytest

from study.tables.method_picture import groups, main, overconfident, sessions

PNG = b"\x89PNG\r\n\x1a\n"


def test_the_picture_is_written_where_it_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "one.png"
    main([str(path)])
    assert path.read_bytes().startswith(PNG)


@pytest.fixture(scope="module")
def finished() -> tuple[dict[str, int], list[np.ndarray]]:
    truth = overconfident(10_000)
    found = sessions(truth, 0.05)
    seen = groups(truth, found["sharp"])
    labels = {name: state.folded for name, state in found.items()}
    return labels, [seen.surrogate, seen.true_mean, seen.recalibrated, seen.drawn]


def test_in_the_picture_sharp_needs_about_half_of_the_labels_of_celeus(
    finished: tuple[dict[str, int], list[np.ndarray]],
) -> None:
    labels, _ = finished
    assert labels["sharp"] < 0.65 * labels["celeus"]
    assert labels["celeus"] < 0.5 * labels["evalue"]


def test_in_the_picture_the_recalibrated_surrogate_is_nearer_to_the_truth(
    finished: tuple[dict[str, int], list[np.ndarray]],
) -> None:
    _, (surrogate, true_mean, recalibrated, drawn) = finished
    before, after = np.abs(surrogate - true_mean), np.abs(recalibrated - true_mean)
    assert after.mean() < 0.5 * before.mean()
    certain, doubtful = true_mean < 0.02, (true_mean > 0.2) & (true_mean < 0.8)
    assert drawn[certain].mean() < drawn[doubtful].mean()
