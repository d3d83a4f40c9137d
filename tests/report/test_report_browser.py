"""The page of a sweep in a browser without a network: charts are drawn, and a click on a legend
picks a series.
"""

import subprocess
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from report.browser import browser
from report.test_sweep_report import plausible, some, timed
from tacit.report import sweep
from tacit.report.groups import SweepResults

OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND")
DOM = ("--dump-dom", "--virtual-time-budget=15000")
PICTURE = ("--window-size=1200,1600", "--hide-scrollbars", "--virtual-time-budget=3000")
CLICKS = """<script>
setTimeout(() => {
  for (const place of document.querySelectorAll(".chart")) {
    const symbol = place.querySelector(".role-legend-symbol path");
    symbol?.dispatchEvent(new MouseEvent("click", {bubbles: true, cancelable: true, view: window}));
  }
}, 5000);
</script>"""


class Charts(HTMLParser):
    """Of each figure on a page: its kinds of marks, how many there are, and how many of them are
    faint.
    """

    def __init__(self, dom):
        super().__init__()
        self.figures, self.name, self.groups = {}, None, []
        self.feed(dom)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if tag == "figure":
            self.name = given["id"]
            self.figures[self.name] = {"kinds": set(), "marks": 0, "faint": 0}
        if self.name is None:
            return
        if tag == "g":
            self.groups.append(given.get("class") or "")
        if (
            tag in ("path", "line", "rect", "text")
            and self.groups
            and "role-mark" in self.groups[-1]
        ):
            found = self.figures[self.name]
            found["kinds"].add(self.groups[-1].split()[0])
            found["marks"] += 1
            found["faint"] += float(given.get("opacity") or 1) < 0.14

    def handle_endtag(self, tag):
        if tag == "g" and self.groups:
            self.groups.pop()
        if tag == "figure":
            self.name, self.groups = None, []


@pytest.fixture(scope="module")
def browse(tmp_path_factory):
    """Open HTML in a browser; returns the DOM that its scripts leave, or takes a picture."""
    program = browser()

    def browse(html, *options):
        folder = tmp_path_factory.mktemp("browser")
        (folder / "page.html").write_text(html, encoding="utf-8")
        command = [
            program,
            *OPTIONS,
            f"--user-data-dir={folder / 'profile'}",
            *options,
            (folder / "page.html").as_uri(),
        ]
        return subprocess.run(
            command, check=True, capture_output=True, text=True, timeout=600
        ).stdout

    return browse


@pytest.fixture(scope="module")
def results():
    """Every kind of figure."""
    public = some(
        data=["public"], learner=["public"], public=["x", "y"], public_rows=[10, 1000], seed=[0, 1]
    )
    return plausible(data=("cifar10",), imbalance=(50.0,), seeds=2) + public + timed()


@pytest.fixture(scope="module")
def html(results):
    return sweep.html(results, "Sweep of every figure")


MARKS = {
    "balanced-accuracy": {"mark-line", "mark-symbol", "mark-area", "mark-rule"},
    "minority-accuracy": {"mark-line", "mark-symbol", "mark-area", "mark-rule"},
    "best": {"mark-line", "mark-symbol", "mark-text"},
    "number-of-public-rows": {"mark-line", "mark-symbol"},
    "public-set": {"mark-rule", "mark-symbol"},
    "encoder": {"mark-rule", "mark-symbol"},
    "means": {"mark-rule", "mark-symbol"},
    "steps": {"mark-line", "mark-symbol"},
    "class-sizes": {"mark-line", "mark-symbol"},
    "run-times": {"mark-rect", "mark-rule"},
}


@pytest.fixture(scope="module")
def figures(results):
    return [figure for _, figure in sweep.figures(SweepResults.of(results))]


def test_every_chart_is_drawn_without_a_network(browse, html, figures):
    drawn = Charts(browse(html, *DOM)).figures
    assert list(drawn) == [figure.name for figure in figures]
    for start, kinds in MARKS.items():
        assert any(
            kinds <= found["kinds"] for name, found in drawn.items() if name.startswith(start)
        ), start
    assert all(found["marks"] > 0 and found["faint"] == 0 for found in drawn.values())


def test_a_click_on_a_legend_picks_a_series(browse, html, figures):
    place = html.rindex("</body>")
    drawn = Charts(browse(html[:place] + CLICKS + html[place:], *DOM)).figures
    for figure in figures:
        assert (drawn[figure.name]["faint"] > 0) is (
            len(figure.visible_series) > 1 and not figure.one_cost
        ), figure.name


@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        (1280, "light"),
        (390, "dark"),
        pytest.param(1280, "dark", marks=pytest.mark.thorough),
        pytest.param(390, "light", marks=pytest.mark.thorough),
    ],
)
def test_charts_fit_the_screen_and_axe_finds_nothing(page, results, tmp_path, width, scheme):
    unlike = [replace(one, key=f"{place:020x}") for place, one in enumerate(results)]
    (tmp_path / "page.html").write_text(sweep.html(unlike, "Sweep"), encoding="utf-8")
    page.open(tmp_path / "page.html", width=width, scheme=scheme)
    page.wait("document.documentElement.dataset.drawn")
    assert page.run("document.documentElement.scrollWidth") <= width
    over = (
        "Array.from(document.querySelectorAll('.chart'), chart => chart.scrollWidth -"
        " chart.clientWidth)"
    )
    assert set(page.run(over)) == {0}
    alternatives = page.run(
        "Array.from(document.querySelectorAll('.chart svg.marks'), one => one.parentNode.ariaLabel)"
    )
    assert alternatives == [
        figure.description for _, figure in sweep.figures(SweepResults.of(unlike))
    ]
    text = "getComputedStyle(document.querySelector('.role-axis-label text')).fill"
    assert page.run(text) == page.run("getComputedStyle(document.body).color")
    assert page.violations() == []


def test_charts_follow_the_width_and_the_colour_scheme(page, results, tmp_path):
    (tmp_path / "page.html").write_text(sweep.html(results[:24], "Sweep"), encoding="utf-8")
    page.open(tmp_path / "page.html")
    page.wait("document.documentElement.dataset.drawn")
    widest = (
        "Math.max(...Array.from(document.querySelectorAll('.chart svg.marks'), one =>"
        " one.clientWidth))"
    )
    assert page.run(widest) > 390
    page.send(
        "Emulation.setDeviceMetricsOverride",
        width=390,
        height=800,
        deviceScaleFactor=1,
        mobile=True,
    )
    page.wait("document.documentElement.dataset.drawn === '2'")
    assert page.run(widest) <= 390
    page.send(
        "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}]
    )
    page.wait("document.documentElement.dataset.drawn === '3'")
    assert (
        page.run("document.querySelector('.role-axis-label text').getAttribute('fill')")
        == "#ececec"
    )


def test_a_picture_of_the_page_is_not_blank(browse, html, tmp_path):
    image = pytest.importorskip("PIL.Image")
    browse(html, *PICTURE, f"--screenshot={tmp_path / 'page.png'}")
    picture = np.asarray(image.open(tmp_path / "page.png").convert("RGB")) / 255
    assert picture.shape == (1600, 1200, 3)
    lower = picture[800:]  # below the contents: a chart
    assert (np.ptp(lower.mean(axis=2), axis=1) > 0.2).mean() > 0.5
    assert len(np.unique(lower.reshape(-1, 3), axis=0)) > 100
