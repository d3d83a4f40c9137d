"""Prediction from released arrays, and other post-processing: no private record comes in here."""
