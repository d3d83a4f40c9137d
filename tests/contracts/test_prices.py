"""No price is printed rounded down: every number in outputs of representative commands that looks
like an epsilon, rho, mu, delta or attack rate of a guarantee is at least the exact one.
"""

import math
import re

import numpy as np
import pytest

import tacit
from cli.conftest import CLASSES, rows
from tacit.cli.main import main
from tacit.data.embeddings import EmbeddingStore
from tacit.models.metrics import spread
from tacit.privacy.allowance import Allowance
from tacit.privacy.events import (
    ZCDP,
    Exponential,
    FilteredVotes,
    Gaussian,
    Laplace,
    NoisyArgmax,
    NoisyCheck,
    PureDP,
    RandomizedResponse,
    RepeatAndSelect,
    SampledGaussian,
    compose,
)
from tacit.privacy.guarantee import DELTAS, FALSE_POSITIVE_RATES, implied_units
from tacit.privacy.older import TO_NEAREST
from tacit.privacy.unit import Unit
from tacit.releases.release import Release
from tacit.report.accuracy import _cost_words, result_of_fit
from tacit.report.demo_page import _epsilon_text
from tacit.report.figure import Panel, Point
from tacit.report.groups import budget_words
from tacit.report.release_page import release_page
from tacit.report.tables import _price

NUMBER = re.compile(r"(?<![\w.])(\d+\.\d+(?:e[+-]?\d+)?|\d+e[+-]?\d+)(?![\w.]*\d)")

# each is rounded down where it is written with three, five or six digits
BUDGETS = {
    "noisy-sum": "rho=0.12345612",
    "public": "epsilon=1.00040001",
    "least-squares": "epsilon=2.2542,delta=1.2345612e-5",
    "gradient-descent": "mu=0.80010004",
}


def prices_of(guarantee):
    """Every privacy cost of a guarantee, under each unit that it implies."""
    prices = set()
    for unit in (guarantee.unit, *implied_units(guarantee.unit)):
        under = guarantee.to(unit)
        deltas = {0.0, *DELTAS, guarantee.delta or DELTAS[0]}
        prices |= {under.epsilon(delta) for delta in deltas}
        prices |= {under.rho or 0, under.mu or 0, under.advantage}
        prices |= {under.attack_rate(rate) for rate in FALSE_POSITIVE_RATES}
    prices |= {
        event.epsilon for event, _ in guarantee.event.contained() if hasattr(event, "epsilon")
    }
    return {price for price in prices if 0 < price < math.inf}


def rounded_down(text, prices):
    """Numbers of a text with three digits or more that are a price, written below it."""
    faults = []
    for token in NUMBER.findall(text):
        number = float(token)
        mantissa = token.split("e")[0].replace(".", "").lstrip("0")
        digits = len(mantissa)
        for price in prices:
            if not number < price * (1 - 1e-9):
                continue
            nearest = float(f"{price:.{digits}g}")
            step = 10.0 ** (math.floor(math.log10(price)) - digits + 1)
            down = math.floor(price / step) * step
            if digits > 2 and (number == nearest or math.isclose(number, down, rel_tol=1e-12)):
                faults.append((token, price))
    return faults


def test_the_scan_finds_what_it_is_for():
    assert rounded_down("epsilon 2.25 at delta", {2.2542}) == [("2.25", 2.2542)]
    assert rounded_down("rho = 0.123456", {0.12345612}) == [("0.123456", 0.12345612)]
    assert rounded_down("epsilon 2.3 and 2.26, version 2.2", {2.2542}) == []


@pytest.mark.parametrize("method", BUDGETS)
def test_promises_cards_pages_and_ledgers(method, tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    x, y = rows(rng, 60)
    EmbeddingStore.write(tmp_path / "private", x, y, classes=CLASSES, labels="index")
    EmbeddingStore.write(tmp_path / "public", rows(rng, 40)[0])
    monkeypatch.chdir(tmp_path)

    public = " --public public" if method == "public" else ""
    allowance = "epsilon=20" if method == "public" else "epsilon=20,delta=1e-5"
    assert main(f"ledger private --allow {allowance}".split()) == 0
    fit = f"fit {method} private{public} --budget {BUDGETS[method]} --out release"
    assert main(fit.split()) == 0
    for line in (
        f"promise {method} --budget {BUDGETS[method]} --classes ant,bee,cow",
        "inspect release",
        "ledger private",
        "publish release --to hub",
    ):
        assert main(line.split()) == 0, line

    release = Release.load("release")
    printed = capsys.readouterr()
    outputs = {
        "printed": printed.out + printed.err,
        "hub": (tmp_path / "hub" / "README.md").read_text(),
        "page": re.sub(r"<(script|style).*?</\1>", "", release_page(release), flags=re.DOTALL),
        "statement": release.guarantee.statement(1.2345612e-5),
    }
    prices = prices_of(release.guarantee) | {1.2345612e-5}
    for name, text in outputs.items():
        assert not rounded_down(text, prices), name


DELTA = 1.2345612e-5
PLAN = """
name: prices
data:
  - {name: digits, encoder: pixels, builtin: digits}
learners:
  - {name: noisy sums, method: noisy-sum}
budgets: [rho=0.12345612]
imbalance: [1]
seeds: 1
"""


def test_forecasts_audits_gates_and_dossiers(tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    facts = {"classes": CLASSES, "labels": "index"}
    EmbeddingStore.write(tmp_path / "private", *rows(rng, 60), **facts)
    EmbeddingStore.write(tmp_path / "public", *rows(rng, 60), **facts, declared_public=True)
    (tmp_path / "policy.toml").write_text(
        f'unit = "record"\nepsilon = 5\ndelta = {DELTA}\nadvantage = 0.9\n'
    )
    monkeypatch.chdir(tmp_path)

    budget = BUDGETS["noisy-sum"]
    forecast = "forecast noisy-sum --public public --classes 3 --records 9 --imbalance 1 --seeds 1"
    for line in (
        f"fit noisy-sum private --budget {budget} --out release",
        f"{forecast} --pseudo-classes labels --delta {DELTA} --budgets {budget}",
        f"audit release --public public --refits 16 --delta {DELTA} --record",
        "inspect release --require policy.toml --dossier dossier.html",
    ):
        assert main(line.split()) == 0, line

    printed = capsys.readouterr()
    dossier = (tmp_path / "dossier.html").read_text()
    outputs = {
        "printed": printed.out + printed.err,
        "dossier": re.sub(r"<(script|style|svg).*?</\1>", "", dossier, flags=re.DOTALL),
        "card": (tmp_path / "release" / "CARD.md").read_text(),
    }
    guarantee = Release.load("release").guarantee
    prices = prices_of(guarantee) | {DELTA, guarantee.epsilon(DELTA)}
    for name, text in outputs.items():
        assert not rounded_down(text, prices), name
        # six digits of a delta that a user gave, rounded up
        assert "1.23457e-05" in text or name == "card", name


def test_results_and_report_of_a_sweep(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.yaml").write_text(PLAN)
    for line in ("sweep plan.yaml --out runs", "results runs", "report runs --out report.html"):
        assert main(line.split()) == 0, line

    report = (tmp_path / "report.html").read_text()
    outputs = {
        "results": capsys.readouterr().out,
        "report": re.sub(r"<(script|style).*?</\1>", "", report, flags=re.DOTALL),
    }
    prices = prices_of(tacit.NoisySumPrototypes(BUDGETS["noisy-sum"]).promise())
    for name, text in outputs.items():
        assert not rounded_down(text, prices), name


def test_phrases_of_events():
    epsilon = 0.12345612
    for event in (
        PureDP(epsilon),
        Exponential(epsilon),
        RandomizedResponse(epsilon, 4),
        ZCDP(epsilon),
        FilteredVotes(3.0, epsilon, 10.0),
        RepeatAndSelect(PureDP(epsilon), 5.0, 1.0),
        compose([PureDP(epsilon)] * 3),
    ):
        assert "0.123457" in event.describe()
        # as documents of earlier versions have it
        assert "0.123456" in event.describe(TO_NEAREST)


def test_noise_multipliers_of_events():
    multiplier = 2.00000987  # to the nearest 2.00001, which would cost less
    for event in (
        Gaussian(multiplier),
        Laplace(multiplier),
        NoisyCheck(multiplier, 3.0),
        NoisyArgmax(multiplier, 3.0),
        SampledGaussian(multiplier, 0.1),
        compose([Gaussian(multiplier)] * 3),
    ):
        assert "noise of 2 times" in event.describe()
        assert "noise of 2.00001 times" in event.describe(TO_NEAREST)

    assert "rate 0.100001" in SampledGaussian(1.0, 0.10000012).describe()
    assert "order 2" in FilteredVotes(multiplier, 1.0, 10.0).describe()
    # float arithmetic that ends below 3 is no smaller multiplier
    assert "noise of 3 times" in Gaussian(math.nextafter(3, 0)).describe()


def test_amounts_of_allowances():
    for budget in ("rho=1", "epsilon=1", "mu=1"):
        allowance = Allowance.of(budget, Unit.ADD_REMOVE)
        assert "0.123457" in allowance.amount(0.12345612)


def test_figures_and_tables_of_sweeps():
    rho = 0.12345612
    epsilon = math.sqrt(2 * rho)
    result = result_of_fit("noisy-sum", rho, 0, 0.5, None)
    panel = Panel("", (Point("a", epsilon, spread([rho]), (result,)),), prices=True)
    for text in (
        result.budget,
        budget_words(f"rho={rho}"),
        _cost_words("rho", epsilon),
        _cost_words("epsilon", epsilon),
        _price(rho),
        panel.description,
    ):
        assert not rounded_down(text, {rho, epsilon}), text


def test_epsilon_of_the_demonstration():
    """At rho 0.125 epsilon is 2.2445 at delta 1e-6, which read 2.24 before."""
    exact = tacit.NoisySumPrototypes("rho=0.125").promise().epsilon(1e-6)
    assert float(_epsilon_text(0.125)) >= exact
