"""No command leaves a file outside its outputs, except kernels that numba cached, or contacts
another machine.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from experiments.conftest import SMALL
from tacit.compute.telemetry import OPT_OUTS

# Python runs it at its start, in every process, when its folder is on PYTHONPATH
WATCH = """
import os, sys

LOCAL = ("127.", "::1", "localhost")
NAMED = ("socket.getaddrinfo", "socket.gethostbyname", "socket.connect", "socket.sendto")

def watch(event, arguments):
    if event not in NAMED:
        return
    address = arguments[0] if event in NAMED[:2] else arguments[1]
    if isinstance(address, (tuple, list)):
        address = address[0]
    if event in ("socket.connect", "socket.sendto") and isinstance(address, (str, bytes)) and "/" in str(address):
        return  # a socket of this machine
    if address and not str(address).startswith(LOCAL):
        with open(os.environ["CONTACTS"], "a") as file:
            print(event, address, file=file)

sys.addaudithook(watch)
"""

# one process runs all commands, since each start takes seconds
RUN = """
import json, os, sys
from tacit.cli.main import main

created = []
for line in json.loads(sys.argv[1]):
    before = set(os.listdir())
    status = main(line.split())
    created.append([status, sorted(set(os.listdir()) - before)])
with open(sys.argv[2], "w") as file:
    json.dump(created, file)
"""

PRIVATE = "--budget rho=0.5"
SESSION = {
    "methods": [],
    "schema table.csv --out schema.yaml": ["schema.yaml"],
    "import rows.npy labels.npy --classes 2 --out all": ["all"],
    "split all --n-public 20 --n-test 20 --out parts": ["parts"],
    "subset all --imbalance 2 --out few": ["few"],
    "overlap parts/public parts/private --out pairs.csv": ["pairs.csv"],
    f"promise auto {PRIVATE} --classes 2": [],
    "forecast noisy-sum --public parts/public --classes 2 --records 5 --budgets rho=0.5 --seeds 1": [],
    "audit noisy-sum --budget rho=0.5 --runs 100": [],
    "ledger few --allow rho=1": ["few.ledger.jsonl"],
    "ledger few": [],
    f"fit auto parts/private --public parts/public --classes 2 {PRIVATE} --out release": [
        "release"
    ],
    f"fit noisy-sum few --classes 2 {PRIVATE} --out sums": ["sums"],
    f"fit pate parts/private --public parts/public --classes 2 {PRIVATE} --n-teachers 5 --out student": [
        "student"
    ],
    f"summarise few --classes 2 {PRIVATE} --part north --public parts/public --out summary": [
        "summary"
    ],
    "combine summary --public parts/public --out combined": ["combined"],
    "inspect release": [],
    "evaluate release parts/test": [],
    "choose release sums --on parts/test --budget epsilon=0.4": [],
    "predict release parts/test --out labels.csv": ["labels.csv"],
    "label-public release parts/test --at-least .6 --out labelled": ["labelled"],
    "synthesize release --rows 40 --out drawn": ["drawn"],
    "export release --onnx head.onnx": ["head.onnx"],
    "page release --out page.html": ["page.html"],
    "publish release --to hub": ["hub"],
    "votes votes.npy --classes 2 --aggregator gnmax --sigma 20 --budgets 1 --out answers": [
        "answers"
    ],
    "privatize-labels table.csv --column y --classes 2 --budget epsilon=1 --out noisy.csv": [
        "noisy.csv",
        "noisy.csv.tacit.json",
    ],
    "sweep plan.yaml --out runs --jobs 2": ["runs"],
    "results runs": [],
    "report runs --out report.html": ["report.html"],
    "encode pictures --encoder onnx:ENCODER --classes 2 --out encoded": ["encoded"],
}
# a demonstration fits for minutes; the page of `report` is drawn by the same code
LEFT_OUT = {"demo", "adapt"}


@pytest.fixture
def session(tmp_path, onnx_model):
    """Private files in a folder, and an environment with an empty home whose processes are
    watched.
    """
    rng = np.random.default_rng(0)
    work = tmp_path / "work"
    for name in ("work", "home", "watch", "temporary", "work/pictures/0", "work/pictures/1"):
        (tmp_path / name).mkdir(parents=True)
    labels = np.arange(160) % 2
    np.save(work / "rows.npy", np.eye(2, 6)[labels] * 3 + rng.normal(size=(160, 6)))
    np.save(work / "labels.npy", labels)
    np.save(work / "votes.npy", rng.integers(0, 2, (20, 100)))
    (work / "table.csv").write_text("x,y\n" + "".join(f"{row},{row % 2}\n" for row in range(50)))
    (work / "plan.yaml").write_text(SMALL)
    for number in range(6):
        pixels = rng.integers(0, 255, (40, 40, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(work / f"pictures/{number % 2}/{number}.png")
    (tmp_path / "watch/sitecustomize.py").write_text(WATCH)
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("XDG_", "HF_", "PYTEST"))
    }
    environment = {name: value for name, value in inherited.items() if name not in OPT_OUTS}
    paths = [str(tmp_path / "watch"), *filter(None, [environment.get("PYTHONPATH")])]
    environment |= {
        "HOME": str(tmp_path / "home"),
        "TMPDIR": str(tmp_path / "temporary"),
        "PYTHONPATH": os.pathsep.join(paths),
        "CONTACTS": str(tmp_path / "contacts"),
    }
    return environment


def files_in(folder):
    return sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()
    )


def test_commands_write_only_their_outputs_and_contact_nobody(session, tmp_path, onnx_model):
    lines = [line.replace("ENCODER", str(onnx_model)) for line in SESSION]
    code = [sys.executable, "-c", RUN, json.dumps(lines), str(tmp_path / "created")]
    done = subprocess.run(
        code, cwd=tmp_path / "work", env=session, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    created = json.loads((tmp_path / "created").read_text())
    expected = [[0, names] for names in SESSION.values()]
    for line, result, wanted in zip(lines, created, expected, strict=True):
        assert result == wanted, f"{line}\n{done.stderr}"
    in_home = files_in(tmp_path / "home")
    assert [name for name in in_home if not name.startswith(".cache/numba/")] == []
    assert files_in(tmp_path / "temporary") == []
    assert not (tmp_path / "contacts").exists(), (tmp_path / "contacts").read_text()


def test_every_command_is_in_the_session():
    from tacit.cli.verbs import VERBS

    assert {line.split()[0] for line in SESSION} == VERBS.keys() - LEFT_OUT


def test_the_watch_sees_a_host_that_is_resolved(session, tmp_path):
    """The hook itself works: without this test an empty record could mean that nothing was
    recorded.
    """
    code = "import socket\ntry: socket.getaddrinfo('host.invalid', 80)\nexcept OSError: pass"
    subprocess.run([sys.executable, "-c", code], env=session, check=True)
    assert "host.invalid" in (tmp_path / "contacts").read_text()


# that a library still reads its variable is seen by what it then does or says
HONOURED = {
    "HF_HUB_DISABLE_TELEMETRY": (
        "huggingface_hub",
        "from huggingface_hub.constants import HF_HUB_DISABLE_TELEMETRY as off; print(off)",
    ),
    "MLFLOW_DISABLE_TELEMETRY": (
        "mlflow",
        "from mlflow.telemetry.utils import is_telemetry_disabled as off; print(off())",
    ),
    "ORT_DISABLE_TELEMETRY": (
        "onnxruntime",
        (
            "import onnxruntime, os; print(not os.path.exists(os.environ['HOME'] +"
            " '/.cache/Microsoft'))"
        ),
    ),
    "RAY_USAGE_STATS_ENABLED": (
        "ray",
        "from ray._common.usage.usage_lib import usage_stats_enabled as sent; print(not sent())",
    ),
}


@pytest.mark.parametrize("variable", OPT_OUTS)
def test_a_library_sends_no_telemetry_once_tacit_is_imported(variable, session):
    library, answer = HONOURED[variable]
    pytest.importorskip(library)
    for name in ("CI", "GITHUB_ACTIONS"):  # where mlflow sends nothing anyhow
        session.pop(name, None)
    command = [sys.executable, "-c", f"import tacit; {answer}"]
    done = subprocess.run(command, env=session, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"


@pytest.mark.parametrize("variable", OPT_OUTS)
def test_a_value_that_the_user_set_stays(variable, session):
    session[variable] = "as set"
    code = f"import os, tacit; print(os.environ[{variable!r}])"
    done = subprocess.run(
        [sys.executable, "-c", code], env=session, capture_output=True, text=True, check=True
    )
    assert done.stdout == "as set\n"


def test_each_variable_is_named_where_users_look():
    page = (Path(__file__).parents[2] / "SECURITY.md").read_text(encoding="utf-8")
    assert [variable for variable in OPT_OUTS if f"`{variable}=" not in page] == []
