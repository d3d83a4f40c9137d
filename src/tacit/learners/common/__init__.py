"""Shared parts of the families of learners."""
