"""The version of tacit, on its own so that the lowest layers can state it."""

__version__ = "0.1.0"
