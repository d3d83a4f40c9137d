"""Forecasts: the accuracy to expect of a fit, from public facts and public rows alone.

No private record is read: pseudo-classes of public rows (`pseudo_classes.py`) stand in for the
private classes, and the real learner fits them with research noise (`simulated_fits.py`). What is
stated about the private records is declared, and so unprotected.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.compute.checkpoint import Checkpoint
from tacit.compute.engines import engine
from tacit.compute.progress import progress
from tacit.learners.common.base import PrivateClassifier
from tacit.learners.common.parameters import one_of, real, whole
from tacit.measure.enough import enough_records
from tacit.measure.forecast_arguments import (
    chosen_unit,
    finite_budgets,
    kinds_of_pseudo_classes,
    named_method,
    public_rows,
    spread_of_clusters,
    stated_task,
)
from tacit.measure.forecast_result import Forecast, ForecastRow, declared_facts, sentence_of
from tacit.measure.pseudo_classes import (
    Kind,
)
from tacit.measure.simulated_fits import (
    Accuracy,
    SimulatedFits,
    StatedTask,
    content_hash,
    rows_to_learn_from,
    without_privacy,
)
from tacit.models.rows import Floats
from tacit.privacy.budget import Budget
from tacit.privacy.unit import Unit

DELTA = 1e-6
BUDGETS = "epsilon=0.1,epsilon=0.5,epsilon=2"

# The search for enough records takes many fits, which share one seed.
SEEDS_OF_SEARCH = 1

# Two processes fit, unless the public rows have fewer entries: then the fits take less time than
# the start of processes.
ENTRIES_FOR_PROCESSES = 2**22
PROCESSES = 2


def forecast(
    method: str | PrivateClassifier,
    /,
    *,
    public: Any,
    classes: Any,
    records: int,
    imbalance: float = 1.0,
    budgets: str | Iterable[str | Budget] = BUDGETS,
    labels: Any = None,
    pseudo_classes: Literal["both", "labels", "clusters"] = "both",
    spread: float | None = None,
    unit: Unit | str | None = None,
    delta: float = DELTA,
    records_per_person: int = 1,
    seeds: int = 3,
    jobs: int | None = None,
    folder: str | Path | None = None,
    **parameters: Any,
) -> Forecast:
    """Forecast the accuracy of a fit from public facts and public rows, before it spends anything.

    Parameters
    ----------
    method : str or learner
        A name that `tacit fit` takes, or a learner, whose budget, classes, noise and public rows
        are set here.
    public : array of shape (m, d) or EmbeddingStore
        Public rows of the encoder that the private rows have. A store that a ledger covers is
        refused.
    classes : int or sequence
        The private classes, or how many there are; at least 2.
    records : int
        Private records of the largest class. Like all that is stated here it is declared and
        unprotected: state what is public, or a guess.
    imbalance : float, default=1
        Size of the largest class divided by that of the smallest; sizes in between fall
        geometrically.
    budgets : str or sequence of Budget, default="epsilon=0.1,epsilon=0.5,epsilon=2"
        Budgets with commas between them. An epsilon alone is pure; where the method takes no pure
        budget, it is at `delta`.
    labels : array of shape (m,), optional
        Classes of the public rows, by default those of a store. They need not be the private ones.
    pseudo_classes : {"both", "labels", "clusters"}, default="both"
        What stands in for the private classes: classes of the public rows, clusters of them, or
        both, where the forecast goes by the classes. It goes by clusters alone where the public
        rows have too few classes.
    spread : float, optional
        Share of the variance of unit rows that lies between the private classes, from 0 to 1, for
        clusters. By default that of the public classes, if there are enough, or else a guess.
    unit : Unit or str, optional
        Neighbouring relation of the budgets; by default the method's first.
    delta : float, default=1e-6
        Where epsilon is stated.
    records_per_person : int, default=1
        Under a unit per person, how many records each person has.
    seeds : int, default=3
        Fits of each budget, which differ in pseudo-classes, rows and noise.
    jobs : int, optional
        Processes that fit at the same time; by default two, or one where the public rows are few.
        The numbers do not depend on it.
    folder : str or Path, optional
        Where finished fits are kept, so that an interrupted forecast resumes.
    parameters
        Further parameters of the method, such as `k=5`.

    Returns
    -------
    Forecast
        With `table`, `enough_records`, `sentence` and `figure()`.

    Raises
    ------
    InputError
        If the method is not known or an argument is out of range, or there are too few public rows
        for that many classes.

    Notes
    -----
    No private record is read, and nothing is charged. docs/forecast.md compares forecasts with what
    was then measured.

    Examples
    --------
    >>> import numpy as np, tacit
    >>> rng = np.random.default_rng(0)
    >>> rows = np.repeat(rng.normal(size=(8, 16)), 40, axis=0) + rng.normal(0, 0.5, (320, 16))
    >>> found = tacit.forecast("noisy-sum", public=rows, labels=np.repeat(range(8), 40),
    ...                        classes=4, records=100, budgets="rho=0.1", seeds=1)
    >>> [(row.pseudo_classes, row.budget, row.balanced > 0.8) for row in found.table[:2]]
    [('labels', 'rho=0.1', True), ('labels', 'rho=inf', True)]
    """
    name, learner_class, parameters = named_method(method, parameters)
    rows, public_labels = public_rows(public, labels)
    task = stated_task(classes, records, imbalance, records_per_person)
    real("delta", delta, 1e-30, 1 - 1e-9)
    whole("seeds", seeds, 1, 1000)
    n_jobs = PROCESSES if rows.size >= ENTRIES_FOR_PROCESSES else 1
    if jobs is not None:
        n_jobs = whole("jobs", jobs, 1, 1000)

    one_of("pseudo_classes", pseudo_classes, ("both", "labels", "clusters"))
    kinds, notes = kinds_of_pseudo_classes(rows, public_labels, task, pseudo_classes)
    spread, spread_note = spread_of_clusters(rows, public_labels, task, spread)
    if "clusters" in kinds:
        notes += spread_note

    unit = chosen_unit(unit, learner_class)
    budget_list = finite_budgets(budgets, learner_class, delta)
    fits = SimulatedFits(
        learner_class=learner_class,
        parameters={"unit": unit, **parameters},
        task=task,
        rows=rows,
        labels=public_labels,
        spread=spread,
        checkpoint=_checkpoint(folder, name, parameters, unit, task, rows, public_labels),
    )
    epsilons = [_epsilon(fits, budget, delta) for budget in budget_list]
    # what is enough, and the sentence, go by the first kind
    basis = kinds[0]
    notes += _about_repeats(fits, basis)

    infinite = without_privacy(learner_class)
    _fit_all(fits, kinds, [*budget_list, infinite], seeds, n_jobs)
    table = _table(fits, kinds, [*budget_list, infinite], [*epsilons, math.inf], seeds)
    search_seeds = range(min(seeds, SEEDS_OF_SEARCH))

    def measure(budget: Budget, factor: float) -> Accuracy:
        return _mean([fits.accuracy(basis, budget, seed, factor) for seed in search_seeds])

    enough = enough_records(measure, budget_list, measure(infinite, 1.0), task)
    return Forecast(
        method=name,
        declared=declared_facts(task, unit),
        guesses=notes,
        delta=delta,
        table=table,
        basis=basis,
        enough_records=enough,
        sentence=sentence_of(table, basis, enough, task, delta),
    )


def _checkpoint(
    folder: Any,
    name: str,
    parameters: Mapping[str, Any],
    unit: Unit,
    task: StatedTask,
    rows: Floats,
    labels: NDArray[Any] | None,
) -> Checkpoint | None:
    """Return where finished fits are kept, by a key of all that decides them."""
    if folder is None:
        return None
    key = f"{name} {sorted(parameters.items())} {unit} {task} {content_hash([rows, labels])}"
    return Checkpoint(Path(folder), key)


def _epsilon(fits: SimulatedFits, budget: Budget, delta: float) -> float:
    """Return the epsilon that a fit promises, which also checks the budget and the parameters."""
    public = fits.rows if fits.learner_class.needs_public else None
    return fits.learner(budget, public).promise().epsilon(delta)


Group = tuple[Kind, int]


def _fit_all(
    fits: SimulatedFits, kinds: tuple[Kind, ...], budgets: list[Budget], seeds: int, jobs: int
) -> None:
    """Measure the fits of the table in `jobs` processes, and record their accuracies.

    The fits of a kind and a seed have the same pseudo-classes, so one process runs them.
    """
    groups = [(kind, seed) for kind in kinds for seed in range(seeds)]
    task = fits
    if jobs > 1:
        task = fits.without_results()
    results = engine("joblib", jobs).map(partial(_fit_group, task, budgets), groups)

    n_fits = len(groups) * len(budgets)
    with closing(results):
        for (kind, seed), accuracies in progress(
            results, "fits on pseudo-classes", n_fits, lambda result: len(result[1])
        ):
            for budget, accuracy in zip(budgets, accuracies, strict=True):
                fits.record(kind, budget, seed, accuracy)


def _fit_group(
    fits: SimulatedFits, budgets: list[Budget], group: Group
) -> tuple[Group, list[Accuracy]]:
    """Measure the fits of a kind and a seed at each budget."""
    kind, seed = group
    return group, [fits.accuracy(kind, budget, seed) for budget in budgets]


def _table(
    fits: SimulatedFits,
    kinds: tuple[Kind, ...],
    budgets: list[Budget],
    epsilons: list[float],
    seeds: int,
) -> tuple[ForecastRow, ...]:
    """Return a row for each kind of pseudo-classes and budget, from a fit for each seed."""
    rows = []
    for kind in kinds:
        for budget, epsilon in zip(budgets, epsilons, strict=True):
            accuracies = [fits.accuracy(kind, budget, seed) for seed in range(seeds)]
            mean = _mean(accuracies)
            sd = math.nan
            if seeds > 1:
                sd = float(np.std([accuracy.balanced for accuracy in accuracies], ddof=1))
            rows.append(ForecastRow(kind, str(budget), epsilon, *mean, sd))
    return tuple(rows)


def _mean(accuracies: list[Accuracy]) -> Accuracy:
    return Accuracy(*np.mean(accuracies, axis=0).tolist())


def _about_repeats(fits: SimulatedFits, kind: Kind) -> tuple[str, ...]:
    """Say where a public row stands for several records."""
    n_rows = rows_to_learn_from(fits.pseudo_classes(kind, 0).labels)
    if n_rows >= fits.task.records:
        return ()
    return (
        f"the median pseudo-class has {n_rows} public rows to learn from, fewer than"
        f" {fits.task.records} records, so each stands for several",
    )
