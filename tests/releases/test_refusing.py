"""Rows of no class: measured, refused, and not confused with classes."""

import numpy as np
import pytest

import tacit
from tacit.errors import InputError, ReleaseError
from tacit.releases.release import Release

RNG = np.random.default_rng(0)
CENTRES = np.eye(4, 16)


def rows(n, centres=CENTRES):
    """n rows about each of the centres."""
    return np.repeat(centres, n, axis=0) + 0.15 * RNG.normal(size=(n * len(centres), 16))


X, PUBLIC = rows(200), RNG.normal(size=(300, 16))
TEST, FOREIGN = rows(100), rows(400, np.eye(16)[8:9])


def learner(classes=4, **parameters):
    labels = np.arange(classes) if isinstance(classes, int) else np.array(classes)
    clf = tacit.AutoPrototypes(
        "rho=2", public=PUBLIC, classes=labels, noise="research", random_state=0, **parameters
    )
    return clf.fit(X, np.repeat(labels, 200))


@pytest.fixture(scope="module")
def release():
    return Release.of(learner())


@pytest.fixture(scope="module")
def without_posterior():
    clf = tacit.NoisySumPrototypes("rho=inf", classes=4)
    return Release.of(clf.fit(X, np.repeat(np.arange(4), 200)))


def test_foreign_rows_are_refused_and_others_answered(release, tmp_path):
    unfamiliarity = release.unfamiliarity(TEST)
    assert unfamiliarity.min() >= 0
    assert unfamiliarity.max() <= 1
    assert np.mean(release.predict(FOREIGN, refuse=0.05) == -1) > 0.95

    labels = release.predict(TEST, refuse=0.05)
    refused = unfamiliarity > 0.95
    assert (labels == np.where(refused, -1, release.predict(TEST))).all()
    assert refused.mean() < 0.15

    # the simulation follows from the files alone
    folder = release.save(tmp_path / "release", allow_research=True)
    assert (Release.load(folder).unfamiliarity(TEST) == unfamiliarity).all()


def test_refused_texts_are_empty():
    release = Release.of(learner(["a", "bb", "c", "d"]))
    labels = release.predict(np.concatenate([TEST, FOREIGN]), refuse=0.05)
    assert set(labels.tolist()) == {"", "a", "bb", "c", "d"}


def test_the_refusal_comes_before_the_probability(release):
    both = np.concatenate([TEST, FOREIGN])
    plain = release.answers(both, at_least=0.6)
    found = release.answers(both, at_least=0.6, refuse=0.05)
    refused = release.unfamiliarity(both) > 0.95
    assert 0 < refused.sum() < len(both)

    assert (found.label == np.where(refused, -1, plain.label)).all()
    assert (found.level == np.where(refused, 0, plain.level)).all()
    likeliest = release.predict_proba(both).max(axis=1)
    assert (found.probability[refused] == likeliest[refused]).all()
    assert (release.predict(both, at_least=0.6, refuse=0.05) == found.label).all()


def test_familiar_rows_hold_their_share_with_any_release(release, without_posterior):
    familiar = rows(50)
    for each in (release, without_posterior):
        of_themselves = each.unfamiliarity(familiar, familiar=familiar)
        # the 199 other rows at most are more familiar
        assert of_themselves.max() == 199 / 200
        assert np.mean(of_themselves > 0.9) <= 0.1
        assert np.mean(each.unfamiliarity(FOREIGN, familiar=familiar) > 0.95) > 0.9


def test_largest_probability_stands_in_for_a_posterior(without_posterior):
    doubt = 1 - without_posterior.predict_proba(TEST).max(axis=1)
    assert (without_posterior.strangeness(TEST) == doubt).all()


def test_known_foreign_rows_change_the_measure(release):
    known, others = FOREIGN[:200], FOREIGN[200:]
    changed = release.unfamiliarity(others, foreign=known)
    assert (changed > 0.95).all()
    assert (release.strangeness(others, foreign=known) > release.strangeness(others)).all()


def test_class_minus_one_is_refused_since_it_would_look_like_no_answer():
    labels = [-1, 0, 1, 2]
    clf = tacit.NoisySumPrototypes("rho=inf", classes=labels).fit(X, np.repeat(labels, 200))
    with pytest.raises(InputError, match="class -1 would look like no answer"):
        Release.of(clf).predict(TEST, refuse=0.05)


@pytest.mark.parametrize("refuse", [0, 1, -0.1, True, "0.05", float("nan")])
def test_shares_are_above_0_and_below_1(release, refuse):
    with pytest.raises(InputError, match="must be above 0 and below 1"):
        release.predict(TEST, refuse=refuse)


def test_what_a_release_cannot_do_is_refused(release, without_posterior):
    with pytest.raises(ReleaseError, match=r"as familiar \(--familiar STORE\), or fit with auto"):
        without_posterior.predict(TEST, refuse=0.05)
    with pytest.raises(ReleaseError, match="foreign rows tell it nothing"):
        without_posterior.unfamiliarity(TEST, foreign=FOREIGN)
    with pytest.raises(InputError, match="pass refuse=0.05 too"):
        release.predict(TEST, foreign=FOREIGN)
    with pytest.raises(InputError, match="familiar holds no rows"):
        release.unfamiliarity(TEST, familiar=TEST[:0])
