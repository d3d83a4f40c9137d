"""Audits of releases: what is refitted, what is refused, and what of the result is recorded."""

from datetime import date
from pathlib import Path

import numpy as np
import pytest

import tacit
from tacit.errors import InputError, ReleaseError
from tacit.measure.auditing.of_release import audit_release
from tacit.measure.auditing.rebuilding import rebuilt, stated_learner
from tacit.measure.auditing.recording import item_of
from tacit.measure.auditing.result import FAIR_COINS, Audit, Bound
from tacit.privacy.unit import Unit
from tacit.releases.audited import ABOVE, BROKEN, WITHIN
from tacit.releases.release import Release

OLDER = Path(__file__).parents[2] / "releases/written/version-3"
RNG = np.random.default_rng(0)
CENTRES = 3 * np.eye(3, 5)
LABELS = np.arange(120) % 3
NAMES = np.array(["ant", "bee", "cow"])
X = CENTRES[LABELS] + RNG.normal(size=(120, 5))


def release_of(learner, **facts):
    return Release.of(learner.fit(X, NAMES[LABELS]), name="pets", **facts)


@pytest.fixture(scope="module")
def release():
    return release_of(tacit.NoisySumPrototypes("rho=0.5", classes=NAMES.tolist()))


def an_audit(lower, at_alarm, promise, **changes):
    bound = Bound("LiRA, guesses", lower, at_alarm, FAIR_COINS)
    given = {"unit": Unit.ADD_REMOVE, "delta": 1e-5, "seed": 0, "setup": "64 refits"} | changes
    return Audit("pets", promise=promise, bounds=(bound,), **given)


def test_own_labels_predicted_labels_and_their_setup(release):
    own = audit_release(release, X, NAMES[LABELS], refits=16)
    predicted = audit_release(release, X, refits=16)
    assert own.promise == release.guarantee.epsilon(1e-5)
    assert own.setup == (
        "16 refits of noisy-sum with seeded noise on 84 public rows with their own labels, and 12"
        " canaries with labels of other classes"
    )
    assert "labels that the release predicts" in predicted.setup
    assert not own.exceeded
    again = audit_release(release, X, NAMES[LABELS], refits=16)
    assert again == own
    assert audit_release(release, X, NAMES[LABELS], refits=16, seed=1).seed == 1


def test_public_rows_and_names_stand_for_those_of_the_learner():
    learner = tacit.PublicPrototypes(
        "epsilon=1", public=X[:40] + 1, names=CENTRES, classes=NAMES.tolist(), unit="replace"
    )
    release = release_of(learner)
    assert stated_learner(release).inputs == ("public", "names")
    audit = audit_release(release, X, refits=16)
    assert (audit.unit, audit.exceeded) == (Unit.REPLACE, False)


def test_what_cannot_be_refitted_is_refused_with_the_reason(release):
    older = Release.load(OLDER)
    with pytest.raises(ReleaseError, match="version 3, and releases state their learner from"):
        audit_release(older, np.ones((50, older.width)))

    prior = tacit.LabelPrivate(
        "epsilon=1", classes=NAMES.tolist(), prior=np.full(3, 1 / 3), noise="research"
    )
    with pytest.raises(ReleaseError, match="was fitted with prior, which its document cannot"):
        stated_learner(release_of(prior))

    with pytest.raises(InputError, match="labels has 3 entries for 120 rows"):
        audit_release(release, X, ["ant", "bee", "cow"])
    with pytest.raises(InputError, match="label 'emu' of the public rows is not a class"):
        audit_release(release, X, ["emu"] * 120)
    with pytest.raises(InputError, match="X has shape"):
        audit_release(release, X[:, :2])


def with_learner(release, **changes):
    """The release with another learner in its document."""
    mechanisms = release.document.mechanisms
    stated = mechanisms.learner
    learner = stated.model_copy(update={"parameters": stated.parameters | changes})
    changed = mechanisms.model_copy(update={"learner": learner})
    document = release.document.model_copy(update={"mechanisms": changed})
    return Release(document, release.arrays, release.sha256, release.card_text)


def test_a_learner_with_another_promise_than_the_guarantee_is_refused(release):
    assert rebuilt(with_learner(release)).promise().rho == 0.5
    with pytest.raises(ReleaseError, match=r"learner that promises.*rho = 0\.4.*guarantee of"):
        rebuilt(with_learner(release, budget="rho=0.4"))
    with pytest.raises(ReleaseError, match=r"noisy-sum refuses \(noisy-sum has no parameters k"):
        rebuilt(with_learner(release, k=5))
    with pytest.raises(ReleaseError, match="learner that noisy-sum refuses"):
        rebuilt(with_learner(release, budget="much"))


def test_a_recorded_audit_verifies_and_an_edited_one_does_not(release, tmp_path):
    promise = release.guarantee.epsilon(1e-5)
    item = item_of(an_audit(1.23456, 0.5, promise), day=date(2026, 11, 28))
    recorded = release.with_audit(item)
    loaded = Release.load(recorded.save(tmp_path / "pets")).verify()
    assert loaded.document.audit == item
    assert (item.result, item.passed) == (WITHIN, True)
    # a lower bound is rounded down and a promise up
    assert "- lower bound: 1.23\n" in loaded.card_text
    assert "- promise: 4.37718\n" in loaded.card_text
    assert "a lower bound on what fits" in loaded.card_text

    for changes, fault in (
        ({"promise": promise * 1.1}, "audit.promise is stated as 4.81"),
        ({"delta": 1e-6}, "and the events give 4.8"),
        ({"delta_at_alarm": 1e-9}, "audit.promise_at_alarm is stated as"),
        ({"lower_bound_at_alarm": 5.0}, "audit.result is stated as 'no lower"),
        ({"result": BROKEN}, "audit.result is stated as 'THE PROMISE"),
        ({"unit": "replace"}, "the audit is under unit replace"),
    ):
        edited = item.model_copy(update=changes)
        with pytest.raises(ReleaseError, match=fault):
            release.with_audit(edited)
        document = release.document.model_copy(update={"audit": edited})
        with pytest.raises(ReleaseError, match=fault):
            Release(document, release.arrays, release.sha256, "").verify()


def test_a_broken_promise_is_never_recorded_as_kept(release):
    promise = release.guarantee.epsilon(1e-5)
    by_chance = item_of(an_audit(promise + 0.1, 1.0, promise))
    assert (by_chance.result, by_chance.passed) == (ABOVE, True)
    broken = item_of(an_audit(promise + 2, promise + 1, promise))
    assert (broken.result, broken.passed) == (BROKEN, False)
    assert BROKEN in release.with_audit(broken).card()


def test_older_releases_state_no_bounds():
    older = Release.load(OLDER)
    with pytest.raises(ReleaseError, match="version 3, which states no bounds of an audit"):
        older.with_audit(item_of(an_audit(1.0, 0.5, 4.0)))
