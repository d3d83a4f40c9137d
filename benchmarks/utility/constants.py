"""The constants of `auto`, chosen with one data set left out at a time, and what the choice gives
on that data set.

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
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from unittest.mock import patch

import numpy as np
from joblib import Parallel, delayed
from methods import METHODS, NAMED, SETTING_EPSILONS
from problems import SETTINGS, problem

from tacit.compute.atomic import atomic_file
from tacit.models.metrics import evaluate

LEARNER, MODELS = "tacit.learners.prototypes", "tacit.models"
CONSTANTS = {
    "`CLEAR`: the bar for gradient steps": (f"{LEARNER}.auto.CLEAR",),
    "`START`: share of the scale at which they start": (f"{LEARNER}.auto.START",),
    "`MOMENTS`: share of second moments": (f"{LEARNER}.refinement.MOMENTS",),
    "`RIDGE` about this start": (f"{LEARNER}.refinement.RIDGE",),
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
OF_NAMES = {
    "`NAMES`: clarity at which names weigh a half": (f"{MODELS}.quadratic.NAMES",),
    "`ABOUT_NAME`: variance about a name": (f"{MODELS}.posterior.ABOUT_NAME",),
    "`LENGTH_MEAN`: expected length of names": (f"{MODELS}.named_posterior.LENGTH_MEAN",),
    "`LEAST_LENGTH`: least length of names": (f"{MODELS}.named_posterior.LEAST_LENGTH",),
    "`LEAST_SHARE`: least share of the class means": (f"{MODELS}.named_posterior.LEAST_SHARE",),
    "`OFFSET_RIDGE` of the offsets": (f"{MODELS}.calibration.OFFSET_RIDGE",),
}
FACTORS = (1.0, 0.5, 2.0)
Factors = Mapping[str, float]
Figures = dict[str, float]


def cells(method: str) -> Iterator[tuple[str, int, float]]:
    """Settings, imbalance ratios and rough epsilons; Tiny ImageNet, through which pictures get
    names, has none.
    """
    for name, setting in SETTINGS.items():
        if setting.few and (method == "auto" or "tiny" not in setting.private):
            yield from (
                (name, ratio, rough) for ratio in setting.ratios for rough in SETTING_EPSILONS
            )


def data_set(setting: str) -> str:
    """The private data set of a setting."""
    return SETTINGS[setting].private.rpartition("/")[2]


def symbol(name: str) -> str:
    """The first symbol in the name of a constant."""
    return name.split("`")[1]


def measured(
    embeddings: Path, names: Path, out: Path, method: str, factors: Factors, only: str = ""
) -> Figures:
    """The mean figure of every data set, or of `only` one, with constants times these factors."""
    changed = [f"{symbol(name)}*{factor:g}" for name, factor in factors.items()]
    file = out / ("-".join([method.replace(" ", "_"), only, *changed]) + ".json")
    if not file.exists():
        found: dict[str, list[float]] = {}
        with ExitStack() as stack:
            for name, factor in factors.items():
                for path in (CONSTANTS | OF_NAMES)[name]:
                    stack.enter_context(patch(path, factor * pydoc.locate(path)))
            for setting, ratio, rough in cells(method):
                if only in ("", data_set(setting)):
                    data = problem(embeddings, setting, ratio, 0, names)
                    for _, predicted in METHODS[method](data, 0, [rough]):
                        scores = evaluate(
                            data.test_y, predicted, np.arange(data.n_classes), data.sizes
                        )
                        found.setdefault(data_set(setting), []).append(
                            (scores.balanced + scores.minority) / 2
                        )
        with atomic_file(file, force=True) as part:
            part.write_text(
                json.dumps({name: float(np.mean(values)) for name, values in found.items()})
            )
        print(file.name, flush=True)
    return dict(json.loads(file.read_text()))


def chosen(of: Mapping[str, Mapping[float, Figures]], left_out: str) -> Factors:
    """The factor of every constant that is best on the mean of all data sets but one, except
    factors of 1.
    """
    best = {}
    for name, by_factor in of.items():
        means = {
            f: np.mean([value for key, value in got.items() if key != left_out])
            for f, got in by_factor.items()
        }
        best[name] = max(FACTORS, key=means.__getitem__)
    return {name: factor for name, factor in best.items() if factor != 1}


def report(
    method: str, of: Mapping[str, Mapping[float, Figures]], left_out: Mapping[str, Figures]
) -> Iterator[str]:
    """Both tables of a method."""
    base = next(iter(of.values()))[1.0]
    yield f"\n**`{method}`**\n"
    yield (
        "| constant | as it is | halved | doubled | left out, best on the others: as it is / halved"
        " / doubled |"
    )
    yield "|---|---|---|---|---|"
    for name, by_factor in of.items():
        means = [f"{np.mean(list(by_factor[f].values())):.4f}" for f in FACTORS]
        votes = [chosen({name: by_factor}, one).get(name, 1.0) for one in base]
        yield (
            f"| {name} | {' | '.join(means)} | {' / '.join(str(votes.count(f)) for f in FACTORS)} |"
        )
    yield (
        "\n| data set left out | constants as they are | chosen on the others | of these, other"
        " than they are |"
    )
    yield "|---|---|---|---|"
    for one, got in left_out.items():
        changed = [f"`{symbol(name)}` x {factor:g}" for name, factor in chosen(of, one).items()]
        yield f"| {one} | {base[one]:.4f} | {got[one]:.4f} | {', '.join(changed) or 'none'} |"
    means = [
        float(np.mean([got[one] for one, got in left_out.items()])),
        float(np.mean(list(base.values()))),
    ]
    yield f"| mean | {means[1]:.4f} | {means[0]:.4f} | |"


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
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    place = (given.embeddings, given.names, given.out)
    methods = {"auto": CONSTANTS, f"auto{NAMED}": OF_NAMES}
    todo = [(m, n, f) for m, constants in methods.items() for n in constants for f in FACTORS[1:]]
    todo += [(m, None, 1.0) for m in methods]
    with Parallel(given.workers) as parallel:
        got = parallel(delayed(measured)(*place, m, {n: f} if n else {}) for m, n, f in todo)
        by_task = dict(zip(todo, got, strict=True))
        lines = []
        for method, constants in methods.items():
            base = by_task[method, None, 1.0]
            of = {
                name: {f: by_task.get((method, name, f), base) for f in FACTORS}
                for name in constants
            }
            jobs = [(one, chosen(of, one)) for one in base]
            figures = parallel(
                delayed(measured)(*place, method, factors, one) for one, factors in jobs
            )
            lines += report(method, of, dict(zip(base, figures, strict=True)))
    with atomic_file(given.out / "constants.md", force=True) as part:
        part.write_text("\n".join(lines).strip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
