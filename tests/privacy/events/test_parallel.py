"""Parallel composition."""

from tacit.privacy import accounting
from tacit.privacy.events import Exponential, Gaussian, Parallel


def test_parallel_costs_its_event_once():
    for event in (Gaussian(1.0), Exponential(1.0), 3 * Gaussian(2.0)):
        assert accounting.epsilon(Parallel(event, "classes"), 1e-6) == accounting.epsilon(
            event, 1e-6
        )
        assert Parallel(event, "classes").rho == event.rho
