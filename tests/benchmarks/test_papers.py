"""The papers' claims: the page is what stored results give, and verdicts follow from inequalities."""

import csv
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULES = ("claims", "findings", "page", "run", "stored")


@pytest.fixture
def papers(monkeypatch):
    """The modules of benchmarks/papers, by name."""
    for name in MODULES:
        sys.modules.pop(name, None)
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks" / "papers"))
    import claims
    import findings
    import page
    import run
    import stored

    yield {module.__name__: module for module in (claims, findings, page, run, stored)}
    for name in MODULES:
        sys.modules.pop(name, None)


def row(stored, learner, seed, balanced, budget="rho=0.125", data="made up"):
    return stored.Row(
        plan="headline",
        data=data,
        encoder="none",
        learner=learner,
        public="",
        public_rows="",
        budget=budget,
        imbalance="10",
        seed=seed,
        balanced=balanced,
        minority=balanced / 2,
    )


def test_the_page_is_what_the_stored_results_give(papers):
    text = papers["page"].PAGE.read_text(encoding="utf-8")
    assert text == papers["page"].new_page()
    for picture in (papers["page"].BALANCED, papers["page"].MINORITY):
        assert (papers["page"].PICTURES / picture).is_file()


def test_every_claim_gets_the_kind_of_verdict_that_it_expects(papers):
    assert papers["run"].unexpected(papers["page"].all_cells()) == []
    counts = Counter(claim.paper for claim in papers["claims"].CLAIMS)
    assert [*counts.values()] == [25, 8, 8]


def test_claims_read_plans_that_are_there_and_runs_say_how_many_cells_they_have(papers):
    runs = papers["stored"].read_runs()
    names = {path.stem for path in papers["stored"].QUICK.glob("*.yaml")}
    assert set(runs) <= names
    assert all(run.cells <= run.of for run in runs.values())
    cells = Counter(one.plan for one in papers["stored"].read_rows())
    assert cells == {run.plan: run.cells for run in runs.values()}
    for claim in papers["claims"].CLAIMS:
        assert claim.plan in names | set(papers["stored"].BENCHMARKS)


def test_a_claim_without_cells_has_no_verdict_and_one_with_too_few_is_an_error(papers, monkeypatch):
    page = papers["page"]
    (claim,) = (one for one in papers["claims"].CLAIMS if one.find.__name__ == "best_k_grows")
    assert page.finding_of(claim, papers["stored"].Cells([])) is None

    def misses(cells):
        raise LookupError

    claim = replace(claim, find=misses)
    cells = page.all_cells()
    run = papers["stored"].Run(claim.plan, 1, 2, "0" * 12, "2026-01-01", "0", 1)
    monkeypatch.setattr(page, "read_runs", lambda: {claim.plan: run})
    assert page.finding_of(claim, cells) is None
    monkeypatch.setattr(page, "read_runs", lambda: {claim.plan: replace(run, cells=2)})
    with pytest.raises(LookupError):
        page.finding_of(claim, cells)


def test_ahead_is_beyond_two_standard_errors_of_paired_seeds(papers):
    findings = papers["findings"]

    def comparison(left, right):
        rows = [row(papers["stored"], "a", seed, value) for seed, value in enumerate(left)]
        rows += [row(papers["stored"], "b", seed, value) for seed, value in enumerate(right)]
        cells = papers["stored"].Cells(rows)
        return findings.compare(cells, {"learner": "a"}, {"learner": "b"})

    # differences .1, .2, .3: mean .2, standard error .1 / sqrt(3)
    clear = comparison((0.5, 0.6, 0.7), (0.4, 0.4, 0.4))
    assert clear.error == pytest.approx(0.1 / 3**0.5)
    assert clear.ahead
    assert not clear.behind
    # differences -.1, .2, .3: mean .13, standard error .12
    assert not comparison((0.3, 0.6, 0.7), (0.4, 0.4, 0.4)).ahead
    assert comparison((0.4, 0.4), (0.6, 0.6)).behind
    # within the margin, without any spread
    assert not comparison((0.404, 0.404), (0.4, 0.4)).ahead
    with pytest.raises(LookupError):
        comparison((0.5, 0.6), (0.4,))


def test_a_method_that_does_not_exceed_chance_is_not_ahead(papers):
    def outcome(better, worse, data):
        rows = [row(papers["stored"], "a", seed, value, data=data) for seed, value in better]
        rows += [row(papers["stored"], "b", seed, value, data=data) for seed, value in worse]
        cells = papers["stored"].Cells(rows)
        first = papers["findings"].compare(cells, {"learner": "a"}, {"learner": "b"})
        second = papers["findings"].compare(cells, {"learner": "b"}, {"learner": "a"})
        return first.outcome, second.outcome

    low = ((0, 0.0), (1, 0.0))
    assert outcome(((0, 0.012), (1, 0.014)), low, "cifar100") == ("level", "level")
    assert outcome(((0, 0.022), (1, 0.024)), low, "cifar100") == ("holds", "behind")
    # chance is .1 there
    assert outcome(((0, 0.022), (1, 0.024)), low, "cifar10") == ("level", "level")

    comparison = papers["findings"].Comparison(0.01, 0.0, 0.0, 0.005, True, True)
    assert papers["findings"].pairs({"e = 0.1": comparison}) == "0.1: .010/.000 (chance)"
    seen = replace(comparison, left_is_chance=False)
    assert papers["findings"].pairs({"e = 0.1": seen}) == "0.1: .010/.000"


def test_verdicts_say_where_a_claim_holds_is_level_and_is_behind(papers):
    findings = papers["findings"]
    outcomes = {"h": "holds", "l": "level", "b": "behind", "f": "does not hold"}

    def verdict(letters, beginning="e = "):
        return findings.extent({f"{beginning}{n}": outcomes[x] for n, x in enumerate(letters)})

    assert verdict("hhhh") == "holds"
    assert verdict("llll") == "level"
    assert verdict("ffff") == "does not hold"
    assert verdict("hhbb") == "holds up to e = 1, behind from e = 2 on"
    assert verdict("hlbb") == "holds at e = 0, level at e = 1, behind from e = 2 on"
    assert verdict("bhhb") == "holds at e = 1 and 2, behind at e = 0 and 3"
    assert verdict("bhhhbh") == "holds at e = 5 and from e = 1 to 3, behind at e = 0 and 4"
    assert verdict("ffhh") == "holds only from e = 2 on"
    assert verdict("hhb", "method ") == "holds at method 0 and method 1, behind at method 2"

    both = findings.Finding({"10": {"a": "holds"}, "50": {"a": "level"}, "99": {"a": "holds"}}, "")
    assert both.kind == findings.IN_PART
    assert both.verdict == "10 and 99: holds; 50: level"
    neither = findings.Finding({"": {"e = 1": "level", "e = 2": "behind"}}, "")
    assert neither.kind == "does not hold"
    assert neither.verdict == "level at e = 1, behind at e = 2"
    assert findings.epsilon_words("rho=0.005") == "e = 0.1"


def test_runs_replace_the_rows_of_their_plan_alone(papers, tmp_path, monkeypatch):
    stored = papers["stored"]
    monkeypatch.setattr(stored, "CELLS", tmp_path / "cells.csv")
    monkeypatch.setattr(stored, "RUNS", tmp_path / "runs.csv")
    first = [row(stored, "a", 0, 0.5), replace(row(stored, "a", 0, 0.4), plan="budgets")]
    runs = [
        stored.Run(name, 1, 1, "0" * 12, "2026-01-01", "0", 1) for name in ("headline", "budgets")
    ]
    papers["run"].store(first, runs)
    papers["run"].store([row(stored, "a", 0, 0.6)], runs[:1])
    assert {(one.plan, one.balanced) for one in stored.read_rows()} == {
        ("headline", 0.6),
        ("budgets", 0.4),
    }
    with (tmp_path / "runs.csv").open(encoding="utf-8", newline="") as file:
        assert [line["plan"] for line in csv.DictReader(file)] == ["budgets", "headline"]


def test_a_hash_of_a_plan_changes_with_its_cells_and_not_with_its_comments(papers, tmp_path):
    path = tmp_path / "plan.yaml"
    path.write_text("name: a\nabout: b\nseeds: 2\n", encoding="utf-8")
    before = papers["stored"].plan_hash(path)
    path.write_text("name: a\nabout: c\nseeds: 2  # two\n", encoding="utf-8")
    assert papers["stored"].plan_hash(path) == before
    path.write_text("name: a\nabout: b\nseeds: 3\n", encoding="utf-8")
    assert papers["stored"].plan_hash(path) != before
