"""The learner that a release states, made again to be fitted to public rows.

A release of version 9 states the method and its public parameters. Rows are not stated: where the
learner took public rows or class names, public rows of the audit stand for them, since a promise
does not depend on which public rows these were.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError, ReleaseError, TacitError, excerpt
from tacit.learners.common.base import PrivateClassifier
from tacit.learners.methods import METHODS, load
from tacit.privacy.guarantee import Guarantee
from tacit.releases.release import Release
from tacit.releases.schema import LearnerMechanisms, RecordedLearner

# relative difference of two epsilons that count as the same, across processors and versions
TOLERANCE = 1e-4

# at which promises are compared
DELTAS = (1e-5, 1e-9)

AS_IT_WAS = "ask its curator for the release as it was made"

NAMES = "names"
PUBLIC = "public"


def stated_learner(release: Release) -> RecordedLearner:
    """Return the learner that a release states.

    Raises
    ------
    ReleaseError
        If the release is older than version 9, or does not state all that a refit needs.
    """
    document = release.document
    mechanisms = document.mechanisms
    if not isinstance(mechanisms, LearnerMechanisms):
        fault = f"is of version {document.version}, and releases state their learner from version 9"
        raise ReleaseError(
            f"{release.source} {fault}, so it cannot be refitted; audit the method by tacit audit"
            " METHOD, or fit again and audit that"
        )

    learner = mechanisms.learner
    if learner.method not in METHODS:
        fault = "states no method of tacit methods that made it"
        raise ReleaseError(f"{release.source} {fault}, so it cannot be refitted; audit the learner")
    if learner.left_out:
        listed = ", ".join(learner.left_out)
        fault = f"was fitted with {listed}, which its document cannot state"
        raise ReleaseError(f"{release.source} {fault}, so it cannot be refitted; audit the learner")
    return learner


def rebuilt(
    release: Release, *, public: NDArray[Any] | None = None, names: Any = None
) -> PrivateClassifier:
    """Make the learner that a release states, with research noise and the class list declared.

    Parameters
    ----------
    public : ndarray of shape (m, d), optional
        Stands for the public rows, if the learner took some.
    names : array of shape (C, d), optional
        Stands for the rows of class names, if the learner took some.

    Raises
    ------
    ReleaseError
        If the release does not state the learner, or it promises another guarantee.
    """
    learner = stated_learner(release)
    classes = release.classes.tolist()
    try:
        made = learner_of(learner, classes, tree=release.tree, public=public, names=names)
        promise = made.promise()
    except TacitError as error:
        fault = f"states a learner that {learner.method} refuses ({excerpt(str(error))})"
        raise ReleaseError(f"{release.source} {fault}; {AS_IT_WAS}") from error

    _check_promise(release, promise)
    return made


def learner_of(
    stated: RecordedLearner, classes: list[Any], *, tree: Any, public: Any, names: Any
) -> PrivateClassifier:
    """Make the learner of these parameters; see `rebuilt`."""
    learner_class = load(METHODS[stated.method])
    known = set(learner_class.flat_parameters())
    unknown = sorted(set(stated.parameters) - known)
    if unknown:
        raise InputError(f"{stated.method} has no parameters {', '.join(unknown)}; leave them out")

    parameters = {name: _value(value) for name, value in stated.parameters.items()}
    parameters |= {"classes": classes, "noise": "research"}
    if PUBLIC in stated.inputs:
        # public rows are compared with private ones for their owner; here all rows are public
        parameters |= {PUBLIC: public, "allow_overlap": True}
    if NAMES in stated.inputs:
        parameters[NAMES] = names
    if tree is not None and "tree" in known:
        parameters["tree"] = tree

    made: PrivateClassifier = learner_class.of_flat(**parameters)
    return made


def _value(value: Any) -> Any:
    """Return a parameter from its form in a document."""
    return math.inf if value == "inf" else value


def _check_promise(release: Release, promise: Guarantee) -> None:
    """Refuse another promise than the guarantee of the release."""
    stated = release.guarantee
    is_same = promise.unit == stated.unit and all(
        np.isclose(promise.epsilon(delta), stated.epsilon(delta), rtol=TOLERANCE)
        for delta in DELTAS
    )
    if is_same:
        return
    fault = (
        f"states a learner that promises {promise.figures()} under unit {promise.unit}, and a"
        f" guarantee of {stated.figures()} under unit {stated.unit}"
    )
    raise ReleaseError(f"{release.source} {fault}; {AS_IT_WAS}")
