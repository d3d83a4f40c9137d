import math

import numpy as np

from tacit.data.digits import load_digits_split
from tacit.report.demo import ROUGH_EPSILONS, compare, csv, medians, problem
from tacit.report.figures import Result, accuracy_against_rho, by_rho
from tacit.report.page import page, picture, table, text

RESULTS = [Result("m", rho, seed, 0.1 * seed, 0.2 * seed) for rho in (2.0, 0.5, math.inf) for seed in range(3)]


def test_the_problem_is_imbalanced_and_centred_by_public_rows_alone():
    digits = load_digits_split()
    data = problem(digits)
    assert data.sizes.max() / data.sizes.min() > 7
    assert np.allclose(data.public_x.mean(axis=0), 0)
    assert not np.allclose(data.x.mean(axis=0), 0)


def test_every_method_budget_and_seed_is_compared():
    results = compare(problem(load_digits_split()), n_seeds=2)
    assert len(results) == 3 * (2 * len(ROUGH_EPSILONS) + 1)
    assert {result.method for result in results} == {"noisy-sum", "coinpress", "public"}
    best = {result.method: result.balanced for result in results if math.isinf(result.rho)}
    low = {result.method: result.balanced for result in results if result.rho < 0.006}
    assert all(best[method] > low[method] for method in best)


def test_tables_hold_medians_in_order_of_rho():
    header, rows = medians(RESULTS)
    assert header == ["", "m"]
    assert rows == [[f"rho={rho}", "0.100 / 0.200"] for rho in ("0.5", "2", "inf")]
    assert csv(RESULTS).splitlines()[:2] == ["method,rho,seed,balanced,minority", "m,2.0,0,0.0,0.0"]
    assert by_rho(RESULTS, "balanced")[2.0] == [0.0, 0.1, 0.2]


def test_figures_and_pages_stand_on_their_own():
    png = accuracy_against_rho(RESULTS, "title")
    assert png.startswith(b"\x89PNG")
    html = page("a < b", [("one", picture(png, "p")), ("two", table(["x"], [["<y>"]])), ("three", text("<z>"))])
    assert "a &lt; b" in html
    assert "&lt;y&gt;" in html
    assert "&lt;z&gt;" in html
    assert 'src="data:image/png;base64,' in html
