"""The page of a release in a browser: its numbers, its classifier, its refusals, and that no request leaves it."""

import base64
import io
import math
import re
import time
from dataclasses import replace

import numpy as np
import pytest

import tacit
from report.browser import PATIENCE, pages
from tacit.cli.main import main
from tacit.errors import ReleaseError
from tacit.models.decisions import LinearHead, NearestPrototype, NetworkHead, QuadraticHead
from tacit.privacy.events import ZCDP, Exponential, Gaussian
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.unit import Unit
from tacit.releases.release import Release
from tacit.releases.schema import Array
from tacit.releases.statement import accounting_item, privacy_items
from tacit.report import release_page as module
from tacit.report.release_page import FIRST_RATE, RATES, exact_mu, release_page

RNG = np.random.default_rng(0)
WIDTH, CLASSES = 12, ["cat", 'a "dog", wild', "élan", "<b>&amp;", "eel"]
BASE = Release.of(
    tacit.NoisySumPrototypes("rho=0.5", classes=CLASSES).fit(RNG.normal(size=(60, WIDTH)), np.repeat(CLASSES, 12)),
    name="pets <script>alert(1)</script>", description="[x](http://example.com) `code`",
)  # fmt: skip
ROWS = np.concatenate(
    [
        RNG.normal(size=(300, WIDTH)),
        np.zeros((1, WIDTH)),
        1e200 * RNG.normal(size=(3, WIDTH)),
        np.full((1, WIDTH), 1e-200),
    ]
)
EMPTY = np.r_[np.ones(4), 0.0][:, None]  # a class without a prototype


def drawn(*shape, dtype=np.float64):
    return RNG.normal(size=shape).astype(dtype)


DECISIONS = {
    "cosine": (NearestPrototype(), {"prototypes": drawn(5, WIDTH)}),
    "cosine, centred, an empty class": (
        NearestPrototype(),
        {"prototypes": drawn(5, WIDTH) * EMPTY, "centre": drawn(WIDTH) / 5},
    ),
    "cosine, pooled": (NearestPrototype(pooling=5), {"prototypes": drawn(5, 2, dtype=np.float32)}),
    "k-set": (
        NearestPrototype(),
        {"prototypes": drawn(5, 3, WIDTH, dtype=np.float16), "indices": np.arange(15).reshape(5, 3)},
    ),
    "k-set, centred": (
        NearestPrototype(centred="rows and prototypes"),
        {"prototypes": drawn(5, 3, WIDTH), "centre": drawn(WIDTH) / 5},
    ),
    "euclidean": (NearestPrototype("euclidean"), {"prototypes": drawn(5, WIDTH)}),
    "euclidean, pooled k-set": (NearestPrototype("euclidean", pooling=5), {"prototypes": drawn(5, 3, 2)}),
    "linear": (LinearHead(), {"coefficients": drawn(5, WIDTH), "intercepts": drawn(5)}),
    "linear, centred": (
        LinearHead(),
        {"coefficients": drawn(5, WIDTH, dtype=np.float32), "intercepts": drawn(5), "centre": drawn(WIDTH) / 5},
    ),
    "quadratic": (
        QuadraticHead(),
        {
            "coefficients": drawn(5, WIDTH), "intercepts": drawn(5), "centre": drawn(WIDTH) / 5,
            "axes": drawn(WIDTH, 4), "squares": 3 * drawn(5, 4),
        },
    ),
}  # fmt: skip


def with_decision(decision, arrays):
    """A release that decides by these arrays."""
    listed = tuple(
        Array(name=name, dtype=array.dtype.name, shape=array.shape) for name, array in sorted(arrays.items())
    )
    contents = BASE.document.contents.model_copy(update={"decision": decision, "arrays": listed})
    release = replace(BASE, document=BASE.document.model_copy(update={"contents": contents}), arrays=arrays)
    release._check_arrays()
    return release


def with_guarantee(event):
    """The release, had it this cost."""
    guarantee = Guarantee(Unit.ADD_REMOVE, event)
    recorded = BASE.document.guarantee.model_copy(update={"event": guarantee.to_json()["event"]})
    items = privacy_items(guarantee)
    items["accounting"] = accounting_item(guarantee, items["parameters"], items["profile"], "secure")
    return replace(BASE, document=BASE.document.model_copy(update={"guarantee": recorded, **items}))


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    with pages(tmp_path_factory.mktemp("profile")) as page:
        yield page


@pytest.fixture
def show(page, tmp_path):
    """Open the page of a release."""

    def show(release=BASE, **look):
        path = tmp_path / "page.html"
        path.write_text(release_page(release), encoding="utf-8")
        page.open(path, **look)
        page.requests.clear()
        page.faults.clear()
        page.run("URL.createObjectURL = (make => blob => make.call(URL, window.kept_ = blob))(URL.createObjectURL)")
        return page

    return show


def npy(rows):
    file = io.BytesIO()
    np.save(file, rows)
    return file.getvalue()


def csv(rows, heading=""):
    return (heading + "".join(",".join(map(repr, row)) + "\r\n" for row in np.asarray(rows, float).tolist())).encode()


def drop(page, name, content):
    """Drop a file on the page and return the message that ends its classification."""
    data = base64.b64encode(content).decode()
    page.run(f"""(() => {{
      const bytes = Uint8Array.from(atob("{data}"), letter => letter.charCodeAt(0)), dropped = new DataTransfer();
      dropped.items.add(new File([bytes], {name!r}));
      document.body.dispatchEvent(new DragEvent("drop", {{dataTransfer: dropped, bubbles: true, cancelable: true}}));
    }})()""")
    return message(page)


def message(page):
    page.wait("!document.getElementById('results').hidden || document.getElementById('message').className === 'fault'")
    return page.run("document.getElementById('message').textContent")


def labels(page):
    """The labels of the CSV file that the page offers."""
    text = page.run("window.kept_.text()")
    import csv as reader

    heading, *lines = reader.reader(io.StringIO(text))
    assert heading == ["row", "label"]
    assert [int(row) for row, _ in lines] == list(range(len(lines)))
    return [label for _, label in lines]


@pytest.mark.parametrize("name", DECISIONS)
def test_a_dropped_file_is_classified_as_release_predict_does(show, name):
    release = with_decision(*DECISIONS[name])
    page = show(release)
    said = drop(page, "rows.npy", npy(ROWS))
    assert said == f"rows.npy: {len(ROWS)} rows classified"
    expected = release.predict(ROWS).tolist()
    assert labels(page) == expected
    assert len(set(expected)) > 1
    assert (page.requests, page.faults) == ([], [])


@pytest.mark.parametrize("dtype", ["<f2", "<f4", "<f8", ">f4"])
def test_every_type_of_npy_is_read(show, dtype):
    rows = RNG.normal(size=(50, WIDTH)).astype(dtype)
    rows[0] = [np.finfo(dtype).max, np.finfo(dtype).smallest_subnormal, *np.zeros(WIDTH - 2)]
    page = show()
    drop(page, "rows.npy", npy(rows))
    assert labels(page) == BASE.predict(rows).tolist()


HEADINGS = ["", "\ufeff" + ",".join(f"x{i}" for i in range(WIDTH)) + "\n", ",".join(map(str, range(WIDTH))) + "\n"]


@pytest.mark.parametrize("heading", HEADINGS, ids=["none", "names", "numbers of columns"])
def test_a_csv_is_read_with_and_without_a_heading(show, heading):
    page = show()
    drop(page, "rows.CSV", csv(ROWS[:40], heading) + b"\n")
    assert labels(page) == BASE.predict(ROWS[:40]).tolist()


def test_a_chosen_file_fills_the_tables(show, tmp_path):
    (tmp_path / "rows.npy").write_bytes(npy(ROWS))
    page = show()
    page.choose("#file", tmp_path / "rows.npy")
    message(page)
    predicted = BASE.predict(ROWS).tolist()
    cells = "Array.from(document.querySelectorAll('#{} tr'), row => Array.from(row.cells, cell => cell.textContent))"
    assert page.run(cells.format("counts")) == [[label, str(predicted.count(label))] for label in CLASSES]
    assert page.run(cells.format("labels")) == [[str(i), predicted[i]] for i in range(100)]
    assert page.run("document.getElementById('first').textContent") == "The first 100 rows; the file has all"


def test_the_labels_are_downloaded_as_a_file(show, tmp_path):
    page = show()
    drop(page, "rows.npy", npy(ROWS))
    page.send("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    page.run("document.getElementById('download').click()")
    until = time.monotonic() + PATIENCE
    while not (tmp_path / "labels.csv").exists():
        assert time.monotonic() < until, "nothing was downloaded"
        time.sleep(0.02)
    assert (tmp_path / "labels.csv").read_text(encoding="utf-8") == page.run("window.kept_.text()")


BAD = {
    "a text": ("rows.txt", b"1,2", "rows.txt is neither .npy nor .csv; give one of them"),
    "no npy": ("a.npy", b"not an array", "a.npy is no .npy file; save rows with numpy.save"),
    "empty": ("a.npy", b"", "a.npy is no .npy file; save rows with numpy.save"),
    "header": (
        "a.npy",
        b"\x93NUMPY\x01\x00\x04\x00{}  ",
        "a.npy has no readable .npy header; save rows with numpy.save",
    ),
    "integers": (
        "a.npy",
        npy(np.ones((2, WIDTH), int)),
        'a.npy has type <i8, not float16, float32 or float64; save X.astype("float32")',
    ),
    "objects": (
        "a.npy",
        b"\x93NUMPY\x01\x00\x40\x00{'descr': '|O', 'fortran_order': False, 'shape': (2, 12), }  " + b" " * 8,
        "a.npy has type |O, not",
    ),
    "order": ("a.npy", npy(np.asfortranarray(ROWS)), "a.npy is in Fortran order; save numpy.ascontiguousarray(X)"),
    "width": (
        "a.npy",
        npy(ROWS[:, :5]),
        "a.npy has shape (305, 5) and must have shape (n, 12); encode as the private rows were",
    ),
    "one row": ("a.npy", npy(ROWS[0]), "a.npy has shape (12) and must have shape (n, 12)"),
    "cut": ("a.npy", npy(ROWS)[:-8], "a.npy is cut off or too long for its shape (305, 12); save it again"),
    "nan": (
        "a.npy",
        npy(np.where(np.arange(305)[:, None] == 7, np.nan, ROWS)),
        "row 7 of a.npy is not finite (NaN or infinity); drop or repair it",
    ),
    "no rows": ("a.npy", npy(ROWS[:0]), "a.npy holds no rows; give rows of 12 numbers"),
    "words": (
        "a.csv",
        csv(ROWS[:2]) + b"1,two\n",
        'a.csv, line 3: "two" is not a number; write rows of numbers with commas between them',
    ),
    "a gap": ("a.csv", csv(ROWS[:1]) + b"1,,2\n", 'a.csv, line 2: "" is not a number'),
    "hexadecimal": ("a.csv", csv(ROWS[:1]) + b"0x10\n", 'a.csv, line 2: "0x10" is not a number'),
    "short": (
        "a.csv",
        csv(ROWS[:1]) + b"1,2\n",
        "a.csv, line 2 has 2 numbers and must have 12; encode as the private rows were",
    ),
    "infinite": (
        "a.csv",
        csv(ROWS[:1]) + b"inf" + b",1" * 11,
        "row 1 of a.csv is not finite (NaN or infinity); drop or repair it",
    ),
    "blank": ("a.csv", b"\n\n", "a.csv holds no rows; give rows of 12 numbers"),
}


def test_a_bad_file_is_refused_in_one_line_and_the_next_good_one_is_read(show):
    page = show()
    for name, content, said in BAD.values():
        answer = drop(page, name, content)
        assert answer.startswith(said), answer
        assert page.run("document.getElementById('results').hidden")
    assert drop(page, "rows.npy", npy(ROWS[:3])) == "rows.npy: 3 rows classified"
    assert page.faults == []


def test_a_file_that_is_too_large_is_refused(show, monkeypatch):
    monkeypatch.setattr(module, "LARGEST_FILE", 1000)
    assert drop(show(), "a.npy", npy(ROWS)).endswith("at most 1000 are read here; use tacit predict")


SHOWN = """(() => {{
  const set = (name, value) => {{
    const slider = document.getElementById(name);
    slider.value = value;
    slider.dispatchEvent(new Event("input"));
  }};
  set("rate", {rate});
  set("prior", {prior});
  const mark = document.getElementById("mark");
  return ["found", "belief"].map(name => document.getElementById(name).textContent)
    .concat([mark.getAttribute("cx"), mark.getAttribute("cy")]).map(Number);
}})()"""

COSTS = {
    "Gaussian": Gaussian(1.0),
    "two Gaussians": Gaussian(1.0) + 3 * Gaussian(5.0),
    "weak": Gaussian(0.05),
    "no bound": Gaussian(0.0),
    "selection": Exponential(1.0),
    "zCDP": ZCDP(0.5),
    "mixed": Gaussian(2.0) + Exponential(0.3),
}


@pytest.mark.parametrize("name", [name for name in COSTS if name != "mixed"])  # which takes seconds to account
def test_sliders_show_what_the_guarantee_says(show, name):
    release = with_guarantee(COSTS[name])
    guarantee = release.guarantee
    page = show(release)
    for position, rate in enumerate(RATES):
        prior = (7 * position) % 99 + 1
        found, belief, x, y = page.run(SHOWN.format(rate=position, prior=prior))
        true = guarantee.attack_rate(rate)
        assert 100 * true * (1 - 1e-11) <= found <= 100 * true * 1.001
        right = prior * true / (prior * true + (100 - prior) * rate)
        assert 100 * right * (1 - 1e-11) <= belief <= min(100 * right * 1.001, 100)
        assert (x, y) == pytest.approx((100 * rate, 100 - 100 * true), abs=1e-9)
    assert (page.requests, page.faults) == ([], [])


def test_only_gaussian_guarantees_are_computed_in_closed_form():
    closed = {name: exact_mu(Guarantee(Unit.ADD_REMOVE, event)) for name, event in COSTS.items()}
    assert closed["Gaussian"] == 1
    assert closed["two Gaussians"] == math.sqrt(1 + 3 / 25)
    assert [closed[name] for name in ("no bound", "selection", "zCDP", "mixed")] == [None] * 4
    groups = Guarantee(Unit.ADD_REMOVE, Gaussian(4.0), groups=(("a", Gaussian(1.0)), ("b", Gaussian(3.0))))
    assert exact_mu(groups) == groups.mu
    assert exact_mu(Guarantee(Unit.ADD_REMOVE, Gaussian(4.0), groups=(("a", ZCDP(1.0)),))) is None


def test_sliders_follow_the_keyboard(show):
    page = show()
    page.run("document.getElementById('rate').focus()")
    before = page.run("document.getElementById('found').textContent")
    page.press("ArrowRight", 39)
    assert page.run("document.getElementById('rate').value") == str(FIRST_RATE + 1)
    assert page.run("document.getElementById('found').textContent") != before
    assert page.run("document.getElementById('rate').getAttribute('aria-valuetext')") == "2 in 100"
    page.press("Tab", 9)
    assert page.run("document.activeElement.id") == "prior"
    page.press("Tab", 9)
    page.press("Tab", 9)
    assert page.run("document.activeElement.id") == "file"


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_and_follows_the_colour_scheme(show, width, scheme):
    page = show(width=width, scheme=scheme)
    drop(page, "rows.npy", npy(ROWS))
    page.run("document.querySelectorAll('details').forEach(item => item.open = true)")
    assert page.run("document.documentElement.scrollWidth") <= width
    luminance = {
        part: sum(map(int, re.findall(r"\d+", page.run(f"getComputedStyle(document.body).{part}"))[:3]))
        for part in ("backgroundColor", "color")
    }
    assert (luminance["backgroundColor"] > luminance["color"]) is (scheme == "light")


def test_every_input_has_a_label_and_every_picture_a_name(show):
    page = show()
    assert page.run("Array.from(document.querySelectorAll('input'), input => input.labels.length)") == [1, 1, 1]
    assert page.run("document.querySelector('svg').getAttribute('aria-label')")
    assert page.run("document.documentElement.lang") == "en"


def test_no_text_of_a_release_becomes_markup_and_the_policy_admits_two_texts(show):
    html = release_page(BASE)
    assert "<script>alert" not in html
    assert "<li><b>description:</b> [x](http://example.com) `code`" in html
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)[1]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    page = show()
    page.run("document.body.insertAdjacentHTML('beforeend', '<img src=\"https://example.com/x.png\">')")
    page.run("fetch('https://example.com/').catch(() => null)")
    refused = [fault["entry"]["text"] for fault in page.faults if "entry" in fault]
    for blocked in ("x.png' violates", "cannot load https://example.com/"):
        assert any(blocked in text and "Content Security Policy" in text for text in refused), blocked


def test_the_card_is_all_there():
    html = release_page(BASE)
    text = re.sub(r"<[^>]*>", "", html.split("<h2>The card</h2>")[1].split("</main>")[0])
    assert [title in text for title in ("1. Product", "9. Accounting", "17. Empirical audit")] == [True] * 3
    assert html.count("<ul>") == html.count("</ul>")
    assert html.count("<li>") == html.count("</li>")
    assert BASE.document.accounting.in_words in html.replace("&#x27;", "'")


def test_a_network_is_honestly_left_to_other_tools(monkeypatch):
    contents = BASE.document.contents.model_copy(update={"decision": NetworkHead("linear", (WIDTH,))})
    release = replace(BASE, document=BASE.document.model_copy(update={"contents": contents}))
    html = release_page(release)
    assert "This release decides by a network, which this page does not run." in html
    assert 'id="file"' not in html


def test_arrays_beyond_a_page_are_refused(monkeypatch):
    monkeypatch.setattr(module, "LARGEST", 100)
    with pytest.raises(
        ReleaseError, match="release has arrays of 480 bytes, and a page holds at most 100; classify with"
    ):
        release_page(BASE)


def test_the_command_writes_the_page_or_one_line(tmp_path, capsys):
    folder = BASE.save(tmp_path / "pets")
    out = tmp_path / "pets.html"
    assert main(["page", str(folder), "--out", str(out)]) == 0
    assert out.read_text(encoding="utf-8") == release_page(Release.load(folder))
    assert main(["page", str(folder), "--out", str(out)]) == 2
    assert main(["page", str(folder), "--out", str(tmp_path / "pets.pdf")]) == 2
    assert main(["page", str(tmp_path), "--out", str(tmp_path / "b.html")]) == 2
    *_, last = capsys.readouterr().err.splitlines()
    assert last.startswith("tacit: ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pets", "pets.html"]
