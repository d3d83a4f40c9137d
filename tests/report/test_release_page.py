"""The page of a release in a browser: its numbers, its classifier, its refusals, and that no
request leaves it.
"""

import base64
import io
import math
import os
import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tacit
from label_sets import example_rows, label_set_release
from messages import lacking, stating
from report.browser import PATIENCE
from tacit.cli.main import main
from tacit.errors import InputError, ReleaseError
from tacit.models.carried import deciding
from tacit.models.decisions import LinearHead, NearestPrototype, NetworkHead, QuadraticHead
from tacit.models.networks import network, weight_shapes, weights
from tacit.models.probabilities import Probabilities
from tacit.models.released import Released
from tacit.privacy.events import ZCDP, Exponential, Gaussian
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.unit import Unit
from tacit.releases.release import Release
from tacit.releases.schema import Array
from tacit.releases.statement import accounting_item, privacy_items
from tacit.report import release_page as module
from tacit.report.attack import FIRST_RATE, RATES, exact_mu, percent_up
from tacit.report.release_page import RUNTIME, release_page

RNG = np.random.default_rng(0)
WIDTH, CLASSES = 12, ["cat", 'a "dog", wild', "élan", "<b>&amp;", "eel"]
# so that secure noise hides no class
APART = 10 * np.repeat(np.eye(len(CLASSES), WIDTH), 12, axis=0)
BASE = Release.of(
    tacit.NoisySumPrototypes("rho=0.5", classes=CLASSES).fit(
        RNG.normal(size=(60, WIDTH)) + APART, np.repeat(CLASSES, 12)
    ),
    name="pets <script>alert(1)</script>",
    description="[x](http://example.com) `code`",
)
ROWS = np.concatenate(
    [
        RNG.normal(size=(300, WIDTH)),
        1e151 * RNG.normal(size=(3, WIDTH)),
        np.full((1, WIDTH), 1e-151),
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
        {
            "prototypes": drawn(5, 3, WIDTH, dtype=np.float16),
            "indices": np.arange(15).reshape(5, 3),
        },
    ),
    "k-set, centred": (
        NearestPrototype(centred="rows and prototypes"),
        {"prototypes": drawn(5, 3, WIDTH), "centre": drawn(WIDTH) / 5},
    ),
    "euclidean": (NearestPrototype("euclidean"), {"prototypes": drawn(5, WIDTH)}),
    "euclidean, pooled k-set": (
        NearestPrototype("euclidean", pooling=5),
        {"prototypes": drawn(5, 3, 2)},
    ),
    "linear": (LinearHead(), {"coefficients": drawn(5, WIDTH), "intercepts": drawn(5)}),
    "linear, centred": (
        LinearHead(),
        {
            "coefficients": drawn(5, WIDTH, dtype=np.float32),
            "intercepts": drawn(5),
            "centre": drawn(WIDTH) / 5,
        },
    ),
    "linear, scaled": (
        LinearHead(),
        {
            "coefficients": drawn(5, WIDTH),
            "intercepts": drawn(5),
            "input_mean": drawn(WIDTH),
            "input_scale": np.exp(drawn(WIDTH)),
        },
    ),
    "quadratic": (
        QuadraticHead(),
        {
            "coefficients": drawn(5, WIDTH),
            "intercepts": drawn(5),
            "centre": drawn(WIDTH) / 5,
            "axes": drawn(WIDTH, 4),
            "squares": 3 * drawn(5, 4),
        },
    ),
}


def with_decision(decision, arrays):
    """A release that decides by these arrays."""
    listed = tuple(
        Array(name=name, dtype=array.dtype.name, shape=array.shape)
        for name, array in sorted(arrays.items())
    )
    contents = BASE.document.contents.model_copy(update={"decision": decision, "arrays": listed})
    release = replace(
        BASE, document=BASE.document.model_copy(update={"contents": contents}), arrays=arrays
    )
    n_classes = len(contents.classes)
    assert decision.fits(deciding(arrays), n_classes, contents.width) is None
    return release


def with_guarantee(event):
    """The release, had it this cost."""
    guarantee = Guarantee(Unit.ADD_REMOVE, event)
    recorded = BASE.document.guarantee.model_copy(update={"event": guarantee.to_json()["event"]})
    items = privacy_items(guarantee)
    items["accounting"] = accounting_item(
        guarantee, items["parameters"], items["profile"], "secure"
    )
    return replace(BASE, document=BASE.document.model_copy(update={"guarantee": recorded, **items}))


def test_a_page_is_the_same_bytes_in_whatever_order_arrays_are_read():
    decision, arrays = DECISIONS["quadratic"]
    pages = {
        release_page(with_decision(decision, {name: arrays[name] for name in order}))
        for order in (sorted(arrays), sorted(arrays, reverse=True), list(arrays))
    }
    assert len(pages) == 1


def test_a_page_is_the_same_bytes_in_every_process(folder, tmp_path):
    pages = set()
    for seed in ("1", "2"):
        page = tmp_path / f"{seed}.html"
        lines = (
            "import sys; from pathlib import Path; from tacit.releases.release import Release; from"
            " tacit.report.release_page import release_page;"
            " Path(sys.argv[2]).write_text(release_page(Release.load(sys.argv[1])),"
            " encoding='utf-8')"
        )
        command = [sys.executable, "-c", lines, str(folder), str(page)]
        subprocess.run(command, check=True, timeout=300, env=os.environ | {"PYTHONHASHSEED": seed})
        pages.add(page.read_bytes())
    assert len(pages) == 1


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The release on disk."""
    return BASE.save(tmp_path_factory.mktemp("saved") / "pets")


@pytest.fixture
def show(page, tmp_path):
    """Open the page of a release."""

    def show(release=BASE, onnxruntime=None, **look):
        path = tmp_path / "page.html"
        path.write_text(release_page(release, onnxruntime), encoding="utf-8")
        page.open(path, **look)
        page.requests.clear()
        page.faults.clear()
        page.run(
            "URL.createObjectURL = (make => blob => make.call(URL, window.kept_ ="
            " blob))(URL.createObjectURL)"
        )
        return page

    return show


def npy(rows):
    file = io.BytesIO()
    np.save(file, rows)
    return file.getvalue()


def csv(rows, heading=""):
    return (
        heading
        + "".join(",".join(map(repr, row)) + "\r\n" for row in np.asarray(rows, float).tolist())
    ).encode()


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
    page.wait(
        "!document.getElementById('results').hidden || document.getElementById('message').className"
        " === 'fault'"
    )
    return page.run("document.getElementById('message').textContent")


def labels(page):
    """The labels of the CSV file that the page offers."""
    return labels_of(page.run("window.kept_.text()"))


def labels_of(text):
    """The labels in a CSV file of labels."""
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
    assert not lacking(said, "rows.npy", f"{len(ROWS)} rows")
    expected = release.predict(ROWS).tolist()
    assert labels(page) == expected
    assert len(set(expected)) > 1
    assert (page.requests, page.faults) == ([], [])


def test_a_row_may_get_several_labels(show):
    release = label_set_release()
    page = show(release)
    assert drop(page, "rows.npy", npy(example_rows())) == "rows.npy: 200 rows classified"
    expected = release.predict(example_rows())
    named = ["|".join(release.classes[row == 1]) for row in expected]
    heading, *lines = page.run("window.kept_.text()").splitlines()
    assert (heading, lines) == ("row,labels", [f"{i},{name}" for i, name in enumerate(named)])
    counts = page.run(
        "Array.from(document.querySelectorAll('#counts td:last-child'), cell => cell.textContent)"
    )
    assert counts == [str(count) for count in expected.sum(axis=0)]
    assert (page.requests, page.faults) == ([], [])


def test_a_label_that_holds_the_separator_is_refused(show):
    page = show(label_set_release(classes=["a|b", "c", "d", "e"]))
    said = drop(page, "rows.npy", npy(example_rows()))
    assert said.startswith("label 'a|b' holds |, which separates labels")


def test_a_runtime_for_several_labels_is_refused(tmp_path):
    shapes = weight_shapes("linear", (6,), 4)
    zeros = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
    release = label_set_release(NetworkHead("linear", (6,)), zeros)
    assert "this page cannot run" in release_page(release)
    with pytest.raises(InputError, match="runs networks of one label a row"):
        release_page(release, tmp_path)


def predicted(folder, name, content, tmp_path, capsys):
    """What `tacit predict` makes of a file: labels, and the line that refuses it, as if the file
    lay right here.
    """
    file, out = tmp_path / name, tmp_path / "labels.csv"
    file.write_bytes(content)
    status = main(["predict", str(folder), str(file), "--out", str(out), "--force"])
    assert status == (0 if out.exists() else 2)
    said = capsys.readouterr().err.replace(f"{tmp_path}/", "").removeprefix("tacit: ").strip()
    return (labels_of(out.read_text(encoding="utf-8")), "") if out.exists() else ([], said)


SMALL = RNG.integers(0, 100, size=(40, WIDTH))
KINDS = [
    "<f2",
    "<f4",
    "<f8",
    ">f2",
    ">f4",
    ">f8",
    "|u1",
    "|i1",
    "<i2",
    ">u2",
    "<i4",
    "<u4",
    "<i8",
    ">i8",
    "<u8",
    "|b1",
]


@pytest.mark.parametrize("order", ["C", "F"])
def test_npy_of_every_type_and_order_is_classified_as_tacit_predict_does(
    show, folder, tmp_path, capsys, order
):
    page = show()
    for kind in KINDS:
        rows = np.asarray(
            SMALL % 2 if kind == "|b1" else SMALL - 50 * (kind[1] != "u"), order=order
        ).astype(kind)
        if kind[1] == "f":
            rows[0] = [
                np.finfo(kind).max / 1e160 if kind[2] == "8" else np.finfo(kind).max,
                *np.zeros(WIDTH - 1),
            ]
            rows[1] = [
                1e-150 if kind[2] == "8" else np.finfo(kind).smallest_subnormal,
                *np.zeros(WIDTH - 1),
            ]
        if kind[1:] in ("i8", "u8"):
            rows[0, 0] = np.iinfo(kind).max
        content = npy(rows)
        assert str(order == "F").encode() in content[:128]
        expected, _ = predicted(folder, "rows.npy", content, tmp_path, capsys)
        assert drop(page, "rows.npy", content) == "rows.npy: 40 rows classified", kind
        assert labels(page) == expected, kind
        assert len(set(expected)) > 1


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(3, 4), (3, 2, 2), (1, 4, 3)])
def test_pictures_of_bytes_are_rows(show, folder, tmp_path, capsys, shape, order):
    content = npy(np.asarray(SMALL.reshape(40, *shape), np.uint8, order=order))
    expected, _ = predicted(folder, "pictures.npy", content, tmp_path, capsys)
    page = show()
    assert drop(page, "pictures.npy", content) == "pictures.npy: 40 rows classified"
    assert labels(page) == expected


HEADINGS = {
    "none": "",
    "names": "\ufeff" + ",".join(f"x{i}" for i in range(WIDTH)) + "\n",
    "numbers of columns": ",".join(map(str, range(WIDTH))) + "\n",
    "quoted": '"a, b","c ""d""",' + ",".join(map(str, range(WIDTH - 2))) + "\n",
}


@pytest.mark.parametrize("heading", HEADINGS.values(), ids=HEADINGS)
def test_csv_is_classified_as_tacit_predict_does(show, folder, tmp_path, capsys, heading):
    content = csv(ROWS, heading) + b"\n"
    expected, _ = predicted(folder, "rows.csv", content, tmp_path, capsys)
    page = show()
    assert not lacking(drop(page, "rows.csv", content), "rows.csv", f"{len(ROWS)} rows")
    assert labels(page) == expected == BASE.predict(ROWS).tolist()


def test_labels_in_a_csv_are_left_out(show, folder, tmp_path, capsys):
    heading = ",".join(["target", *map(str, range(WIDTH)), "class"])
    content = "\n".join(
        [heading, *(f'"élan, {i}",{",".join(map(str, row))},7' for i, row in enumerate(SMALL))]
    ).encode()
    assert not lacking(
        predicted(folder, "rows.csv", content, tmp_path, capsys)[1],
        "rows.csv",
        "13 columns",
        "(40, 13)",
    )
    content = content.replace(b",class", b"").replace(b",7\n", b"\n")[:-2]
    expected, _ = predicted(folder, "rows.csv", content, tmp_path, capsys)
    page = show()
    assert drop(page, "rows.csv", content) == "rows.csv: 40 rows classified"
    assert labels(page) == expected == BASE.predict(SMALL).tolist()


def test_a_chosen_file_fills_the_tables(show, tmp_path):
    (tmp_path / "rows.npy").write_bytes(npy(ROWS))
    page = show()
    page.choose("#file", tmp_path / "rows.npy")
    message(page)
    predicted = BASE.predict(ROWS).tolist()
    cells = (
        "Array.from(document.querySelectorAll('#{} tr'), row => Array.from(row.cells, cell =>"
        " cell.textContent))"
    )
    assert page.run(cells.format("counts")) == [
        [label, str(predicted.count(label))] for label in CLASSES
    ]
    assert page.run(cells.format("labels")) == [[str(i), predicted[i]] for i in range(100)]
    assert not lacking(page.run("document.getElementById('first').textContent"), "100 rows")


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


FEW = np.array(ROWS[:3])


def changed(row, column, value):
    rows = FEW.copy()
    rows[row, column] = value
    return rows


BAD = {  # name and content of files that neither the page nor `tacit predict` takes
    "no npy": ("a.npy", b"not an array"),
    "empty": ("a.npy", b""),
    "version": ("a.npy", b"\x93NUMPY\x03\x00\x04\x00{}  "),
    "header": ("a.npy", b"\x93NUMPY\x01\x00\x04\x00{}  "),
    "complex": ("a.npy", npy(FEW * 1j)),
    "texts": ("a.npy", npy(FEW.astype(str))),
    "objects": ("a.npy", npy(np.array([[None, 1]]))),
    "columns": ("a.npy", npy(FEW[:, :5])),
    "one row": ("a.npy", npy(FEW[0])),
    "pictures": ("a.npy", npy(np.ones((2, 2, 3, 2), np.uint8))),
    "sides": ("a.npy", npy(np.ones((2, 5, 2), np.float32))),
    "cut": ("a.npy", npy(FEW)[:-8]),
    "nan": ("a.npy", npy(changed(2, 4, np.nan))),
    "infinite": ("a.npy", npy(changed(1, 0, -np.inf))),
    "too long": ("a.npy", npy(changed(1, 3, 1e200))),
    "too short": ("a.npy", npy(FEW * [[1], [1e-200], [1]])),
    "zeros": ("a.npy", npy(FEW * [[1], [1], [0]])),
    "no rows": ("a.npy", npy(FEW[:0])),
    "words": ("a.csv", csv(FEW) + ",".join("ab" * 6).encode()),
    "a word": ("a.csv", csv(FEW, "\n") + b"two" + b",1" * 11),
    "a gap": ("a.csv", csv(FEW[:1]) + b",1" * 11),
    "hexadecimal": ("a.csv", csv(FEW[:1]) + b"0x10" + b",1" * 11),
    "mixed heading": ("a.csv", b"label,3,4\n" + csv(FEW)),
    "short": ("a.csv", csv(FEW[:1]) + b"1,2\n"),
    "short, quoted": ("a.csv", csv(FEW[:1]) + b'"1","2, 3",\n'),
    "two columns": ("a.csv", csv(FEW[:, :2])),
    "not finite": ("a.csv", csv(FEW[:1]) + b"inf" + b",1" * 11),
    "nothing but zeros": ("a.csv", csv(FEW[:1]) + b"0" + b",0" * 11),
    "the same name": ("a.csv", b"a,b,b\n1,2,3\n"),
    "index": ("a.csv", b",a,b\n1,2,3\n"),
    "labels alone": ("a.csv", b"label\n1\n"),
    "heading alone": ("a.csv", ",".join(f"x{i}" for i in range(WIDTH)).encode() + b"\n"),
    "blank": ("a.csv", b"\n\n"),
    "bytes": ("a.csv", b"\xff\xfe1,2\n"),
}


def test_a_bad_file_is_refused_as_tacit_predict_does_and_the_next_good_one_is_read(
    show, folder, tmp_path, capsys
):
    page = show()
    for case, (name, content) in BAD.items():
        (tmp_path / "labels.csv").unlink(missing_ok=True)
        _, expected = predicted(folder, name, content, tmp_path, capsys)
        assert expected, case
        answer = drop(page, name, content)
        assert REASON.sub("", answer) == REASON.sub("", expected), case
        assert page.run("document.getElementById('results').hidden")
    assert drop(page, "rows.npy", npy(ROWS[:3])) == "rows.npy: 3 rows classified"
    assert page.faults == []


# as numpy or the browser puts it
REASON = re.compile(
    r"(?<=array )\(.*\)(?=;)|(?<=dtype )\S+(?=;)|\(it is.*\)"
    r"|, or encode a table with texts first: .*"  # whoever has the page alone has no tacit
)


def test_files_for_tacit_predict_alone_are_refused(show, monkeypatch):
    page = show()
    answer = drop(page, "rows.txt", b"1,2")
    assert not lacking(answer, "rows.txt", ".npy", ".csv", "tacit predict")
    answer = drop(page, "rows.npy", npy(ROWS.astype(np.longdouble)))
    assert answer.endswith(
        "which this page does not read; convert it to float32, or use tacit predict"
    )
    monkeypatch.setattr(module, "LARGEST_FILE", 1000)
    answer = drop(show(), "a.csv", csv(ROWS))
    assert answer.endswith("bytes, and this page reads at most 1000; use tacit predict")


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
    .concat([mark.getAttribute("cx"), mark.getAttribute("cy")].map(Number));
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


def assert_percent_up(said, share):
    """In tenths of a percent, rounded up; sums in another order may fall on either side of one."""
    assert re.fullmatch(r"\d+\.\d%", said)
    assert said in (percent_up(share * (1 - 1e-9)), percent_up(share * (1 + 1e-9)))


@pytest.mark.parametrize(
    ("share", "said"),
    [(0, "0.0%"), (0.092, "9.2%"), (0.09237, "9.3%"), (1e-6, "0.1%"), (1, "100.0%")],
)
def test_percentages_are_rounded_up_to_tenths(show, share, said):
    assert percent_up(share) == said
    assert show().run(f"percentUp({share})") == said


# which takes seconds to account
@pytest.mark.parametrize("name", [name for name in COSTS if name != "mixed"])
def test_sliders_show_what_the_guarantee_says(show, name):
    release = with_guarantee(COSTS[name])
    guarantee = release.guarantee
    page = show(release)
    for position, rate in enumerate(RATES):
        prior = (7 * position) % 99 + 1
        found, belief, x, y = page.run(SHOWN.format(rate=position, prior=prior))
        true = guarantee.attack_rate(rate)
        assert_percent_up(found, true)
        right = prior * true / (prior * true + (100 - prior) * rate)
        assert_percent_up(belief, right)
        assert (x, y) == pytest.approx((100 * rate, 100 - 100 * true), abs=1e-9)
    assert (page.requests, page.faults) == ([], [])


def test_only_gaussian_guarantees_are_computed_in_closed_form():
    closed = {name: exact_mu(Guarantee(Unit.ADD_REMOVE, event)) for name, event in COSTS.items()}
    assert closed["Gaussian"] == 1
    assert closed["two Gaussians"] == math.sqrt(1 + 3 / 25)
    assert [closed[name] for name in ("no bound", "selection", "zCDP", "mixed")] == [None] * 4
    groups = Guarantee(
        Unit.ADD_REMOVE, Gaussian(4.0), groups=(("a", Gaussian(1.0)), ("b", Gaussian(3.0)))
    )
    assert exact_mu(groups) == groups.mu
    assert exact_mu(Guarantee(Unit.ADD_REMOVE, Gaussian(4.0), groups=(("a", ZCDP(1.0)),))) is None


def test_sliders_follow_the_keyboard(show):
    page = show()
    page.run("document.getElementById('rate').focus()")
    before = page.run("document.getElementById('found').textContent")
    page.press("ArrowRight", 39)
    assert page.run("document.getElementById('rate').value") == str(FIRST_RATE + 1)
    assert page.run("document.getElementById('found').textContent") != before
    assert page.run("document.getElementById('rate').getAttribute('aria-valuetext')") == "2%"
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
        part: sum(
            map(int, re.findall(r"\d+", page.run(f"getComputedStyle(document.body).{part}"))[:3])
        )
        for part in ("backgroundColor", "color")
    }
    assert (luminance["backgroundColor"] > luminance["color"]) is (scheme == "light")
    assert page.violations() == []


def test_every_input_has_a_label_and_every_picture_a_name(show):
    page = show()
    assert page.run(
        "Array.from(document.querySelectorAll('input'), input => input.labels.length)"
    ) == [1, 1, 1]
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
    page.run(
        "document.body.insertAdjacentHTML('beforeend', '<img src=\"https://example.com/x.png\">')"
    )
    page.run("fetch('https://example.com/').catch(() => null)")
    refused = [fault["entry"]["text"] for fault in page.faults if "entry" in fault]
    for blocked in ("x.png' violates", "cannot load https://example.com/"):
        assert any(blocked in text and "Content Security Policy" in text for text in refused), (
            blocked
        )


def test_the_page_opens_in_plain_words_before_any_number_of_the_guarantee(tmp_path, capsys):
    opening, rest = release_page(BASE, None, "Signed by <me>.").split("<h2>", 1)
    stated = re.findall("<dt>(.*?)</dt>", opening)
    assert stated[:3] == ["What it does", "Classes", "How well it works"]
    assert stated[3:] == ["Made and signed by", "Protection", "Date"]
    assert "Signed by &lt;me&gt;." in opening
    assert "at most 69.2 right" in opening
    assert "epsilon" not in opening.split("<body>")[1]
    assert rest.startswith("What an attacker may learn</h2>\n<p>Including or leaving out")

    # a key without a signature
    folder = BASE.save(tmp_path / "pets")
    key = tmp_path / "absent.pem"
    assert main(["page", str(folder), "--out", str(tmp_path / "a.html"), "--key", str(key)]) == 2
    assert not lacking(capsys.readouterr().err, "absent.pem")


def test_the_card_is_all_there():
    html = release_page(BASE)
    text = re.sub(r"<[^>]*>", "", html.split("<h2>The card</h2>")[1].split("</main>")[0])
    assert [title in text for title in ("1. Product", "9. Accounting", "17. Empirical audit")] == [
        True
    ] * 3
    assert html.count("<ul>") == html.count("</ul>")
    assert html.count("<li>") == html.count("</li>")
    assert BASE.document.accounting.in_words in html.replace("&#x27;", "'")


def network_release(kind, shape, classes=CLASSES, scale=1.0):
    """A release that decides by an untrained network."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    width = math.prod(shape)
    model = tacit.NoisySumPrototypes(classes=classes).fit(
        np.ones((2, width)), np.array(classes)[[0, 1]]
    )
    arrays = weights(network(kind)(shape, len(classes)))
    model.released_ = Released(
        "test", arrays, NetworkHead(kind, shape, scale), probabilities=Probabilities(3.0, 0.2)
    )
    return Release.of(model)


def test_without_onnxruntime_the_page_of_a_network_names_other_tools():
    html = release_page(network_release("linear", (WIDTH,)))
    assert (
        "This release decides by a network, which this page cannot run: label files"
        " with\n<code>tacit predict" in html
    )
    assert 'id="file"' not in html
    assert "wasm" not in html


def test_onnxruntime_is_for_networks_and_must_be_there(tmp_path):
    with pytest.raises(InputError, match=stating("onnxruntime=", "networks")):
        release_page(BASE, tmp_path)
    release = network_release("linear", (WIDTH,))
    with pytest.raises(InputError, match=stating("ort.wasm.min.js", "dist", "npm")):
        release_page(release, tmp_path)
    for name in RUNTIME:
        (tmp_path / name).write_bytes(b"x = '</SCRIPT>'")
    with pytest.raises(InputError, match=stating("ort.wasm.min.js", "</script")):
        release_page(release, tmp_path)


@pytest.fixture(scope="module")
def onnxruntime_web():
    """The folder dist of the npm package onnxruntime-web."""
    folder = os.environ.get("ONNXRUNTIME_WEB")
    if folder is None:
        pytest.skip(
            "ONNXRUNTIME_WEB does not name the folder dist of the npm package onnxruntime-web"
        )
    return Path(folder)


NETWORK_CASES = {
    "linear": ("linear", (WIDTH,), CLASSES, 1.0),
    "mlp": ("mlp", (WIDTH,), [7, 3, 5], 2.0),
    "cnn": ("cnn", (3, 8, 8), CLASSES, 255.0),
    "resnet": ("resnet", (1, 8, 8), list(range(20)), 255.0),
}


@pytest.mark.parametrize("case", NETWORK_CASES)
def test_a_network_runs_in_the_page_and_asks_for_nothing(show, onnxruntime_web, case):
    kind, shape, classes, scale = NETWORK_CASES[case]
    release = network_release(kind, shape, classes, scale)
    rows = RNG.normal(size=(200, math.prod(shape))).astype(np.float32)
    if scale == 255:
        rows = RNG.integers(0, 256, size=(200, *shape)).astype(np.uint8)
    page = show(release, onnxruntime_web)
    assert drop(page, "rows.npy", npy(rows)) == "rows.npy: 200 rows classified"
    expected = release.predict(rows.reshape(200, -1)).tolist()
    assert labels(page) == list(map(str, expected))
    assert len(set(expected)) > 1
    assert [url for url in page.requests if not url.startswith("blob:")] == []
    assert page.faults == []
    page.run("fetch('https://example.com/').catch(() => null)")
    assert any("Content Security Policy" in fault["entry"]["text"] for fault in page.faults)


def test_arrays_beyond_a_page_are_refused(monkeypatch):
    monkeypatch.setattr(module, "LARGEST", 100)
    with pytest.raises(ReleaseError, match=stating("480 bytes", "100")):
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
