"""Prototypes over embeddings of a public encoder (DPPL)."""
