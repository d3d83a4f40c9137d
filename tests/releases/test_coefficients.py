"""Coefficients by column and level: they add up to the logits of a release."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

import tacit
from tacit.errors import ReleaseError
from tacit.models.decisions import NearestPrototype
from tacit.report.coefficients import MOST_LEVELS, section

SCHEMA = {
    "columns": {
        "age": {"kind": "number", "low": 0, "high": 100, "cells": 4},
        "rating": {"kind": "ordered", "low": 1, "high": 5},
        "income": {"kind": "ordered", "low": 0, "high": 1000, "spacing": "log"},
        "plan": {"kind": "category", "levels": ["free", "<paid>"]},
        "joined": {"kind": "date", "parts": ["year", "month"], "years": [2020, 2022]},
    }
}
RNG = np.random.default_rng(0)
N = 600
TABLE = {
    "age": RNG.integers(0, 100, N).tolist(),
    "rating": RNG.integers(1, 6, N).tolist(),
    "income": RNG.integers(0, 1001, N).tolist(),
    "plan": RNG.choice(["free", "<paid>"], N).tolist(),
    "joined": [
        f"{year}-0{month}-11" for year, month in RNG.integers([2020, 1], [2023, 10], (N, 2))
    ],
}
CLASSES = np.array(["no", "yes", "later"])


def release(learner, n_classes=3, schema=SCHEMA):
    labels = (np.array(TABLE["age"]) > 50) + (np.array(TABLE["plan"]) == "free")
    y = CLASSES[np.minimum(labels, n_classes - 1)]
    pipeline = make_pipeline(tacit.TableEncoder(schema), learner)
    return tacit.Release.of(pipeline.fit(TABLE, y), name="a table")


@pytest.mark.parametrize("method", [tacit.GradientDescent, tacit.NoisySumPrototypes])
def test_coefficients_add_up_to_differences_of_logits(method):
    learner = method("epsilon=4,delta=1e-5", classes=CLASSES.tolist())
    made = release(learner)
    levels = made.coefficients()
    assert list(levels) == list(SCHEMA["columns"])

    def logits(plan, income, rating, joined):
        """Logits without the intercepts, which differences between records do not hold."""
        year, month = joined.split("-")[:2]
        chosen = [
            levels["age"]["25 to 50"],
            levels["rating"][rating],
            levels["income"][income],
            levels["plan"][plan],
        ]
        if joined == "-":
            return sum(chosen) + levels["joined"]["(missing)"]
        parts = levels["joined"]
        return sum(chosen) + parts[f"year {year}"] + parts[f"month {int(month)}"]

    def stated(plan, income, rating, joined):
        date = None if joined == "-" else joined
        row = {"age": [30], "plan": [plan], "income": [income], "rating": [rating]}
        return np.log(made.predict_proba(row | {"joined": [date]})[0])

    records = [
        ("free", "0", "1", "2020-02-01"),
        ("<paid>", "1000", "3", "2022-07-01"),
        ("free", "1000", "5", "-"),
    ]
    for first, second in ((records[0], records[1]), (records[0], records[2])):
        expected = stated(*first) - stated(*second)
        found = logits(*first) - logits(*second)
        np.testing.assert_allclose(found - found.mean(), expected - expected.mean(), atol=1e-5)


def test_levels_are_named_as_features():
    made = release(tacit.GradientDescent("epsilon=1,delta=1e-5", classes=CLASSES.tolist()))
    names = list(tacit.TableEncoder(SCHEMA).get_feature_names_out())
    for column in ("age", "plan", "joined"):
        for level in made.coefficients()[column]:
            assert f"{column} = {level}" in names


def test_the_page_shows_bars_and_says_that_they_cost_nothing():
    two = release(tacit.GradientDescent("epsilon=1,delta=1e-5", classes=["no", "yes"]), 2)
    html = section(two)
    assert "log odds of yes against no" in html
    assert "post-processing" in html
    assert "&lt;paid&gt;" in html
    assert "<paid>" not in html
    free = two.coefficients()["plan"]["free"]
    assert f"<td>{free[1] - free[0]:+.2f}</td>" in html
    assert html.count("<rect") == sum(map(len, two.coefficients().values()))


def test_long_columns_and_many_classes_are_shortened():
    codes = [f"c{number}" for number in range(MOST_LEVELS + 9)]
    columns = SCHEMA["columns"] | {"plan": {"kind": "category", "levels": codes}}
    classes = [*CLASSES.tolist(), *"abcdef"]
    learner = tacit.GradientDescent("epsilon=1,delta=1e-5", classes=classes)
    html = section(release(learner, schema={"columns": columns}))
    assert "The first 6 of 9 classes are shown" in html
    assert f"{MOST_LEVELS} of {MOST_LEVELS + 11} values" in html


def test_a_decision_that_is_not_linear_is_said_so():
    base = release(tacit.NoisySumPrototypes("rho=1", classes=CLASSES.tolist()))
    contents = base.document.contents
    euclidean = contents.model_copy(update={"decision": NearestPrototype(metric="euclidean")})
    document = base.document.model_copy(update={"contents": euclidean})
    base = tacit.Release(document, base.arrays, base.sha256, base.card_text)
    with pytest.raises(ReleaseError, match="does not decide by linear scores"):
        base.coefficients()
    assert "does not decide by linear scores, so no level" in section(base)


def test_a_release_of_rows_has_no_levels():
    X = RNG.normal(size=(200, 3))
    learner = tacit.NoisySumPrototypes("rho=1", classes=2).fit(X, np.arange(200) % 2)
    made = tacit.Release.of(learner, name="rows")
    with pytest.raises(ReleaseError, match="states no schema of a table"):
        made.coefficients()
    assert section(made) is None
