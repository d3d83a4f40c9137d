"""Private labels, from plain randomized response to priors from clusters.

The script writes a table, a figure, and a page with both.

python examples/label_privacy.py FOLDER [--mnist mnist.npz]

Without a file it uses the digits of scikit-learn and the default linear model, and takes seconds.
With MNIST it uses the network of the label-privacy notebook of "How to DP-fy ML" (needs torch),
adds the notebook's DP-SGD (needs Opacus), and takes ten minutes. The data sets are public, so the
script may show a number that is otherwise private: how many labels were flipped.
"""

import argparse
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
from sklearn.datasets import load_digits

import tacit
from tacit.report.page import page, picture, text

SEED = 0

# methods whose calibration the figure shows
IN_FIGURE = ("randomized response", "notebook, corrected", "more clusters", "labels as they are")


@dataclass(frozen=True)
class Problem:
    """Training and test images with their labels, and the network that learns from them, if any."""

    x: np.ndarray
    y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray
    network: Any = None


def digits() -> Problem:
    """Return images of 8 x 8 pixels as rows, without a network."""
    x, y = load_digits(return_X_y=True)
    x = x + 0.5
    parts = tacit.split(len(y), n_public=0, n_test=400, seed=SEED)
    return Problem(x[parts.private], y[parts.private], x[parts.test], y[parts.test])


def mnist(path: Path) -> Problem:
    """Return images of 28 x 28 pixels, and the notebook's network."""
    with np.load(path) as file:
        return Problem(
            x=file["train_x"][:, None],
            y=file["train_y"].astype(int),
            test_x=file["test_x"][:, None],
            test_y=file["test_y"].astype(int),
            network=notebook_network,
        )


def notebook_network(shape: tuple[int, ...], n_classes: int) -> Any:
    """Return the notebook's network for images of this shape: channels, height, width."""
    from torch import nn

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


def methods(n: int) -> dict[str, dict[str, Any]]:
    """Return the parameters of each method, for n records.

    Every row names its randomizer, so that no default decides what the table shows. The last step
    of the notebook states epsilon 1, and spends .1 + 1.95.
    """
    plain = {"randomizer": "rr"}
    with_prior = {"randomizer": "rr-with-prior"}
    clusters = {**with_prior, "prior": "clusters", "n_clusters": min(200, n // 10)}
    return {
        "randomized response": {**plain, "budget": "epsilon=1"},
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
        "more clusters: .4 for them, .6 for answers": {
            **with_prior,
            "prior": "clusters",
            "prior_share": 0.4,
            "budget": "epsilon=1",
        },
        "two stages": {**with_prior, "budget": "epsilon=1", "stages": 2},
        "blocks of classes": {"randomizer": "blocks", "budget": "epsilon=1"},
        "labels as they are": {**plain, "budget": "epsilon=inf"},
    }


def calibration(proba: np.ndarray, y: np.ndarray) -> list[tuple[float, float]]:
    """Return mean confidence and accuracy, for each tenth of the confidence range."""
    confidence = proba.max(axis=1)
    correct = proba.argmax(axis=1) == y
    tenths = np.minimum((10 * confidence).astype(int), 9)

    curve = []
    for tenth in np.unique(tenths):
        rows = tenths == tenth
        curve.append((float(confidence[rows].mean()), float(correct[rows].mean())))
    return curve


def figure(counts: dict[str, np.ndarray], curves: dict[str, list[tuple[float, float]]]) -> bytes:
    """Draw class frequencies beside calibration, as a PNG."""
    both = frequency_chart(counts) | calibration_chart(curves)
    both = both.resolve_scale(color="independent", shape="independent")
    both = both.configure_legend(orient="bottom")
    file = io.BytesIO()
    both.save(file, format="png", ppi=100)
    return file.getvalue()


def frequency_chart(counts: dict[str, np.ndarray]) -> alt.Chart:
    """Return bars of the labels per class, side by side for each kind of count."""
    bars = []
    for kind, class_counts in counts.items():
        for c, n_labels in enumerate(class_counts):
            bars.append({"count": kind, "class": c, "labels": float(n_labels)})

    chart = alt.Chart(alt.Data(values=bars), title="labels per class", width=400).mark_bar()
    kinds = {"field": "count", "type": "nominal", "title": "count", "sort": list(counts)}
    return chart.encode(
        alt.X("class:O").axis(labelAngle=0),
        alt.Y("labels:Q"),
        alt.Color(**kinds),
        alt.XOffset(**kinds),
    )


def calibration_chart(curves: dict[str, list[tuple[float, float]]]) -> alt.LayerChart:
    """Return a line for each method, and a dashed line where confidence equals accuracy."""
    points = []
    for method, curve in curves.items():
        for confidence, accuracy in curve:
            points.append({"method": method, "confidence": confidence, "accuracy": accuracy})
    ideal = [{"confidence": 0, "accuracy": 0}, {"confidence": 1, "accuracy": 1}]

    x = alt.X("confidence:Q", title="confidence")
    y = alt.Y("accuracy:Q", title="share that is right")
    lines = alt.Chart(alt.Data(values=points), title="calibration", width=400)
    order = list(curves)
    colours = alt.Color("method:N", sort=order)
    shapes = alt.Shape("method:N", sort=order, legend=None)  # the legend of colours names them
    lines = lines.mark_line(point=True).encode(x, y, colours, shapes)
    diagonal = alt.Chart(alt.Data(values=ideal)).mark_line(color="grey", strokeDash=[4, 4])
    return diagonal.encode(x, y) + lines


def compare(problem: Problem) -> tuple[str, dict[str, list[tuple[float, float]]]]:
    """Fit all methods; return the table, and the calibration of each method."""
    lines = ["| method | true epsilon | labels flipped | test accuracy |", "|---|---|---|---|"]
    curves = {}

    def add(name: str, model: Any, epsilon: str) -> None:
        """Fit a model and add its line and its curve."""
        model.fit(problem.x, problem.y)

        # DP-SGD flips no label, and an answer of `blocks` is the number of a block
        flipped = ""
        if isinstance(model, tacit.LabelPrivate) and model.randomizer != "blocks":
            flipped = f"{np.mean(model.noisy_labels_ != problem.y):.1%}"
        accuracy = np.mean(model.predict(problem.test_x) == problem.test_y)
        lines.append(f"| {name} | {epsilon} | {flipped} | {accuracy:.1%} |")
        print(lines[-1], flush=True)

        short_name = name.partition(":")[0]
        curves[short_name] = calibration(model.predict_proba(problem.test_x), problem.test_y)

    training = None
    if problem.network is not None:
        training = {"epochs": 5, "batch_size": 250, "learning_rate": 2e-3}
    for name, parameters in methods(len(problem.y)).items():
        model = tacit.LabelPrivate(
            base=problem.network, classes=10, seed=SEED, training=training, **parameters
        )
        add(name, model, f"{model.promise().epsilon():.4g}")

    if problem.network is not None:
        model = tacit.DPSGD("epsilon=1,delta=1e-5", base=problem.network, classes=10)
        epsilon = model.promise().epsilon(1e-5)
        add("DP-SGD, for whole records", model, f"{epsilon:.4g} at delta 1e-5, another unit")
    return "\n".join(lines), curves


def count_labels(y: np.ndarray) -> dict[str, np.ndarray]:
    """Return class counts: true, of randomized answers, and estimated from these answers."""
    answers = tacit.label_dp.randomize(y, classes=10, randomizer="rr", budget="epsilon=1")
    return {
        "true": np.bincount(y, minlength=10),
        "answers": np.bincount(answers.labels, minlength=10),
        "estimated from the answers": answers.randomizer.counts(answers.labels),
    }


def main(out: Path, file: Path | None = None) -> None:
    """Fit all methods, print the table, and write table, figure and page."""
    out.mkdir(parents=True, exist_ok=True)
    problem = digits() if file is None else mnist(file)
    table, curves = compare(problem)
    png = figure(count_labels(problem.y), {name: curves[name] for name in IN_FIGURE})

    sections = [
        ("Accuracy", text(table)),
        ("Answers", picture(png, "class counts and calibration")),
    ]
    (out / "table.md").write_text(table + "\n", encoding="utf-8")
    (out / "figure.png").write_bytes(png)
    (out / "page.html").write_text(page("Private labels", sections), encoding="utf-8")
    print(f"{out / 'page.html'}: the page")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Private labels.")
    parser.add_argument("out", type=Path, metavar="FOLDER")
    parser.add_argument("--mnist", type=Path)
    arguments = parser.parse_args()
    main(arguments.out, arguments.mnist)
