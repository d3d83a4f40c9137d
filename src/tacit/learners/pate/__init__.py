"""PATE: labels by the noisy votes of teachers, and a student that learns from them."""

from tacit.learners.pate.aggregate import Answers, aggregate
from tacit.learners.pate.data_dependent import DataDependent, rdp, rdp_per_vote

__all__ = ["Answers", "DataDependent", "aggregate", "rdp", "rdp_per_vote"]
