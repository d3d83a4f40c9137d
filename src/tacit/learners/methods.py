"""The one table of methods: command-line name -> where its class is. Read without importing any of them."""

from importlib import import_module
from typing import Any

METHODS: dict[str, str] = {
    "noisy-sum": "tacit.learners.prototypes.noisy_sum:NoisySumPrototypes",
    "coinpress": "tacit.learners.prototypes.coinpress:CoinPressPrototypes",
    "public": "tacit.learners.prototypes.public:PublicPrototypes",
}


def load(path: str) -> Any:
    """The object that "module:name" names."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)
