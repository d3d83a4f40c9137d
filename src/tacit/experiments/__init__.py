"""Experiments: a plan in YAML, its cells, their results."""
