import numpy as np
import pytest

from tacit.compute.shared import caching
from tacit.models import public_prior as module
from tacit.models.public_prior import ISOTROPIC, distinctness, public_prior
from tacit.models.rows import unit_rows_about

RNG = np.random.default_rng(0)
PUBLIC = RNG.normal(size=(300, 8)) * np.linspace(2, 0.2, 8) + 1
CENTRE = (PUBLIC / np.linalg.norm(PUBLIC, axis=1, keepdims=True)).mean(axis=0)


def test_the_prior_of_public_rows():
    prior = public_prior(PUBLIC, CENTRE)
    rows = unit_rows_about(PUBLIC, CENTRE)
    moments = rows.T @ rows / 300
    spread = ISOTROPIC * np.trace(moments) / 8
    assert np.allclose(prior.axes.T @ prior.axes, np.eye(8))
    assert np.allclose(
        prior.axes.T @ moments @ prior.axes, np.diag((prior.variances - spread) / (1 - ISOTROPIC))
    )
    assert (np.diff(prior.variances) <= 0).all()
    assert np.allclose(prior.sample, rows @ prior.axes)


def test_a_cached_prior_is_of_the_same_rows_and_centre():
    others = [(PUBLIC.copy(), CENTRE), (PUBLIC, 0 * CENTRE), (PUBLIC, None), (PUBLIC[:200], CENTRE)]
    samples = [public_prior(rows, centre).sample for rows, centre in others]
    with caching():
        prior = public_prior(PUBLIC, CENTRE)
        assert public_prior(PUBLIC, CENTRE) is prior
        for (rows, centre), sample in zip(others, samples, strict=True):
            other = public_prior(rows, centre)
            assert other is not prior
            assert np.array_equal(other.sample, sample)


def test_the_sample_is_evenly_spaced(monkeypatch):
    monkeypatch.setattr(module, "SAMPLE", 4)
    prior = public_prior(PUBLIC, CENTRE)
    assert np.allclose(
        prior.sample, unit_rows_about(PUBLIC[[0, 99, 199, 299]], CENTRE) @ prior.axes
    )


@pytest.mark.parametrize(("rows", "anchors"), [(16_384, 2_048), (200, 50), (300, 299)])
def test_neighbourhoods_are_means_of_the_nearest_public_rows(monkeypatch, rows, anchors):
    monkeypatch.setattr(module, "ROWS", rows)
    monkeypatch.setattr(module, "ANCHORS", anchors)
    used = unit_rows_about(
        PUBLIC if rows >= 300 else PUBLIC[np.linspace(0, 299, rows).astype(int)], CENTRE
    )
    about = (
        used if anchors >= len(used) else used[np.linspace(0, len(used) - 1, anchors).astype(int)]
    )
    prior = public_prior(PUBLIC, CENTRE)
    nearest = len(used) // 100
    expected = [
        used[sorted(range(len(used)), key=lambda i: -(row @ used[i]))[:nearest]].mean(axis=0)
        for row in about
    ]
    assert np.allclose(prior.neighbourhoods, np.array(expected) @ prior.axes, atol=1e-12)


@pytest.mark.parametrize(
    "public", [np.ones((1, 3)), np.ones((50, 3)), np.eye(3), np.eye(3)[:, :1] + 1, -np.eye(2)]
)
def test_any_public_rows_give_a_prior(public):
    centre = (public / np.linalg.norm(public, axis=1, keepdims=True)).mean(axis=0)
    prior = public_prior(public, centre)
    assert (prior.variances > 0).all()
    assert np.isfinite(prior.neighbourhoods).all()


def test_distinctness_is_that_of_the_distance_over_the_public_variance_in_its_direction():
    variances, direction = np.array([0.5, 0.3, 0.2]), np.array([2.0, 1.0, -2.0]) / 3
    along = direction**2 @ variances
    for ratio, expected in (
        (2.5, 0.5),
        (1.25, 1 / 17),
        (5.0, 16 / 17),
        (1e-300, 0.0),
        (1e300, 1.0),
    ):
        assert distinctness((ratio * along) ** 0.5 * direction, variances) == pytest.approx(
            expected
        )
    assert distinctness(direction, np.zeros(3)) == 1.0
    assert distinctness(np.zeros(3), np.zeros(3)) == 0.0
