"""Second moments in summaries: exact integers, their price, and least squares of several owners."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

import tacit
from messages import stating
from tacit.errors import InputError, ReleaseError
from tacit.learners.common.budget_split import SHARE_OF_MOMENTS
from tacit.learners.prototypes.class_summary import FREE_MOMENTS
from tacit.mechanisms import outer_products
from tacit.models.rows import unit_rows_about
from tacit.models.summarised import UNIT_OF_MOMENTS, symmetric
from tacit.privacy.budget import Budget
from tacit.privacy.events import Gaussian, Parallel
from tacit.privacy.unit import Unit
from tacit.releases.combination import Declared
from tacit.releases.plausible import implausible_moments
from tacit.releases.summary import Summary, added_up, assembled

RNG = np.random.default_rng(0)
CENTRES = 2 * RNG.normal(size=(3, 5))
X = np.concatenate([centre + RNG.normal(size=(40, 5)) for centre in CENTRES])
Y = np.repeat([0, 1, 2], 40)
PUBLIC = np.concatenate([centre + RNG.normal(size=(20, 5)) for centre in CENTRES])
PUBLIC_CENTRE = (PUBLIC / np.linalg.norm(PUBLIC, axis=1, keepdims=True)).mean(axis=0)
SEEDED = {"noise": "research", "random_state": 0}


def fitted(part, budget="rho=0.5", persons=None, x=X, y=Y, **settings):
    settings = {"classes": 3, "moments": True} | settings
    return tacit.ClassSummary(budget, part=part, **settings).fit(x, y, persons)


def summary_of(part, *arguments, **settings):
    return Summary.of(fitted(part, *arguments, **settings), date="2026-01-01")


@pytest.fixture(scope="module")
def parts():
    return [summary_of(part, public=PUBLIC) for part in ("A", "B", "C")]


def test_moments_are_those_of_the_rows_with_the_stated_noise():
    exact = unit_rows_about(X, PUBLIC_CENTRE).T @ unit_rows_about(X, PUBLIC_CENTRE)
    moments, noise = summary_of("A", "rho=1e9", public=PUBLIC, **SEEDED).noisy_moments()
    assert np.allclose(moments, exact, atol=0.02)
    assert noise == pytest.approx(Budget.parse("rho=1e9").gaussian() / SHARE_OF_MOMENTS**0.5)
    assert np.array_equal(moments, moments.T)


def test_noise_of_the_integers_is_that_of_second_moments():
    """The same draws as those that `LeastSquares` releases, so the same theorem."""
    rows = unit_rows_about(X, None)
    totals = outer_products.triangle_sums([rows], width=5)
    for multiplier, persons in ((3.0, False), (0.5, True)):
        noise = tacit.mechanisms.noise.noise_source("research", 7)
        integers = outer_products.noisy_triangle(
            totals, noise_multiplier=multiplier, noise=noise, per_person=persons
        )
        noise = tacit.mechanisms.noise.noise_source("research", 7)
        floats = outer_products.with_noise(
            totals.copy(), noise_multiplier=multiplier, noise=noise, per_person=persons
        )
        assert integers.dtype == np.int64
        assert np.array_equal(symmetric(integers / UNIT_OF_MOMENTS, 5), floats)
    assert UNIT_OF_MOMENTS == outer_products.UNIT
    exact = outer_products.noisy_triangle(totals, noise_multiplier=0.0, noise=noise)
    assert np.array_equal(exact, totals[np.triu_indices(5)])


def test_the_budget_pays_for_both_kinds_of_sums():
    model = fitted("A", "rho=0.5")
    z = Budget.zcdp(0.5).gaussian(split=True)
    (sums, _), (moments, _) = model.guarantee_.event.counts
    assert isinstance(sums, Parallel)
    assert isinstance(moments, Gaussian)
    for event, share in ((sums.event, 1 - SHARE_OF_MOMENTS), (moments, SHARE_OF_MOMENTS)):
        assert event.noise_multiplier == pytest.approx(z / share**0.5)
    assert model.guarantee_.rho == pytest.approx(0.5)
    assert model.summarised_.noise == pytest.approx(z / (1 - SHARE_OF_MOMENTS) ** 0.5)
    assert model.summarised_.noise_of_moments == pytest.approx(z / SHARE_OF_MOMENTS**0.5)
    both = summary_of("A", "rho=0.5") + summary_of("B", "rho=0.2")
    assert both.guarantee.rho == pytest.approx(0.5)


def test_moments_add_up_exactly_in_any_order(parts):
    expected = added_up(parts)
    total = sum(part.moments.astype(object) for part in parts)
    assert np.array_equal(expected.moments, total.astype(np.int64))
    variances = [row.noise_of_moments**2 for row in expected.parts]
    assert expected.noisy_moments()[1] == pytest.approx(sum(variances) ** 0.5)
    for order in itertools.permutations(parts):
        assert added_up(order).files() == expected.files()
    a, b, c = parts
    assert (a + (b + c)).verify().files() == expected.files()


@pytest.mark.parametrize("public", [None, PUBLIC])
def test_without_noise_the_decision_is_that_of_least_squares(public):
    halves = [
        summary_of(part, "rho=1e9", x=X[i::2], y=Y[i::2], public=public, **SEEDED)
        for i, part in enumerate("AB")
    ]
    release = tacit.combine(halves, method="least-squares", public=public)
    whole = tacit.LeastSquares("rho=1e9", classes=3, public=public, **SEEDED).fit(X, Y)
    assert np.allclose(release.arrays["coefficients"], whole.coefficients_, atol=1e-3)
    assert np.allclose(release.arrays["intercepts"], whole.intercepts_, atol=1e-3)
    rows = RNG.normal(size=(20, 5))
    assert np.allclose(release.predict_proba(rows), whole.predict_proba(rows), atol=0.01)


def test_the_ridge_and_the_score_of_a_class_follow_the_noise_of_all_parts(parts):
    release = tacit.combine(parts, method="least-squares", date="2026-01-01").verify()
    facts = release.document.mechanisms.facts
    noise = parts[0].parts[0].noise_of_moments
    assert facts["noise multiplier of the second moments"] == noise
    assert facts["ridge"] == pytest.approx(1 + noise * (3 * 5) ** 0.5)
    assert release.arrays["coefficients"].shape == (3, 5)


def test_a_combination_has_moments_if_all_parts_have(parts):
    without = summary_of("D", public=PUBLIC, moments=False)
    mixed = [*parts, without]
    expected = added_up(mixed)
    assert expected.noisy_moments() is None
    assert set(expected.arrays) == {"sums", "centre"}
    for order in ([without, *parts], [parts[0], without, *parts[1:]]):
        assert added_up(order).verify().files() == expected.files()
    with pytest.raises(InputError, match="part 'D' has no second moments"):
        tacit.combine(mixed, method="least-squares")
    tacit.combine(mixed, public=PUBLIC).verify()


@pytest.mark.parametrize("unit", ["change-label", "change-labels-of-person"])
def test_moments_of_public_rows_are_exact_and_free_and_the_statement_says_of_what(unit):
    persons = np.arange(120) if "person" in unit else None
    plain = fitted("A", unit=unit, moments=False, persons=persons)
    model = fitted("A", unit=unit, persons=persons)
    assert model.guarantee_.event == plain.guarantee_.event
    assert model.summarised_.noise == plain.summarised_.noise
    assert model.summarised_.noise_of_moments == 0
    assert FREE_MOMENTS in model.guarantee_.unprotected
    assert FREE_MOMENTS not in plain.guarantee_.unprotected

    a, b = (summary_of(part, unit=unit, persons=persons) for part in "AB")
    moments, noise = (a + b).noisy_moments()
    rows = unit_rows_about(X, None)
    assert noise == 0
    assert np.allclose(moments, 2 * rows.T @ rows, atol=0.05)
    assert FREE_MOMENTS in (a + b).verify().guarantee.unprotected
    assert "ridge" in tacit.combine([a, b], method="least-squares").document.mechanisms.facts
    # exact moments would show which record moved
    with pytest.raises(InputError, match="moving=True needs guarantees"):
        added_up([a, b], declared=Declared(moving=True))


@pytest.mark.parametrize("with_records", [False, True])
def test_moments_of_persons_weigh_as_much_as_their_counts(with_records):
    """Five records of a class each: what a person adds is shortened by another factor in each
    sum, also where another part was summed per record.
    """
    order, persons = np.argsort(Y, kind="stable"), np.repeat(range(24), 5)
    summary = summary_of(
        "A", "rho=1e8", persons, X[order], Y[order], unit="add-remove-person", **SEEDED
    )
    if with_records:
        summary += summary_of("B", "rho=1e8", x=X[::10], y=Y[::10], **SEEDED)
        assert summary.guarantee.unit is Unit.ADD_REMOVE
    moments, noise = summary.noisy_moments()
    _, _, counts, _ = summary.noisy_sums()
    weight = counts.sum() / np.trace(moments)
    assert weight < 0.98
    release = tacit.combine([summary], method="least-squares")
    ridge = release.document.mechanisms.facts["ridge"]
    assert ridge == pytest.approx(1 + weight * noise * 5**0.5, rel=1e-9)


def poisoned(change, **settings):
    """A summary whose second moments were changed, and whose document and card go with them."""
    good = summary_of("poisoned", **settings)
    arrays = {name: array.copy() for name, array in good.arrays.items()}
    change(arrays["moments"])
    document = good.document
    return assembled(good.recipe, document.combination, arrays, document.product, document.noise)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda moments: moments.__setitem__(1, 10**12 * 2**20), "larger than its counts allow"),
        (lambda moments: moments.__imul__(10), "larger than its counts allow"),
        (lambda moments: moments.__setitem__(14, -40 * UNIT_OF_MOMENTS), "squares is negative"),
        (lambda moments: moments.__setitem__(9, -40 * UNIT_OF_MOMENTS), "squares is negative"),
    ],
)
def test_poisoned_moments_are_named_and_not_added(change, fault):
    bad = poisoned(change)
    with pytest.raises(ReleaseError, match=fault):
        bad.verify()
    with pytest.raises(ReleaseError, match=fault):
        added_up([summary_of("A"), bad])


def test_honest_moments_are_plausible_whatever_their_noise():
    for budget in ("rho=1e-6", "rho=0.01", "rho=100"):
        summary_of("A", budget).verify()
    persons = np.arange(120) // 5
    summary_of("A", "rho=1e8", persons, unit="add-remove-person", **SEEDED).verify()
    assert implausible_moments(np.zeros(6), 1.0, np.zeros(2), np.ones(2)) is None
    huge = np.full(6, 2.0**41)
    assert "larger numbers" in str(implausible_moments(huge, 1e30, np.zeros(2), np.ones(2)))


def test_moments_that_do_not_go_with_the_document_are_refused(parts, tmp_path):
    folder = parts[0].save(tmp_path / "s")
    document = json.loads((folder / "summary.json").read_text())
    document["combination"]["parts"][0]["noise_of_moments"] = None
    (folder / "summary.json").write_text(json.dumps(document))
    with pytest.raises(ReleaseError, match="there if all parts have some"):
        Summary.load(folder)

    def stating_noise(noise):
        combination = parts[0].document.combination
        row = combination.parts[0].model_copy(update={"noise_of_moments": noise})
        combination = combination.model_copy(update={"parts": (row,)})
        arrays, product = parts[0].arrays, parts[0].document.product
        return assembled(parts[0].recipe, combination, arrays, product, "secure")

    # exact moments too, since the unit protects rows
    noise = parts[0].parts[0].noise_of_moments
    for other in (0.0, noise / 2, 2 * noise):
        with pytest.raises(ReleaseError, match="cost of part 'A' is not that of sums"):
            stating_noise(other).verify()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "other"}, "is none of auto, noisy-sum, least-squares"),
        ({"method": "auto"}, "needs public rows"),
        ({"method": "least-squares", "names": CENTRES}, "names=... need public rows"),
        ({"method": "least-squares", "public": PUBLIC[:30]}, "is not the centre"),
        ({"method": "noisy-sum", "public": PUBLIC[:30]}, "is not the centre"),
    ],
)
def test_settings_of_a_method_that_it_does_not_have_are_refused(parts, settings, message):
    with pytest.raises(InputError, match=stating(message)):
        tacit.combine(parts, **settings)


def test_a_method_that_is_named_is_the_default(parts):
    for settings, method in (({}, "noisy-sum"), ({"public": PUBLIC}, "auto")):
        default = tacit.combine(parts, **settings)
        named = tacit.combine(parts, method=method, **settings)
        assert default.arrays.keys() == named.arrays.keys()
        for name, array in default.arrays.items():
            assert np.array_equal(array, named.arrays[name])


def test_moments_beyond_64_bits_are_kept_in_two_words(parts):
    large = [replace_moments(part, np.full(15, 2**61)) for part in parts]
    total = added_up(large)
    assert "moments_high" in total.arrays
    assert np.array_equal(total.moments / 2**61, np.full(15, 3.0))


def replace_moments(summary, moments):
    class Trusting(Summary):
        def verify(self):
            return self

    arrays = summary.arrays | {"moments": moments}
    document = summary.document
    changed = assembled(
        summary.recipe, document.combination, arrays, document.product, document.noise
    )
    return Trusting(**vars(changed))


def test_moments_that_were_written_earlier_verify_and_add_up():
    written = Path(__file__).parent / "written" / "summary-1" / "moments"
    summary = Summary.load(written).verify()
    for file, data in summary.files().items():
        assert (written / file).read_bytes() == data
    tacit.combine([written], method="least-squares").verify()
