"""Label privacy: labels are randomized once, whatever is learned from them is free."""

from tacit.learners.label_dp.randomizers import RR, RRTopK, RRWithPrior

__all__ = ["RR", "RRTopK", "RRWithPrior"]
