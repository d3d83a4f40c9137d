"""How each format is read, as the command line and the library do: all that is read, and what is
said of it.
"""

import hashlib
import json
import zipfile
from collections.abc import Callable
from contextlib import redirect_stderr, suppress
from io import StringIO
from pathlib import Path

import numpy as np

import tacit
from tacit.cli.main import main
from tacit.data.imports import identity_of, read_data
from tacit.encoding.encoders.onnx import read_sidecar
from tacit.encoding.encoders.pictures import picture_input
from tacit.encoding.sources import open_source
from tacit.errors import TacitError
from tacit.experiments import results
from tacit.experiments.run import prepare
from tacit.measure.evaluation import Evaluation
from tacit.privacy.account import balance
from tacit.privacy.ledger import Ledger
from tacit.releases.combination import PartCost
from tacit.releases.public_labels import PublicLabels
from tacit.releases.reading import parse_arrays
from tacit.releases.release import Release
from tacit.releases.summary import Summary, assembled
from tacit.releases.summary_document import centre_hash
from tacit.releases.summary_files import parse_summary


class Refused(Exception):
    """A command said no: its line on stderr."""


def store(folder: Path) -> None:
    _restate_sizes(folder / "s")
    found = read_data(folder / "s")
    print(
        found,
        found.labels,
        found.classes,
        found.identity,
        found.card,
        found.names,
        found.persons,
        found.metadata(),
    )


def several(folder: Path) -> None:
    store(folder)
    _of_files("lists.parquet", "lists.jsonl")(folder)


def _restate_sizes(folder: Path) -> None:
    """State the sizes of damaged files in a manifest that is whole, so that the files themselves
    are read.
    """
    file = folder / "manifest.json"
    try:
        stated = json.loads(file.read_text())
        for entry in (*stated["shards"], stated["metadata"], stated["names"]["file"]):
            entry["bytes"] = (folder / entry["file"]).stat().st_size
        file.write_text(json.dumps(stated))
    except (ValueError, TypeError, KeyError, OSError, RecursionError, AttributeError):
        pass


def _of_files(*names: str) -> Callable[[Path], None]:
    def read(folder: Path) -> None:
        for name in names:
            found = read_data([folder / part for part in name.split()])
            print(found, found.labels, found.classes, identity_of(folder / name.split()[0]))

    return read


def inside_npz(folder: Path) -> None:
    with zipfile.ZipFile(folder / "d.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("x", "y", "classes"):
            archive.write(folder / f"{name}.npy", f"{name}.npy")
    _of_files("d.npz")(folder)


def release(folder: Path) -> None:
    found = Release.load(folder / "r")
    print(found, found.guarantee)
    print(found.predict(np.ones((3, found.width))))
    print(found.verify().card())


def public_labels(folder: Path) -> None:
    found = PublicLabels.load(folder / "l")
    print(found, found.guarantee, found.labels, found.origin)
    print(found.verify().card())


def summary(folder: Path) -> None:
    for part in "AB":
        found = Summary.load(folder / part)
        print(found, found.guarantee, found.classes, found.parts, found.noisy_sums())
        print(found.verify().card())
    rows = np.random.default_rng(0).normal(size=(20, 4))
    made = tacit.combine([folder / "A", folder / "B"])
    print(made.predict(rows), made.verify().card())


def forged_summary(folder: Path) -> None:
    for part in "AB":
        # where this fails, the files are read as they are
        with suppress(ValueError, TypeError, KeyError, OSError, OverflowError):
            _restate(folder / part)
    summary(folder)


def _restate(folder: Path) -> None:
    """Write a summary anew, with the hashes and sentences that follow from its other values."""
    document = parse_summary("damaged", (folder / "summary.json").read_bytes())
    data = (folder / "sums.safetensors").read_bytes()
    arrays = parse_arrays("damaged", data)
    recipe = document.recipe.model_copy(update={"centre_sha256": centre_hash(arrays.get("centre"))})
    combination = document.combination
    rows = combination.parts
    if len(rows) == 1:
        rows = (rows[0].model_copy(update={"sha256": hashlib.sha256(data).hexdigest()}),)
    costs = tuple(PartCost.of(cost.recorded()) for cost in combination.costs)
    combination = combination.model_copy(update={"parts": rows, "costs": costs})
    again = assembled(recipe, combination, arrays, document.product, document.noise)
    again.save(folder, force=True, allow_research=True)


def evaluation(folder: Path) -> None:
    files = [folder / "A.json", folder / "B.json"]
    for file in files:
        found = Evaluation.load(file)
        print(
            found, found.overall, found.interval(), found.overall.class_intervals(), found.confusion
        )
        print(found.statement())
    total = Evaluation.combine(map(Evaluation.load, files))
    print(total.accuracy, total.interval(), total.parts)


def events(folder: Path) -> None:
    """The numbers that are stated are of other events, so it must be refused."""
    release(folder)
    raise AssertionError("a release of other numbers was verified")


def ledger(folder: Path) -> None:
    account = Ledger(folder / "survey.ledger.jsonl", "survey").account()
    print(balance(account), account.spent.describe())


def rehashed_ledger(folder: Path) -> None:
    path = folder / "survey.ledger.jsonl"
    mark = b', "hash": "'
    previous = hashlib.sha256().hexdigest()
    lines = []
    for line in path.read_bytes().splitlines():
        body = line.rpartition(mark)[0] or line
        previous = hashlib.sha256(previous.encode() + body + b"}").hexdigest()
        lines.append(body + mark + previous.encode() + b'"}\n')
    path.write_bytes(b"".join(lines))
    ledger(folder)


def plan(folder: Path) -> None:
    asked = prepare(folder / "plan.yaml", folder / "runs")
    print(len(asked.cells), len(asked.missing()))


def cells(folder: Path) -> None:
    print(results.content_hash(results.read_results(folder / "runs")))


def _command(*words: str) -> Callable[[Path], None]:
    def run(folder: Path) -> None:
        with redirect_stderr(StringIO()) as said:
            status = main([word.replace("FOLDER", str(folder)) for word in words])
        if status == 2:
            raise Refused(said.getvalue().removesuffix("\n"))
        assert status == 0, said.getvalue()

    return run


def tables(folder: Path) -> None:
    for name in ("t.jsonl", "t.csv", "t.parquet"):
        source = open_source(folder / name)
        print(len(list(source.records(0))), source.labels, source.classes)


def pictures(folder: Path) -> None:
    for path, split in ((folder / "p.npz", "train"), (folder / "q.npy", None)):
        source = open_source(path, split)
        print(len(list(source.records(0))), source.labels, source.classes)


def sidecar(folder: Path) -> None:
    path = folder / "model.json"
    print(picture_input(read_sidecar(path, "onnx:model"), path))


RANDOMIZE = ("--column", "label", "--budget", "epsilon=1", "--classes", "FOLDER/classes.txt")
READERS: dict[str, Callable[[Path], None]] = {
    "store": store,
    "npy": _of_files("x.npy y.npy"),
    "npz": _of_files("d.npz"),
    "inside_npz": inside_npz,
    "parquet": _of_files("lists.parquet", "floats.parquet"),
    "comma_separated": _of_files("bare.csv", "named.csv"),
    "arrow": _of_files("t.feather", "parts"),
    "json_lines": _of_files("rows.jsonl", "packed.jsonl.gz"),
    "several": several,
    "hdf5": _of_files("t.h5"),
    "safetensors": _of_files("d.safetensors"),
    "huggingface": _of_files("saved"),
    "release": release,
    "public_labels": public_labels,
    "summary": summary,
    "forged_summary": forged_summary,
    "evaluation": evaluation,
    "combined": release,
    "events": events,
    "ledger": ledger,
    "rehashed_ledger": rehashed_ledger,
    "plan": plan,
    "cells": cells,
    "labels": _command(
        "privatize-labels",
        "FOLDER/t.csv",
        "--out",
        "FOLDER/new.csv",
        "--randomizer",
        "rr-with-prior",
        "--prior",
        "FOLDER/prior.txt",
        *RANDOMIZE,
    ),
    "label_parquet": _command(
        "privatize-labels",
        "FOLDER/t.parquet",
        "--out",
        "FOLDER/new.parquet",
        "--randomizer",
        "rr-with-prior",
        "--prior",
        "FOLDER/prior.npy",
        *RANDOMIZE,
    ),
    "votes": _command(
        "votes",
        "FOLDER/votes.npy",
        "--out",
        "FOLDER/out",
        "--sigma",
        "5",
        "--aggregator",
        "gnmax",
        "--n-labels",
        "5",
    ),
    "tables": tables,
    "pictures": pictures,
    "sidecar": sidecar,
}
REFUSALS = (TacitError, Refused)
