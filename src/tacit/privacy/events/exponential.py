"""The exponential mechanism, by its bounded range."""

from dataclasses import dataclass

import numpy as np

from tacit.privacy.events.base import Event, Floats, Losses
from tacit.privacy.events.pure import PureDP


@dataclass(frozen=True)
class Exponential(PureDP):
    """An exponential mechanism: privacy losses lie in an interval of width epsilon (bounded range).

    Notes
    -----
    epsilon-bounded range implies epsilon^2/8-zCDP [Cesar and Rogers 2021, Lemma 3.4]. Ranges add over the records of a
    group. The privacy profile is delta(e) = (exp(epsilon/2) - exp(e/2))^2 / (exp(epsilon) - 1) for |e| <= epsilon
    [Dong, Durfee and Rogers 2020].
    """

    @property
    def rho(self) -> float:
        return self.epsilon * self.epsilon / 8  # a power would raise where this overflows to inf

    def for_group(self, size: int) -> Event:
        return Exponential(size * self.epsilon)

    def describe(self) -> str:
        return f"an exponential mechanism of epsilon {self.epsilon:.6g} (bounded range)"

    def _renyi(self, orders: Floats) -> Floats:
        return np.asarray(self.rho * orders)

    def losses(self, uses: int) -> Losses:
        return Losses("profile", {"profile": self._profile, "width": self.epsilon}, uses)

    def _profile(self, epsilons: Floats) -> Floats:
        return np.asarray((np.exp(self.epsilon / 2) - np.exp(epsilons / 2)) ** 2 / np.expm1(self.epsilon))
