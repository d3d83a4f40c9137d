"""Linear heads over embeddings of a public encoder."""
