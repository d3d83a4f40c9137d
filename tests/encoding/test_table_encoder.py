"""tacit.TableEncoder in pipelines of scikit-learn."""

import pickle

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import tacit

PICTURES = np.random.default_rng(0).integers(0, 256, (4, 16, 16), dtype=np.uint8)
SCHEMA = {
    "columns": {
        "age": {"kind": "number", "low": 0, "high": 100, "cells": 2},
        "plan": {"kind": "category", "levels": ["free", "paid"]},
    }
}


def test_it_fits_nothing_and_names_its_columns():
    encoder = tacit.TableEncoder(SCHEMA)
    table = pd.DataFrame({"plan": ["free", "gold"], "age": [70, -1], "other": [1, 2]})
    rows = encoder.transform(table)
    assert (encoder.fit_transform(table.iloc[:, ::-1]) == rows).all()
    names = encoder.get_feature_names_out()
    assert names[rows[0] > 0].tolist() == ["age = 50 to 100", "plan = free"]
    assert encoder.faults(table) == [
        "column 'age': 1 below 0",
        "column 'plan': 1 of no declared level",
    ]
    copies = [clone(encoder), pickle.loads(pickle.dumps(encoder))]
    assert all((copy.transform(table) == rows).all() for copy in copies)


def test_pictures_in_a_column_go_through_their_encoder_and_are_joined():
    schema = {"columns": SCHEMA["columns"] | {"photo": {"kind": "image", "encoder": "edges:8"}}}
    encoder = tacit.TableEncoder(schema)
    photos = [PICTURES[0], None, PICTURES[2], PICTURES[3]]
    rows = encoder.transform({"age": [1] * 4, "plan": ["free"] * 4, "photo": photos})
    features = tacit.encode(PICTURES, "edges:8").astype(np.float64)
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    assert np.allclose(rows[[0, 2, 3], 7:-1], unit[[0, 2, 3]], atol=1e-6)
    assert rows[1, -1] == 1
    assert not rows[1, 7:-1].any()
    assert np.allclose((rows.astype(np.float64) ** 2).sum(axis=1), 3, atol=1e-5)
    # whatever stands for a missing value
    absent = {"age": [1] * 3, "plan": ["free"] * 3, "photo": [pd.NA, float("nan"), pd.NaT]}
    assert (encoder.transform(absent) == rows[1]).all()
    assert len(encoder.get_feature_names_out()) == rows.shape[1]


def test_a_pipeline_has_the_guarantee_of_its_learner():
    learner = tacit.FeatureCovariance("epsilon=1,delta=1e-5", classes=["stays", "leaves"])
    pipeline = make_pipeline(tacit.TableEncoder(SCHEMA), learner)
    table = {"age": [10, 90] * 500, "plan": ["free", "paid"] * 500}
    pipeline.fit(table, ["stays", "leaves"] * 500)
    assert pipeline[-1].guarantee_ == learner.promise()
    assert pipeline.predict({"plan": ["paid", "free"], "age": [95, 5]}).tolist() == [
        "leaves",
        "stays",
    ]
