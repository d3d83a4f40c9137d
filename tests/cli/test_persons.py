"""Ids of persons on the command line: from files to a release, and never in what leaves."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cli.test_encode import png
from messages import lacking
from tacit import EmbeddingStore, Release

CLASSES = ["ant", "bee", "cow"]
PERSON_UNITS = ("add-remove-person", "replace-person", "change-labels-of-person")
FIT = "fit noisy-sum private --budget rho=1"


def people(n, seed=0):
    """Rows, labels and ids; persons have up to eight records, in any class."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    ids = np.repeat([f"patient-{7700 + number}" for number in range(n)], rng.integers(1, 9, n))[:n]
    return np.eye(3, 5)[y] * 3 + rng.normal(size=(n, 5)), y, rng.permutation(ids)


@pytest.fixture
def stores(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, n, seed in (("private", 300, 0), ("test", 200, 1)):
        x, y, ids = people(n, seed)
        persons = [f"{name}-{one}" for one in ids.tolist()]
        EmbeddingStore.write(
            name,
            x,
            y,
            classes=CLASSES,
            labels="index",
            persons=persons,
            declared_public=name == "test",
        )
    return tmp_path


def test_from_a_table_to_a_release(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    x, y, ids = people(300)
    table = {"embedding": x.tolist(), "label": [CLASSES[c] for c in y], "patient": ids.tolist()}
    pq.write_table(pa.table(table), "visits.parquet")
    Path("classes.txt").write_text("\n".join(CLASSES))
    persons = len(set(ids.tolist()))
    status, out, err = run(
        "import visits.parquet --persons patient --classes classes.txt --out visits"
    )
    assert status == 0, err
    assert not lacking(out, "visits", "300 rows", f"{persons} persons", "width 5", "3 classes")
    assert EmbeddingStore.open("visits").persons.tolist() == ids.tolist()
    status, out, err = run("split visits --n-public 60 --n-test 90 --out parts")
    assert status == 0, err
    parts = {name: EmbeddingStore.open(f"parts/{name}") for name in ("private", "public", "test")}
    assert parts["public"].persons is None
    assert not set(parts["private"].persons.tolist()) & set(parts["test"].persons.tolist())
    for name, store in parts.items():
        assert not lacking(out, f"parts/{name}", f"{store.rows} rows")
    assert (
        run("fit noisy-sum parts/private --budget rho=1 --unit add-remove-person --out release")[0]
        == 0
    )
    release = Release.load("release").verify()
    assert release.guarantee.unit == "add-remove-person"
    status, out, err = run("overlap parts/private parts/test")
    assert (status, "0 persons are in both" in out) == (0, True), err
    assert not lacking(
        run("overlap visits parts/test")[1],
        f"{len(set(parts['test'].persons.tolist()))} persons",
        "both",
    )
    assert not lacking(run("overlap visits parts/public")[1], "parts/public", "ids")
    status, out, err = run("subset visits --imbalance 5 --out sub")
    assert status == 0, err
    sub = EmbeddingStore.open("sub")
    of_row = {
        row.tobytes(): name
        for row, name in zip(np.asarray(EmbeddingStore.open("visits").x), ids, strict=True)
    }
    assert [of_row[row.tobytes()] for row in np.asarray(sub.x)] == sub.persons.tolist()
    assert not lacking(out, f"{len(set(sub.persons.tolist()))} persons", "imbalance 5")


@pytest.mark.parametrize("unit", PERSON_UNITS)
def test_a_unit_per_person_uses_the_ids_that_the_store_carries(stores, run, unit):
    status, out, err = run(f"{FIT} --unit {unit} --out release")
    assert (status, err) == (0, "")
    assert Release.load("release").verify().guarantee.unit == unit
    assert not lacking(out, f"tacit ledger private --allow rho=1 --unit {unit}")


def test_under_a_unit_per_record_fit_says_that_ids_are_unused(stores, run):
    status, _, err = run(f"{FIT} --out release")
    assert status == 0
    assert err.count("\n") == 1
    assert not lacking(err, "unit=add-remove", "persons", "unused")


def test_bare_files_take_ids_from_a_file_or_a_column(stores, run):
    x, y, ids = people(300)
    np.savez("raw.npz", x=x, y=y, classes=CLASSES, who=ids)
    Path("ids.txt").write_text("\n".join(ids))
    fit = "fit noisy-sum raw.npz --budget rho=1 --unit add-remove-person"
    for number, given in enumerate(("who", "ids.txt")):
        status, _, err = run(f"{fit} --persons {given} --out r{number}")
        assert (status, err) == (0, "")
    status, _, err = run(f"{fit} --out none")
    assert status == 2
    assert not lacking(err, "--unit add-remove-person", "raw.npz", "--persons FILE")
    assert not Path("none").exists()


def test_intervals_over_persons_are_printed_and_recorded(stores, run):
    run(f"{FIT} --unit add-remove-person --out release")
    x, y, ids = people(200, 1)
    EmbeddingStore.write("rows", x, y, classes=CLASSES, labels="index")
    status, out, _ = run("evaluate release test --record")
    assert status == 0
    number = len(set(ids.tolist()))
    assert not lacking(out, "200 rows", f"{number} persons", "3 of 3 classes")
    assert out.count("95 % interval over test persons") == 2
    item = json.loads((stores / "release" / "release.json").read_text())["utility"]
    assert item["interval_of"] == "balanced accuracy over persons"
    how = "Wilson's at the effective number of persons (Korn and Graubard 1998)"
    assert not lacking(item["seeds"], "test persons", how)
    assert f"intervals over persons are {how}\n" in out
    assert run("inspect release")[0] == 0
    of_persons, of_rows = (
        json.loads(run(f"evaluate release {name} --json")[1]) for name in ("test", "rows")
    )
    assert (of_persons["persons"], "persons" in of_rows) == (number, False)
    assert of_persons["accuracy"] == of_rows["accuracy"]
    assert of_persons["interval"] != of_rows["interval"]
    assert run("evaluate release rows")[1].count("95 % interval over test rows") == 2
    Path("ids.txt").write_text("\n".join(ids))
    with_ids = json.loads(run("evaluate release rows --persons ids.txt --json")[1])
    # the store test is declared public, and rows is not
    assert with_ids == of_persons | {"outside_guarantee": True}


def test_pictures_in_folders_of_persons(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path("means.py").write_text(
        "import torch\n"
        "class Means(torch.nn.Module):\n"
        "    picture_input = {'size': [24, 24], 'scale': 255}\n"
        "    def forward(self, x):\n"
        "        return x.mean(dim=(2, 3))\n"
    )
    for number in range(12):
        folder = Path("pets", f"patient-{number % 4}", ("cat", "dog")[number % 2])
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number}.png").write_bytes(
            png(((120, 20, 0), (0, 20, 120))[number % 2], number)
        )
    encode = "encode pets --encoder torch:means.Means --out store --persons-folder 1 --workers 0"
    status, out, err = run(encode)
    assert status == 0, err
    assert out.startswith("store: 12 rows of 4 persons of width 3, 2 classes (read off the labels;")
    store = EmbeddingStore.open("store").verify()
    places = [name.split("/") for name in store.metadata()["record"].to_pylist()]
    assert [person for person, *_ in places] == store.persons.tolist()
    assert [label for _, label, _ in places] == store.labels.tolist()
    Path("pets/patient-1/dog/1.png").write_bytes(b"none")
    Path("pets/patient-1/dog/notes.txt").write_bytes(b"none")
    status, out, err = run(f"{encode} --force")
    assert status == 2
    assert not lacking(err, "1 of 12", "*/dog/1.png")
    status, out, _ = run(f"{encode} --force --skip-bad")
    assert (status, EmbeddingStore.open("store").rows) == (0, 11)
    assert "(first: */dog/notes.txt)" in out
    assert "patient" not in out + err


def test_no_id_is_in_what_leaves(stores, run):
    """Releases, ledgers, public parts, and all that commands print, errors included, hold no
    planted id.
    """
    x, y, ids = people(300)
    np.savez("raw.npz", x=x, y=y, classes=CLASSES, who=ids)
    for name, lines in {
        "short.txt": ids[:-1], "gap.txt": ["", *ids[1:]], "long.txt": [*ids[1:], ids[0] * 60],
    }.items():  # fmt: skip
        Path(name).write_text("".join(f"{one}\n" for one in lines))
    Path("latin.txt").write_bytes("\n".join(ids).encode() + b"\xe9")
    np.save("numbers.npy", np.arange(300))
    person = "--unit add-remove-person"
    works = [
        "import raw.npz --persons who --out store",
        "import raw.npz --persons numbers.npy --out numbered",
        "split store --n-public 60 --n-test 90 --out parts --declare-public",
        "ledger parts/private --allow rho=3 --unit add-remove-person",
        f"fit noisy-sum parts/private --budget rho=1 {person} --out release",
        f"fit least-squares parts/private --budget rho=1 {person} --out other",
        "evaluate release parts/test --record",
        "evaluate release parts/test --class-sizes parts/private --json",
        "predict release parts/test --out labels.parquet",
        "inspect release",
        "overlap parts/private parts/test --out pairs.csv",
        "overlap store numbered",
        "ledger parts/private",
        "subset parts/private --imbalance 2 --out sub",
        f"fit noisy-sum raw.npz --persons who --budget rho=1 {person} --out bare",
        "fit noisy-sum store --budget rho=1 --out rows",
    ]
    refused = [
        *(
            f"import raw.npz --persons {name} --out bad"
            for name in ("short.txt", "gap.txt", "long.txt", "latin.txt")
        ),
        "import raw.npz --persons nobody --out bad",
        "import store --persons who --out bad",
        "split store --n-public 299 --out bad",
        f"fit noisy-sum parts/private --budget rho=5 {person} --out bad",
        "fit noisy-sum parts/private --budget rho=1 --out bad",
        f"fit noisy-sum raw.npz --budget rho=1 {person} --out bad",
        f"fit noisy-sum raw.npz --persons gap.txt --budget rho=1 {person} --out bad",
        f"fit noisy-sum store --persons who --budget rho=1 {person} --out bad",
        "evaluate release raw.npz --persons short.txt",
    ]
    said = []
    for expected, commands in ((0, works), (2, refused)):
        for command in commands:
            status, out, err = run(command)
            assert status == expected, (command, err)
            said.append(out + err)
    leaving = [
        "release",
        "other",
        "bare",
        "rows",
        "parts/public",
        "parts/private.ledger.jsonl",
        "labels.parquet",
        "pairs.csv",
    ]
    files = [
        path for name in leaving for path in (Path(name), *Path(name).rglob("*")) if path.is_file()
    ]
    assert len(files) >= 4 * 3 + 3 + 3
    assert not Path("bad").exists()
    for what, content in [
        ("printed", "".join(said).encode()),
        *((path, path.read_bytes()) for path in files),
    ]:
        assert b"patient" not in content, what
        assert "patient".encode("utf-16-le") not in content, what
    assert b"patient" in Path("parts/private/metadata.parquet").read_bytes()


def test_ids_that_differ_by_case_are_told_to_the_owner_alone(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    x, y, ids = people(60)
    ids = [f"{name.upper()} " if row % 2 else name for row, name in enumerate(ids.tolist())]
    np.savez("d.npz", x=x, y=y, classes=CLASSES, who=ids)
    counts = Counter(name.strip().casefold() for name in {name.strip() for name in ids})
    several = sum(size for size in counts.values() if size > 1)
    assert several > 4
    message = f"{several} person ids differ from another only by case"
    for line in (
        "import d.npz --persons who --out store",
        "split store --n-public 20 --out parts",
        "subset store --imbalance 1 --out sub",
        "fit noisy-sum store --unit add-remove-person --budget rho=1 --out release",
    ):
        status, out, err = run(line)
        assert status == 0, err
        assert message in err
        assert "only by case" not in out
        assert "patient" not in err.lower()
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(b"only by case" in path.read_bytes() for path in written)
    assert len(set(EmbeddingStore.open("store").persons.tolist())) == len(
        {name.strip() for name in ids}
    )
