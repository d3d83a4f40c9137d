"""`tacit evaluate --budget`: figures on private rows, at a price."""

import json
from pathlib import Path

import numpy as np
import pytest

import tacit
from cli.conftest import CLASSES, rows
from tacit.data.embeddings import EmbeddingStore


@pytest.fixture
def release(stores, run):
    """A release, and a private test store of 600 rows with hospitals and a ledger."""
    assert run("fit noisy-sum private --budget rho=5 --out release")[0] == 0
    x, y = rows(np.random.default_rng(5), 600)
    EmbeddingStore.write(
        "hospital-test",
        x,
        y,
        classes=CLASSES,
        labels="index",
        metadata={"hospital": np.array(["north", "south", "west"])[np.arange(600) % 2]},
    )
    assert run("ledger hospital-test --allow rho=1")[0] == 0
    return stores


LINE = "evaluate release hospital-test --budget rho=.1"


def spent():
    ledger = tacit.Ledger.beside("hospital-test", "hospital-test")
    return ledger.account().spent.rho


def test_figures_by_group_are_charged_to_the_ledger_of_the_test_rows(release, run):
    status, out, err = run(f"{LINE} --by hospital --groups north,east --out groups.svg")
    assert (status, err) == (0, "")
    assert "accuracy 0." in out
    assert "north: accuracy" in out
    assert "east: accuracy hidden by the noise (95 % interval 0.0000 to 1.0000)" in out
    assert "other: accuracy" in out
    assert "charged to the ledger of 'hospital-test'" in out
    assert "about the test records" in out
    assert "These figures hide whether any one record is in the data or not" in out
    assert "groups.svg: the figures by group" in out
    picture = Path("groups.svg").read_text()
    assert "north" in picture
    assert "balanced accuracy" in picture
    assert spent() == pytest.approx(0.1)

    exact = json.loads(run("evaluate release hospital-test --json")[1])
    status, out, err = run(f"{LINE} --by hospital --groups north,south --json")
    facts = json.loads(out)
    low, high = facts["accuracy_interval"]
    assert low < exact["accuracy"] < high
    assert facts["groups"]["south"]["records"] == pytest.approx(300, abs=40)
    assert facts["rho"] == pytest.approx(0.1)
    assert facts["charged"] is True
    assert spent() == pytest.approx(0.2)


def test_groups_come_from_a_file_or_a_column_of_another_table(release, run):
    Path("hospitals.txt").write_text("north\nwest\n" * 300)
    Path("more.csv").write_text("id,ward\n" + "1,a\n2,b\n" * 300)
    Path("groups.txt").write_text("north\nwest\n")
    for options in ("--by hospitals.txt --groups groups.txt", "--by more.csv#ward --groups a,b"):
        status, out, err = run(f"{LINE} {options} --json")
        assert (status, err) == (0, "")
        records = [figures["records"] for figures in json.loads(out)["groups"].values()]
        assert records == pytest.approx([300, 300, 0], abs=60)


def test_tables_of_files_have_groups_in_a_column(release, run):
    import pyarrow as pa
    import pyarrow.parquet

    x, y = rows(np.random.default_rng(6), 300)
    table = pa.table(
        {
            "embedding": x.astype(np.float32).tolist(),
            "label": np.array(CLASSES)[y].tolist(),
            "ward": np.arange(300) % 2,
        }
    )
    pa.parquet.write_table(table, "wards.parquet")
    line = "evaluate release wards.parquet --budget epsilon=1 --by ward --groups 0,1 --json"
    status, out, _ = run(line)
    assert status == 0
    facts = json.loads(out)
    assert facts["pure_epsilon"] == 1
    assert facts["noise"] == "secure"
    assert facts["groups"]["1"]["records"] == pytest.approx(150, abs=40)


HOSPITALS = ["north", "south", "south"]


def table_of_wards(n=300):
    """A table of test rows with a text column of hospitals and a numeric column of ages."""
    x, y = rows(np.random.default_rng(6), n)
    columns = {f"x{i}": x[:, i] for i in range(5)}
    columns["label"] = np.array(CLASSES)[y]
    columns["hospital"] = np.array(HOSPITALS * (n // 3))
    columns["age"] = np.arange(n) % 2 + 0.5
    return columns


def write_csv(path, columns):
    lines = [",".join(columns)]
    lines += [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    Path(path).write_text("\n".join(lines) + "\n")


def group_sizes(run, line):
    """The noisy number of rows of each group, and all figures."""
    status, out, err = run(f"{line} --budget rho=2 --noise research --seed 1 --json")
    assert status == 0, err
    facts = json.loads(out)
    return {name: figures["records"] for name, figures in facts["groups"].items()}, facts


def test_a_text_column_of_the_test_table_makes_groups(release, run):
    import pyarrow as pa
    import pyarrow.parquet

    columns = table_of_wards()
    del columns["age"]
    write_csv("wards.csv", columns)
    Path("wards.jsonl").write_text(
        "".join(
            json.dumps(dict(zip(columns, row, strict=True))) + "\n"
            for row in zip(*(list(map(plain, values)) for values in columns.values()), strict=True)
        )
    )
    pa.parquet.write_table(pa.table(columns), "wards.parquet")
    Path("groups.txt").write_text("north\nsouth\n")

    for file in ("wards.csv", "wards.jsonl", "wards.parquet"):
        for groups in ("north,south", "groups.txt"):
            line = f"evaluate release {file} --by hospital --groups {groups}"
            sizes, facts = group_sizes(run, line)
            assert list(sizes) == ["north", "south", "other"]
            assert list(sizes.values()) == pytest.approx([100, 200, 0], abs=8)
            assert facts["accuracy"] > 0.7
        status, _, err = run(
            f"evaluate release {file} --budget rho=1 --by hospitals --groups north,south"
        )
        assert status == 2
        assert "has nothing named 'hospitals'; choose by from" in err
        assert err.count("\n") == 1


def plain(value):
    return value.item() if isinstance(value, np.generic) else value


def test_a_group_column_of_numbers_is_a_feature_only_where_the_release_takes_it(release, run):
    columns = table_of_wards()
    del columns["hospital"]
    write_csv("ages.csv", columns)
    line = "evaluate {} ages.csv --by age --groups 0.5,1.5"
    # `release` takes 5 numbers, and age would be the sixth
    sizes, _ = group_sizes(run, line.format("release"))
    assert list(sizes.values()) == pytest.approx([150, 150, 0], abs=8)

    assert run("fit noisy-sum ages.csv --budget rho=5 --classes ant,bee,cow --out aged")[0] == 0
    assert "age" in tacit.Release.load("aged").document.contents.columns
    sizes, facts = group_sizes(run, line.format("aged"))
    assert list(sizes.values()) == pytest.approx([150, 150, 0], abs=8)
    assert facts["accuracy"] > 0.7


def test_a_table_that_a_release_takes_by_its_schema_has_groups_in_a_column(release, run):
    n = 300
    write_csv(
        "visits.csv",
        {
            "kind": np.array(["a", "b", "c"])[np.arange(n) % 3],
            "sex": np.array(["f", "m"])[np.arange(n) % 2],
            "hospital": np.array(HOSPITALS * 100),
            "label": np.array(CLASSES)[np.arange(n) % 3],
        },
    )
    Path("schema.yaml").write_text(
        "columns:\n"
        "  kind: {kind: category, levels: [a, b, c]}\n"
        "  sex: {kind: category, levels: [f, m]}\n"
        "label: {column: label, classes: [ant, bee, cow]}\n"
    )
    for line in (
        "encode visits.csv --encoder table --schema schema.yaml --out visits-store",
        "fit noisy-sum visits-store --budget rho=5 --out of-table",
    ):
        status, _, err = run(line)
        assert status == 0, err

    for data, by in (("visits.csv", "hospital"), ("visits-store", "visits.csv#hospital")):
        line = f"evaluate of-table {data} --by {by} --groups north,south"
        assert list(group_sizes(run, line)[0].values()) == pytest.approx([100, 200, 0], abs=8)
    # a column that the schema takes as a feature
    sizes, facts = group_sizes(run, "evaluate of-table visits.csv --by sex --groups f,m")
    assert list(sizes.values()) == pytest.approx([150, 150, 0], abs=8)
    assert facts["accuracy"] > 0.9
    status, _, err = run("evaluate of-table visits.csv --budget rho=1 --by ward --groups a")
    assert status == 2
    assert "column 'ward' is not in visits.csv" in err
    assert err.count("\n") == 1


def test_groups_of_a_store_are_joined_by_the_position_of_each_row_in_the_table(release, run):
    n = 300
    write_csv("wards.csv", {"id": np.arange(n), "ward": np.array(["a", "b", "c"] * 100)})
    x, y = rows(np.random.default_rng(7), n)
    kept = np.flatnonzero(np.arange(n) % 3 != 1)
    EmbeddingStore.write(
        "part", x[kept], y[kept], classes=CLASSES, labels="index", metadata={"row": kept}
    )
    sizes, _ = group_sizes(run, "evaluate release part --by wards.csv#ward --groups a,b,c")
    assert list(sizes.values()) == pytest.approx([100, 0, 100, 0], abs=8)


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("--budget lots", "lots"),
        ("--budget rho=.1 --by hospital", "give both, or neither"),
        ("--budget rho=.1 --by ward --groups a", "no such column (its columns are"),
        ("--budget rho=.1 --out figure.txt", "must end in"),
        ("--budget rho=.1 --public-test --record", "does not go with --budget"),
        ("--budget rho=.1 --noise research", "add --seed 0"),
        ("--budget rho=.1 --tables rights", "must be one or several of"),
        ("--budget rho=.1 --unit add-remove-person", "persons"),
        ("--by hospital --groups a", "--by is for figures that are paid for"),
        ("--seed 3", "--seed is for figures that are paid for"),
        ("--budget rho=3", "would overdraw"),
    ],
)
def test_bad_options_are_refused_before_a_charge(release, run, line, fault):
    status, out, err = run(f"evaluate release hospital-test {line}")
    assert (status, out) == (2, "")
    assert fault in err
    assert err.count("\n") == 1
    assert spent() == 0


def test_an_interrupted_evaluation_stays_charged(release, run, monkeypatch):
    from tacit.mechanisms import partition_tables

    def interrupted(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(partition_tables, "noisy_tables", interrupted)
        assert run(LINE)[0] == 130
    assert spent() == pytest.approx(0.1)
    assert run(LINE)[0] == 0
    assert spent() == pytest.approx(0.2)


def test_paid_figures_are_recorded_with_their_price_and_verified(release, run):
    line = f"{LINE} --record --by hospital --groups north,south"
    status, out, err = run(line)
    assert (status, err) == (0, "")
    loaded = tacit.Release.load("release").verify()
    utility = loaded.document.utility
    assert f"accuracy {utility.accuracy:.4f}" in out
    assert out.endswith("release: the figures are recorded in item 15 of its card\n")
    assert utility.groups[0].name == "north"
    assert utility.grouped_by == "hospital"
    assert "0.1-zCDP" in utility.statement
    # the price of the test rows is not that of the release
    assert loaded.guarantee.rho == pytest.approx(5)

    card = Path("release/CARD.md").read_text()
    assert "private test records, paid for" in card
    assert "this guarantee is about the test records" in card
    assert "the costs add up" in card
    assert "verified" in run("inspect release")[1]
    assert run("inspect release --registry entry.yaml")[0] == 0
    assert "paid for" in Path("entry.yaml").read_text()
    assert run("publish release --to shown")[0] == 0
    assert "balanced_accuracy" in Path("shown/README.md").read_text()
    assert "paid for" in Path("shown/README.md").read_text()
    assert run("page release --out page.html")[0] == 0
    assert "paid for, at" in Path("page.html").read_text()
    assert "rho = 0.1" in Path("page.html").read_text()
    assert run("inspect release --dossier dossier.html")[0] == 0
    dossier = Path("dossier.html").read_text()
    assert "north" in dossier
    assert "0.1-zCDP" in dossier


@pytest.mark.parametrize(
    ("place", "value", "fault"),
    [
        (("statement",), "nothing was learned", "utility.statement is stated as"),
        (("guarantee", "event", "noise_multiplier"), 9.0, "utility.statement is stated as"),
        (("guarantee", "event", "noise_multiplier"), 0.0, "and no bound holds"),
        (("guarantee", "event", "type"), "Nothing", "cannot be"),
        (("noise",), "opendp", None),
    ],
)
def test_tampered_prices_of_test_rows_never_verify(release, run, place, value, fault):
    assert run(f"{LINE} --record")[0] == 0
    file = Path("release/release.json")
    document = json.loads(file.read_text())
    part = document["utility"]
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = value
    file.write_text(json.dumps(document))
    status, _, err = run("inspect release")
    assert status == 2
    assert (fault or "CARD.md does not say") in err


@pytest.mark.parametrize("options", ["--noise research --seed 1", "--budget rho=inf"])
def test_unprotected_figures_are_never_recorded(release, run, options):
    line = f"evaluate release hospital-test --record {options}"
    if "--budget" not in options:
        line += " --budget rho=.1"
    status, _, err = run(line)
    assert status == 2
    assert "--record needs a finite budget and noise that is not seeded" in err
    assert spent() == 0
