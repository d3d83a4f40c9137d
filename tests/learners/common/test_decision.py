import numpy as np
import pytest

from tacit.errors import InputError
from tacit.learners.common import decision
from tacit.learners.common.decision import NearestPrototype

RNG = np.random.default_rng(0)
ROWS, PROTOTYPES = RNG.normal(size=(50, 6)), RNG.normal(size=(4, 3, 6))


def cosine(a, b):
    return a @ b / np.linalg.norm(a) / np.linalg.norm(b)


@pytest.mark.parametrize(
    ("metric", "nearness"), [("cosine", cosine), ("euclidean", lambda a, b: -np.linalg.norm(a - b))]
)
def test_nearness_is_the_mean_over_the_prototypes(metric, nearness, monkeypatch):
    monkeypatch.setattr(decision, "BLOCK_ROWS", 7)
    expected = [[np.mean([nearness(x, p) for p in own]) for own in PROTOTYPES] for x in ROWS]
    assert np.allclose(NearestPrototype(metric).similarities({"prototypes": PROTOTYPES}, ROWS), expected)
    single = [[nearness(x, own[0]) for own in PROTOTYPES] for x in ROWS]
    assert np.allclose(NearestPrototype(metric).similarities({"prototypes": PROTOTYPES[:, 0]}, ROWS), single)


def test_a_prototype_of_zeros_is_never_nearest_by_cosine():
    prototypes = np.array([[0.0, 0.0], [-1.0, 0.0]])
    found = NearestPrototype().similarities({"prototypes": prototypes}, np.array([[1.0, 0.0]]))
    assert found.argmax() == 1


def test_rows_are_pooled_first():
    pooled = ROWS.reshape(50, 3, 2).mean(axis=2)
    rule = NearestPrototype("euclidean", pooling=2)
    expected = -np.linalg.norm(pooled[:, None] - pooled[:4], axis=2)
    assert np.allclose(rule.similarities({"prototypes": pooled[:4]}, ROWS), expected)


def test_an_unknown_metric_is_refused():
    with pytest.raises(InputError, match="metric='taxi' must be one of cosine, euclidean"):
        NearestPrototype("taxi")
