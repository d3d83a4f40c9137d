"""Tables on the command line: schema, encode, fit, predict and evaluate."""

import csv

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit
from messages import lacking
from tacit.cli.main import main

SCHEMA = """
columns:
  age: {kind: number, low: 20, high: 80, cells: 6}
  plan: {kind: category, levels: [free, paid]}
label: {column: left, classes: ["no", "yes"]}
person: customer
missing: ["?"]
"""


def write(path, columns):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return str(path)


def records(n):
    ages = [(29 * row) % 71 + 15 for row in range(n)]
    return {
        "age": ages,
        "customer": [f"c{row // 2}" for row in range(n)],
        "plan": ["free", "paid", "?"] * (n // 3),
        "note": ["x"] * n,
        "left": ["yes" if age > 50 else "no" for age in ages],
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    write(folder / "train.csv", records(1200))
    (folder / "schema.yaml").write_text(SCHEMA)
    encode = ["encode", str(folder / "train.csv"), "--encoder", "table"]
    assert main([*encode, "--schema", str(folder / "schema.yaml"), "--out", str(folder / "s")]) == 0
    fit = ["fit", "feature-covariance", str(folder / "s"), "--budget", "epsilon=8,delta=1e-5"]
    assert main([*fit, "--out", str(folder / "release")]) == 0
    return folder


def test_a_store_holds_the_rows_of_the_schema(folder):
    store = tacit.EmbeddingStore.open(folder / "s")
    table = records(1200)
    rows = tacit.TableEncoder(folder / "schema.yaml").transform(table)
    assert (store.x[:] == rows).all()
    assert (store.labels.tolist(), store.persons.tolist()) == (table["left"], table["customer"])
    assert (store.classes, store.classes_declared) == (["no", "yes"], True)
    assert store.card["table"]["label"] == "left"
    assert "person" not in store.card["table"]


def test_encode_counts_cells_and_names_columns_that_it_leaves_out(folder, tmp_path, capsys):
    schema = str(folder / "schema.yaml")
    table = pa.table(records(60))
    pq.write_table(table, tmp_path / "new.parquet")
    path = str(tmp_path / "new.parquet")
    encode = ["encode", path, "--encoder", "table", "--schema", schema, "--public"]
    assert main([*encode, "--out", str(tmp_path / "s")]) == 0
    printed = capsys.readouterr().out
    assert not lacking(printed, "60 rows", "30 persons", "width 11", "no labels")
    ages = records(60)["age"]
    below, above = sum(age < 20 for age in ages), sum(age > 80 for age in ages)
    assert not lacking(printed, "'age'", f"{below} below 20", f"{above} above 80")
    assert not lacking(printed, "left out", "note")


def test_predict_and_evaluate_take_the_table_by_the_names_of_its_columns(folder, tmp_path, capsys):
    table = records(120)
    shuffled = {name: table[name] for name in ("left", "plan", "age")}
    path = write(tmp_path / "new.csv", shuffled)
    release = str(folder / "release")
    assert main(["predict", release, path, "--out", str(tmp_path / "out.csv")]) == 0
    assert not lacking(capsys.readouterr().out, "'age'", "below 20", "above 80")
    with (tmp_path / "out.csv").open() as file:
        labels = [row["label"] for row in csv.DictReader(file)]
    wanted = tacit.Release.load(folder / "release").predict(
        tacit.EmbeddingStore.open(folder / "s").x
    )
    assert labels == wanted[:120].tolist()

    assert main(["evaluate", release, path]) == 0
    assert main(["evaluate", release, str(folder / "s")]) == 0
    accuracies = [line for line in capsys.readouterr().out.splitlines() if "accuracy" in line]
    assert all(float(line.split("accuracy ")[1][:6]) > 0.9 for line in accuracies)

    lacks = write(tmp_path / "lacks.csv", {"age": [1], "plon": ["free"]})
    assert main(["predict", release, lacks, "--out", str(tmp_path / "no.csv")]) == 2
    assert not lacking(capsys.readouterr().err, "lacks.csv", "lacks the column", "'plan'", "plon")


def test_columns_of_numbers_are_matched_by_name_without_a_schema(tmp_path, capsys):
    labels = [row % 3 for row in range(300)]
    columns = {name: [float(label == k) for label in labels] for k, name in enumerate("abc")}
    train = write(tmp_path / "train.csv", columns | {"label": labels})
    order = {name: columns[name] for name in "cab"}
    test = write(tmp_path / "test.csv", order | {"label": labels, "d": labels})
    fit = ["fit", "noisy-sum", train, "--budget", "rho=50", "--classes", "3"]
    assert main([*fit, "--out", str(tmp_path / "release")]) == 0
    assert main(["import", test, "--out", str(tmp_path / "store")]) == 0
    for data in (test, str(tmp_path / "store")):
        assert main(["evaluate", str(tmp_path / "release"), data, "--any-encoder"]) == 0
        assert "accuracy 1.0000" in capsys.readouterr().out
    lacks = write(tmp_path / "lacks.csv", {"a": [1.0], "b": [2.0], "z": [0.5]})
    assert (
        main(["predict", str(tmp_path / "release"), lacks, "--out", str(tmp_path / "p.csv")]) == 2
    )
    assert not lacking(capsys.readouterr().err, "lacks the column", "'c'")


def test_a_draft_reads_names_and_types_alone(tmp_path, capsys):
    table = pa.table(
        {"age": [1, 2], "plan": ["secret", "x"], "paid": [True, False], "label": [0, 1]}
    )
    pq.write_table(table, tmp_path / "private.parquet")
    out = tmp_path / "schema.yaml"
    assert main(["schema", str(tmp_path / "private.parquet"), "--out", str(out)]) == 0
    draft = out.read_text()
    assert "secret" not in draft
    assert '"age": {kind: number, low: , high: }' in draft
    assert '"paid": {kind: category, levels: [False, True]}' in draft
    assert 'label: {column: "label", classes: }' in draft
    assert not lacking(capsys.readouterr().out, "3 columns", "2 are to be declared")

    encode = ["encode", str(tmp_path / "private.parquet"), "--encoder", "table"]
    assert main([*encode, "--schema", str(out), "--out", str(tmp_path / "s")]) == 2
    assert not lacking(capsys.readouterr().err, "'age'", "no low", "public knowledge")


def test_a_draft_of_a_public_sample_is_complete(tmp_path, capsys):
    private = write(tmp_path / "private.csv", records(30))
    sample = records(12) | {"gain": [0] * 10 + [9, 10_000]}
    del sample["note"], sample["customer"]
    public = write(tmp_path / "public.csv", sample)
    out = tmp_path / "schema.yaml"
    draft = ["schema", private, "--out", str(out), "--force", "--public"]
    assert main([*draft, public]) == 0
    text = out.read_text()
    low, high = min(sample["age"]), max(sample["age"])
    assert f'"age": {{kind: number, low: {low}.0, high: {high}.0, spacing: even}}' in text
    assert '"plan": {kind: category, levels: ["?", "free", "paid"]}' in text
    assert '"note": {kind: }' in text

    copy = write(tmp_path / "copy.csv", records(30))
    for path in (private, copy):
        assert main([*draft, path]) == 2
        assert not lacking(capsys.readouterr().err, "outside the guarantee")


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (("--encoder", "table"), ("--schema", "missing", "tacit schema")),
        (("--encoder", "table", "--schema", "s.yaml", "--mirror"), ("--mirror", "leave it out")),
        (("--encoder", "edges:8", "--schema", "s.yaml"), ("--schema", "--encoder table")),
        (("--encoder", "table", "--schema", "no.yaml"), ("no.yaml", "check its name")),
    ],
)
def test_options_that_do_not_fit_are_refused(arguments, facts, tmp_path, capsys):
    table = write(tmp_path / "t.csv", records(3))
    assert main(["encode", table, "--out", str(tmp_path / "s"), *arguments]) == 2
    assert not lacking(capsys.readouterr().err, *facts)
