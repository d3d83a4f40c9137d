"""Shared by tests of learners: what noise they draw."""

import pytest

from tacit.mechanisms import outer_products


@pytest.fixture
def steps_drawn(monkeypatch):
    """Noise multiplier and noise of every noisy sum of outer products, in the order of release."""
    drawn = []

    def noisy_products(blocks, *, shape, noise_multiplier, noise):
        exact = outer_products.product_sums(blocks, shape=shape)
        released = (
            noise.gaussian(exact, scale=noise_multiplier * outer_products.UNIT)
            / outer_products.UNIT
        )
        drawn.append((noise_multiplier, released - exact / outer_products.UNIT))
        return released

    monkeypatch.setattr(outer_products, "noisy_products", noisy_products)
    return drawn
