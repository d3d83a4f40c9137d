"""Kill a Ray worker in the middle of a computation, for tests that the result stays the same."""

import os
import subprocess
import sys
from contextlib import contextmanager

KILLER = """
import sys, time
from pathlib import Path
import psutil

parent, folder, files, enough = psutil.Process(int(sys.argv[1])), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
while True:
    if len(list(folder.glob(files))) >= enough:
        for one in parent.children(recursive=True):
            try:
                if "".join(one.cmdline()[:1]).startswith("ray::_batch"):
                    one.kill()
                    print("killed", flush=True)
                    raise SystemExit
            except psutil.Error:  # it ended between being listed and being asked
                continue
    time.sleep(0.005)
"""


@contextmanager
def one_ray_worker_killed(folder, files, enough=1):
    """Kill a worker of this process once so many of these files are in the folder; fail if none was
    killed.
    """
    line = [sys.executable, "-c", KILLER, str(os.getpid()), str(folder), files, str(enough)]
    with subprocess.Popen(
        line, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as killer:
        try:
            yield
        finally:
            killer.kill()
        assert "killed" in killer.stdout.read()
