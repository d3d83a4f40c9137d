"""The constants of `auto`, chosen with one data set left out at a time.

The choice is measured on the data set that was left out.

python benchmarks/utility/constants.py EMBEDDINGS --names names.npz --out FOLDER [--workers 2]

Every constant is halved and doubled, alone, in all settings that have few cells
(`problems.SETTINGS`). For each data set, the factors that are best on the others are taken together
and measured on it. All figures are means of balanced and minority accuracy. Results are files in
FOLDER, so that an interrupted run resumes; they hold for the code that wrote them. The run ends by
writing FOLDER/constants.md. Noise is `research`, since nothing is released.
"""

import argparse
import json
import pydoc
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from joblib import Parallel, delayed
from methods import METHODS, NAMED, SETTING_EPSILONS
from problems import SETTINGS, problem

from tacit.compute.atomic import atomic_file
from tacit.models.metrics import evaluate

LEARNER = "tacit.learners.prototypes"
MODELS = "tacit.models"

# places of each constant, of `auto` without class names
CONSTANTS = {
    "`CLEAR`: the bar for gradient steps": (f"{LEARNER}.auto.CLEAR",),
    "`START`: share of the scale at which they start": (f"{LEARNER}.auto.START",),
    "`MOMENTS`: share of second moments": (f"{LEARNER}.refinement.MOMENTS",),
    "`RIDGE` about this start": (f"{LEARNER}.refinement.RIDGE",),
    "`LARGEST_RIDGE`": (f"{LEARNER}.refinement.LARGEST_RIDGE",),
    "`CLIP`: the largest clip norm": (f"{LEARNER}.refinement.CLIP",),
    "`BALANCE`: multiple of the log class shares": (f"{LEARNER}.refinement.BALANCE",),
    "`COUNT_SHARE`: share of the count column": (f"{LEARNER}.auto.COUNT_SHARE",),
    "`ROOT`, `STEEP`: weights of the axes": (
        f"{MODELS}.quadratic.ROOT",
        f"{MODELS}.quadratic.STEEP",
    ),
    "`SOFTNESS` of the density": (f"{MODELS}.quadratic.SOFTNESS",),
    "`WIDENING` of the density": (f"{MODELS}.quadratic.WIDENING",),
    "`DISTINCT`: the R at which the distinctness is one half": (f"{MODELS}.public_prior.DISTINCT",),
    "`PRIOR_CLASSES` that are trusted": (f"{MODELS}.posterior.PRIOR_CLASSES",),
    "`OFFSETS`: weight of the offsets": (f"{MODELS}.calibration.OFFSETS",),
    "`ABOUT_NEIGHBOURHOOD`: variance of the public families": (
        f"{MODELS}.posterior.ABOUT_NEIGHBOURHOOD",
    ),
    "`ELSEWHERE`: variance of the third family": (f"{MODELS}.posterior.ELSEWHERE",),
}

# those that matter with class names
NAME_CONSTANTS = {
    "`NAMES`: clarity at which names weigh a half": (f"{MODELS}.quadratic.NAMES",),
    "`ABOUT_NAME`: variance about a name": (f"{MODELS}.posterior.ABOUT_NAME",),
    "`LENGTH_MEAN`: expected length of names": (f"{MODELS}.name_length.LENGTH_MEAN",),
    "`LEAST_LENGTH`: least length of names": (f"{MODELS}.name_length.LEAST_LENGTH",),
    "`OFFSET_RIDGE` of the offsets": (f"{MODELS}.calibration.OFFSET_RIDGE",),
}
FACTORS = (1.0, 0.5, 2.0)

# factor of each constant that is changed, by name
Factors = Mapping[str, float]

# mean of balanced and minority accuracy, by data set
Figures = dict[str, float]

# figures of each constant at each factor
FiguresOfConstants = Mapping[str, Mapping[float, Figures]]


ALL_CONSTANTS = CONSTANTS | NAME_CONSTANTS


def cells(method: str) -> Iterator[tuple[str, int, float]]:
    """Yield settings, imbalance ratios and rough epsilons.

    With names there is no Tiny ImageNet, through which pictures get names.
    """
    for name, setting in SETTINGS.items():
        has_setting = method == "auto" or "tiny" not in setting.private
        if setting.few and has_setting:
            for ratio, rough in product(setting.ratios, SETTING_EPSILONS):
                yield name, ratio, rough


def data_set(setting: str) -> str:
    """Return the private data set of a setting."""
    return SETTINGS[setting].private.rpartition("/")[2]


def symbol(name: str) -> str:
    """Return the first symbol in the name of a constant."""
    return name.split("`")[1]


def figures(
    embeddings: Path,
    names: Path,
    out: Path,
    method: str,
    factors: Factors,
    only_data_set: str = "",
) -> Figures:
    """Return the mean figure of every data set, or of one, with constants times these factors.

    They come from a file in `out` if an earlier run has written it.
    """
    changes = [f"{symbol(name)}*{factor:g}" for name, factor in factors.items()]
    file = out / ("-".join([method.replace(" ", "_"), only_data_set, *changes]) + ".json")
    if not file.exists():
        with ExitStack() as stack:
            for name, factor in factors.items():
                for path in ALL_CONSTANTS[name]:
                    stack.enter_context(patch(path, factor * pydoc.locate(path)))
            means = fit_cells(embeddings, names, method, only_data_set)
        with atomic_file(file, force=True) as part:
            part.write_text(json.dumps(means))
        print(file.name, flush=True)
    return dict(json.loads(file.read_text()))


def fit_cells(embeddings: Path, names: Path, method: str, only_data_set: str) -> Figures:
    """Fit all cells of a method, and return the mean figure of each data set."""
    values: dict[str, list[float]] = defaultdict(list)
    for setting, ratio, rough in cells(method):
        name = data_set(setting)
        if only_data_set not in ("", name):
            continue
        data = problem(embeddings, setting, ratio, 0, names)
        for _, predicted in METHODS[method](data, 0, [rough]):
            scores = evaluate(data.test_y, predicted, np.arange(data.n_classes), data.sizes)
            values[name].append((scores.balanced + scores.minority) / 2)
    return {name: float(np.mean(values_of_set)) for name, values_of_set in values.items()}


def best_factors(figures_of_constants: FiguresOfConstants, left_out: str) -> Factors:
    """Return the factor of every constant that is best on all data sets but one.

    Best is the highest mean over data sets. Factors of 1 are omitted.
    """
    best = {}
    for name, figures_by_factor in figures_of_constants.items():
        means = {}
        for factor, figures_of_sets in figures_by_factor.items():
            others = [value for key, value in figures_of_sets.items() if key != left_out]
            means[factor] = np.mean(others)
        factor = max(FACTORS, key=means.__getitem__)
        if factor != 1:
            best[name] = factor
    return best


def report(
    method: str,
    figures_of_constants: FiguresOfConstants,
    figures_left_out: Mapping[str, Figures],
) -> Iterator[str]:
    """Yield both tables of a method.

    `figures_left_out` are those of each data set, with the factors that are best on the others.
    """
    base = next(iter(figures_of_constants.values()))[1.0]
    yield f"\n**`{method}`**\n"
    yield (
        "| constant | as it is | halved | doubled | left out, best on the others: as it is / halved"
        " / doubled |"
    )
    yield "|---|---|---|---|---|"
    for name, figures_by_factor in figures_of_constants.items():
        means = [f"{np.mean(list(figures_by_factor[factor].values())):.4f}" for factor in FACTORS]
        votes = [best_factors({name: figures_by_factor}, key).get(name, 1.0) for key in base]
        counts = [str(votes.count(factor)) for factor in FACTORS]
        yield f"| {name} | {' | '.join(means)} | {' / '.join(counts)} |"

    yield (
        "\n| data set left out | constants as they are | chosen on the others | of these, other"
        " than they are |"
    )
    yield "|---|---|---|---|"
    for key, figures_of_set in figures_left_out.items():
        factors = best_factors(figures_of_constants, key)
        changes = [f"`{symbol(name)}` x {factor:g}" for name, factor in factors.items()]
        yield (
            f"| {key} | {base[key]:.4f} | {figures_of_set[key]:.4f}"
            f" | {', '.join(changes) or 'none'} |"
        )
    mean_base = np.mean(list(base.values()))
    mean_left_out = np.mean([values[key] for key, values in figures_left_out.items()])
    yield f"| mean | {mean_base:.4f} | {mean_left_out:.4f} | |"


def main() -> None:
    """Read the command line, measure what is missing, and write the tables."""
    parser = argparse.ArgumentParser(
        description="The constants of auto, one data set left out at a time."
    )
    parser.add_argument("embeddings", type=Path)
    parser.add_argument(
        "--names", type=Path, required=True, help="rows of class names, written by names.py"
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)

    methods = {"auto": CONSTANTS, f"auto{NAMED}": NAME_CONSTANTS}
    # method and factors; the last of each method has all constants as they are
    tasks: list[tuple[str, Factors]] = []
    for method, constants in methods.items():
        tasks += [(method, {name: factor}) for name in constants for factor in FACTORS[1:]]
    tasks += [(method, {}) for method in methods]

    def jobs(tasks: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
        paths = (arguments.embeddings, arguments.names, arguments.out)
        return (delayed(figures)(*paths, *task) for task in tasks)

    lines = []
    with Parallel(arguments.workers) as parallel:
        figures_of_tasks = {}
        for (method, factors), value in zip(tasks, parallel(jobs(tasks)), strict=True):
            figures_of_tasks[method, *factors.items()] = value

        for method, constants in methods.items():
            base = figures_of_tasks[method,]
            figures_of_constants = {}
            for name in constants:
                figures_of_constants[name] = {
                    1.0: base,
                    0.5: figures_of_tasks[method, (name, 0.5)],
                    2.0: figures_of_tasks[method, (name, 2.0)],
                }
            left_out_tasks = [
                (method, best_factors(figures_of_constants, key), key) for key in base
            ]
            figures_left_out = parallel(jobs(left_out_tasks))
            lines += report(
                method, figures_of_constants, dict(zip(base, figures_left_out, strict=True))
            )
    with atomic_file(arguments.out / "constants.md", force=True) as part:
        part.write_text("\n".join(lines).strip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
