"""Sums and predictions where the records are: on Spark and on Ray Data."""
