"""A release of a learner that was cloned or fitted more than once says so, and warns."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_validate

import tacit
from messages import lacking, stating
from tacit.errors import PrivacyLeakWarning
from tacit.releases.release import Release

X = np.repeat(np.eye(3), 20, axis=0) + 0.1 * np.random.default_rng(0).normal(size=(60, 3))
Y = np.repeat(range(3), 20)


def learner(**parameters):
    return tacit.NoisySumPrototypes("rho=1", classes=3, **parameters)


def covered(fitted):
    return Release.of(fitted).document.accesses.covered


def searched(n_jobs):
    """Three budgets, two folds: six fits, then that of the best."""
    grid = {"budget": ["rho=0.5", "rho=1", "rho=2"]}
    return GridSearchCV(learner(), grid, cv=2, n_jobs=n_jobs).fit(X, Y).best_estimator_


def test_one_fit_is_stated_as_before():
    fitted = learner().fit(X, Y)
    assert covered(fitted) == "this run only"
    assert covered(clone(learner()).fit(X, Y)) == "this run only"


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_search_by_clones_is_stated_with_its_clones(n_jobs):
    best = searched(n_jobs)
    with pytest.warns(
        PrivacyLeakWarning, match=stating("8 fits", "GridSearch", "tacit.RandomSearch")
    ):
        release = Release.of(best)
    assert not lacking(release.document.accesses.covered, "8 fits", "clones")
    assert release.verify().guarantee.event == best.guarantee_.event


def test_the_parent_of_two_workers_sees_one_fit_and_eight_clones():
    assert searched(2).other_fits() == 7


def test_fitted_clones_that_come_back_from_workers_join_their_lineage():
    for n_jobs in (1, 2):
        for fitted in cross_validate(learner(), X, Y, cv=3, n_jobs=n_jobs, return_estimator=True)[
            "estimator"
        ]:
            with pytest.warns(PrivacyLeakWarning, match="up to 3 fits"):
                Release.of(fitted)


def test_a_second_fit_counts():
    fitted = learner().fit(X, Y).fit(X[::2], Y[::2])
    with pytest.warns(PrivacyLeakWarning, match="up to 2 fits"):
        covered(fitted)


def test_copies_and_pickles_are_of_one_lineage():
    first = learner().fit(X, Y)
    copies = (copy.copy(first), copy.deepcopy(first), pickle.loads(pickle.dumps(first)))
    for number, again in enumerate(copies, 1):
        assert again.other_fits() == number - 1
        again.fit(X, Y)
        assert first.other_fits() == number


def test_a_pickle_in_another_process_has_a_lineage_of_its_own():
    first = learner().fit(X, Y)
    data = pickle.dumps(first)
    del first
    assert pickle.loads(data).other_fits() == 0


def test_a_fit_that_fails_after_its_noise_counts(monkeypatch):
    fitted = learner()
    with monkeypatch.context() as patched:
        patched.setattr(type(fitted), "_fit", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            fitted.fit(X, Y)
    assert fitted.fit(X, Y).other_fits() == 1


def test_a_fit_that_is_refused_does_not_count():
    fitted = learner()
    with pytest.raises(tacit.TacitError):
        fitted.fit(X, Y + 1)
    assert fitted.fit(X, Y).other_fits() == 0


def test_fits_that_a_ledger_counts_are_stated_by_the_ledger(tmp_path):
    ledger = tacit.Ledger(tmp_path / "survey.jsonl", identity="survey")
    ledger.allow("rho=9")
    charged = clone(learner(ledger=ledger)).fit(X, Y).fit(X, Y)
    assert "up to" not in covered(charged)
    unpaid = clone(charged).set_params(ledger=None).fit(X, Y).fit(X, Y)
    with pytest.warns(PrivacyLeakWarning, match="up to 2 fits"):
        Release.of(unpaid)
    with pytest.warns(PrivacyLeakWarning, match="up to 3 fits"):
        Release.of(charged)


def test_our_own_searches_pay_and_do_not_warn():
    for search in (tacit.GridSearch, tacit.RandomSearch):
        paid = search(
            tacit.NoisySumPrototypes(),
            [{}, {"public": X + 1}],
            budget="epsilon=1,delta=1e-6",
            classes=3,
        )
        assert (
            Release.of(paid.fit(X, Y)).document.accesses.covered == "this run only, tuning included"
        )


def test_a_learner_that_costs_nothing_counts_no_fits():
    names = tacit.NamePrototypes(names=np.eye(3), classes=3)
    assert "up to" not in covered(clone(names).fit(X, Y).fit(X, Y))


def test_a_release_that_is_not_for_release_does_not_warn():
    seeded = learner(noise="research", random_state=0).fit(X, Y).fit(X, Y)
    assert covered(seeded) == "this run only"
