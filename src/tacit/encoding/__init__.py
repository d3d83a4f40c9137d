"""Encoding: pictures and texts, read from sources, become rows of features by encoders."""
