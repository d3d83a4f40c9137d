"""`tacit votes`, as a data owner would run it."""

import json
from pathlib import Path

import numpy as np
import pytest

from tacit.privacy.guarantee import Guarantee

VOTES = (
    "votes votes.npy --classes 10 --aggregator confident --collector weighting --budgets a=1,b=2,c=3 "
    "--shares a=.34,b=.43,c=.23 --sigma 40 --sigma1 150 --threshold 200 --out labels"
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
    assert "itself or any other record" in Path("labels/statement.txt").read_text()
    assert "internal" not in Path("labels/statement.txt").read_text()
    assert run(VOTES)[0] == 2
    assert run(VOTES + " --force")[0] == 0


def test_classes_read_off_the_votes_are_listed(ballots, run):
    status, out, _ = run("votes votes.npy --aggregator gnmax --sigma 60 --budgets 1 --out labels")
    assert status == 0
    assert "class list (read off the votes)" in Path("labels/statement.txt").read_text()
    assert "for the first 171 of 400 queries" in out


def test_research_noise_is_stamped(ballots, run):
    line = "votes votes.npy --aggregator gnmax --sigma 60 --budgets 1 --noise research --seed 1 --out "
    assert run(line + "one")[0] == run(line + "two")[0] == 0
    assert Path("one/labels.csv").read_text() == Path("two/labels.csv").read_text()
    assert Path("one/statement.txt").read_text().startswith("NOT FOR RELEASE")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (VOTES.replace("votes.npy", "none.npy"), "none.npy does not exist"),
        (VOTES.replace("votes.npy", "cut.npy"), "cut.npy is truncated"),
        (VOTES.replace("votes.npy", "text.npy"), "text.npy is truncated or not a .npy array"),
        (VOTES.replace("votes.npy", "floats.npy"), "dtype float64"),
        (VOTES.replace("c=3", "c=x"), "--budgets a=1,b=2,c=x cannot be read"),
        (VOTES.replace("c=3", "a=3"), "names a group twice"),
        (VOTES.replace("c=3", "c=0"), "budget 0.0 of group 'c'"),
        (VOTES.replace("c=.23", "c=.33"), "add up to 1.1"),
        (VOTES.replace("--sigma 40", ""), "needs sigma"),
        (VOTES.replace("--out labels", "--out none/labels"), "none is not a folder"),
        (VOTES.replace("--classes 10", "--classes 3"), "none of the 3 classes"),
        (VOTES + " --delta 1", "delta=1.0"),
        (VOTES + " --n-labels 500", "never met"),
        (VOTES + " --copies a=1", "copies"),
        (VOTES + " --stopping data-dependent", "noise='research'"),
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
    assert message in err
    assert err.count("\n") == 1
    assert sorted(path.name for path in Path().iterdir()) == before
