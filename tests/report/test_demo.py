"""The demonstration: what is compared, and its page in a browser."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest

import tacit
from tacit.models.metrics import evaluate
from tacit.releases.release import Release
from tacit.report import charts, paper
from tacit.report.accuracy import both_measures, result_of_fit
from tacit.report.attack import percent_up
from tacit.report.demo import (
    FEW_ROWS,
    ROUGH_EPSILONS,
    WORTH_RHO,
    compare,
    csv,
    digits,
    medians,
    worth_of_public_rows,
)
from tacit.report.demo_page import demo_page
from tacit.report.page import page, picture, table, text

RESULTS = [
    result_of_fit("m", rho, seed, 0.1 * seed, 0.2 * seed)
    for rho in (2.0, 0.5, math.inf)
    for seed in range(3)
]


@pytest.fixture(scope="module")
def data():
    return digits()


@pytest.fixture(scope="module")
def results(data):
    return compare(data, n_seeds=2)


def test_the_data_are_imbalanced_and_centred_by_public_rows_alone(data):
    assert data.records.sizes.max() / data.records.sizes.min() > 7
    assert np.allclose(data.public.mean(axis=0), 0)
    assert not np.allclose(data.records.x.mean(axis=0), 0)


def test_every_method_budget_and_seed_is_compared(results):
    assert len(results) == 4 * (2 * len(ROUGH_EPSILONS) + 1)
    assert list(dict.fromkeys(one.learner for one in results)) == [
        "auto",
        "noisy-sum",
        "coinpress",
        "public",
    ]
    best = {one.learner: one.balanced_accuracy for one in results if math.isinf(one.rho)}
    low = {one.learner: one.balanced_accuracy for one in results if one.rho < 0.006}
    assert all(best[learner] > low[learner] for learner in best)


def test_public_rows_are_shown_to_matter(data):
    worth = worth_of_public_rows(data, n_seeds=3)
    names = [
        "noisy-sum, for the centre",
        *(f"auto, {n} rows" for n in (*FEW_ROWS, len(data.public))),
    ]
    assert [one.learner for one in worth] == 3 * names
    assert {one.rho for one in worth} == {WORTH_RHO}
    of = {
        name: np.median([one.minority_accuracy for one in worth if one.learner == name])
        for name in names
    }
    assert of[names[-1]] > of[names[0]] + 0.1


def test_tables_hold_medians_in_order_of_rho():
    header, rows = medians(RESULTS)
    assert header == ["", "m"]
    assert rows == [[f"rho={rho}", "0.100 / 0.200"] for rho in ("0.5", "2", "inf")]
    assert csv(RESULTS).splitlines()[:2] == ["method,rho,seed,balanced,minority", "m,2.0,0,0.0,0.0"]


@pytest.mark.parametrize(("of_rho", "places"), [(True, (0.5, 2.0)), (False, (1.0, 2.0))])
def test_both_measures_have_a_panel_with_a_line_over_costs_and_one_without_privacy(of_rho, places):
    figure = both_measures(RESULTS, "title", of_rho=of_rho)
    assert figure.x.rho_above is not of_rho
    assert [panel.title for panel in figure.panels] == [
        "balanced accuracy",
        "minority accuracy: 25 % smallest classes",
    ]
    for panel, middle in zip(figure.panels, (0.1, 0.2), strict=True):
        assert [(point.x, point.y.median, len(point.results)) for point in panel.points] == [
            (place, middle, 3) for place in places
        ]
        assert [point.y.median for point in panel.flat] == [middle]


def test_figures_and_pages_stand_on_their_own():
    png = paper.image(charts.lines, both_measures(RESULTS, "title"), "png")
    assert png.startswith(b"\x89PNG")
    html = page(
        "a < b",
        [("one", picture(png, "p")), ("two", table(["x"], [["<y>"]])), ("three", text("<z>"))],
    )
    assert "a &lt; b" in html
    assert "&lt;y&gt;" in html
    assert "&lt;z&gt;" in html
    assert 'src="data:image/png;base64,' in html


@pytest.fixture(scope="module")
def html(data, results):
    """The page of a release by auto, and its guarantee."""
    records = data.records
    learner = tacit.AutoPrototypes(classes=range(10), public=data.public).fit(records.x, records.y)
    release = Release.of(learner, name="digits <demo>")
    scores = evaluate(records.test_y, release.predict(records.test_x), release.classes)
    few = [
        replace(one, learner=f"auto, {one.seed} rows") for one in results if one.learner == "auto"
    ]
    return demo_page(data, results, few, release, scores, "some/where"), release.guarantee


def test_the_page_says_what_it_costs_and_what_to_do_next(html):
    html, guarantee = html
    words = re.sub(r"<[^>]*>", "", html)
    assert guarantee.in_words() in words
    assert "tacit inspect some/where/release" in words
    assert "digits &lt;demo&gt;" in html
    assert "<summary>5. Privacy parameters</summary>" in html
    assert "## " not in words.split("The card of the release")[1].split("What to do next")[0]
    assert [
        f'<th scope="col">{name}</th>' in html
        for name in ("auto", "noisy-sum", "coinpress", "public")
    ] == 4 * [True]
    assert re.search(r'<tr><th scope="row">0.5</th><td>4.89</td><td>\.\d{3}</td>', html)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_it_fits_every_screen_asks_for_nothing_and_axe_finds_nothing(
    page, html, tmp_path, width, scheme
):
    content, guarantee = html
    (tmp_path / "page.html").write_text(content, encoding="utf-8")
    page.requests.clear()
    page.open(tmp_path / "page.html", width=width, scheme=scheme)
    page.wait("document.documentElement.dataset.drawn")
    assert [url for url in page.requests if not url.startswith(("file:", "data:", "blob:"))] == []
    assert page.faults == []
    assert page.run("document.documentElement.scrollWidth") <= width
    over = (
        "Array.from(document.querySelectorAll('.chart, .wide'), one => one.scrollWidth -"
        " one.clientWidth)"
    )
    assert set(page.run(over)) == {0}
    assert page.violations() == []
    page.run(
        "document.getElementById('rate').value = 11;"
        " document.getElementById('rate').dispatchEvent(new Event('input'))"
    )
    assert page.run("document.getElementById('found').textContent") == percent_up(
        guarantee.attack_rate(0.1)
    )
