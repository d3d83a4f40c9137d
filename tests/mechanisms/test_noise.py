import numpy as np
import pytest
from scipy import stats

from messages import stating
from tacit.errors import BudgetError, InputError
from tacit.mechanisms.noise import OpenDPNoise, ResearchNoise, SecureNoise, noise_source


def test_research_noise_repeats_with_its_seed_and_secure_noise_has_none():
    zeros = np.zeros(20, dtype=np.int64)
    assert np.array_equal(
        ResearchNoise(4).gaussian(zeros, 1e6), ResearchNoise(4).gaussian(zeros, 1e6)
    )
    assert not np.array_equal(
        ResearchNoise(4).gaussian(zeros, 1e6), ResearchNoise(5).gaussian(zeros, 1e6)
    )
    with pytest.warns(UserWarning, match="random_state is ignored"):
        source = noise_source("secure", random_state=4)
    assert isinstance(source, SecureNoise)


def test_an_unknown_source_is_refused():
    with pytest.raises(InputError, match=stating("noise='none'", "'secure'", "'research'")):
        noise_source("none")


@pytest.mark.parametrize(
    "noise", [SecureNoise(), ResearchNoise(0)], ids=lambda source: type(source).__name__
)
def test_subsets_are_uniform_distinct_and_sorted(noise):
    counts = np.zeros(5)
    for _ in range(2000):
        chosen = noise.subset(5, 2)
        assert chosen[0] < chosen[1]
        counts[chosen] += 1
    assert stats.chisquare(counts).pvalue > 1e-6
    assert noise.subset(3, 0).tolist() == []
    assert noise.subset(3, 3).tolist() == [0, 1, 2]


@pytest.mark.parametrize(("noise", "chunk"), [(SecureNoise(), 2**16), (OpenDPNoise(), 1024)])
def test_secure_noise_comes_in_chunks_with_progress(noise, chunk):
    from tacit.compute.progress import reporting

    total = 3 * chunk - 12
    seen = []
    values = np.zeros((3, chunk - 4), dtype=np.int64)
    with reporting(lambda label, done, total: seen.append((label, done, total))):
        result = noise.gaussian(values, 10.0)
    assert result.shape == (3, chunk - 4)
    assert not values.any()
    assert seen == [("secure noise", min(k * chunk, total), total) for k in (1, 2, 3)]


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_secure_noise_has_the_law_of_opendps(law):
    """On a fine grid, where rounded and discrete noise are alike."""
    zeros = np.zeros(20_000, dtype=np.int64)
    ours = getattr(SecureNoise(), law)(zeros, 2.0**32)
    theirs = getattr(OpenDPNoise(), law)(zeros, 2.0**32)
    assert stats.ks_2samp(ours, theirs).pvalue > 1e-6


def test_noise_of_opendp_names_its_extra_where_it_is_missing(monkeypatch):
    monkeypatch.setattr("tacit.compute.extras.is_installed", lambda library: library != "opendp")
    with pytest.raises(InputError, match=stating("opendp is not installed", "[opendp]")):
        noise_source("opendp")


def largest_correlation(values):
    """Largest autocorrelation of a sequence over all lags above 0, in standard deviations of white
    noise.
    """
    centred = (values - values.mean()) / values.std()
    spectrum = np.abs(np.fft.rfft(centred, 2 * len(centred))) ** 2
    by_lag = np.fft.irfft(spectrum)[1 : len(centred)]
    return float(np.max(np.abs(by_lag) / np.sqrt(len(centred))))


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
@pytest.mark.parametrize(
    "noise",
    [SecureNoise(), OpenDPNoise(), ResearchNoise(0)],
    ids=lambda source: type(source).__name__,
)
def test_no_two_values_of_one_release_share_their_noise(noise, law):
    # more than one chunk
    columns = 16_000 if type(noise) is SecureNoise else 6000
    drawn = getattr(noise, law)(np.zeros((5, columns), dtype=np.int64), 1e6)
    assert largest_correlation(drawn.ravel()) < 7
    # what shared noise looks like
    assert largest_correlation(np.append(drawn, drawn.ravel()[:8192])) > 20


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
@pytest.mark.parametrize(
    "noise",
    [SecureNoise(), OpenDPNoise(), ResearchNoise(0)],
    ids=lambda source: type(source).__name__,
)
def test_noise_that_could_overflow_64_bits_is_refused(noise, law):
    """Noise of 100 times its scale takes at most half of what 64 bits hold, or is refused."""
    zeros = np.zeros(100, dtype=np.int64)
    for scale in (2.0**50, 2.0**55, 2.0**56, 2.0**60, 2.0**100):
        if 100 * scale > 2**62:
            with pytest.raises(BudgetError, match="64-bit sums overflow"):
                getattr(noise, law)(zeros, scale)
        else:
            assert 0.5 < np.abs(getattr(noise, law)(zeros, scale)).mean() / scale < 1.5


@pytest.mark.parametrize("noise", ["gumbel", "exponential"])
def test_only_differences_of_scores_matter(noise):
    scores = np.array([3, 1, 0, 2])
    for shift in (2**60, -(2**60), 2**62):
        chosen = [
            [ResearchNoise(seed).noisy_max(one, 2.0, noise) for seed in range(200)]
            for one in (scores, scores + shift)
        ]
        assert chosen[0] == chosen[1]


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.uint64, bool])
def test_secure_noise_is_added_to_64_bit_integers_alone(law, dtype):
    with pytest.raises(TypeError, match="int64"):
        getattr(SecureNoise(), law)(np.ones(3, dtype=dtype), 2.0)
