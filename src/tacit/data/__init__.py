"""Embeddings and their labels: the store, what can be imported into it, subsets for evaluation,
built-in data.
"""
