"""A Flower app: one round of private summaries."""
