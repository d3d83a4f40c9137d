"""The utility table on a small made-up problem: it runs, resumes, and says what its cells say."""

import json
import math
import pydoc
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "utility"


@pytest.fixture
def utility(monkeypatch):
    """The benchmark's modules, imported as its command imports them."""
    monkeypatch.syspath_prepend(str(FOLDER))
    import methods
    import problems
    import run
    import table

    yield methods, problems, run, table
    for name in (
        "constants",
        "methods",
        "pictures",
        "problems",
        "rivals",
        "routes",
        "run",
        "table",
    ):
        sys.modules.pop(name, None)


@pytest.fixture
def embeddings(tmp_path):
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(10, 8))
    for store, n in (("cifar10", 400), ("tiny_imagenet", 300)):
        folder = tmp_path / "data" / "mobilenetv2-in1k-160" / store
        folder.mkdir(parents=True)
        for split, rows in (("train", n), ("test", 100)):
            y = np.arange(rows) % 10
            np.save(
                folder / f"{split}_x.npy",
                (centres[y] + rng.normal(size=(rows, 8))).astype(np.float16),
            )
            np.save(folder / f"{split}_y.npy", y.astype(np.int16))
    return tmp_path / "data"


@pytest.mark.thorough
def test_cells_are_computed_once_and_reported(utility, embeddings, tmp_path, monkeypatch, capsys):
    _, _, run, _ = utility
    out = tmp_path / "out"
    words = [
        str(embeddings),
        "--out",
        str(out),
        "--workers",
        "1",
        "--only",
        "cifar10/10/noisy-sum",
        "cifar10/10/auto",
    ]
    monkeypatch.setattr(sys, "argv", ["run.py", *words])
    run.main()
    cells = sorted((out / "cells").glob("*.json"))
    assert len(cells) == 2 * 10 * 5
    assert "in " in capsys.readouterr().out
    before = {file: file.stat().st_mtime_ns for file in cells}
    cells[0].unlink()
    run.main()
    after = {file: file.stat().st_mtime_ns for file in cells}
    assert [file for file in cells if before[file] != after[file]] == [cells[0]]
    text = (out / "table.md").read_text(encoding="utf-8")
    assert "### cifar10, imbalance 10" in text
    assert text.count("\n| ") == 11
    again = tmp_path / "again"
    monkeypatch.setattr(
        sys,
        "argv",
        ["run.py", *words[:2], str(again), "--report", "--cells", str(out / "cells.csv")],
    )
    run.main()
    assert (again / "table.md").read_text() == (out / "table.md").read_text()
    assert "<img" in (out / "page.html").read_text(encoding="utf-8")


def test_cells_of_data_sets_with_a_comma_are_read_again(utility, tmp_path):
    _, _, run, table = utility
    cells = [
        table.Cell("agnews, 1,200 own rows", 10, 1, "auto", 0.5, 0.75, 0.5),
        table.Cell("sst2", 1, 0, "names", 2.0, 0.5, 0.25),
    ]
    (tmp_path / "cells.csv").write_text("\n".join(run.csv_lines(cells)) + "\n", encoding="utf-8")
    (tmp_path / "cells").mkdir()
    run.unpack(tmp_path, tmp_path / "cells.csv")
    assert run.read_cells(tmp_path) == cells


def test_routes_are_those_of_auto_and_its_constants(utility, embeddings, monkeypatch):
    import routes

    from tacit.learners.prototypes.auto import CLEAR

    monkeypatch.setattr(
        routes, "STORES", {"mobilenetv2-in1k-160/cifar10": ("mobilenetv2-in1k-160/tiny_imagenet",)}
    )
    monkeypatch.setattr(routes, "CLASSES", (8, 10))
    monkeypatch.setattr(routes, "RATIOS", (1, 4))
    problems = [routes.random_problem(embeddings, number) for number in range(6)]
    assert {len(np.unique(data.y)) for data, _ in problems} <= {8, 9, 10}
    data, rough = problems[0]
    fit = {route: routes.fit_route(data, rough, 0, route) for route in routes.ROUTES}
    settings = {
        "public": data.public,
        "classes": data.n_classes,
        "noise": "research",
        "random_state": 1000,
    }
    model = routes.tacit.AutoPrototypes(routes.budget(rough), **settings).fit(data.x, data.y)
    route = {1.0: "sums", 0.5: "half", 0.25: "quarter"}[model.spent_on_sums_]
    assert routes.route_at(fit, CLEAR) == route
    scores = routes.evaluate(
        data.test_y, model.predict(data.test_x), np.arange(data.n_classes), data.sizes
    )
    assert fit[route]["accuracies"] == [100 * scores.balanced, 100 * scores.minority]
    assert routes.route_at(fit, 0.0) == "quarter"
    assert routes.route_at(fit, 1e9) == "sums"
    lines = list(
        routes.report([{"n_classes": data.n_classes, "fits": [fit]}, {"n_classes": 0, "fits": []}])
    )
    assert lines[0] == "1 fits of 1 problems.\n"
    assert len(lines) == 13


def test_rivals_are_compared_with_the_best_of_them(utility, tmp_path):
    import rivals

    def problem(ratio, auto, best):
        others = {name: [[50.0, 40.0]] * 3 for name in rivals.IN_FEW}
        accuracies = others | {"auto": [auto] * 3, "least-squares": best}
        return {
            "classes": 4,
            "records": 90,
            "public": 500,
            "e": 0.5,
            "ratio": ratio,
            "accuracies": accuracies,
        }

    ahead = problem(1.1, [60.0, 45.0], [[55.0, 30.0]] * 3)
    behind = problem(9.0, [60.0, 45.0], [[61.5, 44.0]] * 3)
    unsure = problem(95.0, [60.0, 45.0], [[60.0, 44.0], [62.0, 46.0], [67.0, 51.0]])
    lines = list(rivals.report([ahead, behind, unsure]))
    assert lines[0] == "3 problems, 3 seeds.\n"
    rows = {line.split(" | ")[0].strip("| "): line.split(" | ")[-2:] for line in lines[3:7]}
    assert rows["1"] == ["100 / 100 %", "100 / 100 % |"]
    assert rows["10"] == ["0 / 100 %", "0 / 100 % |"]
    assert rows["100"] == ["100 / 100 %", "0 / 0 % |"]  # three points behind, with an error of two
    assert rows["all"] == ["67 / 100 %", "33 / 67 % |"]
    assert lines[9].startswith("| -3.0 | balanced | `least-squares` | 4 | 90 | 500 | 100 | 0.5 |")


def test_pictures_of_both_data_sets_are_twenty_classes_and_the_pool_is_no_private_record(
    utility, tmp_path
):
    import pictures

    from tacit import EmbeddingStore

    rng = np.random.default_rng(0)
    for name in ("fashion_mnist", "mnist"):
        (tmp_path / name).mkdir()
        for split, rows in (("train", 1500), ("test", 40)):
            x = rng.normal(size=(rows, 4)).astype(np.float16)
            EmbeddingStore.write(
                tmp_path / name / split, x, np.arange(rows) % 10, classes=range(10)
            )
    cell = (("fashion_mnist", "mnist"), ("own", 1_000), 10, 0.5)
    data, rough = pictures.problem(tmp_path, tmp_path, pictures.CELLS.index(cell))
    assert (rough, data.n_classes, len(data.public)) == (0.5, 20, 1_000)
    assert set(data.test_y) == set(range(20))
    assert data.sizes.max() / data.sizes.min() == pytest.approx(10, rel=0.2)
    whole, labels = pictures.rows_of(tmp_path, cell[0], "train")
    known = {row.tobytes(): label for row, label in zip(whole, labels, strict=True)}
    assert [known[row.tobytes()] for row in data.x] == data.y.tolist()
    assert not {row.tobytes() for row in data.public} & {row.tobytes() for row in data.x}


def test_without_noise_and_imbalance_one_seed_stands_for_all(utility, embeddings, tmp_path):
    _, _, run, _ = utility
    out = tmp_path / "out"
    (out / "cells").mkdir(parents=True)
    for seed in range(5):
        run.work(embeddings, out, ("cifar10", 1, "least-squares", seed))
    assert len(list((out / "cells").glob("*-inf-*.json"))) == 1
    cells = [cell for cell in run.read_cells(out) if math.isinf(cell.rough)]
    assert [cell.seed for cell in cells] == list(range(5))


@pytest.mark.parametrize("method", ["public", "public-5"])
def test_public_choices_are_those_of_the_learner(utility, embeddings, method):
    """The table computes scores once for all budgets; a seed and a budget must give what the
    learner gives.
    """
    import tacit

    methods, problems, _, _ = utility
    data = problems.problem(embeddings, "cifar10", 10, 0)
    ((_, predicted),) = methods.METHODS[method](data, 3, (2.0,))
    centre = tacit.models.public_rows.public_centre(data.public, 8)
    unit = tacit.models.rows.unit_rows_about(data.public, centre)
    low, high = np.quantile(1 + unit @ unit.T, methods.QUANTILES)
    learner = tacit.PublicPrototypes(
        "rho=2.0", public=data.public, classes=10, k=5 if method == "public-5" else 1, centre=True,
        d_min=low, d_max=high, noise="research", random_state=methods.NOISE_SEEDS + 3,
    )  # fmt: skip
    assert np.array_equal(learner.fit(data.x, data.y).predict(data.test_x), predicted)


def test_verdicts(utility):
    _, _, _, table = utility

    def cells(method, values, ratio=10):
        return [
            table.Cell("d", ratio, seed, method, 1.0, value, value / 2)
            for seed, value in enumerate(values)
        ]

    behind = [*cells("auto", [0.50, 0.51, 0.52]), *cells("public", [0.52, 0.53, 0.54])]
    (verdict,) = table.verdicts(behind, "balanced")
    assert (verdict.rival, round(verdict.difference, 9), verdict.no_worse) == (
        "public",
        -0.02,
        False,
    )
    assert any("-2.0 points" in line for line in table.summary(behind))
    noisy = [*cells("auto", [0.50, 0.60, 0.40]), *cells("public", [0.52, 0.53, 0.54])]
    assert table.verdicts(noisy, "balanced")[0].no_worse
    close = [*cells("auto", [0.516, 0.526, 0.536]), *cells("public", [0.52, 0.53, 0.54])]
    assert table.verdicts(close, "balanced")[0].no_worse
    level = [*cells("auto", [0.1, 0.7 + 4e-7]), *cells("public", [0.7, 0.1])]
    # level, but for the rounding of cells.csv
    assert not table.verdicts(level, "balanced")[0].ahead
    assert not table.verdicts(cells("auto", [0.5]), "balanced")
    few = [
        *cells("auto", [0.5, 0.5, 0.5, 0.8]),
        *cells("public", [0.55, 0.55, 0.55, 0.55]),
        *cells("newton", [0.6]),
    ]
    (verdict,) = table.verdicts(few, "balanced")
    assert (verdict.rival, verdict.no_worse) == ("newton", False)  # on the seed that both have
    steady = [
        *cells("auto", [0.6, 0.6]),
        *cells("public", [0.5, 0.8]),
        *cells("coinpress", [0.615, 0.615]),
    ]
    (verdict,) = table.verdicts(steady, "balanced")
    assert (verdict.rival, verdict.no_worse, verdict.ahead) == ("coinpress", False, False)


def test_a_cell_file_is_plain(utility, embeddings, tmp_path):
    _, _, run, _ = utility
    out = tmp_path / "out"
    (out / "cells").mkdir(parents=True)
    run.work(embeddings, out, ("cifar10", 10, "coinpress", 1))
    cell = json.loads((out / "cells" / "cifar10-10-coinpress-2-1.json").read_text(encoding="utf-8"))
    assert set(cell) == {"dataset", "ratio", "seed", "method", "rough", "balanced", "minority"}
    assert 0 <= cell["balanced"] <= 1


def test_constants_are_chosen_without_the_data_set_that_is_left_out(utility, monkeypatch, tmp_path):
    methods, _, _, _ = utility
    import constants

    figures = {
        1.0: {"a": 0.5, "b": 0.5, "c": 0.5},
        0.5: {"a": 0.9, "b": 0.4, "c": 0.5},
        2.0: {"a": 0.1, "b": 0.5, "c": 0.6},
    }
    assert constants.best_factors({"x": figures}, "a") == {"x": 2.0}
    assert constants.best_factors({"x": figures}, "c") == {"x": 0.5}
    of = {
        "`x`: of all": figures,
        "`y`: of none": {factor: figures[1.0] for factor in constants.FACTORS},
    }
    lines = list(constants.report("auto", of, {"a": {"a": 0.1}, "b": {"b": 0.4}, "c": {"c": 0.5}}))
    assert "| `x`: of all | 0.5000 | 0.6000 | 0.4000 | 0 / 2 / 1 |" in lines
    assert "| a | 0.5000 | 0.1000 | `x` x 2 |" in lines
    assert lines[-1] == "| mean | 0.5000 | 0.3333 | |"
    for paths in (constants.CONSTANTS | constants.NAME_CONSTANTS).values():
        assert all(isinstance(pydoc.locate(path), float) for path in paths)
    seen = []

    def predictions(data, seed, roughs):
        from tacit.learners.prototypes import auto

        seen.append(auto.CLEAR)
        yield roughs[0], np.zeros(4, dtype=int)

    class Data:
        test_y, n_classes, sizes = np.arange(4) % 2, 2, np.array([3, 1])

    monkeypatch.setattr(constants, "problem", lambda *given: Data)
    monkeypatch.setitem(methods.METHODS, "auto", predictions)
    name = next(iter(constants.CONSTANTS))
    for factor in (1.0, 2.0):
        got = constants.figures(tmp_path, tmp_path, tmp_path, "auto", {name: factor}, "sst2")
        assert got == {"sst2": 0.5 * 0.5}
    assert seen == [0.7] * 9 + [1.4] * 9
    constants.figures(tmp_path, tmp_path, tmp_path, "auto", {name: 2.0}, "sst2")
    assert len(seen) == 18
