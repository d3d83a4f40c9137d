"""The dossier of a release: what it says and where from, its JSON twin, its look, its refusals."""

import base64
import json
import re
from dataclasses import replace
from datetime import date
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import tacit
from messages import lacking
from tacit.cli.main import main
from tacit.errors import ReleaseError
from tacit.privacy.events import Exponential, Gaussian
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.unit import Unit
from tacit.releases.audited import AuditResult
from tacit.releases.gate import decide
from tacit.releases.measured import GroupUtility, PaidUtility
from tacit.releases.policy import Policy
from tacit.releases.release import Release, Utility
from tacit.report.attack import curve
from tacit.report.dossier import Checks, dossier, dossier_page, examined

HOSTILE = '"><script>alert(1)</script>&amp;'
CLASSES = ["cat", HOSTILE, "eel"]
DAY = date(2026, 11, 28)
WRITTEN = Path(__file__).parents[1] / "releases" / "written"


@pytest.fixture(scope="module")
def release():
    persons = np.arange(30) // 2
    learner = tacit.NoisySumPrototypes("rho=0.5", classes=CLASSES, unit="add-remove-person")
    learner.fit(np.eye(4)[np.arange(30) % 3], np.array(CLASSES)[np.arange(30) % 3], persons=persons)
    made = Release.of(
        learner, name=f"pets {HOSTILE}", curator=f"me {HOSTILE}", description="pictures of pets"
    )
    return made.with_utility(
        Utility(
            test_set=f"held out {HOSTILE}",
            rows=1200,
            accuracy=0.912,
            balanced_accuracy=0.905,
            per_class={"cat": 0.95, HOSTILE: 0.86},
            interval=(0.881, 0.929),
            interval_of="balanced accuracy",
            protection="public test set",
        )
    )


@pytest.fixture(scope="module")
def folder(release, tmp_path_factory):
    return release.save(tmp_path_factory.mktemp("saved") / "pets")


@pytest.fixture(scope="module")
def facts(release, folder):
    policy = Policy.of(
        {"unit": "person", "epsilon": 5, "delta": 1e-6, "signature": "required"}, "policy.toml"
    )
    return dossier(*examined(folder, None, DAY, decide(folder, policy, today=DAY)))


class Parts(HTMLParser):
    """The texts of a page by the kind of element that holds them."""

    def __init__(self, html):
        super().__init__()
        self.kind = None
        self.texts = {kind: [] for kind in ("h1", "h2", "h3", "dt", "dd", "td", "th", "answer")}
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        kind = "answer" if ("class", "answer") in attributes else tag
        if kind in self.texts:
            self.kind = kind
            self.texts[kind].append("")

    def handle_endtag(self, tag):
        if tag not in ("span", "p") or self.kind == "answer":
            self.kind = None

    def handle_data(self, data):
        if self.kind is not None:
            self.texts[self.kind][-1] += data


def test_the_page_and_its_twin_say_the_same(facts):
    twin = json.loads(json.dumps(facts.to_json()))
    texts = Parts(dossier_page(facts)).texts
    sections = twin["sections"]
    stated = [*twin["glance"], *(fact for section in sections for fact in section["facts"])]
    tables = [table for section in sections for table in section["tables"]]
    rows = [row for table in tables for row in table["rows"]]

    assert texts["h1"] == [f"Dossier: {twin['title']}"]
    assert texts["h2"] == [f"{i}. {section['title']}" for i, section in enumerate(sections, 1)]
    assert texts["answer"] == [section["answer"] for section in sections]
    assert texts["dt"] == [fact["name"] for fact in stated]
    assert texts["dd"] == [f"{fact['text']} ({fact['source']})" for fact in stated]
    assert texts["h3"] == [table["caption"] for table in tables]
    assert [cell for cell in texts["td"] if cell] == [cell for row in rows for cell in row[1:]]
    titles = [title for table in tables for title in table["header"] if title]
    assert sorted(texts["th"]) == sorted([*titles, *(row[0] for row in rows)])


def text_of(facts):
    return " ".join(json.dumps(facts.to_json(), ensure_ascii=False).split())


def test_the_numbers_are_those_of_the_guarantee(release, facts):
    guarantee = release.guarantee
    assert facts.right_guesses_of_100 >= 50 * (1 + guarantee.advantage)
    assert facts.right_guesses_of_100 == pytest.approx(50 * (1 + guarantee.advantage), abs=0.1)
    assert facts.marked == tuple((x, guarantee.attack_rate(x)) for x, _ in facts.marked)
    attacks = facts.sections[1].tables[0].rows
    assert [row[0] for row in attacks] == ["0.1%", "1%", "10%"]
    for (x, y), (_, detected, right) in zip(facts.marked, attacks, strict=True):
        for shown, share in ((detected, y), (right, y / (x + y))):
            assert 0 <= float(shown.removesuffix("%")) - 100 * share < 0.1
    assert "gets at most 69.2 right, and 50 without the release" in text_of(facts)


@pytest.mark.parametrize("event", [Gaussian(2.0), Exponential(1.0)])
def test_the_curve_is_that_of_the_guarantee(event):
    guarantee = Guarantee(Unit.ADD_REMOVE, event)
    first, *inner, last = curve(guarantee)
    assert first[0] == 0
    assert last == (1, 1)
    assert len(inner) > 3
    for x, y in inner[:: len(inner) // 4]:
        assert y == pytest.approx(guarantee.attack_rate(x), rel=1e-9)


def test_each_section_answers_from_the_document(release, facts):
    learned, conclusions, utility, checked, not_covered, details = facts.sections
    document = release.document
    assert not lacking(learned.answer, 3, "classes", "not stated")
    assert conclusions.answer.startswith("It hides whether any one person")
    assert not lacking(utility.answer, "91.2 of 100", "90.5 of 100", "88.1 to 92.9", "1,200 rows")
    assert utility.tables[0].rows == ((HOSTILE, "86.0"), ("cat", "95.0"))
    answers = {rule: (answer, line) for rule, answer, line in checked.tables[0].rows}
    assert answers["epsilon"][0] == "met"
    assert answers["signature"][0] == "NOT MET"
    assert "no key was given" in answers["signature"][1]
    assert dict(checked.tables[1].rows)["arrays.safetensors"] == document.contents.sha256
    assert {fact.name: fact.text for fact in not_covered.facts}["Not protected"] == "none listed"
    assert details.facts[0].text == document.accounting.statement
    assert facts.glance[-1].text == "policy.toml: NO. Not met: signature."
    assert "a person with several records" not in conclusions.facts[1].text


def test_unknown_facts_read_not_stated_and_records_are_no_persons():
    learner = tacit.NoisySumPrototypes("rho=0.5", classes=2).fit(np.eye(2), [0, 1])
    facts = dossier(Release.of(learner), Checks(DAY, {}, "Not signed."))
    names = {fact.name: fact.text for section in facts.sections for fact in section.facts}
    assert names["Maker, and day"].startswith("not stated, ")
    assert not lacking(names["Encoder"], "name: not stated")
    assert not lacking(names["Audit"], "not stated")
    assert not lacking(names["Persons"], "one record at a time", "is not stated")
    assert facts.sections[2].answer == "Not stated: nobody recorded how well it works."
    assert facts.glance[-1].text == "None was given, so no rule decided whether it may leave."


def test_paid_figures_stand_with_their_intervals_and_price(release):
    recorded = release.document.guarantee
    figures = {
        "records": 201.7,
        "accuracy": 0.7,
        "accuracy_interval": (0.6, 0.8),
        "balanced_accuracy": 0.65,
        "interval": (0.5, 0.75),
    }
    paid = PaidUtility(
        **figures,
        test_set="clinic",
        per_class={"eel": 0.9, "cat": 0.4},
        per_class_intervals={"eel": (0.8, 0.95), "cat": (0.3, 0.5), HOSTILE: (0.0, 1.0)},
        grouped_by="hospital",
        groups=(GroupUtility(name="north", **figures | {"accuracy": "hidden by noise"}),),
        noise="secure",
        guarantee=recorded,
        statement="a price",
    )
    document = release.document.model_copy(update={"utility": paid})
    section = dossier(replace(release, document=document), Checks(DAY, {}, "Not signed.")).sections[
        2
    ]
    assert not lacking(section.answer, "70.0 of 100", "about 202 records of clinic", "paid for")
    classes, groups = section.tables
    assert classes.rows == (
        ("cat", "40.0", "30.0 to 50.0"),
        ("eel", "90.0", "80.0 to 95.0"),
        (HOSTILE, "hidden by noise", "0.0 to 100.0"),
    )
    assert groups.rows == (("north", "hidden by noise", "60.0 to 80.0"),)
    assert {fact.name: fact.text for fact in section.facts}["Statement"] == "a price"


def test_prediction_sets_stand_with_their_price(release):
    rows = np.eye(4)[np.arange(60) % 3]
    labels = np.array(CLASSES)[np.arange(60) % 3]
    calibrated = tacit.calibrate_sets(release, rows, labels, level=0.8, budget="rho=0.5")
    facts = dossier(calibrated, Checks(DAY, {}, "Not signed."))
    names = {fact.name: fact.text for fact in facts.sections[2].facts}
    sets = calibrated.document.contents.sets
    assert not lacking(names["Prediction sets"], sets.rule, "for level 0.8", sets.promise)
    assert names["Price of the sets"] == f"{sets.statement} {sets.about}"
    # what they cost is about other records
    assert facts.sections[1] == dossier(release, Checks(DAY, {}, "Not signed.")).sections[1]


@pytest.mark.parametrize(
    ("made", "age"),
    [
        ("2026-11-18", "10 days old"),
        ("2026-12-01", "dated after this check"),
        ("2026-02-31", "of a day that does not exist"),
    ],
)
def test_an_audit_has_an_age(release, made, age):
    audit = AuditResult(
        result="no lower bound is above the promise",
        lower_bound=1.25,
        lower_bound_at_alarm=0.5,
        promise_at_alarm=release.guarantee.epsilon(1e-5),
        delta_at_alarm=1e-5,
        promise=release.guarantee.epsilon(1e-5),
        delta=1e-5,
        confidence=0.95,
        unit="add-remove-person",
        assumption="none",
        attacks=("threshold", "LiRA"),
        setup="100 refits",
        date=made,
        version="0.1.0",
    )
    document = release.document.model_copy(update={"audit": audit})
    facts = dossier(replace(release, document=document), Checks(DAY, {}, "Not signed."))
    (said,) = (fact.text for fact in facts.sections[3].facts if fact.name == "Audit")
    assert not lacking(said, "at least 1.25", "4.37718 is promised", "threshold, LiRA", "0.95")
    assert not lacking(said, made, age, "only a signature vouches for")


def test_seeded_noise_protects_nobody():
    learner = tacit.NoisySumPrototypes("rho=0.5", classes=2, noise="research", random_state=0)
    facts = dossier(Release.of(learner.fit(np.eye(2), [0, 1])), Checks(DAY, {}, "Not signed."))
    assert facts.sections[1].answer.startswith("None: its noise was drawn from a seed")
    assert '<p class="stamp">NOT FOR RELEASE</p>' in dossier_page(facts)


@pytest.mark.parametrize("name", ["version-3", "version-4/response", "version-5/persons"])
def test_documents_of_older_versions_have_a_dossier(name):
    written = Release.load(WRITTEN / name)
    facts = dossier(written, Checks(DAY, {}, "Not signed."))
    assert facts.sections[1].answer.startswith("It hides")
    assert len(Parts(dossier_page(facts)).texts["h2"]) == 6


def test_texts_of_a_release_are_no_markup_and_nothing_runs(page, facts, tmp_path):
    html = dossier_page(facts)
    assert "<script" not in html
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)[1]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert not re.search("script-src|unsafe|http", policy)
    assert len(html) < 60_000
    path = tmp_path / "page.html"
    path.write_text(html, encoding="utf-8")
    page.requests.clear()
    page.open(path)
    assert [url for url in page.requests if url != path.as_uri()] == []
    assert page.faults == []
    assert page.run("document.querySelectorAll('svg .mark').length") == 3


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_and_is_accessible(page, facts, tmp_path, width, scheme):
    path = tmp_path / "page.html"
    path.write_text(dossier_page(facts), encoding="utf-8")
    page.open(path, width=width, scheme=scheme)
    assert page.run("document.documentElement.scrollWidth") <= width
    assert page.violations() == []


def test_on_paper_no_table_is_cut(page, facts, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(dossier_page(facts), encoding="utf-8")
    # the width of A4 between the margins, at 96 pixels an inch
    page.open(path, width=680)
    page.send("Emulation.setEmulatedMedia", media="print")
    try:
        cut = "Array.from(document.querySelectorAll('table, svg, dd'), part => part.scrollWidth)"
        assert max(page.run(cut)) <= 680
        assert page.run("getComputedStyle(document.querySelector('.wide')).overflowX") == "visible"
        printed = page.send("Page.printToPDF", preferCSSPageSize=True)["data"]
    finally:
        page.send("Emulation.setEmulatedMedia", media="")
    sheets = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", base64.b64decode(printed))
    # A4 in points
    assert {(round(float(width)), round(float(height))) for width, height in sheets} == {(595, 842)}
    assert len(sheets) <= 7


def test_the_command_writes_both_files_or_none(folder, tmp_path, capsys):
    out = tmp_path / "pets.html"
    command = ["inspect", str(folder), "--dossier", str(out)]
    assert main(command) == 0
    twin = json.loads((tmp_path / "pets.json").read_text(encoding="utf-8"))
    assert twin["format"] == "tacit-dossier"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pets.html", "pets.json"]
    shown = Parts(out.read_text(encoding="utf-8")).texts["answer"]
    assert shown == [section["answer"] for section in twin["sections"]]

    refusals = {
        str(out): "exists",
        str(tmp_path / "pets.pdf"): ".html",
        str(folder / "pets.html"): "inside the release",
    }
    for path, fault in refusals.items():
        assert main([*command[:-1], path]) == 2
        *_, last = capsys.readouterr().err.splitlines()
        assert last.startswith("tacit: ")
        assert fault in last
    out.unlink()
    assert main(command) == 2
    assert not out.exists()
    assert main([*command, "--force"]) == 0
    assert out.exists()


def test_a_tampered_release_has_no_dossier(folder, tmp_path):
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in folder.iterdir():
        text = file.read_bytes().replace(b'"accuracy": 0.912', b'"accuracy": 0.999')
        (copy / file.name).write_bytes(text)
    assert main(["inspect", str(copy), "--dossier", str(tmp_path / "copy.html")]) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["copy"]


def test_with_a_policy_the_answer_is_on_the_page_and_the_status(folder, tmp_path, capsys):
    policy = tmp_path / "policy.toml"
    policy.write_text('signature = "required"\n')
    out = tmp_path / "pets.html"
    command = ["inspect", str(folder), "--require", str(policy), "--dossier", str(out)]
    assert main(command) == 1
    assert not lacking(capsys.readouterr().out, "not met", "signature")
    shown = Parts(out.read_text(encoding="utf-8")).texts
    assert "policy.toml: NO. Not met: signature. (this check)" in shown["dd"]
    policy.write_text("epsilon = 5\ndelta = 1e-6\nunit = 'person'\n")
    assert main([*command, "--force"]) == 0
    shown = Parts(out.read_text(encoding="utf-8")).texts
    assert any("yes, all" in text for text in shown["dd"])


def test_files_that_were_exchanged_since_the_verdict_have_no_dossier(folder, tmp_path):
    verdict = decide(folder, Policy.of({"signature": "required"}, "policy.toml"))
    with pytest.raises(ReleaseError, match="was exchanged while it was read"):
        examined(folder, None, DAY, replace(verdict, sha256="0" * 64))
