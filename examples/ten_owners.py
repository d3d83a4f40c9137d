"""Ten owners learn one classifier without showing a record: each releases a summary of its sums.

python examples/ten_owners.py [FOLDER] [--embeddings EMBEDDINGS] [--budget rho=0.5]

The records are the digits of scikit-learn. EMBEDDINGS holds the folders cifar100 and tiny_imagenet
with train_x.npy, train_y.npy, test_x.npy and test_y.npy; the records are then those of CIFAR-100,
and Tiny ImageNet has the public rows. The records are dealt to ten owners, of whom the largest has
ten times as many as the smallest; the rare classes occur at two owners each. The script writes ten
summaries and a release into FOLDER and prints how well each owner does alone, all of them combined,
and a single fit to all records at the same price per record.
"""

import argparse
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tacit
from tacit.data.digits import load_digits_split
from tacit.data.imbalance import imbalanced_subset

OWNERS = 10
SEED = 0

# share of the classes that are rare, and how many owners have each of them
RARE = 0.4
OWNERS_OF_RARE = 2

# share of the classes whose accuracy is that of the minority: the smallest
MINORITY = 0.25


@dataclass(frozen=True, eq=False)
class Problem:
    """Records of all owners together, test rows, and public rows."""

    x: NDArray[Any]
    y: NDArray[np.int64]
    test_x: NDArray[Any]
    test_y: NDArray[np.int64]
    public: NDArray[Any]
    n_classes: int

    def smallest(self, share: float) -> NDArray[np.int64]:
        """Return the classes with the fewest records, such a share of all classes."""
        sizes = np.bincount(self.y, minlength=self.n_classes)
        n_smallest = math.ceil(share * self.n_classes)
        return np.argsort(sizes, kind="stable")[:n_smallest]


@dataclass(frozen=True, eq=False)
class Owner:
    """Records of one owner, and the classes that may occur there."""

    part: str
    classes: list[int]
    x: NDArray[Any]
    y: NDArray[np.int64]


@dataclass(frozen=True)
class Scores:
    """Mean accuracy over all classes, over those that every owner has, and over the smallest."""

    balanced: float
    common: float
    minority: float


def digits(seed: int = SEED) -> Problem:
    """Return digits whose largest class is three times the smallest."""
    split = load_digits_split()
    rows = imbalanced_subset(split.private_y, 3, seed)
    return Problem(
        x=split.private_x[rows],
        y=split.private_y[rows],
        test_x=split.test_x,
        test_y=split.test_y,
        public=split.public_x,
        n_classes=10,
    )


def cifar100(folder: Path, seed: int = SEED) -> Problem:
    """Return embeddings of CIFAR-100 whose largest class is ten times the smallest."""
    y = np.load(folder / "cifar100" / "train_y.npy").astype(np.int64)
    rows = imbalanced_subset(y, 10, seed)
    return Problem(
        x=np.load(folder / "cifar100" / "train_x.npy")[rows],
        y=y[rows],
        test_x=np.load(folder / "cifar100" / "test_x.npy"),
        test_y=np.load(folder / "cifar100" / "test_y.npy").astype(np.int64),
        public=np.load(folder / "tiny_imagenet" / "train_x.npy")[:30_000],
        n_classes=100,
    )


def deal(problem: Problem, seed: int = SEED) -> list[Owner]:
    """Deal each record to one owner by its class and a coin of its own."""
    rng = np.random.default_rng(seed)
    rare_classes = problem.smallest(RARE)

    # which owner has which class
    lists = np.ones((OWNERS, problem.n_classes), dtype=bool)
    lists[:, rare_classes] = False
    for rare_class in rare_classes:
        lists[rng.choice(OWNERS, OWNERS_OF_RARE, replace=False), rare_class] = True

    shares = lists * np.geomspace(10, 1, OWNERS)[:, None]
    thresholds = np.cumsum(shares / shares.sum(axis=0), axis=0)
    coins = rng.random(len(problem.y))
    owner_of_record = np.sum(coins > thresholds[:-1, problem.y], axis=0)

    owners = []
    for i in range(OWNERS):
        rows = owner_of_record == i
        classes = np.flatnonzero(lists[i]).tolist()
        owners.append(Owner(f"owner {i + 1}", classes, problem.x[rows], problem.y[rows]))
    return owners


def summary(
    owner: Owner,
    problem: Problem,
    budget: str,
    noise: str = "secure",
    seed: int | None = None,
    moments: bool = False,
) -> tacit.Summary:
    """Return what an owner releases: noisy class sums, centred by the public rows."""
    summariser = tacit.ClassSummary(
        budget,
        classes=owner.classes,
        part=owner.part,
        public=problem.public,
        noise=noise,
        random_state=seed,
        moments=moments,
    )
    return tacit.Summary.of(summariser.fit(owner.x, owner.y), name=owner.part)


def fit(
    problem: Problem,
    records: Problem | Owner,
    classes: list[int],
    budget: str,
    noise: str = "secure",
    seed: int | None = None,
) -> tacit.AutoPrototypes:
    """Fit `auto` where all records of the fit are in one place."""
    learner = tacit.AutoPrototypes(
        budget, classes=classes, public=problem.public, noise=noise, random_state=seed
    )
    return learner.fit(records.x, records.y)


def scores(model: tacit.Release | tacit.AutoPrototypes, problem: Problem) -> Scores:
    """Score a model on test rows of all classes, some of which it may not know."""
    right = model.predict(problem.test_x) == problem.test_y
    rows_of_class = np.bincount(problem.test_y, minlength=problem.n_classes)
    accuracies = np.bincount(problem.test_y, right, problem.n_classes) / rows_of_class
    return Scores(
        balanced=float(accuracies.mean()),
        common=float(np.delete(accuracies, problem.smallest(RARE)).mean()),
        minority=float(accuracies[problem.smallest(MINORITY)].mean()),
    )


def table(problem: Problem, owners: list[Owner], budget: str, folder: Path) -> Iterator[str]:
    """Yield the table line by line; write the summaries and the release."""
    yield "| who | records | classes | balanced accuracy | common classes | rarest quarter |"
    yield "|---|---|---|---|---|---|"
    for owner in owners:
        alone = fit(problem, owner, owner.classes, budget)
        yield line(owner.part, owner, owner.classes, scores(alone, problem))

    paths = []
    for owner in owners:
        paths.append(folder / owner.part.replace(" ", "-"))
        summary(owner, problem, budget).save(paths[-1], force=True)

    all_classes = list(range(problem.n_classes))
    release = tacit.combine(paths, public=problem.public, name="ten owners")
    release.save(folder / "release", force=True)
    yield line("all combined", problem, all_classes, scores(release, problem))

    central = fit(problem, problem, all_classes, budget)
    yield line("one central fit", problem, all_classes, scores(central, problem))


def line(who: str, records: Problem | Owner, classes: list[int], found: Scores) -> str:
    """Return a line of the table; sizes are shown since the records are public here."""
    accuracies = f"{found.balanced:.3f} | {found.common:.3f} | {found.minority:.3f}"
    return f"| {who} | {len(records.y):,} | {len(classes)} | {accuracies} |"


def main(arguments: list[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, nargs="?", default=Path("ten-owners"))
    parser.add_argument("--embeddings", type=Path)
    parser.add_argument("--budget", default="rho=0.5")
    chosen = parser.parse_args(arguments)

    problem = digits() if chosen.embeddings is None else cifar100(chosen.embeddings)
    chosen.folder.mkdir(parents=True, exist_ok=True)
    for text in table(problem, deal(problem), chosen.budget, chosen.folder):
        print(text, flush=True)

    release = tacit.Release.load(chosen.folder / "release").verify()
    print(f"\n{release.guarantee}")


if __name__ == "__main__":
    main()
