"""`Release.sample`: balance, seeds and refusals."""

import numpy as np
import pytest

import tacit
from label_sets import label_set_release
from tacit.errors import InputError, ReleaseError
from tacit.releases.sampling import Sampler


def release_of(learner, scaler=None, **facts):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [40, 80, 120])
    X = 2 * np.eye(3, 6)[y] + rng.normal(size=(240, 6)) + 1
    if scaler is not None:
        from sklearn.pipeline import make_pipeline

        learner = make_pipeline(scaler, learner)
    return tacit.Release.of(learner.fit(X, y), **facts)


def auto(**parameters):
    public = np.random.default_rng(1).normal(size=(60, 6)) + 1
    return tacit.AutoPrototypes(
        "rho=50", public=public, classes=3, noise="research", random_state=0, **parameters
    )


@pytest.fixture(scope="module")
def release():
    return release_of(auto())


def test_rows_are_of_the_predicted_class_and_equally_many(release):
    X, y = release.sample(100, random_state=0)
    assert X.dtype == np.float32
    assert np.bincount(y).tolist() == [34, 33, 33]
    assert release.predict(X).tolist() == y.tolist()
    assert len(set(y[:10].tolist())) > 1, "rows are in random order"


def test_classes_have_the_released_sizes_if_that_is_asked_for(release):
    _, y = release.sample(240, random_state=0, balanced=False)
    assert np.allclose(np.bincount(y), [40, 80, 120], atol=3)


def test_a_seed_decides_the_rows(release):
    first, again, other, fresh, fresh_again = (
        release.sample(9, random_state=seed)[0] for seed in (5, 5, 6, None, None)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert not np.array_equal(fresh, fresh_again)


@pytest.mark.parametrize("n", [0, -1, 2.5, True, 10**12, "many"])
def test_bad_numbers_are_refused(release, n):
    with pytest.raises(InputError, match="n="):
        release.sample(n)


@pytest.mark.parametrize("seed", [-1, 0.5, True])
def test_bad_seeds_are_refused(release, seed):
    with pytest.raises(InputError, match="random_state="):
        release.sample(3, random_state=seed)


def test_releases_without_unit_rows_of_single_labels_are_refused(release):
    sums = tacit.NoisySumPrototypes("rho=1", classes=3, noise="research", random_state=0)
    with pytest.raises(ReleaseError, match="no posterior"):
        release_of(sums).sample(3)

    public = np.random.default_rng(1).normal(size=(60, 6))
    with pytest.raises(ReleaseError, match="scales its rows"):
        release_of(auto(), tacit.PublicScaler(public)).sample(3)

    rows = np.random.default_rng(2).permutation(np.repeat(2 * np.eye(3, 6) + 1, 40, axis=0))
    rows = rows + np.random.default_rng(3).normal(size=rows.shape)
    adapted = tacit.adapt(release, rows)
    assert adapted.release is not None, adapted.why
    with pytest.raises(ReleaseError, match="was adapted"):
        adapted.release.sample(3)


def test_releases_of_several_labels_are_refused():
    with pytest.raises(ReleaseError, match="several labels"):
        label_set_release().sample(3)


def test_rows_of_a_release_with_a_tree_are_labelled_with_its_leaves(release):
    tree = {0: 10, 2: 10, 1: 11}
    with_tree = release_of(auto(), tree=tree)
    X, y = with_tree.sample(30, random_state=0)
    assert np.array_equal(X, release.sample(30, random_state=0)[0])
    assert set(y.tolist()) == {0, 1, 2}


def test_a_centre_that_is_no_mean_of_unit_rows_is_refused(release):
    arrays = release.arrays | {"centre": np.ones(6)}
    with pytest.raises(ReleaseError, match="centre of norm 1"):
        Sampler(release.document, arrays, "forged").draw(3, random_state=0)


def test_the_nearest_public_row_is_found_over_blocks(release, monkeypatch):
    monkeypatch.setattr("tacit.releases.sampling.BLOCK", 4)
    sampler = Sampler(release.document, release.arrays, "release")
    drawn = sampler.draw(30, random_state=0)
    public = np.random.default_rng(4).normal(size=(11, 6)) + 1

    positions, labels = sampler.nearest(drawn, public)

    from tacit.models.rows import unit_rows_about

    centre = release.arrays["centre"]
    cosines = unit_rows_about(drawn.rows, centre) @ unit_rows_about(public, centre).T
    nearest = np.argmax(cosines, axis=1)
    assert positions.tolist() == sorted(set(nearest.tolist()))
    for position, label in zip(positions, labels, strict=True):
        counts = np.bincount(drawn.labels[nearest == position], minlength=3)
        assert label == np.argmax(counts)
