"""`tacit votes`, as a data owner would run it."""

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from messages import lacking
from tacit.learners.pate import aggregate
from tacit.privacy.guarantee import Guarantee

VOTES = (
    "votes votes.npy --classes 10 --aggregator confident --collector weighting --budgets"
    " a=1,b=2,c=3 --shares a=.34,b=.43,c=.23 --sigma 40 --sigma1 150 --threshold 200 --out labels"
)


@pytest.fixture
def ballots(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 10, 400)
    votes = np.where(rng.random((400, 250)) < 0.9, truth[:, None], rng.integers(0, 10, (400, 250)))
    np.save("votes.npy", votes)
    return truth


def test_labels_and_their_guarantee(ballots, run):
    status, out, err = run(VOTES)
    assert (status, err) == (0, "")
    lines = Path("labels/labels.csv").read_text().splitlines()
    assert lines[0] == "query,label"
    labels = np.array([int(line.split(",")[1]) for line in lines[1:]])
    assert len(labels) == 400
    assert np.mean(labels[labels >= 0] == ballots[labels >= 0]) > 0.9
    guarantee = Guarantee.from_json(json.loads(Path("labels/guarantee.json").read_text()))
    for group, epsilon in (("a", 1), ("b", 2), ("c", 3)):
        assert guarantee.epsilon(1e-5, group) == pytest.approx(epsilon, abs=1e-5)
        assert f"{group}: spent epsilon" in out
    assert not lacking(Path("labels/statement.txt").read_text(), "one record", "replace")
    assert "internal" not in Path("labels/statement.txt").read_text()
    assert run(VOTES)[0] == 2
    assert run(VOTES + " --force")[0] == 0


def test_classes_read_off_the_votes_are_listed(ballots, run):
    status, out, _ = run("votes votes.npy --aggregator gnmax --sigma 60 --budgets 1 --out labels")
    assert status == 0
    assert not lacking(Path("labels/statement.txt").read_text(), "class list", "votes")
    assert "for the first 171 of 400 queries" in out


def test_research_noise_is_stamped(ballots, run):
    line = (
        "votes votes.npy --aggregator gnmax --sigma 60 --budgets 1 --noise research --seed 1 --out "
    )
    assert run(line + "one")[0] == run(line + "two")[0] == 0
    assert Path("one/labels.csv").read_text() == Path("two/labels.csv").read_text()
    assert Path("one/statement.txt").read_text().startswith("NOT FOR RELEASE")


GNMAX = "--aggregator gnmax --sigma 60 --budgets 1 --classes 10 --noise research --seed 1"


def test_votes_of_every_format_give_the_same_labels(ballots, run):
    votes = np.load("votes.npy")
    header, columns = (
        ",".join(f"t{i}" for i in range(250)),
        {f"t{i}": votes[:, i] for i in range(250)},
    )
    np.savez("one.npz", anything=votes)
    np.savez("named.npz", votes=votes, truth=ballots)
    np.savetxt("votes.csv", votes, "%d", ",", header=header, comments="")
    pq.write_table(pa.table(columns), "votes.parquet")
    assert run(f"votes votes.npy {GNMAX} --out first")[0] == 0
    for file in ("one.npz", "named.npz", "votes.csv", "votes.parquet"):
        assert run(f"votes {file} {GNMAX} --out out --force")[::2] == (0, ""), file
        assert Path("out/labels.csv").read_bytes() == Path("first/labels.csv").read_bytes()


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("bare.csv", ("bare.csv", "header")),
        ("gap.csv", ("gap.csv", "line 3", "column 2")),
        ("empty.csv", ("empty.csv has no rows",)),
        ("several.npz", ("several.npz", "a, b", "'votes'")),
        ("votes.txt", ("votes.txt", ".npy", ".parquet")),
        ("half.csv", ("votes have dtype float64; pass whole numbers",)),
        ("cut.parquet", ("cut.parquet", "truncated")),
    ],
)
def test_files_of_votes_that_cannot_be_read(ballots, run, file, message):
    for name, text in {
        "bare.csv": "0,1\n1,1\n",
        "gap.csv": "a,b\n0,1\n1,\n",
        "empty.csv": "a,b\n",
        "half.csv": "a,b\n0,.5\n",
        "votes.txt": "0 1\n",
        "cut.parquet": "PAR1",
    }.items():
        Path(name).write_text(text)
    np.savez("several.npz", a=ballots, b=ballots)
    status, out, err = run(f"votes {file} {GNMAX} --out labels")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert not lacking(err, *message)
    assert not Path("labels").exists()


def test_interactive_votes_as_the_library_does(ballots, run):
    votes = np.load("votes.npy")
    scores = np.where(np.arange(10) == ballots[:, None], 0.91, 0.01)
    np.save("scores.npy", scores)
    noise = {"sigma": 60.0, "sigma1": 60.0, "threshold": 100.0, "confidence": 0.9}
    options = " ".join(f"--{name} {value}" for name, value in noise.items())
    line = (
        f"votes votes.npy --aggregator interactive {options} --budgets 1 --classes 10 --noise"
        " research --seed 1"
    )
    assert run(f"{line} --student-scores scores.npy --out labels")[0] == 0
    expected = aggregate(
        votes,
        classes=10,
        aggregator="interactive",
        student_scores=scores,
        budgets=1.0,
        noise="research",
        random_state=1,
        **noise,
    )
    np.testing.assert_array_equal(_labels("labels"), expected.labels)
    assert np.sum(expected.labels >= 0) > expected.answered
    assert "needs student_scores" in run(f"{line} --out more")[2]


def test_groups_of_teachers_from_a_file(ballots, run):
    names = ["a"] * 100 + ["b a"] * 50 + ["b"] * 100
    Path("groups.txt").write_text("\n".join(names) + "\n")
    line = GNMAX.replace("--budgets 1", "--budgets a=1,b=2") + " --collector weighting"
    assert run(f"votes votes.npy {line} --teacher-groups groups.txt --out labels")[0] == 0
    expected = aggregate(
        np.load("votes.npy"),
        classes=10,
        aggregator="gnmax",
        collector="weighting",
        sigma=60.0,
        budgets={"a": 1.0, "b": 2.0},
        teacher_groups=[name.split() for name in names],
        noise="research",
        random_state=1,
    )
    np.testing.assert_array_equal(_labels("labels"), expected.labels)
    unnamed = "a\n" * 124 + "\n" + "b\n" * 125
    for text, message in (
        ("a\nb\n", "has 2 entries for 250"),
        (unnamed, "teacher 124 has no group"),
        ("", "is not a"),
    ):
        Path("groups.txt").write_text(text) if text else Path("groups.txt").unlink()
        status, _, err = run(f"votes votes.npy {line} --teacher-groups groups.txt --out other")
        assert (status, err.count("\n")) == (2, 1)
        assert message in err


def test_the_owner_is_told_no_more_than_was_spent(ballots, run):
    """Where teachers disagree, data-dependent bounds exceed the cost that holds for any votes."""
    np.save("split.npy", np.tile(np.arange(250) % 2, (400, 1)))
    assert "given these votes 0.999279" in run(f"votes split.npy {GNMAX} --out split")[1]


OWNER = GNMAX + " --folder run --figures run --limits .25,.5 --truth truth.npy"


def test_tables_and_figures_are_for_the_owner(ballots, run):
    np.save("truth.npy", ballots)
    status, out, err = run(f"votes votes.npy {OWNER} --out labels")
    assert (status, err) == (0, "")
    assert sorted(path.name for path in Path("labels").iterdir()) == [
        "guarantee.json",
        "labels.csv",
        "statement.txt",
    ]
    assert Path("run").stat().st_mode & 0o777 == 0o700
    names = [
        "captions.txt",
        "consensus-private.svg",
        "cost.svg",
        "queries.csv",
        "readings.csv",
        "votings.csv",
    ]
    found = sorted(path.name for path in Path("run").iterdir())
    assert [name for name in found if name not in (".lock", "voting.json", "voting.npz")] == names
    (voting,) = csv.DictReader(Path("run/votings.csv").read_text().splitlines())
    labels = np.array(_labels("labels"))
    assert float(voting["label_accuracy"]) == np.mean(labels[labels >= 0] == ballots[labels >= 0])
    of_3 = (labels >= 0) & (ballots == 3)
    assert float(voting["label_accuracy of 3"]) == np.mean(labels[of_3] == 3)
    assert int(voting["labels of 3"]) == of_3.sum()
    facts = {
        "teachers": "250",
        "collector": "gnmax",
        "budget": "1",
        "seed": "1",
        "answered": str((labels >= 0).sum()),
    }
    assert facts.items() <= voting.items()
    read = csv.DictReader(Path("run/readings.csv").read_text().splitlines())
    for reading, limit in zip(read, (0.25, 0.5), strict=True):
        assert (
            run(
                f"votes votes.npy {GNMAX.replace('--budgets 1', f'--budgets {limit}')} --out"
                f" {limit}"
            )[0]
            == 0
        )
        assert int(reading["answered"]) == sum(label >= 0 for label in _labels(str(limit)))
        assert f"read at epsilon={limit},delta=1e-05: {reading['answered']} labels" in out
    private = Path("run/consensus-private.svg").read_text()
    assert not lacking(private, 'role="img"', 'aria-label="Consensus', "PRIVATE")
    assert "PRIVATE" not in Path("run/cost.svg").read_text()
    assert "do not publish it" in Path("run/captions.txt").read_text()


def test_a_kept_voting_is_read_without_voting_again(ballots, run):
    """Secure noise: another voting would have other labels."""
    line = "votes votes.npy --aggregator gnmax --sigma 60 --budgets 1 --classes 10 --folder run"
    assert run(f"{line} --out first")[0] == run(f"{line} --limits .5 --out second")[0] == 0
    assert (
        run("votes votes.npy --aggregator gnmax --sigma 60 --budgets 1 --classes 10 --out other")[0]
        == 0
    )
    assert _labels("first") == _labels("second")
    (reading,) = csv.DictReader(Path("run/readings.csv").read_text().splitlines())
    assert 0 < int(reading["answered"]) < sum(label >= 0 for label in _labels("first"))
    np.save("votes.npy", 9 - np.load("votes.npy"))
    for changed in (line, line.replace("60", "61")):
        status, out, err = run(f"{changed} --out third")
        assert (status, out) == (2, "")
        assert not lacking(err, "run", "answers", "other votes")


def test_a_kept_voting_of_other_groups_is_refused(ballots, run):
    """Groups that change places have the same sensitivities, and pay for other votes."""
    half = 125
    Path("groups.txt").write_text("a\n" * half + "b\n" * half)
    Path("swapped.txt").write_text("b\n" * half + "a\n" * half)
    plan = (
        "votes votes.npy --classes 10 --aggregator gnmax --sigma 40 --budgets a=.5,b=4 --folder run"
    )
    for collector in ("gnmax", "vanishing", "weighting"):
        line = f"{plan}-{collector} --collector {collector}"
        assert run(f"{line} --teacher-groups groups.txt --out {collector}")[0] == 0
        assert run(f"{line} --teacher-groups groups.txt --out {collector} --force")[0] == 0
        for other in ("--teacher-groups swapped.txt", "--shares a=.4,b=.6"):
            status, out, err = run(f"{line} {other} --out other")
            assert (status, out) == (2, "")
            assert not lacking(err, "answers", "other votes")
    status, _, err = run(f"{line} --teacher-groups groups.txt --unit replace-person --out other")
    assert status == 2
    assert not lacking(err, "answers", "other votes")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (OWNER.replace("--folder run", "--folder labels/run"), ("lie in one another",)),
        (
            OWNER.replace("--figures run", "--figures labels/run"),
            ("--figures labels/run", "--out labels"),
        ),
        (OWNER.replace("--folder run", ""), ("--truth truth.npy", "folder")),
        (
            OWNER.replace("truth.npy", "short.npy"),
            ("(5,)", "int64", "400"),
        ),
        (OWNER.replace("truth.npy", "other.npy"), ("10", "10 classes", "-1")),
        (OWNER.replace(".25,.5", ".25,2"), ("more than the voting's budget",)),
        (OWNER.replace(".25,.5", "a=.5"), ("budget",)),
        (OWNER + " --stopping data-dependent", ("limits", "filter")),
        (OWNER.replace(".25,.5", "some"), ("budget",)),
    ],
)
def test_bad_input_for_the_owner_is_one_line(ballots, run, line, message):
    for name, values in (("truth", ballots), ("short", ballots[:5]), ("other", ballots + 1)):
        np.save(f"{name}.npy", values)
    before = sorted(path.name for path in Path().iterdir())
    status, out, err = run(f"votes votes.npy {line} --out labels")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert not lacking(err, *message)
    assert sorted(path.name for path in Path().iterdir()) == before


def _labels(folder):
    return [
        int(line.split(",")[1]) for line in Path(folder, "labels.csv").read_text().splitlines()[1:]
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (VOTES.replace("votes.npy", "none.npy"), ("none.npy does not exist",)),
        (VOTES.replace("votes.npy", "cut.npy"), ("cut.npy is truncated",)),
        (VOTES.replace("votes.npy", "text.npy"), ("text.npy", "truncated")),
        (VOTES.replace("votes.npy", "floats.npy"), ("dtype float64",)),
        (VOTES.replace("c=3", "c=x"), ("--budgets a=1,b=2,c=x cannot be read",)),
        (VOTES.replace("c=3", "a=3"), ("names a group twice",)),
        (VOTES.replace("c=3", "c=0"), ("budget 0.0 of group 'c'",)),
        (VOTES.replace("c=.23", "c=.33"), ("add up to 1.1",)),
        (VOTES.replace("--sigma 40", ""), ("needs sigma",)),
        (VOTES.replace("--out labels", "--out none/labels"), ("none is not a folder",)),
        (VOTES.replace("--classes 10", "--classes 3"), ("not one of the 3 classes",)),
        (VOTES + " --delta 1", ("delta=1.0",)),
        (VOTES + " --n-labels 500", ("never met",)),
        (VOTES + " --copies a=1", ("copies",)),
        (VOTES + " --stopping data-dependent", ("noise='research'",)),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(ballots, run, line, message):
    whole = Path("votes.npy").read_bytes()
    Path("cut.npy").write_bytes(whole[:-10])
    Path("text.npy").write_text("1,2,3")
    np.save("floats.npy", np.ones((3, 3)))
    before = sorted(path.name for path in Path().iterdir())
    status, out, err = run(line)
    assert (status, out) == (2, "")
    assert not lacking(err, *message)
    assert err.count("\n") == 1
    assert sorted(path.name for path in Path().iterdir()) == before
