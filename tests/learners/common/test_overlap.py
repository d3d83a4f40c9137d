"""Public rows that are private records: refused where rows are released, a warning elsewhere, and
always stated.
"""

import warnings

import numpy as np
import pytest

import tacit
from messages import stating
from tacit.data.overlap import private_rows
from tacit.errors import InputError
from tacit.learners.common.overlap import OVERLAP, OverlapWarning

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(60, 6)).astype(np.float32), np.arange(60) % 3
PUBLIC = RNG.normal(size=(40, 6))
ONE = np.concatenate([PUBLIC, X[7:8]])
BUDGET = "epsilon=1,delta=1e-6"
RELEASING = [
    tacit.PublicPrototypes("epsilon=1", classes=3),
    tacit.PublicPrototypes(BUDGET, classes=3, k=3),
    tacit.ProjectedPrototypes(BUDGET, classes=3, prototypes="public", steps=2),
]
USING = [
    tacit.NoisySumPrototypes(BUDGET, classes=3),
    tacit.AutoPrototypes(BUDGET, classes=3),
    tacit.CoinPressPrototypes(BUDGET, classes=3),
    tacit.LeastSquares(BUDGET, classes=3),
    tacit.GradientDescent(BUDGET, classes=3, steps=2),
    tacit.ProjectedPrototypes(BUDGET, classes=3, steps=2),
    tacit.NamePrototypes(classes=3, names=np.eye(3, 6), adapt=True),
    tacit.PATE(BUDGET, classes=3, teachers={"number": 4}),
]


NAMES = np.stack([PUBLIC[0], X[7], X[8]])
NAMED = [
    tacit.PublicPrototypes("epsilon=1", classes=3, public=PUBLIC),
    tacit.AutoPrototypes(BUDGET, classes=3, public=PUBLIC),
    tacit.GradientDescent(BUDGET, classes=3, steps=2),
    tacit.NamePrototypes(classes=3),
    tacit.PATE(BUDGET, classes=3, teachers={"number": 4}, public=PUBLIC),
]


def with_public(learner, public, **others):
    return type(learner)(**(learner.get_params(deep=False) | {"public": public} | others))


def quiet(learner):
    with warnings.catch_warnings():
        warnings.simplefilter("error", tacit.PrivacyLeakWarning)
        return learner.fit(X, Y)


@pytest.mark.parametrize("learner", RELEASING)
def test_one_private_row_is_refused_where_rows_are_released(learner, tmp_path):
    ledger = tacit.Ledger(tmp_path / "ledger", "data")
    ledger.allow("epsilon=9,delta=1e-5")
    with pytest.raises(InputError, match=stating("public", "private records", "released")):
        with_public(learner, ONE, ledger=ledger).fit(X, Y)
    assert ledger.account().charges == ()
    quiet(with_public(learner, PUBLIC))
    quiet(with_public(learner, ONE, allow_overlap=True))


@pytest.mark.parametrize("learner", USING)
@pytest.mark.parametrize(("public", "number"), [(ONE, 1), (X, 60)])
def test_elsewhere_a_warning_states_the_number(learner, public, number):
    with pytest.warns(
        tacit.PrivacyLeakWarning, match=stating(f"{number} of {len(public)}", "public", "private")
    ) as said:
        fitted = with_public(learner, public).fit(X, Y)
    assert {one.filename for one in said if one.category is OverlapWarning} == {__file__}
    assert OVERLAP in fitted.guarantee_.unprotected
    quiet(with_public(learner, public, allow_overlap=True))


@pytest.mark.parametrize("learner", [*RELEASING, *USING])
def test_every_statement_lists_the_check_whatever_it_found(learner):
    given = with_public(learner, PUBLIC)
    fitted = quiet(given)
    assert fitted.guarantee_ == given.promise()
    for guarantee in (given.promise(), with_public(learner, ONE, allow_overlap=True).promise()):
        assert guarantee.unprotected.count(OVERLAP) == 1
    assert f"{OVERLAP}" in given.promise().statement()


@pytest.mark.parametrize("learner", NAMED)
def test_rows_of_class_names_are_compared_too(learner):
    def named(names, **others):
        return type(learner)(**(learner.get_params(deep=False) | {"names": names} | others))

    for names in (NAMES, [rows[None] for rows in NAMES]):
        with pytest.warns(tacit.PrivacyLeakWarning, match=stating("2 of 3", "names")) as said:
            fitted = named(names).fit(X, Y)
        assert {one.filename for one in said if one.category is OverlapWarning} == {__file__}
        assert fitted.guarantee_.unprotected.count(OVERLAP) == 1
        assert fitted.guarantee_ == named(names).promise()
    quiet(named(NAMES, allow_overlap=True))
    quiet(named(PUBLIC[:3]))


def test_copies_of_one_private_row_are_refused_since_their_mean_is_released():
    learner = tacit.NoisySumPrototypes(classes=3)
    for number in (1, 3):
        with pytest.raises(InputError, match=stating("public", "private records", "released")):
            with_public(learner, np.repeat(X[7:8], number, axis=0)).fit(X, Y)
        quiet(with_public(learner, np.repeat(PUBLIC[:1], number, axis=0)))
    with pytest.warns(OverlapWarning, match="1 of 2 rows of public"):
        with_public(learner, ONE[-2:]).fit(X, Y)


def test_nothing_is_listed_without_public_rows():
    assert OVERLAP not in tacit.NoisySumPrototypes(classes=3).promise().unprotected
    assert OVERLAP not in tacit.LabelPrivate("epsilon=1", classes=3).promise().unprotected


@pytest.mark.parametrize(
    "learner", [tacit.PublicPrototypes("epsilon=1", classes=3), USING[0], USING[3]]
)
def test_rows_are_public_where_labels_alone_are_protected(learner):
    for unit in ("change-label", "change-labels-of-person"):
        given = with_public(learner, X, unit=unit)
        with warnings.catch_warnings():
            warnings.simplefilter("error", tacit.PrivacyLeakWarning)
            given.fit(X, Y, persons=np.arange(60) if "person" in unit else None)
        assert OVERLAP not in given.promise().unprotected
    assert OVERLAP in with_public(learner, PUBLIC, unit="replace").promise().unprotected


def test_a_search_checks_the_rows_of_its_candidates_once_and_before_a_charge(tmp_path):
    ledger = tacit.Ledger(tmp_path / "ledger", "data")
    ledger.allow("rho=9")
    chosen = tacit.PublicPrototypes(public=ONE)
    search = tacit.GridSearch(
        chosen, [{"k": 1}, {"k": 2}], budget="rho=0.5", classes=3, ledger=ledger
    )
    with pytest.raises(InputError, match=stating("public", "private records")):
        search.fit(X, Y)
    assert ledger.account().charges == ()
    assert search.promise().unprotected.count(OVERLAP) == 1
    sums = tacit.LeastSquares(public=ONE)
    search = tacit.GridSearch(sums, [{"ridge": 1.0}, {"ridge": 2.0}], budget="rho=0.5", classes=3)
    with pytest.warns(tacit.PrivacyLeakWarning) as said:
        search.fit(X, Y)
    assert len(said) == 1
    searched = [{"names": NAMES}, {"names": NAMES, "ridge": 1.0}, {"names": PUBLIC[:3]}]
    descent = tacit.GradientDescent(steps=2)
    with pytest.warns(OverlapWarning, match="2 of 3 rows of names") as said:
        tacit.GridSearch(descent, searched, budget="rho=0.5", classes=3).fit(X, Y)
    assert len(said) == 1
    quiet(
        tacit.GridSearch(
            with_public(sums, ONE, allow_overlap=True), [{}], budget="rho=0.5", classes=3
        )
    )
    without = tacit.GridSearch(tacit.LeastSquares(), [{}], budget="rho=0.5", classes=3)
    assert OVERLAP not in without.promise().unprotected


def test_pictures_are_compared_as_rows():
    pictures = X.reshape(60, 1, 2, 3)
    learner = tacit.PATE(BUDGET, classes=3, teachers={"number": 4})
    with pytest.warns(tacit.PrivacyLeakWarning, match="2 of 2 rows of public"):
        learner.fit(pictures, Y, public=pictures[:2])


def test_sparse_records_are_compared():
    from scipy.sparse import csr_array

    with pytest.warns(tacit.PrivacyLeakWarning, match="1 of 41 rows of public"):
        tacit.NoisySumPrototypes(classes=3, public=ONE).fit(csr_array(X), Y)


def test_rows_are_compared_at_the_lower_precision_and_rows_of_zeros_are_not_counted():
    zeros = np.zeros((1, 6), dtype=np.float32)
    assert private_rows(np.concatenate([X[:2], zeros, -zeros]), np.concatenate([X, zeros])) == 2
    assert private_rows(X[:3].astype(np.float16), X) == 3
    assert private_rows(X[:3].astype(np.float64), X) == 3
    assert private_rows(2 * X[:3], X) == 0


def test_the_parameter_is_true_or_false():
    with pytest.raises(InputError, match=stating("allow_overlap='yes'", "False", "True")):
        tacit.NoisySumPrototypes(classes=3, public=PUBLIC, allow_overlap="yes").fit(X, Y)


@pytest.mark.parametrize("unit", ["add-remove", "change-label"])
def test_private_rows_to_score_a_search_on_are_a_warning(unit):
    def search(rows):
        learner = tacit.NoisySumPrototypes(BUDGET, classes=3)
        scored = rows, np.arange(len(rows)) % 3
        return tacit.GridSearch(
            learner, [{}], budget="rho=1", classes=3, unit=unit, validation=scored
        )

    with pytest.warns(tacit.PrivacyLeakWarning, match=stating("1 of 41", "validation")) as said:
        search(ONE).fit(X, Y)
    assert "allow_overlap" not in str(said[0].message)
    fitted = quiet(search(PUBLIC))
    assert (OVERLAP in fitted.guarantee_.unprotected) == (unit == "add-remove")
