"""Label privacy: labels are randomized once, whatever is learned from them is free."""

from tacit.learners.label_dp.blocks import Blocks
from tacit.learners.label_dp.priors import clusters_of
from tacit.learners.label_dp.randomize import NoisyLabels, randomize
from tacit.learners.label_dp.randomizers import RR, RRTopK, RRWithPrior
from tacit.learners.label_dp.regression import RROnBins, UnbiasedResponse
from tacit.learners.label_dp.vectors import NoisyOneHot, OptimisedUnary, SymmetricUnary

__all__ = [
    "RR",
    "Blocks",
    "NoisyLabels",
    "NoisyOneHot",
    "OptimisedUnary",
    "RROnBins",
    "RRTopK",
    "RRWithPrior",
    "SymmetricUnary",
    "UnbiasedResponse",
    "clusters_of",
    "randomize",
]
