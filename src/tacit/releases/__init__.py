"""Releases: arrays that may be published, with a true statement of what they cost in privacy."""
