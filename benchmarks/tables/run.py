"""Adult and German credit: this library's methods through `TableEncoder` and a schema file, and
what people use on private tables today.

python benchmarks/tables/run.py DATA --out FOLDER [--workers 2] [--only adult/gradient-descent ...]
[--cells FILE]

DATA holds adult_train.csv.gz, adult_test.csv.gz and german_credit.csv.gz. `peers.py` runs the
others, in environments of their own; they get the bounds of the schema too. Adult is tested on its
official test set, German credit in five folds. auto and PATE need public records: the seed selects
a tenth of the training records, which are then not private; their labels are not used.
`cells.py` describes the files of a run.
"""

import csv
import gzip
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold

import tacit
from tacit.models.table_columns import Bounded, Ordered
from tacit.models.table_schema import TableSchema

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))
import peers
from cells import Task, command

FOLDER = Path(__file__).resolve().parent
DELTA = 1e-5
NO_PRIVACY = "logistic regression without privacy"
METHODS: dict[str, Any] = {
    "feature-covariance": tacit.FeatureCovariance,
    "gradient-descent": tacit.GradientDescent,
    "least-squares": tacit.LeastSquares,
    "noisy-sum": tacit.NoisySumPrototypes,
    "auto": tacit.AutoPrototypes,
    "pate": tacit.PATE,
}
WITH_PUBLIC = ("auto", "pate")
EPSILONS = {"adult": (0.1, 0.5, 1.0, 4.0), "german_credit": (0.5, 1.0, 4.0)}
TITLES = {"adult": "Adult", "german_credit": "German credit"}
SEEDS = range(3)
FOLDS = 5


@dataclass(frozen=True)
class Cell:
    """One seed of a method: area under the ROC curve and accuracy on test records.

    On German credit they are means over the folds. `software` is what was run, with its version.
    """

    dataset: str
    method: str
    epsilon: float
    seed: int
    auc: float
    accuracy: float
    software: str
    commit: str
    date: str


@dataclass(frozen=True)
class Split:
    """Columns as texts, rows of the schema and labels, for training and testing."""

    columns: dict[str, list[str]]
    rows: np.ndarray
    labels: np.ndarray
    test_columns: dict[str, list[str]]
    test_rows: np.ndarray
    test_labels: np.ndarray


def tasks() -> Iterator[Task]:
    """Yield all tasks: data set, method, epsilon, seed."""
    for name, epsilons in EPSILONS.items():
        methods = [*METHODS, *peers.PEERS]
        if name == "german_credit":
            # a tenth of its 800 training records is too few to be public
            methods = [method for method in methods if method not in WITH_PUBLIC]
        yield from product([name], methods, epsilons, SEEDS)
        yield from product([name], [NO_PRIVACY], [np.inf], SEEDS)


def schema_file(name: str) -> Path:
    """Return the schema of a data set."""
    return FOLDER / f"{name}.yaml"


@lru_cache(maxsize=4)
def table(data: Path, file: str, name: str) -> tuple[dict[str, list[str]], np.ndarray, np.ndarray]:
    """Return the columns of the schema, as texts; the rows; and the labels, 0 or 1."""
    schema = TableSchema.of(schema_file(name))
    with gzip.open(data / f"{file}.csv.gz", "rt", encoding="utf-8", newline="") as source:
        records = list(csv.DictReader(source))
    columns = {column: [record[column] for record in records] for column in schema.columns}
    labels = np.array([int(record[str(schema.label)]) for record in records])
    return columns, tacit.TableEncoder(schema_file(name)).transform(columns), labels


def splits(data: Path, name: str, seed: int) -> Iterator[Split]:
    """Yield the official split of Adult, or the folds of German credit for a seed."""
    if name == "adult":
        yield Split(*table(data, "adult_train", name), *table(data, "adult_test", name))
        return
    whole = table(data, name, name)
    folds = KFold(FOLDS, shuffle=True, random_state=seed)
    for train, test in folds.split(whole[1]):
        yield Split(*selected(whole, train), *selected(whole, test))


def selected(
    whole: tuple[dict[str, list[str]], np.ndarray, np.ndarray], places: np.ndarray
) -> tuple[dict[str, list[str]], np.ndarray, np.ndarray]:
    """Return some records of a table."""
    columns, rows, labels = whole
    texts = {name: [values[place] for place in places] for name, values in columns.items()}
    return texts, rows[places], labels[places]


def of_tacit(split: Split, method: str, epsilon: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return scores of the second class and predictions of a method of this library."""
    x, y = split.rows, split.labels
    options: dict[str, Any] = {}
    if method in WITH_PUBLIC:
        order = np.random.default_rng(seed).permutation(len(x))
        public, private = np.split(order, [len(x) // 10])
        # records of few values repeat, so some public rows equal private ones
        options |= {"public": x[public], "allow_overlap": True}
        x, y = x[private], y[private]
    model = METHODS[method](
        f"epsilon={epsilon},delta={DELTA}",
        classes=2,
        noise="research",
        random_state=1000 + seed,
        **options,
    ).fit(x, y)
    return model.predict_proba(split.test_rows)[:, 1], model.predict(split.test_rows)


def of_peer(
    split: Split, name: str, method: str, epsilon: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return scores of the second class and predictions of a peer."""
    schema = TableSchema.of(schema_file(name))
    types = {}
    bounds = {}
    ranges_of_codes = []
    for column, part in schema.columns.items():
        ranges_of_codes.append((-1, 1) if isinstance(part, Ordered) else (0, part.width - 1))
        types[column] = "nominal"
        if isinstance(part, Bounded):
            types[column] = "continuous"
            bounds[column] = (part.low, part.high)
    task = {
        "epsilon": epsilon,
        "delta": DELTA,
        "seed": seed,
        "types": types,
        "bounds": bounds,
        "ranges_of_codes": ranges_of_codes,
        "norm": float(np.sqrt(len(schema.columns))),
    }

    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for part_name, columns in (("train", split.columns), ("test", split.test_columns)):
            with (folder / f"{part_name}.csv").open("w", encoding="utf-8", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(columns)
                writer.writerows(zip(*columns.values(), strict=True))
        np.savez(
            folder / "rows.npz",
            x=split.rows,
            y=split.labels,
            test_x=split.test_rows,
            codes=schema.coded(split.columns).codes,
            test_codes=schema.coded(split.test_columns).codes,
        )
        return peers.scores(method, folder, task)


def work(data: Path, task: Task) -> tuple[Cell, float]:
    """Compute a cell; return it and the seconds it took."""
    name, method, epsilon, seed = task
    start = time.perf_counter()
    aucs = []
    accuracies = []
    for number, split in enumerate(splits(data, name, seed)):
        noise_seed = FOLDS * seed + number
        if method == NO_PRIVACY:
            model = LogisticRegression(C=0.1, max_iter=1000).fit(split.rows, split.labels)
            scores = model.predict_proba(split.test_rows)[:, 1]
            predictions = model.predict(split.test_rows)
        elif method in peers.PEERS:
            scores, predictions = of_peer(split, name, method, epsilon, noise_seed)
        else:
            scores, predictions = of_tacit(split, method, epsilon, noise_seed)
        aucs.append(roc_auc_score(split.test_labels, scores))
        accuracies.append(np.mean(predictions == split.test_labels))

    cell = Cell(
        *task,
        auc=float(np.mean(aucs)),
        accuracy=float(np.mean(accuracies)),
        software=software_of(method),
        commit=commit(),
        date=datetime.now(UTC).date().isoformat(),
    )
    return cell, time.perf_counter() - start


def software_of(method: str) -> str:
    """Return the package that a method is from, with its version."""
    if method in peers.PEERS:
        return peers.PEERS[method][0].replace("==", " ")
    if method == NO_PRIVACY:
        return f"scikit-learn {sklearn.__version__}"
    return f"tacit {tacit.__version__}"


def commit() -> str:
    """Return the commit of this repository."""
    words = ["git", "-C", str(FOLDER), "rev-parse", "--short", "HEAD"]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


def markdown(cells: Sequence[Cell]) -> Iterator[str]:
    """Yield two tables for each data set: means over seeds with their standard errors."""
    for name, epsilons in EPSILONS.items():
        cells_of_data = [cell for cell in cells if cell.dataset == name]
        if not cells_of_data:
            continue
        for measure, words in (("auc", "area under the ROC curve"), ("accuracy", "accuracy")):
            yield f"**{TITLES[name]}, {words}**"
            yield ""
            yield f"| method | {' | '.join(f'epsilon {epsilon:g}' for epsilon in epsilons)} |"
            yield "|---" * (1 + len(epsilons)) + "|"
            for method in (*METHODS, *peers.PEERS, NO_PRIVACY):
                group = [cell for cell in cells_of_data if cell.method == method]
                if group:
                    yield line(method, group, epsilons, measure)
            yield ""


def line(method: str, cells: Sequence[Cell], epsilons: Sequence[float], measure: str) -> str:
    """Return a line of a table; a method without privacy has one figure for all epsilons."""
    texts = []
    for epsilon in epsilons:
        values = [getattr(cell, measure) for cell in cells if cell.epsilon in (epsilon, np.inf)]
        texts.append(with_error(values) if values else "")
    return f"| {method} | {' | '.join(texts)} |"


def with_error(values: Sequence[float]) -> str:
    """Return the mean over seeds and its standard error, if there is one."""
    mean = f"{np.mean(values):.3f}"
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
    return f"{mean} ± {error:.3f}" if error > 0 else mean


def main() -> None:
    """Run."""
    command("Classifiers of tables.", Cell, 4, tasks(), work, markdown)


if __name__ == "__main__":
    main()
