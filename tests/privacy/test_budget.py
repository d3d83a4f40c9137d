import math
import re
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from messages import stating
from tacit.errors import BudgetError
from tacit.privacy.budget import Budget, calibrate
from tacit.privacy.events import ZCDP, Exponential, Gaussian, Parallel, PureDP
from tacit.privacy.guarantee import Guarantee, guarantee_under
from tacit.privacy.unit import Unit


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("epsilon=1", Budget.pure(1)),
        (" rho = 0.5 ", Budget.zcdp(0.5)),
        ("epsilon=1,delta=1e-6", Budget.approx(1, 1e-6)),
        ("delta=1e-6, epsilon=1", Budget.approx(1, 1e-6)),
        ("epsilon=inf", Budget.pure(math.inf)),
        ("mu=1", Budget.gdp(1)),
        ("mu=inf", Budget.gdp(math.inf)),
        ("tpr=.1@fpr=.01", Budget.attack(0.1, 0.01)),
        ("fpr=0.01 @ tpr=0.1", Budget.attack(0.1, 0.01)),
    ],
)
def test_parsing(text, budget):
    assert Budget.parse(text) == budget
    assert Budget.parse(str(budget)) == budget


BAD = """
    1 ; epsilon ; epsilon= ; epsilon=one ; eps=1 ; epsilon=1,epsilon=2 ; epsilon=1,rho=1 ; delta=1e-6 ; rho=1, ;
    epsilon=-1 ; epsilon=0 ; epsilon=nan ; rho=-0.5 ; rho=0 ; epsilon=1,delta=0 ; epsilon=1,delta=1 ; epsilon=1e400 ;
    epsilon=1e200 ; rho=1e-320 ; epsilon=1,delta=1e-300 ; mu=0 ; mu=-1 ; mu=1,rho=1 ; mu=1,delta=1e-6 ; tpr=.1 ;
    tpr=.1@ ; tpr=.1@mu=1 ; tpr=.1,fpr=.01 ; tpr=.01@fpr=.1 ; tpr=.1@fpr=.1 ; tpr=1@fpr=.1 ; tpr=.1@fpr=0 ;
    tpr=nan@fpr=.1 ; tpr=.1@fpr=.01@fpr=.02 ; tpr=.1@fpr=.01,mu=1
"""


@pytest.mark.parametrize("text", ["", *(text.strip() for text in BAD.split(";"))])
def test_bad_text_is_refused_in_one_line_with_the_remedy(text):
    with pytest.raises(BudgetError, match=r"write epsilon=1 \(pure\)") as caught:
        Budget.parse(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text", ["mu=1_0", "rho=1_0", "epsilon=1_0", "epsilon=1,delta=1_0e-8", "rho=\u0663"]
)
def test_digits_that_only_python_reads_are_refused(text):
    with pytest.raises(
        BudgetError, match=f"cannot be read at '{text.split(',')[-1]}'; write epsilon=1"
    ):
        Budget.parse(text)


@pytest.mark.parametrize("value", ["inf", float("inf")])
def test_a_bare_infinity_is_told_how_to_say_it(value):
    with pytest.raises(BudgetError, match=stating("budget inf", "rho=inf")):
        Budget.parse(value)


@pytest.mark.parametrize("value", [1.0, None, 3])
def test_a_bare_number_is_refused(value):
    with pytest.raises(BudgetError, match=stating("kind")):
        Budget.parse(value)


@pytest.mark.parametrize("epsilon", [1, 0.1, 8, 1e-6])
def test_a_pure_budget_is_refused_for_gaussian_noise_and_the_same_epsilon_is_suggested(epsilon):
    form = f"epsilon={epsilon:g},delta=1e-6"
    words = f"; pass {form} (the same epsilon, but approximate: a weaker guarantee)"
    with pytest.raises(BudgetError, match=re.escape(words)) as caught:
        Budget.pure(epsilon).gaussian()
    assert "\n" not in str(caught.value)
    assert Budget.parse(form) == Budget.approx(epsilon, 1e-6)


@given(rho=st.floats(1e-6, 1e4))
def test_zcdp_budgets_are_spent_in_full_and_never_exceeded(rho):
    budget = Budget.zcdp(rho)
    for event in (Gaussian(budget.gaussian()), Exponential(budget.exponential())):
        assert event.rho <= rho
        assert event.rho == pytest.approx(rho, rel=1e-12)


@pytest.mark.parametrize("rho", [k * 10.0**-power for power in range(1, 7) for k in range(1, 10)])
def test_small_budgets_are_spent_too(rho):
    for unit in Unit:
        for event in (
            Gaussian(Budget.zcdp(rho).gaussian(unit)),
            Exponential(Budget.zcdp(rho).exponential(unit)),
        ):
            spent = guarantee_under(Parallel(event, "classes"), unit).rho
            assert rho * (1 - 1e-9) < spent <= rho


def test_events_that_a_budget_permits():
    assert Budget.pure(1).permits(PureDP(1.0))
    assert not Budget.pure(1).permits(PureDP(math.nextafter(1.0, 2)))
    assert not Budget.pure(1).permits(Gaussian(1e6))
    assert Budget.zcdp(0.5).permits(Gaussian(1.0))
    assert not Budget.zcdp(0.5).permits(Gaussian(math.nextafter(1.0, 0)))
    assert Budget.approx(1, 1e-6).permits(PureDP(1.0))
    assert not Budget.approx(1, 1e-6).permits(PureDP(1.1))


@pytest.mark.parametrize("precision", [1e-3, 1e-12])
@pytest.mark.parametrize("ends", [(1e-3, 1e3), (1e-9, 1e9), (1.9, 2.1), (1e-200, 1e200)])
def test_calibration_finds_the_largest_amount_that_is_permitted(ends, precision):
    budget = Budget.zcdp(0.5)
    found = calibrate(budget, Exponential, *ends, precision)
    assert 2 * (1 - 2 * precision) - 1e-15 <= found <= 2
    assert budget.permits(Exponential(found))
    assert calibrate(budget, Exponential, 1.0, 1.5) == 1.5
    with pytest.raises(BudgetError, match="budget rho=0.5 is too small"):
        calibrate(budget, Exponential, 3.0, 5.0)


def test_a_pure_epsilon_is_as_large_as_the_budget_allows():
    assert Budget.pure(1.3).largest_pure() == 1.3
    assert Budget.approx(1.3, 1e-6).largest_pure() == pytest.approx(1.3, rel=1e-5)
    for budget in (Budget.zcdp(0.5), Budget.zcdp(1e-6), Budget.approx(1.3, 0.01)):
        epsilon = budget.largest_pure()
        assert budget.permits(PureDP(epsilon))
        assert not budget.permits(PureDP(epsilon * (1 + 1e-9)))


def test_a_split_budget_is_met_after_rounding_and_hardly_wasted():
    for unit in Unit:
        whole = Budget.zcdp(0.3).gaussian(unit)
        assert 1 <= Budget.zcdp(0.3).gaussian(unit, split=True) / whole < 1 + 1e-9


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-5), (1, 1e-6), (8, 1e-9)])
def test_approximate_budgets_are_spent(epsilon, delta):
    budget = Budget.approx(epsilon, delta)
    spent = Guarantee(Unit.ADD_REMOVE, Gaussian(budget.gaussian())).epsilon(delta)
    assert spent <= epsilon
    assert spent == pytest.approx(epsilon, rel=1e-9)
    assert budget.exponential() == epsilon


@pytest.mark.parametrize("unit", list(Unit))
@pytest.mark.parametrize("text", ["rho=0.7", "epsilon=2,delta=1e-6"])
def test_budgets_hold_under_the_unit_they_are_read_in(unit, text):
    budget = Budget.parse(text)
    for event in (Gaussian(budget.gaussian(unit)), Exponential(budget.exponential(unit))):
        assert budget.permits(guarantee_under(Parallel(event, "classes"), unit).event)
        looser = Gaussian(event.noise_multiplier / 1.01) if isinstance(event, Gaussian) else None
        looser = looser or Exponential(event.epsilon * (1.01 if text.startswith("rho") else 1.2))
        assert not budget.permits(guarantee_under(Parallel(looser, "classes"), unit).event)


@pytest.mark.parametrize("value", [0.9999999, 1 / 3, 1e-9, 1e9, 123456.789])
def test_text_keeps_every_digit(value):
    assert Budget.parse(str(Budget.zcdp(value))).rho == value


@pytest.mark.parametrize(
    "text", ["rho=1e-9", "rho=1e9", "epsilon=1e-9,delta=1e-30", "epsilon=1e9,delta=1e-6"]
)
def test_the_ends_of_the_range_can_be_spent(text):
    budget = Budget.parse(text)
    assert 0 < budget.gaussian() < math.inf
    assert 0 < budget.exponential() < math.inf
    assert budget.permits(Gaussian(budget.gaussian()))


def test_infinite_budgets_mean_no_noise():
    assert Budget.pure(math.inf).gaussian() == 0
    assert Budget.zcdp(math.inf).exponential() == math.inf


@pytest.mark.parametrize(
    ("unit", "changes"), [("add-remove", 1), ("replace", 2), ("change-label", 2)]
)
@pytest.mark.parametrize("epsilon", [0.1, 0.3, 1.0, 3.3, 7.7])
def test_laplace_noise_spends_a_pure_budget_and_no_more(unit, changes, epsilon):
    multiplier = Budget.pure(epsilon).laplace(Unit(unit))
    # exactly: what is drawn is within the budget
    assert Fraction(multiplier) * Fraction(epsilon) >= changes
    assert multiplier == pytest.approx(changes / epsilon, rel=1e-15)
    assert Budget.pure(math.inf).laplace(Unit(unit)) == 0
    for other in ("rho=1", "epsilon=1,delta=1e-6"):
        with pytest.raises(BudgetError, match="is not pure"):
            Budget.parse(other).laplace(Unit(unit))


@pytest.mark.parametrize(("tpr", "fpr"), [(0.1, 0.01), (0.02, 0.001), (0.6, 0.5), (0.999, 1e-6)])
def test_a_budget_stated_as_an_attack_is_reached_and_not_exceeded_at_that_point(tpr, fpr):
    budget = Budget.attack(tpr, fpr)
    of_noise = Guarantee(Unit.ADD_REMOVE, Gaussian(budget.gaussian()))
    of_selection = Guarantee(Unit.ADD_REMOVE, Exponential(budget.exponential()))
    assert tpr * (1 - 1e-9) <= of_noise.attack_rate(fpr) <= tpr
    assert of_selection.attack_rate(fpr) <= tpr


@pytest.mark.parametrize("gap", [1e-7, 1e-5, 1e-3, 0.1])
def test_a_budget_stated_as_an_attack_is_rounded_down_also_where_rates_are_close(gap):
    def quantile(rate):
        return mpmath.sqrt(2) * mpmath.erfinv(2 * mpmath.mpf(rate) - 1)

    with mpmath.workdps(60):
        for fpr in (1e-4, 0.01, 0.1, 0.3, 0.45, 0.5, 0.6, 0.77, 0.89):
            exact = quantile(fpr + gap) - quantile(fpr)
            mu = Budget.attack(fpr + gap, fpr).mu
            assert exact * (1 - 1e-6) < mu < exact


def test_rates_that_no_quantile_tells_apart_are_refused():
    with pytest.raises(BudgetError, match=stating("tpr", "further apart")):
        Budget.attack(math.nextafter(0.5, 1), 0.5)


@pytest.mark.parametrize("mu", [1e-6, 0.1, 1.0, 3.3, 12.0])
@pytest.mark.parametrize("unit", list(Unit))
def test_calibrations_keep_a_gaussian_dp_budget_and_spend_it(unit, mu):
    budget = Budget.gdp(mu)
    events = (
        Parallel(Gaussian(budget.gaussian(unit)), "classes"),
        Parallel(Exponential(budget.exponential(unit)), "classes"),
    )
    for event in events:
        spent = guarantee_under(event, unit).mu
        assert mu * (1 - 1e-9) <= spent <= mu
    assert PureDP(budget.largest_pure()).mu <= mu


def test_a_gaussian_dp_budget_does_not_permit_what_has_no_mu():
    assert Budget.zcdp(0.5).permits(ZCDP(0.5))
    assert not Budget.gdp(1).permits(ZCDP(0.5))
    with pytest.raises(BudgetError, match=stating("pure", "Laplace")):
        Budget.gdp(1).laplace()
    with pytest.raises(BudgetError, match=stating("approximate", "sampling")):
        Budget.gdp(1).sampled_gaussian(0.1, 10)


def test_a_method_without_a_mu_names_what_to_pass_instead():
    with pytest.raises(BudgetError, match=stating("DPSGD", "rho=0.5", "delta=1e-6")) as caught:
        tacit.DPSGD("mu=1", classes=2).promise()
    assert "\n" not in str(caught.value)
