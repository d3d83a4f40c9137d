"""The examples of a round over Flower and NVIDIA FLARE: what each owner is charged and sends, when
processes die, requests are repeated, and servers or owners are not as agreed.
"""

import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from urllib.error import URLError
from urllib.request import urlopen

import numpy as np
import pytest

import tacit
from messages import lacking

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples/federation"
MODULES = ("deal", "owner", "recipe", "server")


class Killed(BaseException):
    """Stands for the end of the process: nothing of the example catches it."""


@pytest.fixture
def example(monkeypatch):
    """The modules of the example, which are not in a package."""
    monkeypatch.syspath_prepend(str(EXAMPLE))
    yield SimpleNamespace(**{name: import_module(name) for name in MODULES})
    for name in MODULES:
        del sys.modules[name]


@pytest.fixture
def folder(example, tmp_path):
    """The server's folder, with those of three owners."""
    example.deal.main(tmp_path / "federation")
    return tmp_path / "federation"


def charges(folder, name):
    """The charges in the ledger of an owner."""
    return tacit.Ledger.beside(folder / name / "records", name).account().charges


def files_in(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def log_of(hospital):
    return (hospital / "owner.log").read_text(encoding="utf-8")


def test_a_request_that_is_repeated_gets_the_stored_summary(example, folder):
    hospital, request = folder / "hospital-1", example.server.request(folder)
    first = example.owner.reply(hospital, request)
    assert first == files_in(hospital / "summary")
    assert example.owner.reply(hospital, request) == first
    (charge,) = charges(folder, "hospital-1")
    summary = tacit.Summary.of_files(first).verify()
    assert charge.guarantee.event == summary.guarantee.event
    assert [part.name for part in summary.parts] == ["hospital-1"]


def test_a_warning_that_quotes_a_private_number_goes_into_the_log_alone(example, folder, capsys):
    hospital = folder / "hospital-1"
    rows = np.load(folder / "public.npy")[:20]
    shutil.rmtree(hospital / "records")
    tacit.EmbeddingStore.write(
        hospital / "records",
        rows,
        np.resize(example.deal.CLASSES, len(rows)),
        classes=example.deal.CLASSES,
        identity="hospital-1",
    )
    with warnings.catch_warnings(record=True) as shown:
        assert "summary.json" in example.owner.reply(hospital, example.server.request(folder))
    assert not shown
    assert "private" not in capsys.readouterr().err
    assert not lacking(log_of(hospital), "20 of 600 rows of public are private records")


def test_an_owner_who_refuses_by_hand_is_told_why_in_a_line(folder):
    other = folder / "other.json"
    recipe = (folder / "recipe.json").read_text(encoding="utf-8")
    other.write_text(recipe.replace("rho=0.5", "rho=0.6"), encoding="utf-8")
    command = [sys.executable, "owner.py", folder / "hospital-1", other]
    refused = subprocess.run(command, cwd=EXAMPLE, capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert "no summary: budget is 'rho=0.6', and 'rho=0.5' was agreed on" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_two_requests_at_once_get_one_summary(example, folder):
    request = example.server.request(folder)
    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(
            lambda _: example.owner.reply(folder / "hospital-2", request), range(2)
        )
    assert first == second == files_in(folder / "hospital-2" / "summary")
    assert len(charges(folder, "hospital-2")) == 1


@pytest.mark.parametrize(
    ("change", "facts"),
    [
        ({"budget": "rho=1"}, ["budget", "'rho=1'", "'rho=0.5'"]),
        ({"classes": ("benign", "malignant")}, ["classes", "('benign', 'malignant')"]),
        ({"encoder": "another"}, ["encoder", "'another'", "16 columns"]),
        ({"public_sha256": "0" * 64}, ["public_sha256", "0" * 64]),
        (None, ["no recipe"]),
    ],
)
def test_a_server_with_another_recipe_is_refused(example, folder, change, facts):
    request = "{}"
    if change is not None:
        agreed = example.recipe.Recipe.of_json(example.server.request(folder))
        request = replace(agreed, **change).to_json()
    reply = example.owner.reply(folder / "hospital-1", request)
    assert list(reply) == ["refused"]
    assert not lacking(reply["refused"].decode(), *facts)
    assert charges(folder, "hospital-1") == ()
    assert not (folder / "hospital-1" / "summary").exists()


def killed(*_, **__):
    raise Killed


@pytest.mark.parametrize(("method", "charged"), [("_make", 0), ("_stored", 1)])
def test_an_owner_that_dies_and_comes_back_is_charged_once(
    example, folder, monkeypatch, method, charged
):
    """Before the charge, and when the summary is stored and not yet sent."""
    hospital, request = folder / "hospital-1", example.server.request(folder)
    with monkeypatch.context() as patch:
        patch.setattr(example.owner.Owner, method, killed)
        with pytest.raises(Killed):
            example.owner.reply(hospital, request)
    assert len(charges(folder, "hospital-1")) == charged

    reply = example.owner.reply(hospital, request)
    assert tacit.Summary.of_files(reply).verify()
    assert len(charges(folder, "hospital-1")) == 1


def test_a_summary_that_was_paid_for_and_lost_is_not_made_again_at_no_charge(
    example, folder, monkeypatch
):
    hospital, request = folder / "hospital-1", example.server.request(folder)
    with monkeypatch.context() as patch:
        patch.setattr(tacit.Summary, "save", killed)
        with pytest.raises(Killed):
            example.owner.reply(hospital, request)
    assert len(charges(folder, "hospital-1")) == 1

    reply = example.owner.reply(hospital, request)
    assert reply == {"refused": example.owner.UNEXPECTED}
    assert not lacking(log_of(hospital), "lost", "records.ledger.jsonl", "delete started.json")
    assert len(charges(folder, "hospital-1")) == 1

    # as the log says; a deleted summary is lost too
    (hospital / "started.json").unlink()
    assert "summary.json" in example.owner.reply(hospital, request)
    assert len(charges(folder, "hospital-1")) == 2
    shutil.rmtree(hospital / "summary")
    assert "refused" in example.owner.reply(hospital, request)
    assert len(charges(folder, "hospital-1")) == 2


def test_errors_that_may_quote_private_data_stay_with_the_owner(example, folder):
    hospital, request = folder / "hospital-1", example.server.request(folder)
    (hospital / "public.npy").write_bytes(b"altered")
    reply = example.owner.reply(hospital, request)
    assert reply == {"refused": example.owner.UNEXPECTED}
    assert not lacking(log_of(hospital), "public.npy", "recipe.json")
    assert charges(folder, "hospital-1") == ()


def test_a_summary_of_an_earlier_round_does_not_answer_another(example, folder):
    hospital, request = folder / "hospital-1", example.server.request(folder)
    example.owner.reply(hospital, request)
    other = request.replace("round 1", "round 2")
    (hospital / "recipe.json").write_text(other, encoding="utf-8")
    assert example.owner.reply(hospital, other) == {"refused": example.owner.UNEXPECTED}
    assert not lacking(log_of(hospital), "started.json", "study", "round 1", "round 2")
    assert len(charges(folder, "hospital-1")) == 1


def test_the_server_combines_what_arrives_and_names_the_rest(example, folder):
    request = example.server.request(folder)
    replies = {
        name: example.owner.reply(folder / name, request) for name in ("hospital-1", "hospital-2")
    }
    poisoned = dict(replies["hospital-2"])
    poisoned["sums.safetensors"] = replies["hospital-1"]["sums.safetensors"]
    other = replace(example.recipe.Recipe.of_json(request), encoder="another")
    encoded = other.summary_of([[1.0] * 16], ["normal"], part="x", public=np.eye(16))
    centred = example.recipe.Recipe.of_json(request).summary_of(
        [[1.0] * 16], ["normal"], part="x", public=np.eye(16)
    )
    elsewhere = {f"../{name}": data for name, data in replies["hospital-1"].items()}
    report = example.server.combine(
        {
            **replies,
            "copy": replies["hospital-1"],
            "another centre": centred.files(),
            "another encoder": encoded.files(),
            "elsewhere": elsewhere,
            "no files": {"summary.json": "text"},
            "poisoned": poisoned,
            "unwilling": {"refused": b"the budget\x1b[2J"},
        },
        folder,
        asked=9,
    )
    lines = report.splitlines()
    assert lines[0] == "9 of 9 owners replied"
    faults = {line.partition(":")[0]: line for line in lines if "left out" in line}
    assert not lacking(faults.pop("another centre"), "centre")
    assert not lacking(faults.pop("another encoder"), "encoder", "'another'")
    assert not lacking(faults.pop("hospital-1"), "twice")
    assert list(faults) == ["elsewhere", "no files", "poisoned", "unwilling"]
    assert "\x1b" not in report
    check_release(folder, ["hospital-1", "hospital-2"])

    # an owner who comes back, when others are away
    late = {"hospital-3": example.owner.reply(folder / "hospital-3", request)}
    report = example.server.combine(late, folder, asked=3)
    assert report.startswith("1 of 3 owners replied")
    check_release(folder, ["hospital-1", "hospital-2", "hospital-3"])


def test_owners_who_are_not_as_agreed_are_left_out_and_stop_nobody(example, folder):
    """None of them raises the price, drowns the others in noise, or makes every round fail."""
    request = example.server.request(folder)
    agreed = example.recipe.Recipe.of_json(request)
    public = np.load(folder / "public.npy")
    honest = example.owner.reply(folder / "hospital-1", request)

    def made(part, budget=agreed.budget, **others):
        recipe = replace(agreed, budget=budget)
        labels = np.resize(agreed.classes, len(public))
        return recipe.summary_of(
            public, labels, part=part, public=public, allow_overlap=True, **others
        )

    seeded = made("x", noise="research", random_state=0)
    both = made("x") + tacit.Summary.of_files(honest)
    replies = {
        "z dear": made("x", budget="rho=100").files(),
        "z noisy": made("x", budget="rho=1e-9").files(),
        "z seeded": seeded.files(allow_research=True),
        "z two parts": both.files(),
        "z namesake": made("Hospital-1").files(),
    }
    report = example.server.combine({"hospital-1": honest} | replies, folder, asked=6)
    faults = {line.partition(":")[0]: line for line in report.splitlines() if "left out" in line}
    assert list(faults) == sorted(replies)
    assert not lacking(faults["z dear"], "noise", "was agreed on")
    assert not lacking(faults["z noisy"], "noise", "was agreed on")
    assert not lacking(faults["z seeded"], "NOT FOR RELEASE")
    assert not lacking(faults["z two parts"], "2 parts")
    assert not lacking(faults["z namesake"], "received", "Hospital-1", "delete one")
    check_release(folder, ["hospital-1"])

    # and the owner who was first is still there when the namesake comes alone
    report = example.server.combine({"z": replies["z namesake"]}, folder, asked=1)
    assert "another summary of" in report
    check_release(folder, ["hospital-1"])


def check_release(folder, names):
    """The server received these summaries, as they are stored, and made a release of them."""
    paths = list((folder / "received").glob("*/*"))
    received = [tacit.Summary.load(path).verify() for path in paths]
    assert sorted(part.name for summary in received for part in summary.parts) == names
    stored = [files_in(folder / name / "summary") for name in names]
    assert all(files_in(path) in stored for path in paths)

    release = tacit.Release.load(folder / "release").verify()
    # one record is in one part, so the parts cost what one of them costs
    assert release.guarantee.rho == pytest.approx(0.5)
    with np.load(folder / "test.npz") as test:
        assert np.mean(release.predict(test["x"]) == test["y"]) > 0.9


# What follows runs the libraries in environments of their own, which stay in .venv-flower and
# .venv-flare until the requirements change.


def environment(name):
    """The folder of programs of an environment that is made once."""
    folder = ROOT / f".venv-{name}"
    requirements = EXAMPLE / f"requirements-{name}.txt"
    digest = hashlib.sha256(requirements.read_bytes()).hexdigest()
    stamp = folder / ".complete"
    if not stamp.exists() or stamp.read_text() != digest:
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        install(folder, "-r", requirements)
        install(folder, "--no-deps", "--no-build-isolation", "-e", ROOT)
        stamp.write_text(digest)
    return folder / "bin"


def install(folder, *arguments):
    """Run pip; skip the test if the registry cannot be reached."""
    command = [folder / "bin/python", "-m", "pip", "install", "--quiet", "--retries", "2"]
    result = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
    # pip's last try of those for one address
    if result.returncode and "Retry(total=0," in result.stderr:
        pytest.skip("the package registry cannot be reached")
    assert result.returncode == 0, result.stderr


def variables(programs, **others):
    """The environment variables of a process that runs the example."""
    python_path = [ROOT / "tests/examples/killed", EXAMPLE, EXAMPLE / "flare"]
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return {
        **kept,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(map(str, python_path)),
        **others,
    }


def run(command, environment_variables, home):
    """Run a command to its end, and return what it printed. Its folder is not that of the example,
    which Python could search before the owner that is killed.
    """
    result = subprocess.run(
        command,
        env=environment_variables,
        cwd=home,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=1200,
        check=False,
    )
    assert result.returncode == 0, result.stdout
    return result.stdout


@contextmanager
def rounds_of_flower(folder, home):
    """Yield a function that runs a round by `flwr run`."""
    programs = environment("flower")
    ports = [str(free_port()) for _ in range(2)]
    variables_of_flower = variables(
        programs,
        FLWR_HOME=str(home),
        FLWR_LOCAL_SUPERLINK_HTTP_API_PORT=ports[0],
        FLWR_LOCAL_CONTROL_API_PORT=ports[1],
        FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION="1",
        FLWR_DISABLE_UPDATE_CHECK="1",
        FLWR_TELEMETRY_ENABLED="0",
        RAY_USAGE_STATS_ENABLED="0",
    )
    # the process that `flwr run` would start and leave running
    link = subprocess.Popen(
        [
            *(programs / "flower-superlink", "--insecure", "--simulation"),
            *("--host", "127.0.0.1", "--port", ports[0]),
            *("--control-api-address", f"127.0.0.1:{ports[1]}"),
            *("--log-file", home / "superlink.log"),
        ],
        env=variables_of_flower,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )

    def one_round():
        sizes = "num-supernodes=3 client-resources-num-cpus=1 init-args-num-cpus=3"
        return run(
            [
                *(programs / "flwr", "run", EXAMPLE / "flower", "--stream"),
                *("--run-config", f'folder="{folder}"', "--federation-config", sizes),
            ],
            variables_of_flower,
            home,
        )

    try:
        wait_for(f"http://127.0.0.1:{ports[0]}/health", link)
        yield one_round
    finally:
        os.killpg(link.pid, signal.SIGTERM)
        link.wait()


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_for(url, process):
    """Wait until a server answers."""
    while process.poll() is None:
        try:
            urlopen(url, timeout=5).close()
            return
        except (URLError, TimeoutError, ConnectionError):
            time.sleep(0.2)
    raise AssertionError("flower-superlink ended")


@contextmanager
def rounds_of_flare(folder, home):
    """Yield a function that runs a round by FLARE's simulator, which waits two minutes for an owner
    that died.
    """
    programs = environment("flare")
    yield lambda: run(
        [programs / "python", EXAMPLE / "flare/job.py", folder, "--timeout", "120"],
        variables(programs, HOME=str(home)),
        home,
    )


@pytest.mark.thorough
@pytest.mark.parametrize("rounds", [rounds_of_flower, rounds_of_flare])
def test_one_of_three_owners_dies_and_comes_back(rounds, folder, tmp_path):
    owners = ["hospital-1", "hospital-2", "hospital-3"]
    (tmp_path / "home").mkdir()
    (folder / "hospital-2" / "dies").touch()
    with rounds(folder, tmp_path / "home") as one_round:
        printed = one_round()
        assert "2 of 3 owners replied" in printed
        check_release(folder, ["hospital-1", "hospital-3"])
        assert [len(charges(folder, name)) for name in owners] == [1, 1, 1]

        # the next round replays, and the owner that died is there
        printed = one_round()
        assert "3 of 3 owners replied" in printed
        check_release(folder, owners)
        assert [len(charges(folder, name)) for name in owners] == [1, 1, 1]

        recipe = json.loads((folder / "recipe.json").read_text())
        (folder / "recipe.json").write_text(json.dumps({**recipe, "budget": "rho=1"}))
        printed = one_round()
        assert printed.count("budget is 'rho=1'") == 3
        assert "nothing to combine" in printed
        assert [len(charges(folder, name)) for name in owners] == [1, 1, 1]
