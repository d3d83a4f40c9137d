"""`tacit privatize-labels`: the label column changes as the matrix says, nothing else does; bad
tables are one line.
"""

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cli.test_bad_input import refused
from messages import lacking
from tacit.learners.label_dp import tables as module
from tacit.learners.label_dp.blocks import Blocks
from tacit.learners.label_dp.prior_files import read_prior
from tacit.learners.label_dp.randomize import randomize
from tacit.learners.label_dp.randomizers import RR, RRWithPrior
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.ledger import Ledger

NAMES = ["cat", "dog", "fox"]
COMMAND = "privatize-labels t.csv --column y --budget epsilon=1 --out o.csv"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("classes.txt").write_text("\n".join(NAMES) + "\n")
    return tmp_path


def write_csv(labels, name="t.csv"):
    with open(name, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "text", "y"])
        writer.writerows([i, f'a, "quoted" {i}\nline', label] for i, label in enumerate(labels))


def read_csv(name):
    with open(name, newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def agree(labels, outputs, matrix, names):
    """Chi-square p-value of outputs given labels."""
    from scipy.stats import chi2

    place = {name: i for i, name in enumerate(names)}
    seen = np.zeros_like(matrix)
    np.add.at(seen, ([place[v] for v in labels], [place[v] for v in outputs]), 1)
    expected = seen.sum(axis=1, keepdims=True) * matrix
    assert not seen[expected == 0].any()
    possible = expected > 0
    statistic = ((seen - expected)[possible] ** 2 / expected[possible]).sum()
    return chi2.sf(statistic, possible.sum() - len(names))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("prior", [None, [0.6, 0.3, 0.1]])
def test_outputs_follow_the_matrix_and_all_else_stays(here, run, monkeypatch, kind, prior):
    monkeypatch.setattr(module, "CHUNK", 7000)
    labels = np.random.default_rng(0).choice(NAMES, 30_000)
    options = "--classes classes.txt"
    randomizer = RR(1.0, 3)
    if prior:
        Path("prior.txt").write_text("\n".join(map(str, prior)))
        options += " --randomizer rr-with-prior --prior prior.txt"
        randomizer = RRWithPrior(1.0, prior)
    if kind == "csv":
        write_csv(labels)
    else:
        pq.write_table(pa.table({"id": np.arange(30_000), "y": labels}), "t.parquet")
    status, out, err = run(COMMAND.replace("csv", kind) + " " + options)
    assert (status, err) == (0, "")
    assert "30000 labels of column 'y'" in out
    if kind == "csv":
        before, after = read_csv("t.csv"), read_csv("o.csv")
        assert [row[:2] for row in before] == [row[:2] for row in after]
        outputs = [row[2] for row in after[1:]]
    else:
        table = pq.read_table("o.parquet")
        assert table["id"].to_pylist() == list(range(30_000))
        outputs = table["y"].to_pylist()
        assert json.loads(table.schema.metadata[b"tacit"])["column"] == "y"
    assert agree(labels, outputs, randomizer.matrix(), NAMES) > 1e-6
    stated = json.loads(Path(f"o.{kind}.tacit.json").read_text())
    assert Guarantee.from_json(stated["guarantee"]).epsilon() == 1.0
    assert stated["for_release"]
    assert np.array(stated["matrix"]) == pytest.approx(randomizer.matrix())
    assert stated.get("prior") == prior
    assert "k" not in stated


def test_a_record_is_not_taken_for_a_heading(here, run):
    Path("t.csv").write_text("1,2,0\n3,4,1\n")
    status, _, err = run(
        "privatize-labels t.csv --column 0 --classes 2 --budget epsilon=1 --out o.csv"
    )
    assert status == 2
    assert not lacking(err, "t.csv", "numbers", "header")
    assert not Path("o.csv").exists()


def test_k_and_the_prior_are_stated(here, run):
    write_csv(NAMES * 10)
    Path("prior.txt").write_text("0.2\n0.5\n0.3\n")
    assert (
        run(COMMAND + " --classes classes.txt --randomizer rr-top-k --k 2 --prior prior.txt")[0]
        == 0
    )
    stated = json.loads(Path("o.csv.tacit.json").read_text())
    assert (stated["k"], stated["prior"]) == (2, [0.2, 0.5, 0.3])
    assert {row[2] for row in read_csv("o.csv")[1:]} == set(NAMES[1:])


@pytest.mark.parametrize("prior", [None, [0.5, 0.3, 0.2]])
def test_blocks_by_one_prior_are_dealt_out(here, run, monkeypatch, prior):
    """The partitions are public, and the row decides which of them it has; parts are smaller than
    the table.
    """
    monkeypatch.setattr(module, "CHUNK", 1000)
    labels = np.random.default_rng(0).choice(NAMES, 30_000)
    write_csv(labels)
    command = (
        COMMAND.replace("epsilon=1", "epsilon=0.5") + " --classes classes.txt --randomizer blocks"
    )
    if prior is not None:
        Path("prior.txt").write_text("\n".join(map(str, prior)))
        command += " --prior prior.txt"
    assert run(command)[0] == 0
    stated = json.loads(Path("o.csv.tacit.json").read_text())
    assert stated["classes"] == NAMES
    assert stated["partitions"] == "o.csv.partitions.npy"
    assert not lacking(stated["partition_of_row"], "row", "partition", "modulo")
    partitions = np.load("o.csv.partitions.npy")
    expected = randomize(
        labels, classes=NAMES, randomizer="blocks", prior=prior, budget="epsilon=0.5"
    )
    assert np.array_equal(partitions, expected.randomizer.partitions)
    assert partitions.shape == (256, 3)
    rows = np.arange(30_000) % 256
    own = partitions[rows, [NAMES.index(label) for label in labels]]
    outputs = np.array([int(row[2]) for row in read_csv("o.csv")[1:]])
    g = expected.randomizer.n_blocks[rows]
    assert np.mean(outputs == own) == pytest.approx(
        np.mean(np.exp(0.5) / (np.exp(0.5) + g - 1)), abs=0.01
    )


def write_prior(rows, ending):
    path = Path(f"prior.{ending}")
    if ending == "npy":
        np.save(path, rows.astype(np.float32))
    elif ending == "npz":
        np.savez(path, x=rows)
    elif ending == "csv":
        np.savetxt(path, rows, delimiter=",")
    else:
        pq.write_table(pa.table({f"p{i}": column for i, column in enumerate(rows.T)}), path)
    return path


@pytest.mark.parametrize("ending", ["npy", "npz", "csv", "parquet"])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_each_label_may_have_a_prior_and_a_partition(here, run, monkeypatch, kind, ending):
    """Answers are blocks of the label's own partition, in parts that are smaller than the table."""
    monkeypatch.setattr(module, "PRIORS", 3 * 1000)
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 5500)
    write_prior(rng.dirichlet(np.ones(3), 5500), ending)
    if kind == "csv":
        write_csv([NAMES[label] for label in labels])
    else:
        pq.write_table(
            pa.table({"y": [NAMES[label] for label in labels]}), "t.parquet", row_group_size=1700
        )
    command = (
        COMMAND.replace("csv", kind).replace("epsilon=1", "epsilon=4") + " --classes classes.txt"
    )
    assert run(f"{command} --randomizer blocks --prior prior.{ending}")[0] == 0
    stated = json.loads(Path(f"o.{kind}.tacit.json").read_text())
    assert "probability E/(E + g - 1)" in stated["answers"]
    assert (stated["prior"], stated["partitions"]) == (
        f"prior.{ending}",
        f"o.{kind}.partitions.npy",
    )
    assert "matrix" not in stated
    partitions = np.load(f"o.{kind}.partitions.npy")
    expected = Blocks(4.0, read_prior(Path(f"prior.{ending}")))
    assert np.array_equal(partitions, expected.partitions)
    assert Guarantee.from_json(stated["guarantee"]).event == expected.event
    answers = (
        read_csv("o.csv")[1:] if kind == "csv" else pq.read_table("o.parquet")["y"].to_pylist()
    )
    answers = np.array([int(row[2]) for row in answers] if kind == "csv" else answers)
    kept = answers == partitions[np.arange(5500), labels]
    chance = np.exp(4.0) / (np.exp(4.0) + expected.n_blocks - 1)
    assert kept.mean() == pytest.approx(chance.mean(), abs=0.01)


def test_each_label_may_have_a_prior_of_its_likeliest_classes(here, run, monkeypatch):
    """The event has the smallest k of any part of the table."""
    monkeypatch.setattr(module, "PRIORS", 3 * 10)
    rows = np.tile([[0.34, 0.33, 0.33]], (50, 1))
    rows[25] = [0.5, 0.5, 0.0]
    np.save("prior.npy", rows)
    write_csv(NAMES * 16 + NAMES[:2])
    assert (
        run(COMMAND + " --classes classes.txt --randomizer rr-with-prior --prior prior.npy")[0] == 0
    )
    stated = json.loads(Path("o.csv.tacit.json").read_text())
    assert stated["prior"] == "prior.npy"
    assert Guarantee.from_json(stated["guarantee"]).event == RRWithPrior(1.0, rows).event
    assert Guarantee.from_json(stated["guarantee"]).event.n_classes == 2
    assert {row[2] for row in read_csv("o.csv")[1:]} <= set(NAMES)
    assert not Path("o.csv.partitions.npy").exists()


def test_a_table_that_is_replaced_keeps_no_partitions_of_another(here, run):
    write_csv(NAMES * 2)
    np.save("prior.npy", np.full((6, 3), 1 / 3))
    assert run(COMMAND + " --classes classes.txt --randomizer blocks --prior prior.npy")[0] == 0
    refused(run, COMMAND + " --classes classes.txt", "exists")
    assert run(COMMAND + " --classes classes.txt --force")[0] == 0
    assert not Path("o.csv.partitions.npy").exists()


THIRDS = [1 / 3, 1 / 3, 1 / 3]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (
            [THIRDS, [0.5, 0.6, -0.1]],
            ("--prior prior.npy", "row 1", "NaN"),
        ),
        ([[np.nan, 0.5, 0.5], THIRDS], ("--prior prior.npy", "row 0", "NaN")),
        (
            [THIRDS, [0.5, 0.5, 0.5]],
            ("--prior prior.npy", "row 1", "1.5"),
        ),
        (
            [[0.5, 0.5], [0.5, 0.5]],
            ("--prior prior.npy", "2 columns", "3 classes"),
        ),
        (
            [THIRDS * 2, THIRDS * 2],
            ("--prior prior.npy", "6 columns", "3 classes"),
        ),
        (
            [THIRDS] * 3,
            ("--prior prior.npy", "3 rows", "2 labels"),
        ),
        (
            [[THIRDS]],
            (("--prior prior.npy", "(1, 1, 3)", "float64")),
        ),
        (
            [["a", "b", "c"]],
            ("--prior prior.npy", "(1, 3)", "<U1"),
        ),
        (np.zeros((0, 3)), ("--prior prior.npy", "(0, 3)")),
    ],
)
@pytest.mark.parametrize("randomizer", ["blocks", "rr-with-prior"])
def test_priors_that_do_not_fit_are_refused_before_the_ledger_is_charged(
    here, run, randomizer, rows, words
):
    write_csv(NAMES[:2])
    np.save("prior.npy", np.array(rows))
    Ledger.beside("t.csv", "t").allow("epsilon=1.5", "change-label")
    refused(
        run, f"{COMMAND} --classes classes.txt --randomizer {randomizer} --prior prior.npy", *words
    )
    assert not Ledger.beside("t.csv", "t").account().charges


def test_a_prior_for_each_label_is_not_for_numbers(here, run):
    write_csv([0, 1])
    Path("values.txt").write_text("0\n1\n")
    Path("prior.csv").write_text("0.5,0.5\n0.5,0.5\n")
    command = COMMAND + " --values values.txt --randomizer rr-on-bins --prior prior.csv"
    refused(
        run,
        command,
        "--prior prior.csv has 2 rows, and rr-on-bins takes one for all labels; give one per line",
    )


def test_damaged_files_of_priors(here, run):
    write_csv(NAMES[:2])
    command = COMMAND + " --classes classes.txt --randomizer blocks --prior "
    refused(run, command + "none.npy", "none.npy does not exist; check its name")
    refused(run, command + "none.txt", "none.txt does not exist; check its name")
    np.save("prior.npy", np.full((2, 3), 1 / 3, np.float16))
    refused(run, command + "prior.npy", "--prior prior.npy has type float16")
    for folder in (".", "/"):
        refused(
            run,
            command.replace("--out o.csv", f"--out {folder}") + "prior.npy",
            "is a folder; name a file",
        )
    Path("prior.npy").write_bytes(b"\x93NUMPY cut")
    refused(run, command + "prior.npy", "prior.npy is truncated or not a .npy array")
    Path("prior.txt").write_text("")
    refused(
        run,
        command + "prior.txt",
        "--prior prior.txt has shape (0,) of float64; give one number for each class",
    )
    Path("prior.csv").write_text("0.5,0.5\n0.5\n")
    refused(
        run,
        command + "prior.csv",
        "--prior prior.csv is not a readable file of numbers; give one per line",
    )


def test_nothing_of_the_true_labels_is_left_in_parquet(here, run):
    """Schema metadata of the input may tell of them: pandas counts categories there."""
    table = pa.table({"y": pa.array(["cat", "dog"] * 50).dictionary_encode(), "id": np.arange(100)})
    table = table.replace_schema_metadata({b"pandas": b'{"num_categories": 2}', b"mine": b"cat=50"})
    pq.write_table(table, "t.parquet")
    assert run(COMMAND.replace("csv", "parquet") + " --classes classes.txt")[0] == 0
    assert set(pq.read_table("o.parquet").schema.metadata) == {b"tacit"}
    assert b"cat=50" not in Path("o.parquet").read_bytes()


def test_odd_cells_survive(here, run):
    Path("t.csv").write_bytes(b'id,y\n"a\rb",cat\n"c\r\nd",dog\n"e\nf",fox\n')
    assert run(COMMAND + " --classes classes.txt")[0] == 0
    assert [row[0] for row in read_csv("o.csv")] == [row[0] for row in read_csv("t.csv")]


def test_columns_with_dots(here, run):
    pq.write_table(pa.table({"y.a": [1, 2], "y": ["cat", "dog"]}), "t.parquet")
    assert run(COMMAND.replace("csv", "parquet") + " --classes classes.txt")[0] == 0


def test_an_infinite_budget_is_not_for_release(here, run):
    write_csv(NAMES)
    infinite = COMMAND.replace("epsilon=1", "epsilon=inf") + " --classes classes.txt"
    refused(run, infinite, "protects nothing")
    assert run(infinite + " --allow-research")[0] == 0
    Path("folder.csv").mkdir()
    refused(
        run,
        COMMAND.replace("o.csv", "folder.csv") + " --classes classes.txt --force",
        "is a folder",
    )


def test_a_ledger_is_started_for_a_table(here, run):
    write_csv(NAMES)
    assert run("ledger t.csv --allow epsilon=1 --unit change-label")[0] == 0
    assert run(COMMAND + " --classes classes.txt")[0] == 0
    refused(run, COMMAND.replace("o.csv", "p.csv") + " --classes classes.txt", "epsilon")


def test_whole_numbers_and_numbers(here, run):
    write_csv(np.random.default_rng(0).integers(0, 4, 500))
    assert run(COMMAND + " --classes 4")[0] == 0
    assert {row[2] for row in read_csv("o.csv")[1:]} == {"0", "1", "2", "3"}
    Path("values.txt").write_text("0\n1\n2\n3\n")
    assert run(COMMAND + " --values values.txt --randomizer rr-on-bins --force")[0] == 0
    stated = json.loads(Path("o.csv.tacit.json").read_text())
    assert {float(row[2]) for row in read_csv("o.csv")[1:]} == set(stated["outputs"])


def test_the_ledger_beside_the_table_is_charged_and_refuses(here, run):
    write_csv(NAMES * 10)
    Ledger.beside("t.csv", "t").allow("epsilon=1.5", "change-label")
    assert run(COMMAND + " --classes classes.txt")[0] == 0
    refused(run, COMMAND.replace("o.csv", "again.csv") + " --classes classes.txt", "epsilon")
    assert len(Ledger.beside("t.csv", "t").account().charges) == 1


def test_research_noise_is_stamped(here, run):
    write_csv(NAMES * 10)
    research = COMMAND + " --classes classes.txt --noise research --seed 3"
    refused(run, research, "--allow-research")
    assert run(research + " --allow-research")[0] == 0
    assert not json.loads(Path("o.csv.tacit.json").read_text())["for_release"]
    first = Path("o.csv").read_bytes()
    assert run(research + " --allow-research --force")[0] == 0
    assert Path("o.csv").read_bytes() == first


@pytest.mark.parametrize(
    ("content", "options", "words"),
    [
        ("id,y\n1,cat\n", "--column z", ("column 'z'", "t.csv")),
        ("y,y\ncat,cat\n", "", ("t.csv", "'y'")),
        ("id,y\n1,cat\n2,cat,3\n", "", ("line 3", "3 cells", "2")),
        ("id,y\n1,cow\n", "", ("line 2 has label 'cow'",)),
        ("id,y\n1,cat\n2,\n", "", ("line 3 has label ''",)),
        ("id,y\n1,nan\n", "", ("line 2 has label 'nan'",)),
        ("id,y\n", "", ("no rows below its header",)),
        ("", "", ("t.csv", "empty")),
        ("id,y\n1,cat\n", "--budget epsilon=0", ("epsilon=0.0",)),
        ("id,y\n1,cat\n", "--prior bad.txt --randomizer rr-with-prior", ("adds up to 0.9",)),
        ("id,y\n1,cat\n", "--prior none.txt", ("none.txt does not exist",)),
        ("id,y\n1,cat\n", "--randomizer laplace", ('Choose from: "rr", "rr-top-k"',)),
        (
            "id,y\n1,cat\n",
            "--randomizer rr-top-k",
            ("--randomizer rr-top-k", "add --k"),
        ),
        (
            "id,y\n1,cat\n",
            "--randomizer rr-top-k --k 2",
            ("likeliest classes", "--prior FILE"),
        ),
        ("id,y\n1,cat\n", "--k 2", ("--k 2", "rr-top-k", "rr;")),
        (
            "id,y\n1,cat\n",
            "--randomizer rr-with-prior",
            ("plain rr", "--prior FILE"),
        ),
        ("id,y\n1,cat\n", "--randomizer coin", ('Invalid value "coin" for --randomizer',)),
        ("id,y\n1,cat\n", "--out t.csv", ("t.csv",)),
        ("id,y\n1,cat\n", "--out o.parquet", ("must both end in .csv",)),
        ("id,y\n1,cat\n", "--values numbers.txt --randomizer unbiased", ("is not a number",)),
        ("id,y\n1,nan\n", "--values numbers.txt --randomizer unbiased", ("not finite",)),
    ],
)
def test_bad_tables_and_options(here, run, content, options, words):
    Path("t.csv").write_text(content)
    Path("bad.txt").write_text("0.3\n0.3\n0.3\n")
    Path("numbers.txt").write_text("0\n1\n")
    given = COMMAND.split()
    for flag in options.split()[::2]:
        if flag in given:
            place = given.index(flag)
            del given[place : place + 2]
    classes = "" if "--values" in options else "--classes classes.txt"
    refused(run, f"{' '.join(given)} {classes} {options}", *words)


def test_missing_and_damaged_files(here, run):
    refused(run, COMMAND + " --classes classes.txt", "t.csv does not exist")
    Path("t.parquet").write_bytes(b"PAR1 cut")
    refused(run, COMMAND.replace("csv", "parquet") + " --classes classes.txt", "not a Parquet file")
    Path("t.csv").write_bytes(b"id,y\n1,\xff\xfe\n")
    refused(run, COMMAND + " --classes classes.txt", "not a CSV file in UTF-8")
    Path("o.csv").write_text("mine")
    write_csv(NAMES)
    refused(run, COMMAND + " --classes classes.txt", "exists")
    Path("values.txt").write_text("2\n1\n")
    refused(
        run,
        COMMAND.replace("o.csv", "p.csv") + " --values values.txt --randomizer rr-on-bins",
        "rising",
    )


KILLED_HALFWAY = """
import os, signal, sys
from tacit.cli.main import main
from tacit.learners.label_dp import tables as module
from tacit.learners.label_dp.blocks import Blocks
from tacit.learners.label_dp.prior_files import read_prior
from tacit.learners.label_dp.randomizers import RR

def stop(*given):
    calls.append(1)
    if len(calls) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return sample(*given)

calls, sample, RR.sample, module.CHUNK = [], RR.sample, stop, 1000
main(sys.argv[1:])
"""


def test_what_a_killed_run_left_is_private_and_removed_by_the_next(here, run):
    write_csv(["dog"] * 3000)
    command = COMMAND + " --classes classes.txt"
    killed = subprocess.run([sys.executable, "-c", KILLED_HALFWAY, *command.split()], check=False)
    assert killed.returncode == -9
    leftovers = list(Path().glob(".*.part"))
    assert len(leftovers) == 2
    assert any("quoted" in path.read_text() for path in leftovers)  # the other columns are clear
    assert {path.stat().st_mode & 0o777 for path in leftovers} == {0o600}
    assert run(command)[0] == 0
    assert not list(Path().glob(".*.part"))


def test_damage_of_another_column_is_found_before_the_ledger_is_charged(here, run):
    pq.write_table(
        pa.table({"y": ["cat"] * 100, "text": [f"words {i}" for i in range(100)]}),
        "t.parquet",
        compression=None,
    )
    whole = Path("t.parquet").read_bytes()
    Path("t.parquet").write_bytes(
        whole.replace(b"words 50", b"\xff\xff\xff\xffs 50", 1).replace(
            b"\x08\x00\x00\x00words 7", b"\xff\xff\xff\x7fwords 7"
        )
    )
    Ledger.beside("t.parquet", "t").allow("epsilon=1.5", "change-label")
    refused(run, COMMAND.replace("csv", "parquet") + " --classes classes.txt", "not a Parquet file")
    assert not Ledger.beside("t.parquet", "t").account().charges
