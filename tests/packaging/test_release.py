"""`make release`: the same files from the same commit, their parts and their signature."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.release import NAMESPACE, NotReady, digests, notes_of
from tests.wheels import CHECKOUT

pytestmark = pytest.mark.nightly
DATED = (
    "## [0.1.0] - 2026-11-28\n\nThe first.\n\n### Measuring\n\n- Sessions.\n\n## [0.0.1] - 2026\n"
)


def ran(folder: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone of this checkout as it is committed, whose changelog dates the version."""
    folder = tmp_path / "clone"
    ran(tmp_path, "git", "clone", "--quiet", str(CHECKOUT), str(folder))
    for name, value in (("user.name", "Ann"), ("user.email", "ann@example.com")):
        ran(folder, "git", "config", name, value)
    changelog = folder / "CHANGELOG.md"
    changelog.write_text(changelog.read_text().replace("- unreleased", "- 2026-11-28"))
    ran(folder, "git", "commit", "--quiet", "--all", "--message", "Date the release")
    return folder


def released(clone: Path, key: Path) -> subprocess.CompletedProcess[str]:
    sbom = CHECKOUT / ".venv-release" / "bin" / "cyclonedx-py"
    command = [sys.executable, "-m", "tests.release", "--key", str(key), "--sbom", str(sbom)]
    return subprocess.run(command, cwd=clone, check=False, capture_output=True, text=True)


def test_a_release_is_made_to_the_step_before_the_upload(clone: Path, tmp_path: Path) -> None:
    ran(CHECKOUT, "make", ".venv-release/.celeus-ready")
    key = tmp_path / "key"
    ran(tmp_path, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key))
    done = released(clone, key)
    assert done.returncode == 0, done.stderr
    dist = clone / "dist"
    (wheel,) = dist.glob("celeus-*.whl")
    version = wheel.name.split("-")[1]
    names = {wheel.name, f"celeus-{version}.tar.gz", f"celeus-{version}.cdx.json", "NOTES.md"}
    assert names | {"SHA256SUMS", "SHA256SUMS.sig"} == {path.name for path in dist.iterdir()}
    lines = (dist / "SHA256SUMS").read_text().splitlines()
    sums = {name: digest for digest, name in (line.split("  ") for line in lines)}
    found = digests(dist)
    assert sums == {name: found[name] for name in names}
    parts = json.loads((dist / f"celeus-{version}.cdx.json").read_text())
    locked = (clone / "requirements" / "server.lock").read_text().count("==")
    assert (parts["bomFormat"], len(parts["components"])) == ("CycloneDX", locked)
    assert all(part["externalReferences"][0]["hashes"] for part in parts["components"])
    (allowed := tmp_path / "allowed").write_text(
        f"ann@example.com {key.with_suffix('.pub').read_text()}"
    )
    signed = ["-I", "ann@example.com", "-n", NAMESPACE, "-s", str(dist / "SHA256SUMS.sig")]
    verify = ["ssh-keygen", "-Y", "verify", "-f", str(allowed), *signed]
    for content, status in ((dist / "SHA256SUMS", 0), (dist / "NOTES.md", 255)):
        with content.open("rb") as file:
            checked = subprocess.run(verify, stdin=file, check=False, capture_output=True)
        assert checked.returncode == status
    trust = ("-c", f"gpg.ssh.allowedSignersFile={allowed}")
    ran(clone, "git", *trust, "tag", "--verify", f"v{version}")
    shutil.rmtree(dist)
    again = released(clone, key)
    assert (again.returncode, dist.exists()) == (1, False)
    assert f"there is a tag v{version}" in again.stderr


def test_a_release_that_is_not_dated_or_not_committed_is_none(clone: Path, tmp_path: Path) -> None:
    (clone / "README.md").write_text("changed")
    done = released(clone, tmp_path / "none")
    assert (done.returncode, (clone / "dist").exists()) == (1, False)
    assert "changes that are not committed" in done.stderr
    assert notes_of("0.1.0", DATED) == (
        "0.1.0 (2026-11-28)\n\nThe first.\n\n### Measuring\n\n- Sessions.\n"
    )
    for version, changelog in (("0.1.0", DATED.replace("2026-11-28", "unreleased")), ("2", DATED)):
        with pytest.raises(NotReady, match="does not date"):
            notes_of(version, changelog)
