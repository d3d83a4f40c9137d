"""One fit of PATE: its private and public records, and every decision that follows from public
facts.
"""

from __future__ import annotations

import math
import warnings
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.engines import Engine
from tacit.compute.shared import digest
from tacit.data.labels import class_indices, clean_labels
from tacit.errors import InputError
from tacit.learners.common.base import Prepared
from tacit.learners.common.models import Model, View, finite_rows
from tacit.learners.common.parameters import array_of
from tacit.learners.common.training import Training
from tacit.learners.pate.aggregators import Interactive
from tacit.learners.pate.ensemble import Ensemble
from tacit.learners.pate.run_folder import RunFolder
from tacit.learners.pate.student import Student, fit_student
from tacit.learners.pate.teachers import Allocation, Teachers, model_of
from tacit.learners.pate.voting import Voting
from tacit.mechanisms.noise import Integers, NoiseSource
from tacit.models.public_rows import public_centre
from tacit.models.rows import Floats


@dataclass(frozen=True, eq=False)
class Election(Prepared):
    """Private records, the public records that teachers vote on, and everything about the voting
    that is public.
    """

    public: Any
    test: tuple[Any, Integers] | None
    allocation: Allocation
    voting: Voting
    teachers: Teachers
    student: Student
    n_classes: int
    seed: int
    folder: RunFolder
    engine: Engine | None
    view_of_teachers: View
    view_of_student: View
    names: Floats | None = None
    truth: Integers | None = None
    """Class indices of the public records, to measure labels by."""

    @property
    def queries(self) -> NDArray[Any]:
        """Public records that are queried, in order."""
        return np.asarray(self.public[: self.voting.plan.n_queries])

    def ensemble(self) -> Ensemble:
        """The teachers."""
        view = self.view_of_teachers
        test = None
        if self.test is not None:
            records, labels = self.test
            test = (view(records), labels)
        return Ensemble(
            model_of(self.teachers.model),
            self.allocation.parts,
            view(self.X),
            self.labels,
            view(self.queries),
            n_classes=self.n_classes,
            training=Training.of(self.teachers.training),
            seed=self.seed,
            test=test,
            folder=self.folder.path,
            private_sizes=self.persons is not None,
        )

    def vote(self, votes: Integers, noise: NoiseSource) -> None:
        """Answer the queries; interactive voting answers the first by confident voting, then fits a
        student.
        """
        voting = self.voting
        aggregator = voting.plan.aggregator
        if not isinstance(aggregator, Interactive):
            voting.ask(votes, noise)
            return

        n_first = math.ceil(aggregator.bootstrap * len(votes))
        voting.ask(votes[:n_first], noise, aggregator=aggregator.without_student())
        if n_first < len(votes):
            student, _ = self.fitted_student()
            scores = np.exp(student.log_probabilities(self.queries[n_first:]))
            voting.ask(votes[n_first:], noise, scores)

    def fitted_student(self) -> tuple[Model, float | None]:
        """The student of the labels so far, and its accuracy on the validation labels."""
        student = self.student
        labels, _ = self.voting.released()
        labelled = np.flatnonzero(labels >= 0)
        spreads = any(option.spread for option in student.options())
        unlabelled = np.delete(self.public, labelled, axis=0) if spreads else self.public[:0]

        if len(labelled) == 0:
            knows = "no class but the first" if self.names is None else "the names alone"
            warnings.warn(
                f"no query was answered, so the student knows {knows}; pass a lower threshold, or"
                " more teachers",
                stacklevel=5,  # where `fit` was called
            )
        if len(labelled) == 0 and self.names is None:
            # a model needs a record: the first query counts as one of the first class
            labelled = np.array([0])
            labels = np.zeros(len(labels), dtype=np.int64)

        view = self.view_of_student
        records = self.queries[labelled]
        graph_rows = None
        if len(unlabelled):
            # neighbours agree more where the mean is not subtracted
            uncentred = replace(view, centre=None)
            graph_rows = (uncentred(records), uncentred(unlabelled))
        model, accuracy = fit_student(
            student.options(),
            view(records),
            labels[labelled],
            n_classes=self.n_classes,
            training=Training.of(student.training),
            validation=student.validation,
            unlabelled=view(unlabelled) if len(unlabelled) else None,
            rows=graph_rows,
            names=self.names,
            seed=self.seed,
        )
        return replace(model, view=view), accuracy

    def accuracy_of_first(self, asked: int) -> float | None:
        """Accuracy on the test set of the student of the first answers alone; None without a test
        set.
        """
        if self.test is None:
            return None
        voting = copy(self.voting)
        voting.asked = asked
        student, _ = replace(self, voting=voting).fitted_student()
        records, labels = self.test
        return float(np.mean(student.nearest(records) == labels))

    def settings(self) -> list[object]:
        """Settings that decide the answers of interactive voting, beside scheme, records and
        votes.
        """
        if not isinstance(self.voting.plan.aggregator, Interactive):
            return []
        model = model_of(self.student.model)
        settings = [
            getattr(model, "__qualname__", repr(model)),
            self.student.model is None,
            replace(self.student, model=None),
        ]
        if self.names is not None:
            settings.append(digest([self.names]))
        return settings


def student_view(
    student: Student, shape: tuple[int, ...], public: Any, dtype: np.dtype[Any]
) -> View:
    """Return how the student sees public rows.

    Linear models see unit rows, about their mean unless labels must be spread; named models see
    pixels of 8 bits divided by 255.
    """
    from sklearn.linear_model import LogisticRegression

    model = model_of(student.model)
    is_name = isinstance(model, str)
    is_linear = isinstance(model, LogisticRegression) or (is_name and model == "linear")
    centre = None
    if is_linear and not student.semi_supervised:
        centre = public_centre(public, public.shape[1])
    divisor = 255.0 if dtype == np.uint8 and is_name else 1.0
    return View(shape, is_linear, centre, divisor)


def check_truth(truth: Any, records: int, classes: NDArray[Any]) -> Integers | None:
    """Class indices of the true labels of the public records, if they are given."""
    if truth is None:
        return None
    labels = array_of(truth, "truth", "pass the true label of each public record")
    if labels.shape != (records,):
        raise InputError(
            f"truth has shape {labels.shape}; pass the label of each of {records} public records"
        )
    return class_indices(clean_labels(labels, records), classes)


def check_test(test: Any, width: int, classes: NDArray[Any]) -> tuple[Any, Integers] | None:
    """Test rows and their class indices, if there are any."""
    if test is None:
        return None
    if not isinstance(test, tuple | list) or len(test) != 2:
        raise InputError(
            f"test is a {type(test).__name__} and not a pair; pass test=(records, labels)"
        )
    rows = finite_rows(test[0], "test", width)
    labels = array_of(test[1], "labels of test")
    if labels.shape != (len(rows),):
        raise InputError(
            f"test has {len(rows)} records and labels {labels.shape}; pass one for each"
        )
    return rows, class_indices(clean_labels(labels, len(rows)), classes)
