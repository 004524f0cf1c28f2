"""`make release`: everything of a release but the upload, in one folder, and the tag.

1. The tree is clean, CHANGELOG.md dates the version, and no tag has its name.
2. Wheel and sdist are built twice, here and in a clone, and are the same to the last byte.
3. The parts of the image (requirements/server.lock) are listed in a CycloneDX SBOM.
4. SHA256SUMS names them all, and is signed by the SSH key; so is the tag, made last.
"""

import argparse
import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUNDLE = Path("app/celeus/web/bundle")
NAMESPACE = "celeus-release"
"""Namespace of the signature, which is good for nothing else."""


class NotReady(Exception):
    """A reason why there is no release."""


def main(arguments: list[str]) -> int:
    """Make the files and the tag of a release; 1 where something is not ready."""
    parser = argparse.ArgumentParser(prog="make release", description=__doc__)
    parser.add_argument("--key", type=Path, required=True, help="SSH key that signs")
    parser.add_argument("--sbom", required=True, help="the program cyclonedx-py")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="folder of the files")
    given = parser.parse_args(arguments)
    try:
        tag = release(given.key.absolute(), given.sbom, given.out.absolute())
    except NotReady as reason:
        sys.stderr.write(f"no release: {reason}\n")
        return 1
    sys.stdout.write(
        f"{given.out} is ready, and {tag} is tagged here. To publish: git push origin {tag}, and"
        f" upload the wheel and the sdist with their SHA256SUMS.\n"
    )
    return 0


def release(key: Path, sbom: str, out: Path) -> str:
    """Make the files of this version in a new folder, and return its tag, which is made last."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    tag = f"v{version}"
    if _git("status", "--porcelain"):
        raise NotReady("there are changes that are not committed")
    if _git("tag", "--list", tag):
        raise NotReady(f"there is a tag {tag}: raise the version in pyproject.toml")
    notes = notes_of(version, (ROOT / "CHANGELOG.md").read_text())
    if out.exists():
        raise NotReady(f"{out} is there: move it away")
    out.mkdir(parents=True)
    build(ROOT, out)
    check_reproducible(out)
    (out / "NOTES.md").write_text(notes)
    parts = ["requirements", "--output-reproducible", "--pyproject", str(ROOT / "pyproject.toml")]
    listed = out / f"celeus-{version}.cdx.json"
    _run(sbom, *parts, "--output-file", str(listed), str(ROOT / "requirements" / "server.lock"))
    sums = out / "SHA256SUMS"
    sums.write_text("".join(f"{digest}  {name}\n" for name, digest in digests(out).items()))
    _run("ssh-keygen", "-Y", "sign", "-q", "-f", str(key), "-n", NAMESPACE, str(sums))
    signing = ("-c", "gpg.format=ssh", "-c", f"user.signingkey={key}")
    _git(*signing, "tag", "--sign", "--file", str(out / "NOTES.md"), "--cleanup=verbatim", tag)
    return tag


def notes_of(version: str, changelog: str) -> str:
    """Return what the changelog says of a version; refuses one without a date."""
    found = re.search(
        rf"^## \[{re.escape(version)}\] - (\S+)\n(.*?)(?=^## |\Z)",
        changelog,
        re.MULTILINE | re.DOTALL,
    )
    if found is None or not re.fullmatch(r"\d{4}-\d{2}-\d{2}", found[1]):
        raise NotReady(f"CHANGELOG.md does not date {version}")
    return f"{version} ({found[1]})\n\n{found[2].strip()}\n"


def build(checkout: Path, out: Path) -> None:
    """Build the wheel and the sdist of a checkout, with the time of its commit, offline."""
    hatch = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-t", "sdist"]
    moment = {"SOURCE_DATE_EPOCH": _git("log", "-1", "--format=%ct")}
    subprocess.run([*hatch, "-d", str(out)], cwd=checkout, env=moment, check=True)


def check_reproducible(out: Path) -> None:
    """Refuse files that a build in a clone, with the same bundle, does not make again."""
    with tempfile.TemporaryDirectory(prefix="celeus-release-") as folder:
        clone = Path(folder) / "clone"
        _git("clone", "--quiet", "--no-hardlinks", str(ROOT), str(clone))
        if (ROOT / BUNDLE).is_dir():
            shutil.copytree(ROOT / BUNDLE, clone / BUNDLE)
        again = Path(folder) / "dist"
        build(clone, again)
        first, second = digests(out), digests(again)
        if first != second:
            differing = sorted(name for name in first if first[name] != second.get(name))
            raise NotReady(f"a second build differs in {', '.join(differing) or 'its files'}")


def digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of the files of a folder by name."""
    files = sorted(folder.iterdir())
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def _git(*arguments: str) -> str:
    return _run("git", *arguments).strip()


def _run(*command: str) -> str:
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise NotReady(f"{command[0]} says: {(done.stderr or done.stdout).strip()}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
