"""Types of what was measured on other private records than those that a release was trained on:
these records have a guarantee of their own.
"""

from typing import Annotated, Literal

from pydantic import Field

from tacit.models.prediction_sets import Score
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
