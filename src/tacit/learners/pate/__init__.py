"""PATE: labels by the noisy votes of teachers, and a student that learns from them."""

from tacit.learners.pate.aggregators import Confident, GNMax, Interactive, LaplaceMax
from tacit.learners.pate.calibrate import Calibration, calibrate, simulated_counts
from tacit.learners.pate.data_dependent import DataDependent, rdp, rdp_per_vote
from tacit.learners.pate.grouped import Queries, Run
from tacit.learners.pate.readings import Reading, readings
from tacit.learners.pate.student import Student
from tacit.learners.pate.teachers import Teachers
from tacit.learners.pate.voting import Answers, aggregate

__all__ = [
    "Answers",
    "Calibration",
    "Confident",
    "DataDependent",
    "GNMax",
    "Interactive",
    "LaplaceMax",
    "Queries",
    "Reading",
    "Run",
    "Student",
    "Teachers",
    "aggregate",
    "calibrate",
    "rdp",
    "rdp_per_vote",
    "readings",
    "simulated_counts",
]
