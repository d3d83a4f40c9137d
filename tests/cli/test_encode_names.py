"""tacit encode --texts, --template and --through: rows of class names, alone and carried by a
store.
"""

import numpy as np
import pytest

from messages import lacking
from tacit import EmbeddingStore

SIDES = """
import torch

class Texts(torch.nn.Module):
    picture_input = None

    def forward(self, texts):
        return torch.tensor([[float(text.count(letter)) + .5 for letter in "abcde"] for text in texts])

class Pictures(torch.nn.Flatten):
    picture_input = {"size": [8, 8]}
"""


@pytest.fixture
def sides(tmp_path, monkeypatch):
    """An encoder of texts that counts letters, one of pictures, and lists of names."""
    (tmp_path / "sides.py").write_text(SIDES)
    (tmp_path / "classes.txt").write_text("bad_bed\nface\n\ncab\n")
    (tmp_path / "table.csv").write_text("text,label\nbad,cab\na bed,face\ncab,cab\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


@pytest.fixture
def encode(sides, capsys):
    from tacit.cli.main import main

    def encode(*arguments):
        status = main(["encode", "--precision", "float32", *arguments])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return encode


def counts(*texts):
    return [[text.count(letter) + 0.5 for letter in "abcde"] for text in texts]


TEXTS = ("--encoder", "torch:sides.Texts", "--texts", "classes.txt")


def test_a_store_of_class_names(encode):
    status, out, err = encode(*TEXTS, "--template", "{}", "--template", "a {} d", "--out", "names")
    assert status == 0, err
    assert not lacking(out, "names", "6 rows", "width 5", "3 classes")
    store = EmbeddingStore.open("names")
    texts = ["bad bed", "a bad bed d", "face", "a face d", "cab", "a cab d"]
    assert np.asarray(store.x).tolist() == counts(*texts)
    assert store.labels.tolist() == ["bad_bed", "bad_bed", "face", "face", "cab", "cab"]
    assert (store.classes, store.classes_declared) == (["bad_bed", "face", "cab"], True)
    assert store.card["names"] == {"what": "rows of class names", "templates": ["{}", "a {} d"]}
    assert store.card["encoder"]["name"] == "torch:sides.Texts"
    assert store.metadata()["record"].to_pylist() == texts
    assert encode(*TEXTS, "--out", "plain")[0] == 0
    assert np.asarray(EmbeddingStore.open("plain").x).tolist() == counts("bad bed", "face", "cab")


def test_descriptions_of_numbered_classes(encode):
    assert encode(*TEXTS, "--classes", "3", "--out", "names")[0] == 0
    store = EmbeddingStore.open("names")
    assert (store.labels.tolist(), store.classes) == ([0, 1, 2], [0, 1, 2])
    assert np.asarray(store.x).tolist() == counts("bad_bed", "face", "cab")


def test_a_store_of_records_carries_the_names_of_its_classes(encode):
    line = ("table.csv", "--encoder", "torch:sides.Texts", "--classes", "classes.txt")
    status, out, err = encode(*line, "--template", "a {}", "--out", "records")
    assert status == 0, err
    assert not lacking(out, "records", "3 rows", "width 5", "3 rows of class names", "3 classes")
    store = EmbeddingStore.open("records").verify()
    assert [rows.tolist() for rows in store.names] == [
        counts("a bad bed"),
        counts("a face"),
        counts("a cab"),
    ]
    assert store.names_card["templates"] == ["a {}"]
    assert store.names_card["encoder"]["name"] == "torch:sides.Texts"
    assert encode(*line, "--out", "without")[0] == 0
    assert EmbeddingStore.open("without").names is None


def test_names_through_public_rows(encode, sides):
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(40, 7)), ["dad", "cab"] * 20
    card = {"encoder": {"name": "pictures"}}
    EmbeddingStore.write("public", rows, labels, classes=["cab", "dad"], card=card, dtype="float32")
    through = (*TEXTS, "--through", "public", "--dtype", "float32")
    status, out, err = encode(*through, "--out", "names")
    assert status == 0, err
    assert not lacking(out, "names", "3 rows", "width 7", "2 public classes")
    store = EmbeddingStore.open("names")
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    means = np.stack([unit[1::2].mean(axis=0), unit[::2].mean(axis=0)])
    known = np.array(counts("cab", "dad"))
    for row, text in zip(np.asarray(store.x), ["bad bed", "face", "cab"], strict=True):
        name = np.array(counts(text)[0])
        cosines = known @ name / np.linalg.norm(name) / np.linalg.norm(known, axis=1)
        weights = np.exp(cosines / 0.05) / np.exp(cosines / 0.05).sum()
        centre, towards = unit.mean(axis=0), weights @ means - unit.mean(axis=0)
        assert np.linalg.norm(row) == pytest.approx(1)
        assert (row - centre) / np.linalg.norm(row - centre) == pytest.approx(
            towards / np.linalg.norm(towards), abs=1e-5
        )
    assert store.labels.tolist() == ["bad_bed", "face", "cab"]
    assert store.card["encoder"] == {"name": "pictures"}
    assert store.card["names"]["encoder"]["name"] == "torch:sides.Texts"
    public = EmbeddingStore.open("public")
    assert store.card["names"]["through"] == {"name": "public", "hash": public.content_hash}
    EmbeddingStore.write("numbers", rows, [0, 1] * 20, classes=2)
    EmbeddingStore.write("bare", rows)
    for folder, said in (
        (
            "numbers",
            (
                "--through numbers has classes without names; give one text for each by"
                " --through-texts FILE"
            ),
        ),
        ("bare", "--through bare holds no labels; give public rows with their class names"),
        ("gone", "gone does not exist; check its name"),
    ):
        status, _, err = encode(*TEXTS, "--through", folder, "--out", "refused")
        assert (status, err.count("\n")) == (2, 1)
        assert said in err
    assert not (sides / "refused").exists()
    (sides / "words.txt").write_text("cab\ndad\n")
    EmbeddingStore.write(
        "words", rows, [0, 1] * 20, classes=2, card={"class_words": ["dad", "cab"]}, dtype="float32"
    )
    EmbeddingStore.write("swapped", rows, [1, 0] * 20, classes=2, dtype="float32")
    for options in (["words"], ["swapped", "--through-texts", "words.txt"]):
        assert (
            encode(
                *TEXTS, "--dtype", "float32", "--through", *options, "--out", "again", "--force"
            )[0]
            == 0
        )
        assert np.asarray(EmbeddingStore.open("again").x) == pytest.approx(
            np.asarray(store.x), abs=1e-6
        )


NO_SIDE = ("text side", "sentence-transformers:NAME with --through STORE")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--encoder", "torch:sides.Texts"], ("encode", "--texts")),
        ([*TEXTS, "--template", "a photo"], ("'a photo'", "{}")),
        ([*TEXTS, "--template", "{}", "--template", "{}"], ("template '{}' is given twice",)),
        ([*TEXTS, "--classes", "4"], ("3 texts", "4 classes")),
        ([*TEXTS, "--split", "test"], ("--split test", "--texts classes.txt")),
        ([*TEXTS, "--public"], ("--public", "source")),
        (["--encoder", "torch:sides.Texts", "--texts", "twice.txt"], ("'a'", "twice")),
        (
            ["--encoder", "torch:sides.Texts", "--texts", "empty.txt"],
            ("--texts empty.txt", "names"),
        ),
        (
            ["--encoder", "torch:sides.Texts", "--texts", "gone.txt"],
            ("--texts gone.txt", "readable"),
        ),
        (["--encoder", "torch:sides.Pictures", "--texts", "classes.txt"], NO_SIDE),
        (["--encoder", "timm:resnet18", "--texts", "classes.txt"], NO_SIDE),
        (
            ["table.csv", "--encoder", "torch:sides.Texts", "--template", "{}"],
            ("class names follow a declared class",),
        ),
        ([*TEXTS, "--through-texts", "x"], ("--through-texts x", "--through STORE")),
        (["table.csv", *TEXTS, "--through", "x"], ("--through x", "source")),
    ],
)
def test_what_is_refused(encode, sides, arguments, said):
    (sides / "twice.txt").write_text("a\nb\na\n")
    (sides / "empty.txt").write_text("\n\n")
    status, out, err = encode(*arguments, "--out", "refused")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert not lacking(err, *said)
    assert not list(sides.glob("*refused*"))


def test_pictures_carry_names_by_the_text_side_alone(encode, sides):
    np.save(
        "pictures_x.npy", np.random.default_rng(0).integers(0, 255, (6, 8, 8, 3), dtype=np.uint8)
    )
    np.save("pictures_y.npy", np.arange(6) % 3)
    line = (
        "pictures_x.npy",
        "--encoder",
        "torch:sides.Pictures",
        "--classes",
        "classes.txt",
        "--template",
        "{}",
    )
    status, _, err = encode(*line, "--out", "refused")
    assert (status, err.count("\n")) == (2, 1)
    assert not lacking(err, *NO_SIDE)
