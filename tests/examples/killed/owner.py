"""The owner of `examples/federation`, whose process is killed once if its folder holds a file
`dies`: the summary is stored then, and no reply is sent. Stands before the example on PYTHONPATH.
"""

import os
import signal
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
spec = spec_from_file_location("living_owner", ROOT / "examples/federation/owner.py")
living = module_from_spec(spec)
spec.loader.exec_module(living)


def reply(folder, request):
    files = living.reply(folder, request)
    dies = folder / "dies"
    if dies.exists():
        dies.unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    return files
