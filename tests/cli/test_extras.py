"""Without the libraries of the extras: the main job works, and all else names the extra to install
in one line.
"""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import tacit
from cli.test_bad_input import refused
from tacit.compute.extras import EXTRAS
from tacit.errors import InputError

SETTINGS = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = SETTINGS["project"]
NOT_IMPORTED = {"OpenSSL", "pandas"}  # which other libraries import
DISTRIBUTIONS = {
    "PIL": "pillow",
    "mlflow": "mlflow-skinny",
    "model_signing": "model-signing",
    "open_clip": "open_clip_torch",
    "OpenSSL": "pyopenssl",
    "sentence_transformers": "sentence-transformers",
    "vl_convert": "vl-convert-python",
}
PLAN = """
name: p
data: [{name: digits, encoder: pixels, builtin: digits}]
learners: [{name: n, method: noisy-sum}]
budgets: [rho=1]
imbalance: [1]
seeds: 1
"""
BLOCKED = """
import sys
from tacit.compute.extras import EXTRAS

class Blocked:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in EXTRAS:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())
from tacit.cli.main import main

for line in sys.stdin.read().splitlines():
    if main(line.split()):
        sys.exit(line)
"""
MAIN_JOB = """
promise noisy-sum --budget rho=0.5
import X.npy y.npy --out imported --classes 3
import d.parquet --out from-table --classes 3
ledger private --allow rho=9
fit noisy-sum private --budget rho=0.5 --out r1
fit newton private --budget rho=0.5 --out r2
fit public private --public public --budget epsilon=1 --out r3
fit auto private --public public --budget rho=0.5 --out r4
inspect r1
publish r1 --to published
evaluate r3 test
predict r2 test --out labels.parquet
votes votes.npy --aggregator gnmax --sigma 5 --n-labels 5 --out answers
privatize-labels t.csv --column y --budget epsilon=1 --classes 2 --out o.csv
"""


def needs(library):
    """The distribution of a library and the extra that it comes with."""
    return DISTRIBUTIONS.get(library, library), PROJECT["optional-dependencies"][EXTRAS[library]]


@pytest.mark.parametrize("library", EXTRAS)
def test_an_extra_brings_its_library_and_the_base_does_not(library):
    distribution, extra = needs(library)
    assert any(one.startswith(distribution) for one in extra)
    assert not any(one.startswith(distribution) for one in PROJECT["dependencies"])


def test_a_contract_lets_one_module_import_each_library():
    contracts = [
        one for one in SETTINGS["tool"]["importlinter"]["contracts"] if one["type"] == "protected"
    ]
    importers = {one["protected_modules"][0]: one["allowed_importers"] for one in contracts}
    assert set(EXTRAS) - NOT_IMPORTED <= importers.keys()
    assert {len(modules) for modules in importers.values()} == {1}
    assert not any("ignore_imports" in one for one in SETTINGS["tool"]["importlinter"]["contracts"])


def test_tests_have_the_libraries_of_experiments():
    extras = PROJECT["optional-dependencies"]
    assert set(extras["experiments"]) <= set(extras["dev"])


@pytest.mark.parametrize(
    ("line", "library", "extra"),
    [
        ("sweep plan.yaml --out runs", "duckdb", "experiments"),
        ("sweep plan.yaml --out runs --dry-run", "duckdb", "experiments"),
        ("results runs", "duckdb", "experiments"),
        ("report runs --out page.html", "duckdb", "experiments"),
        ("demo --out page", "altair", "experiments"),
        ("encode pictures --encoder timm:resnet18 --public --out E", "torch", "encoders"),
        ("encode pictures --encoder timm:resnet18 --public --out E", "timm", "encoders"),
        ("encode pictures --encoder onnx:m.onnx --public --out E", "onnxruntime", "encoders"),
        ("sweep plan.yaml --out runs --engine ray --jobs 2", "ray", "cluster"),
        (
            "sweep plan.yaml --out runs --engine slurm --jobs 2 --cluster local",
            "submitit",
            "cluster",
        ),
        ("sweep plan.yaml --out runs --mlflow http://localhost:1", "mlflow", "mlflow"),
        ("publish release --repo me/digits", "huggingface_hub", "hub"),
        ("publish release --to hub --sign key.pem", "model_signing", "hub"),
        ("inspect release --key public.pem", "model_signing", "hub"),
        ("inspect release --key public.pem", "OpenSSL", "hub"),
    ],
)
def test_commands_name_the_missing_extra(stores, run, monkeypatch, line, library, extra):
    Path("plan.yaml").write_text(PLAN)
    Path("pictures").mkdir()
    Path("pictures", "one.png").touch()
    tacit.Release.of(tacit.NoisySumPrototypes(classes=2).fit(np.eye(2), [0, 1])).save("release")
    monkeypatch.setitem(sys.modules, library, None)
    refused(
        run,
        line,
        f"{library} is not installed, and this needs it; run pip install -c constraints.txt"
        f" '.[{extra}]'",
    )


def test_networks_name_the_missing_extra(monkeypatch):
    x, y = np.eye(4), np.arange(4) % 2
    monkeypatch.setitem(sys.modules, "opacus", None)
    with pytest.raises(InputError, match=r"opacus is not installed.*'\.\[dpsgd\]'"):
        tacit.DPSGD("epsilon=1,delta=1e-5", classes=2).fit(x, y)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(InputError, match=r"torch is not installed.*'\.\[torch\]'"):
        tacit.LabelPrivate(budget="epsilon=1", classes=2, base="mlp").fit(x, y)
    with pytest.raises(InputError, match=r"torch is not installed.*'\.\[encoders\]'"):
        tacit.encode(["a text"], "sentence-transformers:all-MiniLM-L6-v2")


def test_an_import_that_fails_later_names_the_extra(stores, run, monkeypatch):
    def fails(*_, **__):
        raise ModuleNotFoundError("No module named 'vl_convert'", name="vl_convert.part")

    monkeypatch.setattr("tacit.data.locations.splits", fails)
    refused(run, "import private --out new", "vl_convert is not installed", "'.[experiments]'")


PROGRESS = re.compile(r"tacit: [\w -]+: \d+ of \d+")


def test_the_main_job_needs_no_extra(stores):
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(30, 5)), np.arange(30) % 3
    np.save("X.npy", x)
    np.save("y.npy", y)
    pq.write_table(pa.table({"x": list(x), "label": y}), "d.parquet")
    np.save("votes.npy", rng.integers(0, 3, size=(20, 50)))
    Path("t.csv").write_text("id,y\n1,0\n2,1\n")
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED], input=MAIN_JOB.strip(), capture_output=True, text=True
    )
    # shown where the machine is slow
    said = [line for line in done.stderr.splitlines() if not PROGRESS.match(line)]
    assert (done.returncode, said) == (0, []), done.stderr
