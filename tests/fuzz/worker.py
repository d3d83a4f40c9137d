"""A process that reads damaged files, one at a time, and reports what became of each."""

import multiprocessing
import os
import resource
import time
import traceback
import warnings
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SECONDS, MEGABYTES, WALL = 5.0, 500.0, 30.0
ADDRESSES = 8 << 30  # so that a file that asks for terabytes is refused them here


@dataclass(frozen=True)
class Outcome:
    """What became of a file: "read", "refused" or "fault", and what was said and taken."""

    kind: str
    said: str
    stderr: str = ""
    seconds: float = 0.0
    megabytes: float = 0.0


class Worker:
    """Starts a process when there is none, and a new one after each that died or was stopped."""

    def __init__(self) -> None:
        self.process: Any = None

    def read(self, name: str, folder: Path) -> Outcome:
        """Read a folder by the reader of this name."""
        if self.process is None:
            context = multiprocessing.get_context("spawn")
            self.connection, other = context.Pipe()
            self.process = context.Process(target=serve, args=(other,), daemon=True)
            self.process.start()
            other.close()
            self.connection.recv()  # it is ready
        self.connection.send((name, str(folder)))
        try:
            if self.connection.poll(WALL):
                outcome: Outcome = self.connection.recv()
                return outcome
            said = f"it took more than {WALL:g} s"
        except EOFError:
            self.process.join()
            said = f"the process died with status {self.process.exitcode}"
        self.close()
        return Outcome("fault", said)

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.process = None


def serve(connection: Any) -> None:
    """Answer requests until the other side is gone."""
    from fuzz.readers import READERS

    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
        os.dup2(os.memfd_create("stderr"), 2)  # what libraries written in C print, too
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
        connection.send("ready")
        while True:
            try:
                name, folder = connection.recv()
            except EOFError:
                return
            connection.send(_outcome(READERS[name], Path(folder)))


def _outcome(read: Any, folder: Path) -> Outcome:
    from fuzz.readers import REFUSALS

    os.ftruncate(2, 0)
    os.lseek(2, 0, os.SEEK_SET)
    Path("/proc/self/clear_refs").write_text("5")  # the peak of memory starts anew
    before, start = _memory("VmRSS"), time.process_time()
    kind, said = "read", ""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            read(folder)
        except REFUSALS as error:
            kind, said = "refused", str(error)
        except BaseException:
            kind, said = "fault", traceback.format_exc()
    taken, grown = time.process_time() - start, (_memory("VmHWM") - before) / 1024
    leaked = os.pread(2, 10_000, 0).decode(errors="replace") + "".join(
        f"warning: {one.message}" for one in warned
    )
    return Outcome(kind, said, leaked, taken, grown)


def _memory(name: str) -> int:
    """Kilobytes, of the process."""
    line = next(
        one for one in Path("/proc/self/status").read_text().splitlines() if one.startswith(name)
    )
    return int(line.split()[1])
