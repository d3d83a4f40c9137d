"""Releases of several labels a record, by made-up arrays."""

import numpy as np
from sklearn.pipeline import make_pipeline

import tacit
from tacit.models.decisions import LinearHead
from tacit.models.label_sets import LabelSets
from tacit.models.released import Released
from tacit.releases.release import Release

CLASSES = ["ant", "bée", "cow", "dog"]
WIDTH = 6
THRESHOLDS = np.array([0.2, 0.5, 0.35, 0.9])
SCALE = 3.0


def label_set_release(decision=None, arrays=None, classes=CLASSES, schema=None):
    """Return a release that predicts several labels a row; its guarantee is that of any learner."""
    rng = np.random.default_rng(0)
    if decision is None:
        decision = LinearHead()
        arrays = {
            "coefficients": rng.normal(size=(len(classes), WIDTH)),
            "intercepts": rng.normal(size=len(classes)) / 3 - 0.5,
            "centre": rng.normal(size=WIDTH) / 9,
        }
    learner = tacit.NoisySumPrototypes(classes=classes)
    fitted = learner
    table = np.ones((2, WIDTH))
    if schema is not None:
        fitted = make_pipeline(tacit.TableEncoder(schema), learner)
        table = {"plan": ["a", "b"]}
    fitted.fit(table, np.array(classes)[[0, 1]])

    label_sets = LabelSets(SCALE, THRESHOLDS[: len(classes)])
    learner.released_ = Released("arrays of a test", arrays, decision, label_sets=label_sets)
    return Release.of(fitted, name="labels")


def example_rows(n=200):
    """Return rows of embeddings."""
    return np.random.default_rng(1).normal(size=(n, WIDTH)).astype(np.float32)
