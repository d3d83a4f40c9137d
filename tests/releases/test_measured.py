"""What documents state of other private records than those of the release."""

import numpy as np
import pytest
from pydantic import ValidationError

import tacit
from tacit.errors import ReleaseError
from tacit.releases.fields import Recorded
from tacit.releases.measured import GroupUtility, PaidUtility
from tacit.releases.release import Release
from tacit.releases.statement import statement_of

X = np.repeat(np.eye(2), 50, axis=0)
RELEASE = Release.of(tacit.NoisySumPrototypes("rho=0.5", classes=2).fit(X, np.repeat([0, 1], 50)))
FIGURES = {
    "records": 201.7,
    "accuracy": 0.7,
    "accuracy_interval": (0.6, 0.8),
    "balanced_accuracy": 0.65,
    "interval": (0.5, 0.75),
}
OF_PARTS = {
    "per_class": {"0": 0.9},
    "per_class_intervals": {"0": (0.8, 0.95), "1": (0.0, 1.0)},
    "groups": (GroupUtility(name="north", **FIGURES),),
}


def paid(**changed):
    return PaidUtility(
        **FIGURES | OF_PARTS | changed,
        test_set="clinic",
        grouped_by="hospital",
        noise="secure",
        guarantee=Recorded.of(RELEASE.guarantee),
        statement=statement_of(RELEASE.guarantee, "secure"),
    )


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"accuracy": 0.9}, "outside its interval"),
        ({"balanced_accuracy": 0.4}, "outside its interval"),
        ({"interval": (0.75, 0.5)}, "lower end is above"),
        ({"per_class": {"0": 0.99}}, "outside its interval"),
        ({"per_class": {"2": 0.5}}, "has no interval"),
        ({"per_class_intervals": {"0": (0.95, 0.8), "1": (0.0, 1.0)}}, "lower end is above"),
        ({"groups": 2 * OF_PARTS["groups"]}, "two groups have one name"),
    ],
)
def test_figures_that_contradict_each_other_are_refused(changed, fault):
    with pytest.raises(ValidationError, match=fault):
        paid(**changed)


def test_figures_of_other_classes_than_those_of_the_release_are_found():
    RELEASE.with_utility(paid()).verify()
    intervals = OF_PARTS["per_class_intervals"]
    for other in (intervals | {"wolf": (0.0, 1.0)}, {"0": intervals["0"]}):
        forged = RELEASE.with_utility(paid(per_class_intervals=other))
        with pytest.raises(ReleaseError, match="figures of other classes"):
            forged.verify()
