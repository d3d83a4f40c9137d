"""Private labels, from plain randomized response to priors from clusters: a table, a figure, and a
page with both.

python examples/label_privacy.py FOLDER [--mnist mnist.npz]

Without a file it uses the digits of scikit-learn and the default linear model, and takes seconds.
With MNIST it uses the network of the label-privacy notebook of "How to DP-fy ML" (needs torch),
adds the notebook's DP-SGD (needs Opacus), and takes ten minutes. The data sets are public, so the
script may show a number that is otherwise private: how many labels were flipped.
"""

import argparse
import io
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
from sklearn.datasets import load_digits

import tacit
from tacit.report.page import page, picture, text

SEED = 0
SHOWN = ("randomized response", "notebook, corrected", "tacit's choice", "labels as they are")


def digits() -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """No network, and images of 8 x 8 pixels as rows."""
    x, y = load_digits(return_X_y=True)
    parts = tacit.split(len(y), n_public=0, n_test=400, seed=SEED)
    return None, x[parts.private] + 0.5, y[parts.private], x[parts.test] + 0.5, y[parts.test]


def mnist(path: Path) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The notebook's network, and images of 28 x 28 pixels."""
    from torch import nn

    def network(shape: tuple[int, ...], n_classes: int) -> Any:
        return nn.Sequential(
            nn.ZeroPad2d(3),
            nn.Conv2d(shape[0], 16, 8, 2),
            nn.ReLU(),
            nn.MaxPool2d(2, 1),
            nn.Conv2d(16, 32, 4, 2),
            nn.ReLU(),
            nn.MaxPool2d(2, 1),
            nn.Flatten(),
            nn.Linear(512, 32),
            nn.ReLU(),
            nn.Linear(32, n_classes),
        )

    with np.load(path) as file:
        x, y, test_x, test_y = (file[name] for name in ("train_x", "train_y", "test_x", "test_y"))
    return network, x[:, None], y.astype(int), test_x[:, None], test_y.astype(int)


def methods(n: int) -> dict[str, dict[str, Any]]:
    """Parameters by name. The last step of the notebook states epsilon 1 and spends .1 + 1.95."""
    clusters = {"prior": "clusters", "n_clusters": min(200, n // 10)}
    return {
        "randomized response": {"budget": "epsilon=1"},
        "notebook, as printed: .1 for clusters, 1.95 for answers": {
            **clusters,
            "budget": "epsilon=2.05",
            "prior_share": 0.1 / 2.05,
        },
        "notebook, corrected: .1 for clusters, .9 for answers": {
            **clusters,
            "budget": "epsilon=1",
            "prior_share": 0.1,
        },
        "tacit's choice: more clusters, .4 for them, .6 for answers": {
            "prior": "clusters",
            "budget": "epsilon=1",
        },
        "two stages": {"budget": "epsilon=1", "stages": 2},
        "labels as they are": {"budget": "epsilon=inf"},
    }


def calibration(proba: np.ndarray, y: np.ndarray) -> list[tuple[float, float]]:
    """Mean confidence and accuracy, for each tenth of the confidence range."""
    sure, right = proba.max(axis=1), proba.argmax(axis=1) == y
    bins = np.minimum((10 * sure).astype(int), 9)
    return [
        (float(sure[bins == b].mean()), float(right[bins == b].mean()))
        for b in range(10)
        if np.any(bins == b)
    ]


def figure(counts: dict[str, np.ndarray], curves: dict[str, list[tuple[float, float]]]) -> bytes:
    """Draw class frequencies beside calibration, as a PNG."""
    bars = [
        {"of": of, "class": c, "labels": float(n)}
        for of, own in counts.items()
        for c, n in enumerate(own)
    ]
    points = [
        {"method": name, "sure": x, "right": y} for name, own in curves.items() for x, y in own
    ]
    ideal = [{"sure": 0, "right": 0}, {"sure": 1, "right": 1}]
    left = alt.Chart(alt.Data(values=bars), title="labels per class", width=400).mark_bar()
    x, y = alt.X("sure:Q", title="confidence"), alt.Y("right:Q", title="share that is right")
    line = alt.Chart(alt.Data(values=points), title="calibration", width=400).mark_line(point=True)
    line = line.encode(
        x, y, alt.Color("method:N", sort=list(curves)), alt.Shape("method:N", sort=list(curves))
    )
    dashes = (
        alt.Chart(alt.Data(values=ideal)).mark_line(color="grey", strokeDash=[4, 4]).encode(x, y)
    )
    of = {"field": "of", "type": "nominal", "title": "count", "sort": list(counts)}
    frequencies = left.encode(
        alt.X("class:O").axis(labelAngle=0), alt.Y("labels:Q"), alt.Color(**of), alt.XOffset(**of)
    )
    drawn = (
        (frequencies | (dashes + line))
        .resolve_scale(color="independent", shape="independent")
        .configure_legend(orient="bottom")
    )
    file = io.BytesIO()
    drawn.save(file, format="png", ppi=100)
    return file.getvalue()


def main(out: Path, file: Path | None = None) -> None:
    """Fit all methods, print the table, and write table, figure and page."""
    out.mkdir(parents=True, exist_ok=True)
    base, x, y, test_x, test_y = digits() if file is None else mnist(file)
    lines, curves = [], {}

    def add(name: str, model: Any, epsilon: str) -> None:
        model.fit(x, y)
        flipped = (
            f"{np.mean(model.noisy_labels_ != y):.1%}" if hasattr(model, "noisy_labels_") else ""
        )
        lines.append(
            f"| {name} | {epsilon} | {flipped} | {np.mean(model.predict(test_x) == test_y):.1%} |"
        )
        curves[name.split(":")[0]] = calibration(model.predict_proba(test_x), test_y)
        print(lines[-1], flush=True)

    training = None if base is None else {"epochs": 5, "batch_size": 250, "learning_rate": 2e-3}
    for name, given in methods(len(y)).items():
        model = tacit.LabelPrivate(base=base, classes=10, seed=SEED, training=training, **given)
        add(name, model, f"{model.promise().epsilon():.4g}")
    if base is not None:
        model = tacit.DPSGD("epsilon=1,delta=1e-5", base=base, classes=10)
        add(
            "DP-SGD, for whole records",
            model,
            f"{model.promise().epsilon(1e-5):.4g} at delta 1e-5, another unit",
        )
    answers = tacit.label_dp.randomize(y, classes=10, budget="epsilon=1")
    counts = {
        "true": np.bincount(y, minlength=10),
        "answers": np.bincount(answers.labels, minlength=10),
        "estimated from the answers": answers.randomizer.counts(answers.labels),
    }
    table = "\n".join(
        ["| method | true epsilon | labels flipped | test accuracy |", "|---|---|---|---|", *lines]
    )
    drawn = figure(counts, {name: curves[name] for name in SHOWN})
    sections = [
        ("Accuracy", text(table)),
        ("Answers", picture(drawn, "class counts and calibration")),
    ]
    (out / "table.md").write_text(table + "\n", encoding="utf-8")
    (out / "figure.png").write_bytes(drawn)
    (out / "page.html").write_text(page("Private labels", sections), encoding="utf-8")
    print(f"{out / 'page.html'}: the page")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Private labels.")
    parser.add_argument("out", type=Path, metavar="FOLDER")
    parser.add_argument("--mnist", type=Path)
    arguments = parser.parse_args()
    main(arguments.out, arguments.mnist)
