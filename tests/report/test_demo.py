import math

import numpy as np

from tacit.report import charts, paper
from tacit.report.accuracy import both_measures, result_of_fit
from tacit.report.demo import ROUGH_EPSILONS, compare, csv, digits, medians
from tacit.report.page import page, picture, table, text

RESULTS = [result_of_fit("m", rho, seed, 0.1 * seed, 0.2 * seed) for rho in (2.0, 0.5, math.inf) for seed in range(3)]


def test_the_data_are_imbalanced_and_centred_by_public_rows_alone():
    data = digits()
    assert data.records.sizes.max() / data.records.sizes.min() > 7
    assert np.allclose(data.public.mean(axis=0), 0)
    assert not np.allclose(data.records.x.mean(axis=0), 0)


def test_every_method_budget_and_seed_is_compared():
    results = compare(digits(), n_seeds=2)
    assert len(results) == 3 * (2 * len(ROUGH_EPSILONS) + 1)
    assert {one.learner for one in results} == {"noisy-sum", "coinpress", "public"}
    best = {one.learner: one.balanced_accuracy for one in results if math.isinf(one.rho)}
    low = {one.learner: one.balanced_accuracy for one in results if one.rho < 0.006}
    assert all(best[learner] > low[learner] for learner in best)


def test_tables_hold_medians_in_order_of_rho():
    header, rows = medians(RESULTS)
    assert header == ["", "m"]
    assert rows == [[f"rho={rho}", "0.100 / 0.200"] for rho in ("0.5", "2", "inf")]
    assert csv(RESULTS).splitlines()[:2] == ["method,rho,seed,balanced,minority", "m,2.0,0,0.0,0.0"]


def test_both_measures_have_a_panel_with_a_line_over_rho_and_one_without_privacy():
    figure = both_measures(RESULTS, "title")
    assert [panel.title for panel in figure.panels] == ["balanced accuracy", "minority accuracy: 25 % smallest classes"]
    for panel, middle in zip(figure.panels, (0.1, 0.2), strict=True):
        assert [(point.x, point.y.median, len(point.results)) for point in panel.points] == [
            (0.5, middle, 3),
            (2, middle, 3),
        ]
        assert [point.y.median for point in panel.flat] == [middle]


def test_figures_and_pages_stand_on_their_own():
    png = paper.image(charts.lines, both_measures(RESULTS, "title"), "png")
    assert png.startswith(b"\x89PNG")
    html = page("a < b", [("one", picture(png, "p")), ("two", table(["x"], [["<y>"]])), ("three", text("<z>"))])
    assert "a &lt; b" in html
    assert "&lt;y&gt;" in html
    assert "&lt;z&gt;" in html
    assert 'src="data:image/png;base64,' in html
