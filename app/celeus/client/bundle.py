"""A certificate and the columns of its pool in one file: a zip archive of stored entries."""

import shutil
import zipfile
from collections.abc import Mapping
from io import BytesIO
from typing import IO

from celeus.errors import InvalidValue

CERTIFICATE, COLUMNS = "certificate.json", "columns.npz"
BEGINNING = b"PK\3\4"
"""First bytes of a bundle, also of one that was cut off."""
ENCRYPTED = 1
OLDEST = (1980, 1, 1, 0, 0, 0)
"""The date of all entries, so that the same parts make the same bytes."""


def bundled(certificate: bytes, columns: bytes) -> bytes:
    """Return a bundle of these."""
    file = BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, content in ((CERTIFICATE, certificate), (COLUMNS, columns)):
            archive.writestr(zipfile.ZipInfo(name, OLDEST), content)
    return file.getvalue()


def parts_of(file: IO[bytes], parts: Mapping[str, IO[bytes]]) -> bool:
    """Write the parts of a bundle to files by their names; returns False for another file.

    Refuses a zip archive that is no bundle.
    """
    is_zip = _is_zip(file)
    file.seek(0)
    if not is_zip:
        return False
    try:
        with zipfile.ZipFile(file) as archive:
            entries = archive.infolist()
            if sorted(entry.filename for entry in entries) != [*parts]:
                raise _refused("it holds other files")
            if any(entry.compress_type or entry.flag_bits & ENCRYPTED for entry in entries):
                raise _refused("its files are packed or encrypted")
            for entry in entries:
                with archive.open(entry) as content:
                    shutil.copyfileobj(content, parts[entry.filename])
                parts[entry.filename].seek(0)
    except (zipfile.BadZipFile, EOFError, OSError, ValueError, NotImplementedError) as error:
        raise _refused(str(error)) from error
    return True


def _is_zip(file: IO[bytes]) -> bool:
    try:
        beginning = file.read(len(BEGINNING))
    except OSError:
        # Reading all of it names the reason
        return False
    file.seek(0)
    return beginning == BEGINNING or zipfile.is_zipfile(file)


def _refused(why: str) -> InvalidValue:
    rule = "a certificate, or what `session.bundle()` returns"
    return InvalidValue(f"The bundle cannot be read: {why}.", field="file", rule=rule)
