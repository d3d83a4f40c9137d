"""Measures of a release or a method and their price: forecasts, evaluations, choices, audits."""
