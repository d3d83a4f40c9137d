"""Classifiers that people use on private tables today, each in an environment of its own.

python benchmarks/tables/peers.py FOLDER

run.py calls `scores`, which makes the environment and runs this file in it. FOLDER then holds
task.json, train.csv and test.csv (the columns of the schema), and rows.npz (the same records as
rows of `TableEncoder`, and as codes of the schema); the file scores.npz is written there. All
bounds are those of the schema, so that no peer reads private records for them.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

EBM = "DP-EBM (interpret)"
LOGISTIC = "logistic regression (diffprivlib)"
FOREST = "random forest (diffprivlib)"

# versions that run together; diffprivlib imports names that later releases of scikit-learn lack
INTERPRET = ("interpret-core==0.7.8",)
DIFFPRIVLIB = ("diffprivlib==0.6.6", "scikit-learn==1.5.2", "pandas")
PEERS = {EBM: INTERPRET, LOGISTIC: DIFFPRIVLIB, FOREST: DIFFPRIVLIB}


def python_of(method: str) -> Path:
    """Return the Python of a peer's environment, which is made on first use.

    Environments lie in the user's cache folder.
    """
    requirements = PEERS[method]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "tacit-benchmarks" / requirements[0].replace("==", "-")
    python = folder / "bin" / "python"
    complete = folder / "complete"
    if not complete.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet", *requirements]
        subprocess.run(install, check=True)
        complete.touch()
    return python


def scores(method: str, folder: Path, task: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return the scores of the second class and the predictions for the test records."""
    (folder / "task.json").write_text(json.dumps(task | {"method": method}), encoding="utf-8")
    subprocess.run([str(python_of(method)), __file__, str(folder)], check=True)
    with np.load(folder / "scores.npz") as file:
        return file["scores"], file["predictions"]


def explainable_boosting(folder: Path, task: dict[str, Any]) -> tuple[Any, Any]:
    """Fit DP-EBM on the columns as they are; return the model and the test records."""
    import pandas as pd
    from interpret.privacy import DPExplainableBoostingClassifier

    types = {name: str for name, kind in task["types"].items() if kind == "nominal"}
    train, test = (
        pd.read_csv(folder / f"{part}.csv", dtype=types, keep_default_na=False)
        for part in ("train", "test")
    )
    model = DPExplainableBoostingClassifier(
        feature_types=list(task["types"].values()),
        epsilon=task["epsilon"],
        delta=task["delta"],
        privacy_bounds={name: tuple(bounds) for name, bounds in task["bounds"].items()},
        random_state=task["seed"],
        n_jobs=1,
    )
    with np.load(folder / "rows.npz") as file:
        return model.fit(train, file["y"]), test


def logistic_regression(folder: Path, task: dict[str, Any]) -> tuple[Any, Any]:
    """Fit diffprivlib's logistic regression on rows of the schema; return it and the test rows."""
    from diffprivlib.models import LogisticRegression

    model = LogisticRegression(
        epsilon=task["epsilon"],
        data_norm=task["norm"],
        max_iter=1000,
        random_state=task["seed"],
    )
    with np.load(folder / "rows.npz") as file:
        # norms of rows are compared with data_norm, so they are computed in float64
        return model.fit(file["x"].astype(float), file["y"]), file["test_x"].astype(float)


def random_forest(folder: Path, task: dict[str, Any]) -> tuple[Any, Any]:
    """Fit diffprivlib's random forest on codes; return it and the codes of the test records.

    A code is the number of a level or a cell. The forest draws its splits at random, and a random
    split of a one-hot entry says little.
    """
    from diffprivlib.models import RandomForestClassifier

    low, high = np.array(task["ranges_of_codes"], float).T
    model = RandomForestClassifier(
        epsilon=task["epsilon"], bounds=(low, high), classes=[0, 1], random_state=task["seed"]
    )
    with np.load(folder / "rows.npz") as file:
        # a missing number of an ordered column counts as the lowest
        codes, test_codes = (
            np.nan_to_num(file[name].astype(float), nan=-1) for name in ("codes", "test_codes")
        )
        return model.fit(codes, file["y"]), test_codes


FITS = {EBM: explainable_boosting, LOGISTIC: logistic_regression, FOREST: random_forest}


def main(folder: Path) -> None:
    """Fit the peer of a task, and write its scores of the test records."""
    task = json.loads((folder / "task.json").read_text(encoding="utf-8"))
    model, records = FITS[task["method"]](folder, task)
    second_class = model.predict_proba(records)[:, 1]
    np.savez(folder / "scores.npz", scores=second_class, predictions=model.predict(records))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
