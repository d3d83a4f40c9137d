"""Randomized response on a label."""

from dataclasses import dataclass

from tacit.errors import InputError
from tacit.privacy.events.base import CAUTIOUS, Floats, Losses, Rounding
from tacit.privacy.events.pure import (
    PureDP,
    response_attack_rate,
    response_epsilon,
    response_losses,
    response_renyi,
    response_total_variation,
)


@dataclass(frozen=True)
class RandomizedResponse(PureDP):
    """A label is replaced by another, drawn uniformly, with a probability that makes this
    epsilon-DP.

    The probability to keep a label is exp(epsilon) times that of any particular other label; there
    are `n_classes`.
    """

    n_classes: int

    attained = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_classes < 2:
            raise InputError(
                f"n_classes={self.n_classes} must be at least 2; pass the size of the class list"
            )

    def describe(self, rounding: Rounding = CAUTIOUS) -> str:
        epsilon = rounding.up(self.epsilon)
        return f"randomized response over {self.n_classes} labels at epsilon {epsilon}"

    def _renyi(self, orders: Floats) -> Floats:
        return response_renyi(self.epsilon, self.n_classes, orders)

    def losses(self, uses: int) -> Losses:
        return response_losses(self.epsilon, self.n_classes, uses)

    def exact_epsilon(self, uses: int, delta: float) -> float | None:
        return response_epsilon(self.epsilon, self.n_classes, delta) if uses == 1 else None

    def attack_rate(self, false_positive_rate: float) -> float:
        return response_attack_rate(self.epsilon, self.n_classes, false_positive_rate)

    def total_variation(self) -> float:
        return response_total_variation(self.epsilon, self.n_classes)
