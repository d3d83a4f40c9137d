"""Mechanisms, one file each: the sampler, then its event, then nothing."""
