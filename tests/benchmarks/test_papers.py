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


def row(stored, learner, seed, balanced, budget="rho=0.125"):
    return stored.Row(
        plan="headline",
        data="made up",
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
    assert [*counts.values()] == [23, 8, 8]


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


def test_verdicts_say_where_a_claim_holds(papers):
    findings = papers["findings"]

    def verdict(*truths):
        return findings.extent(dict(zip("abcd", truths, strict=True)))

    assert verdict(True, True, True, True) == "holds"
    assert verdict(False, False, False, False) == "does not hold"
    assert verdict(True, True, False, False) == "holds up to b"
    assert verdict(False, False, True, True) == "holds from c on"
    assert verdict(True, False, True, False) == "holds at a, c"

    both = findings.Finding({"10": {"a": True, "b": True}, "50": {"a": False, "b": False}}, "")
    assert both.kind == findings.IN_PART
    assert both.verdict == "10: holds; 50: does not hold"
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
