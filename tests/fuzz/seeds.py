"""One good file or folder for each format that is read."""

import gzip
import json
import shutil
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
from safetensors.numpy import save_file

import tacit
from tacit.data.embeddings import EmbeddingStore
from tacit.experiments import results
from tacit.privacy.events import Exponential, Laplace, RepeatAndSelect, SampledGaussian
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.ledger import Ledger
from tacit.privacy.unit import Unit
from tacit.releases.release import Release
from tacit.releases.summary import Summary

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 4)).astype(np.float32)
Y = np.arange(30) % 3
PUBLIC = RNG.normal(size=(20, 4)).astype(np.float32)
NAMES = np.array(["ant", "bee", "cow"])[Y]
PLAN = """\
name: small
unit: add-remove
delta: 1.0e-6
data:
  - {name: d, train: d.npz, test: d.npz, public: {pool: d.npz}, rows: 20}
learners:
  - &one {name: one, method: coinpress, tuning: none}
  - {<<: *one, name: two, grid: {pooling: [2, 4]}, budgets: ["epsilon=1,delta=1e-6"]}
  - name: three
    method: public
    public: [pool]
    public_rows: [10]
    tuning: none
budgets: [rho=1, rho=2]
imbalance: [1, 2.5]
seeds: 3
"""


def store(folder: Path) -> None:
    metadata = {"when": [f"day {i}" for i in range(30)]}
    EmbeddingStore.write(
        folder / "s",
        X,
        NAMES,
        classes=["ant", "bee", "cow"],
        card={"encoder": {"name": "e"}},
        metadata=metadata,
        shard_rows=16,
        names=[X[:2], X[2], X[3:5]],
        persons=[f"p{i // 2}" for i in range(30)],
    )


def npy(folder: Path) -> None:
    np.save(folder / "x.npy", X)
    np.save(folder / "y.npy", Y)
    card = {"files": ["x.npy"], "classes": [0, 1, 2], "dataset": "d", "notes": "n"}
    (folder / "card.json").write_text(json.dumps(card), encoding="utf-8")


def npz(folder: Path) -> None:
    np.savez_compressed(folder / "d.npz", x=X, y=Y, classes=np.array(["ant", "bee", "cow"]))


def inside_npz(folder: Path) -> None:
    np.save(folder / "x.npy", X)
    np.save(folder / "y.npy", NAMES)
    np.save(folder / "classes.npy", np.array(["ant", "bee", "cow"]))


def parquet(folder: Path) -> None:
    columns = {"x": list(X), "label": pa.array(NAMES).dictionary_encode()}
    pq.write_table(pa.table(columns), folder / "lists.parquet")
    pq.write_table(
        pa.table({"a": X[:, 0], "b": X[:, 1], "label": NAMES}),
        folder / "floats.parquet",
        compression="gzip",
    )


def comma_separated(folder: Path) -> None:
    rows = [",".join(map(str, row)) for row in X.tolist()]
    (folder / "bare.csv").write_text("\n".join(rows) + "\n")
    named = [f'{row},"{name}"' for row, name in zip(rows, NAMES, strict=True)]
    (folder / "named.csv").write_text(
        "\n".join([",".join([*map(str, range(X.shape[1])), "label"]), *named, ""])
    )


def arrow(folder: Path) -> None:
    table = pa.table({"x": list(X), "label": NAMES})
    # packed batches may unpack to any size
    pyarrow.feather.write_feather(table, folder / "t.feather", compression="uncompressed")
    for number in range(2):
        part = folder / "parts" / f"who={number}"
        part.mkdir(parents=True)
        pq.write_table(table, part / "part.parquet")


def json_lines(folder: Path) -> None:
    rows = zip(X.tolist(), NAMES, strict=True)
    text = "".join(json.dumps({"x": row, "label": str(name)}) + "\n" for row, name in rows)
    (folder / "rows.jsonl").write_text(text)
    (folder / "packed.jsonl.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


def hdf5(folder: Path) -> None:
    with h5py.File(folder / "t.h5", "w") as file:
        file["x"] = X
        file["y"] = Y


def safetensors(folder: Path) -> None:
    save_file({"x": X, "y": Y}, folder / "d.safetensors")


def huggingface(folder: Path) -> None:
    saved = folder / "saved"
    saved.mkdir()
    table = pa.table({"x": list(X), "label": Y})
    with (
        pa.OSFile(str(saved / "data.arrow"), "wb") as file,
        pa.ipc.new_stream(file, table.schema) as writer,
    ):
        writer.write_table(table, max_chunksize=10)
    (saved / "state.json").write_text(
        '{"_data_files": [{"filename": "data.arrow"}], "_indices_data_files": null}'
    )
    info = {"features": {"label": {"names": ["ant", "bee", "cow"], "_type": "ClassLabel"}}}
    (saved / "dataset_info.json").write_text(json.dumps(info))


def several(folder: Path) -> None:
    """Several labels a record, in a store and in tables."""
    sets = [NAMES[i : i + i % 3].tolist() for i in range(30)]
    EmbeddingStore.write(
        folder / "s", X, sets, classes=["ant", "bee", "cow"], names=[X[:1], X[1], X[2]]
    )
    pq.write_table(pa.table({"x": list(X), "label": sets}), folder / "lists.parquet")
    rows = zip(X.tolist(), sets, strict=True)
    text = "".join(json.dumps({"x": row, "label": labels}) + "\n" for row, labels in rows)
    (folder / "lists.jsonl").write_text(text)


def release(folder: Path) -> None:
    Release.of(tacit.NoisySumPrototypes(classes=["ant", "bee", "cow"]).fit(X, NAMES)).save(
        folder / "r"
    )


def public_labels(folder: Path) -> None:
    """Labels by a release with a tree, of a pool with names, so that the table has every column."""
    learner = tacit.NoisySumPrototypes(classes=["ant", "bee", "cow"]).fit(X, NAMES)
    made = Release.of(learner, tree={"ant": "insect", "bee": "insect", "cow": "mammal"})
    names = [f"{number}.png" for number in range(len(X))]
    pool = EmbeddingStore.write(
        folder / "pool", X, metadata={"record": names, "row": range(len(X))}
    )
    tacit.label_public(made, pool, at_least=0.51).save(folder / "l")
    shutil.rmtree(folder / "pool")


def summary(folder: Path) -> None:
    """A summary of one part, and one of two parts, whose class lists unite."""
    for part, classes in (("A", ["ant", "bee", "cow"]), ("B", ["bee", "cow", "dog", "ant"])):
        fit = tacit.ClassSummary("rho=0.5", classes=classes, part=part, public=PUBLIC)
        Summary.of(fit.fit(X, NAMES), class_list="animals").save(folder / part)
    fit = tacit.ClassSummary("rho=0.1", classes=["ant", "bee", "cow"], part="C", public=PUBLIC)
    both = Summary.load(folder / "B") + Summary.of(fit.fit(X, NAMES), class_list="animals")
    both.save(folder / "B", force=True)


def forged_summary(folder: Path) -> None:
    """Its reader restates all that follows from the damaged values."""
    summary(folder)


def evaluation(folder: Path) -> None:
    release(folder)
    made = Release.load(folder / "r")
    for part, tables in (("A", ("right", "predicted")), ("B", ("right", "predicted"))):
        paid = tacit.evaluate(made, X, NAMES, budget="rho=0.5", part=part, tables=tables)
        paid.save(folder / f"{part}.json")
    shutil.rmtree(folder / "r")


def combined(folder: Path) -> None:
    """A release of version 10, with the parts in item 12."""
    summary(folder)
    tacit.combine([folder / "A", folder / "B"], public=PUBLIC).save(folder / "r")
    for part in "AB":
        shutil.rmtree(folder / part)


def events(folder: Path) -> None:
    release(folder)
    file = folder / "r" / "release.json"
    document = json.loads(file.read_text())
    event = (
        100 * SampledGaussian(2.0, 0.01)
        + 3 * Laplace(10.0)
        + RepeatAndSelect(Exponential(0.1), 5.0, 1.0)
    )
    groups = (("a", Laplace(5.0)), ("b", 2 * Exponential(0.5)))
    document["guarantee"] = Guarantee(Unit.ADD_REMOVE, event, (), groups).to_json()
    file.write_text(json.dumps(document, indent=1))


def ledger(folder: Path) -> None:
    book = Ledger(folder / "survey.ledger.jsonl", "survey")
    book.allow("epsilon=3,delta=1e-6")
    book.charge(Guarantee(Unit.ADD_REMOVE, 2 * Exponential(0.1)), what="one")
    book.charge(Guarantee(Unit.ADD_REMOVE, Exponential(0.2)), what="two")


def rehashed_ledger(folder: Path) -> None:
    """Its reader recomputes the hashes, so that damage is not found by them."""
    ledger(folder)


def plan(folder: Path) -> None:
    np.savez(folder / "d.npz", train_x=X, train_y=Y, test_x=X, test_y=Y, x=X, y=Y)
    (folder / "plan.yaml").write_text(PLAN, encoding="utf-8")


def cells(folder: Path) -> None:
    (folder / "runs" / "cells").mkdir(parents=True)
    for number in range(2):
        found = results.Result(
            key=f"{number:020x}",
            plan="p",
            data="d",
            encoder="e",
            learner="l",
            method="newton",
            parameters='{"a": 1}',
            public=None,
            public_rows=None,
            budget="rho=1",
            imbalance=1.0,
            seed=number,
            unit="add-remove",
            tuning="none",
            status="done",
            accuracy=0.5,
            balanced_accuracy=0.5,
            recall=[0.5, 0.5],
            class_sizes=[3, 4],
            rho=1.0,
        )
        results.write(folder / "runs", found)


def labels(folder: Path) -> None:
    rows = "".join(f"{i},{name}\n" for i, name in enumerate(NAMES))
    (folder / "t.csv").write_text("id,label\n" + rows)
    (folder / "classes.txt").write_text("ant\nbee\ncow\n")
    (folder / "prior.txt").write_text("0.5\n0.25\n0.25\n")


def label_parquet(folder: Path) -> None:
    pq.write_table(pa.table({"id": np.arange(30), "label": NAMES}), folder / "t.parquet")
    (folder / "classes.txt").write_text("ant\nbee\ncow\n")
    np.save(folder / "prior.npy", RNG.dirichlet(np.ones(3), 30))


def votes(folder: Path) -> None:
    np.save(folder / "votes.npy", RNG.integers(0, 3, size=(20, 50)))


def tables(folder: Path) -> None:
    texts = [f"text {i}, of many" for i in range(30)]
    lines = [json.dumps({"text": text, "label": int(y)}) for text, y in zip(texts, Y, strict=True)]
    (folder / "t.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "t.csv").write_text(
        "text,label\n" + "".join(f'"{text}",{y}\n' for text, y in zip(texts, Y, strict=True))
    )
    pq.write_table(pa.table({"text": texts, "label": NAMES}), folder / "t.parquet")


def pictures(folder: Path) -> None:
    np.savez_compressed(
        folder / "p.npz", train_x=np.zeros((5, 8, 8), np.uint8), train_y=np.arange(5)
    )
    np.save(folder / "q.npy", np.zeros((5, 8, 8, 3), np.uint8))


def sidecar(folder: Path) -> None:
    facts = {
        "size": [160, 160],
        "layout": "nchw",
        "scale": 255,
        "resize": "bicubic",
        "mean": [0.5],
        "std": [0.5],
    }
    (folder / "model.json").write_text(json.dumps(facts))


SEEDS = (
    *(store, npy, npz, inside_npz, parquet, comma_separated, safetensors, huggingface),
    *(arrow, json_lines, hdf5, several),
    *(summary, forged_summary, evaluation, combined),
    *(release, public_labels, events, ledger, rehashed_ledger),
    *(plan, cells, labels, label_parquet, votes, tables, pictures, sidecar),
)
