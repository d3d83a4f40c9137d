"""Mechanisms, one file each: a sampler and its event."""
