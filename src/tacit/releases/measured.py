"""Types of what was measured on other private records than those that a release was trained on:
these records have a guarantee of their own.
"""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from tacit.models.prediction_sets import Score
from tacit.releases.combination import Combination
from tacit.releases.fields import Model, Recorded, Share, Text

ALL_CLASSES: Literal["every set holds all classes"] = "every set holds all classes"
"""The threshold where noise, or a probability that is too small, leaves no other."""


class PredictionSets(Model):
    """Prediction sets of item 8: the rule that makes them, what it promises, and what it cost the
    calibration records.

    `tacit.models.prediction_sets` has the scores.
    """

    level: Annotated[float, Field(gt=0, lt=1)]
    score: Score
    threshold: Share | Literal["every set holds all classes"]
    promise: Literal[
        "a set holds the right class of a new row with probability at least the level, on average"
        " over rows, calibration records and noise, if new rows are drawn as the calibration"
        " records were and the release was not trained on these; it does not hold for each class"
        " or group by itself"
    ] = (
        "a set holds the right class of a new row with probability at least the level, on average"
        " over rows, calibration records and noise, if new rows are drawn as the calibration"
        " records were and the release was not trained on these; it does not hold for each class"
        " or group by itself"
    )
    noise: Literal["secure", "opendp", "research"]
    guarantee: Recorded
    statement: Text
    about: Literal[
        "this guarantee is about the calibration records, that of the release about those that it"
        " was trained on; for someone among both, the costs add up"
    ] = (
        "this guarantee is about the calibration records, that of the release about those that it"
        " was trained on; for someone among both, the costs add up"
    )

    @property
    def rule(self) -> str:
        """Which classes a set holds, in words."""
        if not isinstance(self.threshold, float):
            return self.threshold
        if self.score == "probability":
            least = 1 - self.threshold
            return (
                "a set holds the most likely class, and every class whose probability is at least"
                f" {least:.6g}"
            )
        return (
            "a set holds every class such that the classes likelier than it have at most the"
            f" probability {self.threshold:.6g} together"
        )


HIDDEN = "hidden by noise"
"""A figure that would be divided by a number of records that noise hides."""

ROUNDING = 1e-6

PAID_SINCE = 9
"""The first version of documents that state such figures."""

Figure = Share | Literal["hidden by noise"]
Interval = tuple[Share, Share]


def check_within(figure: float | str, interval: tuple[float, float]) -> None:
    """Refuse an interval whose ends are exchanged, and a figure outside it; a ValueError says
    which.
    """
    low, high = interval
    if low > high:
        raise ValueError("the interval's lower end is above its upper end")
    # as far as rounding may move either
    if isinstance(figure, float) and not low - ROUNDING <= figure <= high + ROUNDING:
        raise ValueError("a figure is outside its interval")


class AccuracyFigures(Model):
    """Accuracies with intervals at 95 % that cover sampling and noise, and the noisy number of
    records, or of persons.
    """

    records: float
    accuracy: Figure
    accuracy_interval: Interval
    balanced_accuracy: Figure
    interval: Interval

    @model_validator(mode="after")
    def _check_intervals(self) -> "AccuracyFigures":
        """Refuse an interval whose ends are exchanged, and a figure that is not in its own."""
        check_within(self.accuracy, self.accuracy_interval)
        check_within(self.balanced_accuracy, self.interval)
        return self


class GroupUtility(AccuracyFigures):
    """Figures of the test records of one declared group, or of all other groups."""

    name: Text


class PaidUtility(AccuracyFigures):
    """Item 15: what was measured on private test records, at a price that they paid.

    `interval` is that of balanced accuracy.
    """

    test_set: Text
    per_class: dict[Text, Share]  # of the classes whose records noise does not hide
    per_class_intervals: dict[Text, Interval]  # of all classes
    grouped_by: Text
    groups: tuple[GroupUtility, ...]
    protection: Literal["private test records, paid for"] = "private test records, paid for"
    noise: Literal["secure", "opendp"]
    guarantee: Recorded
    statement: Text
    about: Literal[
        "this guarantee is about the test records, that of the release about those that it was"
        " trained on; for someone among both, the costs add up"
    ] = (
        "this guarantee is about the test records, that of the release about those that it was"
        " trained on; for someone among both, the costs add up"
    )

    @model_validator(mode="after")
    def _check_parts(self) -> "PaidUtility":
        """Refuse a class whose figure has no interval or is outside it, and groups of one name."""
        if not set(self.per_class) <= set(self.per_class_intervals):
            raise ValueError("the figure of a class has no interval")
        for name, interval in self.per_class_intervals.items():
            check_within(self.per_class.get(name, HIDDEN), interval)

        names = [group.name for group in self.groups]
        if len(set(names)) < len(names):
            raise ValueError("two groups have one name")
        return self


class CombinedUtility(PaidUtility):
    """Item 15: what the paid tables of several parts of the test records give together, since
    version 10. Each part has a row with its noise, its price and the hash of its table.
    """

    combination: Combination
