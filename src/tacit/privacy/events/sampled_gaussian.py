"""Gaussian noise on a sum over a Poisson sample."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tacit.errors import InputError
from tacit.privacy.events.base import CAUTIOUS, Floats, Losses, Rounding
from tacit.privacy.events.gaussian import Gaussian
from tacit.privacy.events.zcdp import ZCDP

# At larger orders, moments are not summed, and the curve is that without sampling.
_MOST_ORDER = 256


@dataclass(frozen=True)
class SampledGaussian(Gaussian):
    """Gaussian noise on a sum over a Poisson sample: an independent secret coin decides for each
    record.

    The sampling rate is the probability of each record to be in the sample.

    Notes
    -----
    `rho` and `mu` are those without sampling, which are upper bounds; the Renyi curve and the loss
    distribution have what sampling gains. With P = (1-q) N(0, z^2) + q N(1, z^2) and Q = N(0, z^2)
    the dominating pair is (P, Q) or (Q, P) [Zhu, Dong and Wang 2022, Thm 11]. Groups: adding k
    records shifts a sample by at most k, and at all with probability 1 - (1-q)^k. A group of which
    some are removed and others added costs no more in one use, since both sides share the samples
    without them [Balle, Barthe and Gaboardi 2018, Thm 2]; in several uses the same is checked
    numerically and not proven (docs/mechanisms.md).
    """

    sampling_rate: float

    assumption = None  # drawn in floating point, for comparison only
    exact_mu = False
    sampled = True
    curve_work = 3000.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.sampling_rate <= 1:
            raise InputError(
                f"sampling_rate={self.sampling_rate} must be above 0 and at most 1; pass for"
                " example 0.01"
            )

    def for_group(self, size: int) -> SampledGaussian:
        q = self.sampling_rate
        # 1 - (1-q)^size
        rate = -math.expm1(size * math.log1p(-q)) if q < 1 else 1.0
        return SampledGaussian(self.noise_multiplier / size, rate)

    def for_record_of_person(self) -> SampledGaussian:
        """Two changes: a person leaves, and is added with another number of records."""
        return self.for_group(2)

    def describe(self, rounding: Rounding = CAUTIOUS) -> str:
        rate = rounding.up(self.sampling_rate)
        return f"{super().describe(rounding)} on a Poisson sample of rate {rate}"

    def _renyi(self, orders: Floats) -> Floats:
        """At the next whole order [Mironov, Talwar and Zhang 2019, section 3.3], or without
        sampling if smaller.

        For a whole order a, E_Q (P/Q)^a = sum over k of binomial(a, k) (1-q)^(a-k) q^k exp(k
        (k-1)/(2 z^2)).
        """
        unsampled = self.rho * orders
        if self.sampling_rate == 1 or self.noise_multiplier == 0:
            return np.asarray(unsampled)

        whole_orders = np.ceil(orders)
        divergences = {}
        for order in np.unique(whole_orders):
            if order <= _MOST_ORDER:
                divergences[order] = _log_moment(self, int(order)) / (order - 1)
        sampled = [divergences.get(order, math.inf) for order in whole_orders]
        return np.minimum(unsampled, sampled)

    def losses(self, uses: int) -> Losses:
        parameters = {
            "standard_deviation": self.noise_multiplier,
            "sampling_prob": self.sampling_rate,
        }
        return Losses("gaussian", parameters, uses)

    def reach(self, uses: int) -> float:
        """As far as one use reaches without sampling, or all uses with it."""
        with_sampling = min(self.rho, self.sampling_rate**2 * math.expm1(min(2 * self.rho, 700.0)))
        return ZCDP(max(self.rho / uses, with_sampling)).reach(uses)


@lru_cache(maxsize=4096)
def _log_moment(event: SampledGaussian, order: int) -> float:
    """ln E_Q (P/Q)^order, the sum in `SampledGaussian._renyi`."""
    from scipy.special import gammaln, logsumexp

    q = event.sampling_rate
    k = np.arange(order + 1)
    log_binomials = gammaln(order + 1) - gammaln(k + 1) - gammaln(order - k + 1)
    log_shares = (order - k) * math.log1p(-q) + k * math.log(q)
    return float(logsumexp(log_binomials + log_shares + k * (k - 1) * event.rho))
