"""Encoding: `encoders` turn pictures and texts, read from `sources`, into rows of features.

One word for one thing: a *split* is the train or test records of a source, a *chunk* the rows of a
table that are read together, a *batch* the records that are encoded together, a *slice* the
pictures of a batch for one thread, and a *shard* one file of a store.
"""
