import numpy as np
import pytest
from scipy.integrate import quad

from tacit.models.name_length import (
    LEAST_LENGTH,
    LENGTH_MEAN,
    LENGTH_SD,
    LENGTHS,
    NameLength,
    likeliest_length,
    regressed_length,
)


@pytest.mark.parametrize(("information", "evidence"), [(0.0, 0.0), (20.0, 2.0), (400.0, -30.0)])
def test_the_length_is_the_posterior_under_the_prior_of_right_names(information, evidence):
    def density(length):
        log_prior = -((length - LENGTH_MEAN) ** 2) / (2 * LENGTH_SD**2)
        return np.exp(log_prior + evidence * length - information * length**2 / 2)

    total = quad(density, -10, 10)[0]
    mean = quad(lambda length: length * density(length), -10, 10)[0] / total
    variance = quad(lambda length: (length - mean) ** 2 * density(length), -10, 10)[0] / total
    found = regressed_length(information, evidence)
    assert found.mean == pytest.approx(mean)
    assert found.sd == pytest.approx(variance**0.5)


@pytest.mark.parametrize("length", [0.0, 0.15, 0.3])
def test_any_likelihood_gives_the_posterior_that_its_gaussian_has(length):
    information = 300.0
    expected = regressed_length(information, information * length)
    found = likeliest_length(lambda value: 1e4 - information * (value - length) ** 2 / 2)
    assert found.mean == pytest.approx(expected.mean, abs=0.01)
    assert found.sd == pytest.approx(expected.sd, abs=0.01)


def test_absence_of_evidence_contradicts_no_names():
    for nothing in (regressed_length(0.0, 0.0), likeliest_length(lambda _: -1e5)):
        assert not nothing.contradicted
        assert nothing.temperature > 0.2
    assert regressed_length(0.0, 0.0) == NameLength(LENGTH_MEAN, LENGTH_SD)
    # even where the little there is speaks against them
    assert not regressed_length(10.0, -1.0).contradicted


def test_names_are_contradicted_where_they_are_surely_short():
    assert regressed_length(1e6, 0.0).contradicted
    assert regressed_length(1e6, -1e6).contradicted
    assert not regressed_length(1e6, 0.2e6).contradicted
    assert likeliest_length(lambda value: -1e4 * value**2).contradicted
    assert not likeliest_length(lambda value: -1e4 * (value - 0.2) ** 2).contradicted
    for sd in (0.0, 0.1):
        assert NameLength(LEAST_LENGTH - 2 * sd - 1e-9, sd).contradicted
        assert not NameLength(LEAST_LENGTH - 2 * sd + 1e-9, sd).contradicted


def test_the_temperature_is_never_below_zero():
    assert regressed_length(1e6, -1e6).temperature == 0.0
    assert regressed_length(1e6, 0.5e6).temperature == pytest.approx(0.5, abs=1e-3)
    assert LENGTHS.min() < 0  # lengths below zero tell wrong names from useless ones
