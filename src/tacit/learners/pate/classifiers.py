"""Well-known classifiers by name, for teachers and students that are named in text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tacit.errors import InputError, quoted
from tacit.models.networks import NETWORKS


def logistic_regression() -> Any:
    """Nearly without a penalty; the default of teachers and student."""
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=30.0, max_iter=300)


def random_forest() -> Any:
    """100 trees."""
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier()


def gradient_boosting() -> Any:
    """100 trees for each class; not by histograms, which are for thousands of records and teachers
    have few.
    """
    from sklearn.ensemble import GradientBoostingClassifier

    return GradientBoostingClassifier()


def nearest_neighbour() -> Any:
    """The nearest record: teachers may have few of a class."""
    from sklearn.neighbors import KNeighborsClassifier

    return KNeighborsClassifier(1)


def naive_bayes() -> Any:
    """Gaussian."""
    from sklearn.naive_bayes import GaussianNB

    return GaussianNB()


def linear_svm() -> Any:
    """A linear support vector machine; it has no probabilities, so it is no student for interactive
    voting.
    """
    from sklearn.svm import LinearSVC

    return LinearSVC()


CLASSIFIERS: dict[str, Callable[[], Any]] = {
    "logistic-regression": logistic_regression,
    "random-forest": random_forest,
    "gradient-boosting": gradient_boosting,
    "knn": nearest_neighbour,
    "naive-bayes": naive_bayes,
    "linear-svm": linear_svm,
}
"""Functions that make a classifier of scikit-learn; networks have names of their own
(`tacit.models.networks`).
"""


def check_name(model: Any) -> None:
    """Refuse a name that is neither a classifier's nor a network's."""
    if isinstance(model, str) and model not in CLASSIFIERS and model not in NETWORKS:
        known = ", ".join((*CLASSIFIERS, *NETWORKS))
        raise InputError(
            f"model {quoted(model)} is unknown; choose one of {known}, or pass a classifier"
        )


def model_of(model: Any) -> Any:
    """Return what teachers or the student are by their parameter `model`.

    This is a classifier of scikit-learn, the name of a network, or a factory of networks; None is
    the default.
    """
    if model is None:
        model = "logistic-regression"
    return CLASSIFIERS[model]() if isinstance(model, str) and model in CLASSIFIERS else model
