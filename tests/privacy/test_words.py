import math
import re
from pathlib import Path
from statistics import NormalDist

import pytest

from messages import lacking, stating
from privacy.events.samples import EVENTS
from tacit.errors import InputError
from tacit.privacy.events import (
    ZCDP,
    Exponential,
    Gaussian,
    Laplace,
    PureDP,
    RandomizedResponse,
    RepeatAndSelect,
    SampledGaussian,
    compose,
)
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.older import older_attack_rate, oldest_attack_rate
from tacit.privacy.unit import Unit
from tacit.privacy.words import DECISIVE, meaning, standing

PHI = NormalDist().cdf


def of(event, unit=Unit.ADD_REMOVE, **groups):
    return Guarantee(unit, event, groups=tuple(groups.items()))


@pytest.mark.parametrize("mu", [0.01, 0.5, 1.0, 4.0])
def test_the_advantage_against_gaussian_noise_is_that_of_its_curve(mu):
    assert of(Gaussian(1 / mu)).advantage == pytest.approx(2 * PHI(mu / 2) - 1, rel=1e-12)
    assert of(4 * Gaussian(2 / mu)).advantage == pytest.approx(2 * PHI(mu / 2) - 1, rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 5.0])
def test_the_advantage_of_a_pure_mechanism_is_that_of_randomized_response(epsilon):
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))
    for event in (PureDP(epsilon), RandomizedResponse(epsilon, 2)):
        assert of(event).advantage == pytest.approx(2 * keep - 1, rel=1e-9)


def test_the_advantage_bounds_the_total_variation_where_it_is_known():
    # of Laplace noise 1 - exp(-epsilon/2); of bounded range tanh(epsilon/4)
    for epsilon in (0.1, 1.0, 4.0):
        assert (
            1 - math.exp(-epsilon / 2)
            <= of(Laplace(1 / epsilon)).advantage
            <= math.tanh(epsilon / 2)
        )
        assert (
            math.tanh(epsilon / 4) <= of(Exponential(epsilon)).advantage <= math.tanh(epsilon / 2)
        )
    # of one sampled use: the rate times that of Gaussian noise
    for rate, z in ((0.01, 0.5), (0.3, 1.0)):
        unsampled = 2 * PHI(1 / (2 * z)) - 1
        assert rate * unsampled <= of(SampledGaussian(z, rate)).advantage < unsampled
    gaussian = Gaussian(math.sqrt(1 / 0.2))
    assert of(gaussian).advantage <= of(ZCDP(gaussian.rho)).advantage <= math.sqrt(gaussian.rho / 2)


def test_the_advantage_of_a_search_follows_from_its_curve():
    search = RepeatAndSelect(Gaussian(20.0), 5, 1)
    bounds = [
        (math.expm1(e) + 2 * d) / (math.exp(e) + 1)
        for d in (0.1, 0.03, 0.01, 0.001)
        if (e := of(search).epsilon(d))
    ]
    assert of(search).advantage == pytest.approx(min(bounds), rel=1e-9)
    assert of(Gaussian(20.0)).advantage < of(search).advantage < 0.9


@pytest.mark.parametrize("event", EVENTS, ids=str)
def test_no_attack_exceeds_the_advantage(event):
    guarantee = of(event)
    for rate in (0.001, 0.1, 0.3, 0.7):
        assert rate < guarantee.attack_rate(rate) <= rate + guarantee.advantage + 1e-12
        older = older_attack_rate(event, rate)
        assert guarantee.attack_rate(rate) <= older * (1 + 1e-9)
        assert older <= oldest_attack_rate(event, rate) * (1 + 1e-9)


def test_no_bound_and_no_cost_are_the_ends():
    assert of(Gaussian(0.0)).advantage == 1
    assert of(compose([])).advantage == 0
    assert (
        of(Gaussian(0.0))
        .in_words()
        .startswith("No bound holds: the release may show everything about any one record")
    )
    assert (
        of(compose([]))
        .in_words()
        .startswith("Including or leaving out any one record has no effect on the release")
    )


def test_the_most_expensive_group_decides():
    both = of(compose([]), low=Gaussian(10.0), high=Gaussian(1.0))
    assert both.advantage == of(Gaussian(1.0)).advantage
    said = of(Gaussian(1.0)).in_words()
    assert (
        both.in_words()
        == f"For records of group high, which cost most: {said.replace('Including', 'including')}"
    )
    of_group = " (of the group whose records cost most): "
    assert f"Epsilon at delta{of_group}4.37718 at 1e-05" in both.statement()
    assert (
        f"The best attack{of_group}true-positive rate up to 0.0182985 at 0.001" in both.statement()
    )
    assert of(compose([]), only=Gaussian(1.0)).in_words() == said


def test_the_words_of_a_group_are_those_of_its_events():
    both = of(Gaussian(4.0), low=Gaussian(10.0), high=Gaussian(1.0))
    said = of(Gaussian(4.0) + Gaussian(10.0)).in_words()
    assert (
        both.in_words("low")
        == f"For records of group low: {said.replace('Including', 'including')}"
    )
    assert both.in_words("high") == both.in_words().replace(", which cost most", "")
    with pytest.raises(InputError, match=stating("group='middle'", "['low', 'high']")):
        both.in_words("middle")


def test_words_repeat_the_numbers_rounded_up():
    guarantee = of(Gaussian(1.0))
    said = guarantee.in_words()
    epsilon = guarantee.epsilon(DECISIVE)
    assert "at most 132.5 times as likely" in said
    assert 132.4 < math.exp(epsilon) <= 132.5
    assert not lacking(said, "69.2%", "50%")
    assert 69.1 < 50 * (1 + guarantee.advantage) <= 69.2
    assert not lacking(said, "1 in 1,000,000", "epsilon = 4.89", "delta = 1e-06")
    assert not lacking(said, "above what NIST SP 800-226", "within what Ponomareva")
    assert "\n" not in said


@pytest.mark.parametrize("event", [Exponential(1.0), RandomizedResponse(1.0, 3), PureDP(1.0)])
def test_a_pure_epsilon_leaves_nothing_to_chance(event):
    said = of(event).in_words()
    assert not lacking(said, "2.719 times", "epsilon = 1")
    assert not lacking(said, "within what NIST SP 800-226")
    assert "delta" not in said


def test_delta_is_named_where_it_makes_epsilon_smaller():
    said = of(2 * Exponential(1.0)).in_words()
    assert not lacking(said, "1 in 1,000,000", "epsilon = 1.98", "delta = 1e-06")
    assert not lacking(said, "above what NIST")


def test_a_huge_epsilon_is_written_as_a_power():
    assert not lacking(meaning(Unit.REPLACE, 800.0, 1e-6, 1.0), "exp(800) times")


@pytest.mark.parametrize("unit", list(Unit))
def test_every_unit_says_what_would_have_been_otherwise(unit):
    said = meaning(unit, 1.0, 1e-6, 0.2)
    assert f"any one {unit.entity}" in said
    assert ("label" in said) is ("label" in unit)


@pytest.mark.parametrize(
    ("epsilon", "said"),
    [
        (1.0, ("within what NIST SP 800-226",)),
        (1.0000001, ("above what NIST SP 800-226", "within what Ponomareva")),
        (10.5, ("and above what Ponomareva",)),
        (math.inf, ("it has no bound",)),
    ],
)
def test_where_epsilon_stands(epsilon, said):
    for unit in set(Unit) - {Unit.CHANGE_LABEL, Unit.CHANGE_LABELS_OF_PERSON}:
        assert not lacking(standing(epsilon, unit), *said)


@pytest.mark.parametrize("unit", [Unit.CHANGE_LABEL, Unit.CHANGE_LABELS_OF_PERSON])
def test_words_about_labels_say_what_is_guessed_and_quote_no_guidance_for_records(unit):
    said = of(RandomizedResponse(2.0, 77), unit).in_words()
    assert "guesses correctly which of two " in said
    assert not lacking(said, "labels alone", "features")
    assert said.endswith(" and number of records count as public.")
    assert "NIST" not in said
    assert "Ponomareva" not in said


def test_at_most_is_said_where_no_attack_is_known_that_reaches_the_rate():
    known = of(RandomizedResponse(2.0, 77), Unit.CHANGE_LABEL)
    assert not lacking(known.in_words(), "best attacker", "this label")
    assert not lacking(known.in_words(), "two labels", "53.9%")
    assert not lacking(known.statement(), "best attack", "0.00738906", "0.001")
    bounded = of(2 * RandomizedResponse(2.0, 77), Unit.CHANGE_LABEL)
    assert not lacking(bounded.in_words(), "An attacker", "this label")
    assert re.search(r"it is at most [0-9.]+% of the time", bounded.in_words())
    assert re.search(
        r"Attacks: true-positive rate at most .*; advantage at most", bounded.statement()
    )


@pytest.mark.parametrize("event", EVENTS, ids=str)
def test_rates_are_attained_of_one_use_of_a_mechanism_that_is_known(event):
    closed = (Gaussian, Exponential, RandomizedResponse, Laplace)
    known = isinstance(event.base(), closed) and not isinstance(event, SampledGaussian)
    assert of(event).attained is known
    assert of(event + compose([PureDP(0.0)])).attained is known
    assert of(2 * event).attained is (known and event.base().exact_mu)
    assert of(Gaussian(1.0), one=event, other=PureDP(0.1)).attained is False


def test_a_promise_states_three_deltas_and_what_attacks_reach():
    said = of(Gaussian(1.0)).statement()
    assert not lacking(said, "4.37718", "1e-05", "4.88656", "1e-06", "6.17394", "1e-09")
    assert not lacking(
        said, "best attack", "0.0182985", "0.001", "0.0923623", "0.01", "0.389144", "0.1"
    )
    assert "advantage up to 0.382925" in said
    assert of(Gaussian(1.0)).in_words() in said


def test_the_documentation_quotes_the_words_of_the_default_budget():
    page = (Path(__file__).resolve().parents[2] / "docs" / "privacy.md").read_text(encoding="utf-8")
    quoted = " ".join(line[2:] for line in page.splitlines() if line.startswith("> "))
    assert quoted == of(Gaussian(1.0)).in_words()
