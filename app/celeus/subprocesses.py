"""Child processes: they end with their parent, however it ends, and know no more than they need.

A child that is a program of somebody else's is started on a leash: a shell beside it reads from a
pipe that the parent alone holds open, and ends the child when there is nobody left to read from.
A pipe is closed by the kernel, so this holds for `kill -9` of the parent, too.
"""

import os
import select
import signal
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import connection, parent_process
from pathlib import Path
from typing import Any

SYSTEM = {"PATH": f"{os.defpath}:/usr/sbin:/sbin", "LC_ALL": "C"}
"""Environment of system programs."""
_INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")

# Its arguments: a signal, the child or its whole group ("-"), the command. A child that lets five
# seconds pass is ended without ceremony. Two shells, so that the second is no child of the command.
_LEASH = """
signal=$1 group=$2; shift 2
exec 3<&0
( (
    exec >/dev/null 2>&1
    read -r _ <&3 && exit
    kill -s "$signal" -- "$group$$"
    for _ in 1 2 3 4 5; do sleep 1; kill -0 $$ || exit; done
    kill -s QUIT -- "$group$$"
) & )
exec "$@" </dev/null 3<&-
"""


class ChildProcess(subprocess.Popen[bytes]):
    """A program that ends with this process; it is in a session of its own and reads nothing.

    ``signal_number`` is what it gets when this process is gone, or its whole ``family`` does. A
    Ctrl-C on the terminal is for this process, which then ends the program.
    """

    def __init__(
        self,
        command: list[str],
        signal_number: signal.Signals = signal.SIGTERM,
        *,
        family: bool = False,
        **terms: Any,  # noqa: ANN401 -- those of Popen
    ) -> None:
        """Start the program; ``terms`` are arguments of `subprocess.Popen`."""
        name = signal_number.name.removeprefix("SIG")
        super().__init__(
            ["/bin/sh", "-c", _LEASH, "sh", name, "-" if family else "", *command],
            stdin=subprocess.PIPE,
            start_new_session=True,
            **terms,
        )

    def release(self) -> None:
        """Stop watching a program that has ended, since its process id may be reused."""
        if self.stdin is not None and not self.stdin.closed:
            # Another thread may just have released it
            with suppress(BrokenPipeError, ValueError), self.stdin:
                self.stdin.write(b"\n")

    def end(self, *steps: tuple[signal.Signals, float | None]) -> None:
        """Send signals, each after the seconds that the one before was given, until it ends."""
        for number, seconds in steps:
            self.send_signal(number)
            with suppress(subprocess.TimeoutExpired):
                self.wait(seconds)
                break
        self.release()


def environment() -> dict[str, str]:
    """Return the variables by which a child finds this package; no secret of this process."""
    kept = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    # This package first: the parent may have found it in its working folder
    paths = [str(Path(__file__).parents[1])]
    if inherited := os.environ.get("PYTHONPATH"):
        # An empty part would be the working folder
        paths += map(os.path.abspath, filter(None, inherited.split(os.pathsep)))
    return kept | {"PYTHONPATH": os.pathsep.join(paths)}


def end_with_parent() -> None:
    """End this process of `multiprocessing` as soon as its parent has ended."""
    parent = parent_process()
    if parent is not None:
        sentinel = parent.sentinel
        _when(lambda: connection.wait([sentinel]), lambda: os._exit(1))


def end_with_stdin() -> None:
    """End this process and its whole group when the other end of its stdin is closed."""
    ends = select.poll()
    # Only the hang-up is polled for: input on stdin is for other readers
    ends.register(0, 0)
    _when(ends.poll, lambda: os.killpg(0, signal.SIGKILL))


def _when(happened: Callable[[], object], then: Callable[[], None]) -> None:
    def wait() -> None:
        happened()
        then()

    threading.Thread(target=wait, daemon=True).start()
