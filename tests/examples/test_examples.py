"""Each example runs, and its result is that of two plain lines of numpy."""

import json
import runpy
import shutil
from pathlib import Path

import numpy as np
import pytest

import tacit
from messages import lacking
from tacit.data.digits import load_digits_split

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def example(name):
    return runpy.run_path(str(EXAMPLES / name))


def sums_of_unit_rows(x, y, n_classes):
    """The non-private form of a noisy sum."""
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    return np.stack([unit[y == c].sum(axis=0) for c in range(n_classes)])


def accuracy(prototypes, x, y):
    return np.mean(
        np.argmax(x @ (prototypes / np.linalg.norm(prototypes, axis=1, keepdims=True)).T, axis=1)
        == y
    )


def test_first_release(tmp_path, capsys):
    example("first_release.py")["main"](tmp_path / "release")
    assert "rho = 0.5 (zCDP)" in capsys.readouterr().out
    digits = load_digits_split()
    centre = digits.public_x.mean(axis=0)
    release = tacit.Release.load(tmp_path / "release").verify()
    exact = sums_of_unit_rows(digits.private_x - centre, digits.private_y, 10)
    # 640 draws of N(0, 1)
    assert np.std(release.arrays["prototypes"] - exact) == pytest.approx(1, abs=0.2)
    found = np.mean(release.predict(digits.test_x - centre) == digits.test_y)
    assert found == pytest.approx(accuracy(exact, digits.test_x - centre, digits.test_y), abs=0.05)


def test_shared_ledger(tmp_path, capsys):
    example("shared_ledger.py")["main"](tmp_path / "out")
    printed = capsys.readouterr().out
    assert not lacking(printed, "rho=0.5", "rho=1", "1 charge")
    assert not lacking(printed, "rho=1 of rho=1", "2 charges")
    assert "third: NoisySumPrototypes fit at rho=" in printed
    lines = (tmp_path / "out/digits.ledger.jsonl").read_text().splitlines()
    assert [json.loads(line)["kind"] for line in lines] == ["allow", "charge", "charge"]
    digits = load_digits_split()
    exact = sums_of_unit_rows(digits.private_x, digits.private_y, 10)
    release = tacit.Release.load(tmp_path / "out/noisy_sum").verify()
    assert np.std(release.arrays["prototypes"] - exact) == pytest.approx(1, abs=0.2)
    chosen = tacit.Release.load(tmp_path / "out/public").verify().arrays
    assert np.array_equal(chosen["prototypes"], digits.public_x[chosen["indices"]])


def test_ten_owners(tmp_path, capsys):
    ten_owners = example("ten_owners.py")
    ten_owners["main"]([str(tmp_path / "out"), "--budget", "rho=0.5"])
    printed = capsys.readouterr().out
    rows = [line.strip("| ").split(" | ") for line in printed.splitlines() if line.startswith("| ")]
    found = {row[0]: row[1:] for row in rows[1:]}
    balanced = {who: float(row[2]) for who, row in found.items()}
    *owners, combined, central = balanced.values()
    assert len(owners) == 10
    assert max(owners) + 0.05 < combined < central + 0.05

    # each record is at one owner, and rare classes are at two
    sizes = [int(row[0]) for row in found.values()]
    assert sum(sizes[:10]) == sizes[10] == sizes[11] == 564
    assert sum(int(row[1]) for row in list(found.values())[:10]) == 10 * 6 + 2 * 4

    # a record is at one owner, so that all of them together cost what each of them does
    release = tacit.Release.load(tmp_path / "out" / "release").verify()
    assert release.guarantee.rho <= 0.5
    combined_again = tacit.combine(
        sorted((tmp_path / "out").glob("owner-*")), public=ten_owners["digits"]().public
    )
    for name, array in release.arrays.items():
        assert np.array_equal(array, combined_again.arrays[name])


@pytest.fixture
def a_third_of_the_public_rows(embeddings, tmp_path):
    """The embeddings that the example takes, for secure choices among all 60,000 rows take
    minutes.
    """
    source, folder = embeddings / "mobilenetv2-in1k-160", tmp_path / "embeddings"
    (folder / "tiny_imagenet").mkdir(parents=True)
    (folder / "cifar100").symlink_to(source / "cifar100")
    shutil.copy(source / "tiny_imagenet" / "card.json", folder / "tiny_imagenet")
    for file in (source / "tiny_imagenet").glob("*.npy"):
        np.save(folder / "tiny_imagenet" / file.name, np.load(file)[::3])
    return folder


@pytest.mark.thorough
@pytest.mark.slow
def test_cifar100(a_third_of_the_public_rows, cifar100, tmp_path, capsys):
    example("cifar100.py")["main"](
        [str(a_third_of_the_public_rows), "--out", str(tmp_path / "out")]
    )
    table = [
        line.strip("| ").split(" | ")
        for line in capsys.readouterr().out.splitlines()
        if line.startswith("| `")
    ]
    found = {row[0].strip("`"): row[1:] for row in table}
    assert [row[1] for row in found.values()] == ["4.89", "2", "2", "4.89", "4.89"]
    exact = sums_of_unit_rows(cifar100.train_x.astype(float), cifar100.train_y, 100)
    expected = accuracy(exact, cifar100.test_x.astype(float), cifar100.test_y)
    assert float(found["noisy-sum"][2]) == pytest.approx(expected, abs=0.01)
    assert (
        float(found["public --public PUBLIC --k 5"][2])
        > float(found["public --public PUBLIC"][2])
        > 0.3
    )


def test_label_privacy(tmp_path, capsys):
    """A table with true epsilons, and a page with two figures."""
    example("label_privacy.py")["main"](tmp_path / "out")
    rows = [
        line.split(" | ") for line in capsys.readouterr().out.splitlines() if line.startswith("| ")
    ]
    names = [row[0].strip("| ") for row in rows]
    assert [float(row[1]) for row in rows] == pytest.approx([1, 2.05, 1, 1, 1, 1, float("inf")])
    flipped = dict(zip(names, [row[2] for row in rows], strict=True))
    right = {name: float(row[3].rstrip("% |")) for name, row in zip(names, rows, strict=True)}

    # Randomized response flips 9 / (e + 9) of 1,397 labels, with a standard deviation of 1.1 %.
    share = 100 * 9 / (np.e + 9)
    assert float(flipped["randomized response"].rstrip("%")) == pytest.approx(share, abs=5.5)
    assert float(flipped["more clusters: .4 for them, .6 for answers"].rstrip("%")) < 30
    assert flipped["labels as they are"] == "0.0%"
    assert flipped["blocks of classes"] == ""
    assert right["labels as they are"] > 90
    assert "<img" in (tmp_path / "out" / "page.html").read_text(encoding="utf-8")
    assert (tmp_path / "out" / "table.md").read_text(encoding="utf-8").count("\n") == 9
    assert (tmp_path / "out" / "figure.png").read_bytes().startswith(b"\x89PNG")


def test_the_page_on_mnist_has_the_rows_that_the_example_prints():
    """The stored table (`--mnist`, ten minutes) against the methods and what they must flip."""
    stored = (EXAMPLES.parent / "benchmarks/label_dp/mnist.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in stored.splitlines()[2:]]
    methods = example("label_privacy.py")["methods"](60_000)
    assert [row[0] for row in rows] == [*methods, "DP-SGD, for whole records"]

    # 9 / (e + 9) of 60,000 labels, with a standard deviation of .17 %
    flipped = {row[0]: row[2] for row in rows}
    share = 100 * 9 / (np.e + 9)
    assert float(flipped["randomized response"].rstrip("%")) == pytest.approx(share, abs=0.9)
    assert flipped["blocks of classes"] == ""
