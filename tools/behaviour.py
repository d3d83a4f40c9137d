"""Hash what each method does: a fit with its guarantee and its card, a small sweep, and votings.

    python tools/behaviour.py > before
    python tools/behaviour.py --against before    # after a change that should change no behaviour

A fit has three lines: `learned` (its arrays and predictions), `guarantee` (the numbers that it
states) and `release` (its card and its document, without dates, versions and times). Hashes are of
exact bits, so compare runs on the same machine with the same libraries.
"""

# ruff: noqa: E402  # numbers of threads are set before numpy and numba read them

import argparse
import hashlib
import json
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"
os.environ["TQDM_DISABLE"] = "1"

import numpy as np
from numpy.typing import NDArray

import tacit
from tacit.learners.methods import METHODS, load

RNG = np.random.default_rng(7)
N_CLASSES = 4
WIDTH = 8
CENTRES = RNG.normal(size=(N_CLASSES, WIDTH)) * 2
Y = np.tile(np.arange(N_CLASSES), 90)
X = CENTRES[Y] + RNG.normal(size=(len(Y), WIDTH))
PUBLIC = np.tile(CENTRES, (20, 1)) + RNG.normal(size=(20 * N_CLASSES, WIDTH))
NAMES = CENTRES + RNG.normal(size=CENTRES.shape) / 2
TEST = np.tile(CENTRES, (10, 1)) + RNG.normal(size=(10 * N_CLASSES, WIDTH))
PERSONS = RNG.integers(0, 60, len(Y))  # about 6 records each

DELTAS = (0.0, 1e-9, 1e-6, 1e-5, 1e-3)
SHARED = {"classes": range(N_CLASSES), "noise": "research", "random_state": 3}
FEW_STEPS = {
    "gradient-descent": {"steps": 5},
    "global-adapt": {"steps": 5},
    "projected": {"steps": 5},
    "feature-covariance": {"epochs": 2},
    "newton": {"epochs": 2},
}
AMPLE = {"pate": {"budget": "epsilon=8,delta=1e-5", "n_teachers": 30}}

# settings of each method beside its defaults; parameters have the names of the command line
OF_GROUPS = {
    "budget": tacit.PATE().budget,
    "budgets": {"low": 5.0, "high": 10.0},
    "groups": np.where(np.arange(len(Y)) % 3, "low", "high"),
}
SETTINGS: dict[str, dict[str, dict[str, Any]]] = {
    "auto": {"names": {"names": NAMES}},
    "noisy-sum": {
        "public": {"public": PUBLIC},
        "approximate": {"budget": "epsilon=1,delta=1e-6"},
        "mu": {"budget": "mu=1"},
        "replace": {"unit": "replace"},
    },
    "coinpress": {
        "paper": {"steps": (5 / 64, 7 / 64, 52 / 64)},
        "counts": {"counts": 90},
        "euclidean": {"pooling": 2, "public": PUBLIC, "metric": "euclidean"},
    },
    "least-squares": {
        "intercept": {"alpha": 0.5, "intercept": 0.5},
        "public": {"public": PUBLIC, "normalise": False},
    },
    "gradient-descent": {
        "names": {"public": PUBLIC, "intercept": 0.5, "names": NAMES},
        "unbalanced": {"clip": 0.5, "balanced": False},
    },
    "global-adapt": {
        "names": {"public": PUBLIC, "names": NAMES},
        "unbalanced": {"threshold_share": 0.3, "balanced": False},
    },
    "projected": {
        "dimension": {"public": PUBLIC, "dimension": 2},
        "public": {"prototypes": "public", "public": PUBLIC},
    },
    "feature-covariance": {
        "names": {"public": PUBLIC, "names": NAMES},
        "unbalanced": {"damping": 5.0, "balanced": False},
    },
    "newton": {
        "public": {"public": PUBLIC, "intercept": 0.5},
        "apart": {"damping": 5.0, "pooled": False},
    },
    "public": {
        "five": {"k": 5},
        "pure": {"budget": "epsilon=1", "selection": "permute-and-flip"},
        "names": {"centre": True, "names": NAMES},
        "window": {"d_min": 0.5, "d_max": 1.5},
    },
    "names": {"adapt": {"public": PUBLIC, "adapt": True}},
    "pate": {
        "names": {"names": NAMES},
        "gnmax": {"aggregator": "gnmax", "sigma": 8.0, "n_queries": 40, "limits": [2.0, 4.0]},
        "persons": {"unit": "replace-person", "persons": PERSONS},
        "weighting": OF_GROUPS | {"collector": "weighting"},
        "vanishing": OF_GROUPS | {"collector": "vanishing"},
        "upsampling": OF_GROUPS | {"collector": "upsampling"},
        "data-dependent": {"aggregator": "gnmax", "sigma": 8.0, "stopping": "data-dependent"},
        "networks": {
            "n_teachers": 4,
            "teacher": "mlp",
            "student": "mlp",
            "aggregator": "gnmax",
            "sigma": 2.0,
        },
    },
    "label-private": {
        "names": {"names": NAMES},
        "two stages": {"randomizer": "rr", "stages": 2},
        "clusters": {
            "randomizer": "rr-with-prior",
            "prior": "clusters",
            "n_clusters": 5,
            "n_components": 4,
        },
        "unary": {"randomizer": "symmetric-unary"},
        "laplace": {"randomizer": "laplace"},
        "gaussian": {"randomizer": "gaussian", "budget": "rho=0.5"},
        "network": {"base": "mlp", "training": {"epochs": 2}},
        "persons": {"unit": "change-labels-of-person", "persons": PERSONS, "budget": "epsilon=8"},
    },
}
PER_PERSON = {"unit": "add-remove-person", "persons": PERSONS}
OF_FIT = ("persons", "groups")  # arguments of `fit`; all others are parameters
LEARNED = ("answers_", "consensus_", "noisy_labels_", "best_params_", "scores_", "readings_")

AGGREGATORS: dict[str, dict[str, Any]] = {
    "gnmax": {"sigma": 8.0},
    "confident": {"sigma": 8.0, "sigma1": 10.0, "threshold": 60.0},
    "interactive": {"sigma": 8.0, "sigma1": 10.0, "threshold": 40.0, "confidence": 0.9},
    "laplace": {"gamma": 0.1},
}
COLLECTORS = ("gnmax", "upsampling", "vanishing", "weighting")

PLAN = """
name: behaviour
data:
  - {name: digits, encoder: pixels, builtin: digits}
learners:
  - {name: sums, method: noisy-sum}
  - {name: centred, method: noisy-sum, public: [own]}
  - {name: rows, method: public, public: [own], grid: {k: [1, 5]}}
  - {name: mean, method: coinpress}
budgets: [rho=0.02, inf]
imbalance: [1, 10]
"""
MEASURED = (
    "method",
    "budget",
    "imbalance",
    "unit",
    "tuning",
    "status",
    "error",
    "accuracy",
    "balanced_accuracy",
    "minority_accuracy",
    "recall",
    "class_sizes",
    "n_train",
    "n_test",
    "width",
    "n_classes",
    "delta",
    "epsilon",
    "rho",
    "mu",
)


def main() -> None:
    """Print the hashes; with `--against`, exit with 1 if a part differs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--against", metavar="FILE", type=Path, help="output of an earlier run to compare with"
    )
    earlier_file = parser.parse_args().against
    earlier = None if earlier_file is None else hashes_in(earlier_file.read_text(encoding="utf-8"))

    warnings.simplefilter("ignore")
    hashes = {}
    for name, content in parts():
        hashes[name] = digest(content)
        print(f"{name:45} {hashes[name]}", flush=True)
    print(f"{'all':45} {digest(hashes)}")

    if earlier is not None:
        names = dict.fromkeys([*earlier, *hashes])
        differing = [name for name in names if earlier.get(name) != hashes.get(name)]
        if differing:
            sys.exit(f"{len(differing)} of {len(names)} parts differ: {', '.join(differing)}")


def hashes_in(text: str) -> dict[str, str]:
    """Return the hash of each part in the output of a run."""
    hashes = {}
    for line in text.splitlines():
        name, _, value = line.rpartition(" ")
        hashes[name.strip()] = value
    hashes.pop("all", None)
    return hashes


def parts() -> Iterator[tuple[str, Any]]:
    """Yield the name and the content of each part."""
    for name, learner, arguments in fits():
        learner.fit(X, Y, **arguments)
        yield f"{name}: learned", learned(learner)
        yield f"{name}: guarantee", [numbers(learner.guarantee_), numbers(learner.spent_)]
        if learner.released_ is not None:
            yield f"{name}: release", published(learner)
    yield "sweep", sweep()
    for aggregator in AGGREGATORS:
        for collector in COLLECTORS:
            answers = voting(aggregator, collector)
            cost = [numbers(answers.guarantee_), numbers(answers.spent_)]
            yield f"voting {aggregator} {collector}", [votes_bought(answers), cost]


def fits() -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Yield the name, the learner and the arguments of `fit` of each fit."""
    for method, path in METHODS.items():
        kind = load(path)
        needed = {"public": PUBLIC} if kind.needs_public else {}
        needed |= {"names": NAMES} if kind.needs_names else {}
        settings = {"": {}} | SETTINGS.get(method, {})
        if PER_PERSON["unit"] in kind.units:
            settings["persons"] = PER_PERSON
        for name, setting in settings.items():
            given = SHARED | needed | FEW_STEPS.get(method, {}) | AMPLE.get(method, {}) | setting
            arguments = {argument: given.pop(argument) for argument in OF_FIT if argument in given}
            yield f"{method} {name}".strip(), kind.of_flat(**given), arguments

    candidates = [{"k": 1}, {"k": 3}]
    estimator = tacit.PublicPrototypes(public=PUBLIC)
    yield "grid search", tacit.GridSearch(estimator, candidates, budget="rho=0.5", **SHARED), {}
    yield (
        "random search",
        tacit.RandomSearch(estimator, candidates, budget="epsilon=2", **SHARED),
        {},
    )
    yield "unpaid search", tacit.UnpaidSearch(estimator, candidates, budget="rho=0.5", **SHARED), {}
    network = tacit.DPSGD(
        "epsilon=2,delta=1e-5", base="linear", sampling_rate=0.1, epochs=1.0, **SHARED
    )
    yield "dp-sgd", network, {}


def learned(learner: Any) -> list[Any]:
    """Return what a fit learned, and what it predicts of the test rows."""
    arrays = {} if learner.released_ is None else dict(learner.released_.arrays)
    attributes = {name: getattr(learner, name) for name in LEARNED if hasattr(learner, name)}
    if "answers_" in attributes:
        attributes["answers_"] = votes_bought(attributes["answers_"])
    if "readings_" in attributes:
        attributes["readings_"] = [
            [
                reading.limit,
                reading.asked,
                reading.answered,
                reading.labels,
                numbers(reading.spent_),
            ]
            for reading in attributes["readings_"]
        ]
    return [arrays, attributes, learner.predict(TEST), learner.predict_proba(TEST)]


def votes_bought(answers: Any) -> list[Any]:
    """Return what a voting released, and its figures that depend on the votes."""
    released = [answers.labels, answers.paid, answers.asked, answers.answered, answers.sensitivity]
    costs = [[cost.asked, cost.answered, cost.epsilon] for cost in answers.costs]
    return [*released, costs, answers.epsilon_given_votes()]


def numbers(guarantee: Any) -> list[Any]:
    """Return the numbers that a guarantee states, in all and for each group."""
    groups = [None, *(name for name, _ in guarantee.groups)]
    epsilons = [[guarantee.epsilon(delta, group) for delta in DELTAS] for group in groups]
    return [str(guarantee.unit), groups, epsilons, guarantee.rho, guarantee.mu, guarantee.advantage]


def published(learner: Any) -> list[Any]:
    """Return the card and the document of a release, less versions and the hash of the arrays."""
    release = tacit.Release.of(learner, name="behaviour", date="2026-01-01")
    document = json.loads(release.document.model_dump_json())
    versions = document["implementation"].pop("versions")
    sha256 = document["contents"].pop("sha256")
    changing = {f"- {name}: {version}" for name, version in versions.items()} | {
        f"- sha256: {sha256}"
    }
    card = [line for line in release.card().splitlines() if line.strip() not in changing]
    return [document, card]


def sweep() -> list[Any]:
    """Return the results of a small plan, less names, times and hosts."""
    with tempfile.TemporaryDirectory() as folder:
        plan = Path(folder) / "plan.yaml"
        plan.write_text(PLAN, encoding="utf-8")
        results = tacit.sweep(plan, Path(folder) / "runs")
    rows = [{name: getattr(result, name) for name in MEASURED} for result in results]
    return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))


def voting(aggregator: str, collector: str) -> Any:
    """Return the answers to simulated votes of 100 teachers whose records have two budgets."""
    rng = np.random.default_rng(11)
    n_queries = 60
    n_teachers = 100
    arguments: dict[str, Any] = {"shares": {"low": 0.6, "high": 0.4}}
    if collector == "upsampling":
        arguments = {"copies": {"low": 1, "high": 2}, "shares": {"low": 0.6, "high": 0.4}}
    truth = rng.integers(0, N_CLASSES, (n_queries, 1))
    votes = np.where(
        rng.random((n_queries, n_teachers)) < 0.8,
        truth,
        rng.integers(0, N_CLASSES, (1, n_teachers)),
    )
    if aggregator == "interactive":
        arguments["student_scores"] = rng.dirichlet(np.ones(N_CLASSES), n_queries)
    return tacit.pate.aggregate(
        votes,
        classes=N_CLASSES,
        aggregator=aggregator,
        collector=collector,
        budgets={"low": 5.0, "high": 10.0},
        noise="research",
        random_state=5,
        **AGGREGATORS[aggregator],
        **arguments,
    )


def digest(content: Any) -> str:
    """Return a short hash of plain values and arrays."""
    hasher = hashlib.sha256()
    feed(content, hasher.update)
    return hasher.hexdigest()[:16]


def feed(value: Any, update: Callable[[bytes], None]) -> None:
    """Pass the bits of a value to a hash, with its type, its shape and its order."""
    if isinstance(value, np.ndarray):
        feed_array(value, update)
    elif isinstance(value, Mapping):
        update(f"mapping of {len(value)}:".encode())
        for key in sorted(value, key=str):
            update(f"{key}=".encode())
            feed(value[key], update)
    elif isinstance(value, list | tuple):
        update(f"list of {len(value)}:".encode())
        for entry in value:
            feed(entry, update)
    elif isinstance(value, bool | np.bool_):
        update(f"{bool(value)};".encode())
    elif isinstance(value, int | np.integer):
        update(f"{int(value)};".encode())
    elif isinstance(value, float | np.floating):
        update(f"{float(value).hex()};".encode())
    elif isinstance(value, str | None):
        update(f"{value!r};".encode())
    else:
        raise TypeError(f"{type(value).__name__} has no hash here; pass plain values and arrays")


def feed_array(array: NDArray[Any], update: Callable[[bytes], None]) -> None:
    """Pass the bits of an array to a hash."""
    if array.dtype == object:
        feed(array.tolist(), update)
        return
    update(f"array {array.dtype.str} {array.shape}:".encode())
    update(np.ascontiguousarray(array).tobytes())


if __name__ == "__main__":
    main()
