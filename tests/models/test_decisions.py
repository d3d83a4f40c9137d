import re
from typing import Annotated

import numpy as np
import pytest
from pydantic import Field, TypeAdapter

from messages import lacking, stating
from tacit.errors import InputError
from tacit.models import decisions
from tacit.models.decisions import (
    AnyDecision,
    LinearHead,
    NearestPrototype,
    NetworkHead,
    QuadraticHead,
)
from tacit.models.rows import inner_products, rowwise_inner_products, unit_rows_about

RNG = np.random.default_rng(0)
ROWS, PROTOTYPES = RNG.normal(size=(50, 6)), RNG.normal(size=(4, 3, 6))


def cosine(a, b):
    return a @ b / np.linalg.norm(a) / np.linalg.norm(b)


@pytest.mark.parametrize(
    ("metric", "nearness"), [("cosine", cosine), ("euclidean", lambda a, b: -np.linalg.norm(a - b))]
)
def test_nearness_is_the_mean_over_the_prototypes(metric, nearness, monkeypatch):
    monkeypatch.setattr(decisions, "BLOCK", 7)
    expected = [[np.mean([nearness(x, p) for p in own]) for own in PROTOTYPES] for x in ROWS]
    assert np.allclose(
        NearestPrototype(metric).similarities({"prototypes": PROTOTYPES}, ROWS), expected
    )
    single = [[nearness(x, own[0]) for own in PROTOTYPES] for x in ROWS]
    assert np.allclose(
        NearestPrototype(metric).similarities({"prototypes": PROTOTYPES[:, 0]}, ROWS), single
    )


@pytest.mark.parametrize("n", [0, 1, 7, 50])
def test_the_nearest_class_is_the_first_of_the_most_similar(n, monkeypatch):
    monkeypatch.setattr(decisions, "BLOCK", 7)
    twice = {"prototypes": PROTOTYPES[[0, 1, 1, 2, 0], 0]}
    for rule in (NearestPrototype(), NearestPrototype("euclidean")):
        similar = rule.similarities(twice, ROWS[:n])
        nearest = rule.nearest(twice, ROWS[:n])
        assert nearest.tolist() == [int(row.argmax()) for row in similar]
        assert set(nearest.tolist()) <= {0, 1, 3}


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
    with pytest.raises(InputError, match=stating("metric='taxi'", "euclidean", "cosine")):
        NearestPrototype("taxi")


CENTRE = RNG.normal(size=6) / 4


def test_a_centre_is_subtracted_from_rows_and_from_prototypes_that_are_rows():
    rows, prototypes = unit_rows_about(ROWS, CENTRE), unit_rows_about(PROTOTYPES[:, 0], CENTRE)
    arrays = {"prototypes": PROTOTYPES[:, 0], "centre": CENTRE}
    directions = PROTOTYPES[:, 0] / np.linalg.norm(PROTOTYPES[:, 0], axis=1, keepdims=True)
    assert np.allclose(NearestPrototype().similarities(arrays, ROWS), rows @ directions.T)
    both = NearestPrototype(centred="rows and prototypes")
    assert np.allclose(both.similarities(arrays, ROWS), rows @ prototypes.T)


@pytest.mark.parametrize("centre", [{}, {"centre": CENTRE}])
def test_a_linear_head_scores_unit_rows(centre, monkeypatch):
    monkeypatch.setattr(decisions, "BLOCK", 7)
    arrays = {"coefficients": PROTOTYPES[:, 0], "intercepts": np.arange(4.0)} | centre
    expected = unit_rows_about(ROWS, centre.get("centre")) @ PROTOTYPES[:, 0].T + np.arange(4.0)
    assert np.allclose(LinearHead().similarities(arrays, ROWS), expected)
    assert np.array_equal(LinearHead().similarities(arrays, np.zeros((1, 6))), [[0, 1, 2, 3]])
    assert LinearHead().similarities(arrays, ROWS[:0]).shape == (0, 4)


AXES, SQUARES = RNG.normal(size=(6, 3)), RNG.normal(size=(4, 3))


@pytest.mark.parametrize("centre", [{}, {"centre": CENTRE}])
def test_a_quadratic_head_adds_squares_along_axes_to_the_linear_score(centre, monkeypatch):
    monkeypatch.setattr(decisions, "BLOCK", 7)
    linear = {"coefficients": PROTOTYPES[:, 0], "intercepts": np.arange(4.0)} | centre
    arrays = linear | {"axes": AXES, "squares": SQUARES}
    matrices = [AXES @ np.diag(own) @ AXES.T for own in SQUARES]
    unit = unit_rows_about(ROWS, centre.get("centre"))
    expected = [
        [
            x @ p + x @ m @ x + c
            for c, (p, m) in enumerate(zip(PROTOTYPES[:, 0], matrices, strict=True))
        ]
        for x in unit
    ]
    assert np.allclose(QuadraticHead().similarities(arrays, ROWS), expected)
    assert np.allclose(QuadraticHead().similarities(arrays, 1e3 * ROWS), expected)
    assert np.array_equal(QuadraticHead().similarities(arrays, np.zeros((1, 6))), [[0, 1, 2, 3]])
    assert QuadraticHead().similarities(arrays, ROWS[:0]).shape == (0, 4)
    none = {"axes": AXES[:, :0], "squares": SQUARES[:, :0]}
    assert np.array_equal(
        QuadraticHead().similarities(linear | none, ROWS), LinearHead().similarities(linear, ROWS)
    )


@pytest.mark.parametrize(
    "rule", [NearestPrototype("euclidean", 2), NearestPrototype(), LinearHead(), QuadraticHead()]
)
def test_a_decision_is_read_back_from_json(rule):
    schema = TypeAdapter(Annotated[AnyDecision, Field(discriminator="rule")])
    written = schema.dump_json(rule)
    assert written.startswith(b'{"rule":')
    assert schema.validate_json(written) == rule


@pytest.mark.parametrize("settings", [{"network": "transformer"}, {"shape": (0,)}, {"scale": 0.5}])
def test_a_network_that_cannot_be_is_refused(settings):
    with pytest.raises(InputError, match=next(iter(settings))):
        NetworkHead(**{"network": "mlp", "shape": (4,), "scale": 1.0} | settings)


def shaped(width, n_classes, **shapes):
    """Random arrays of a decision; C and d in the shapes stand for the numbers of classes and
    columns.
    """
    sizes = {"C": n_classes, "d": width}
    return {
        name: RNG.normal(size=[sizes.get(size, size) for size in shape])
        for name, shape in shapes.items()
    }


LINEAR = {"coefficients": "Cd", "intercepts": "C"}


@pytest.mark.parametrize(("n_classes", "width"), [(2, 1), (7, 33), (100, 256)])
@pytest.mark.parametrize(
    ("rule", "shapes"),
    [
        (NearestPrototype(), {"prototypes": "Cd"}),
        (
            NearestPrototype(centred="rows and prototypes"),
            {"prototypes": ("C", 5, "d"), "centre": "d"},
        ),
        (NearestPrototype("euclidean"), {"prototypes": ("C", 9, "d")}),
        (LinearHead(), LINEAR | {"centre": "d"}),
        (QuadraticHead(), LINEAR | {"axes": "dd", "squares": "Cd"}),
    ],
)
def test_similarities_by_rowwise_products_do_not_depend_on_the_other_rows(
    rule, shapes, n_classes, width
):
    """Bit for bit: in blocks of any shape, at any place, in any order."""
    arrays, rows = shaped(width, n_classes, **shapes), RNG.normal(size=(301, width))

    def of(chosen, products=rowwise_inner_products):
        return rule.similarities(arrays, rows[chosen], products=products)

    whole = of(np.arange(301))
    order = RNG.permutation(301)
    for chosen in (
        np.arange(301)[::-1],
        order,
        order[:100],
        order[::2],
        *np.arange(0, 301, 10)[:, None],
    ):
        assert np.array_equal(of(chosen), whole[chosen])
    assert np.allclose(whole, of(np.arange(301), inner_products), rtol=1e-9)


def test_pooled_rows_do_not_depend_on_the_other_rows():
    for pooling in (2, 16, 40):
        rule, arrays = (
            NearestPrototype(pooling=pooling),
            {"prototypes": RNG.normal(size=(4, 80 // pooling))},
        )
        rows = RNG.normal(size=(301, 80))
        whole = rule.similarities(arrays, rows, products=rowwise_inner_products)
        alone = [
            rule.similarities(arrays, row[None], products=rowwise_inner_products)[0] for row in rows
        ]
        assert np.array_equal(whole, alone)


HEAD = {"coefficients": np.ones((4, 6)), "intercepts": np.ones(4)}


@pytest.mark.parametrize(
    ("arrays", "fault"),
    [
        (HEAD, None),
        (HEAD | {"centre": np.ones(6)}, None),
        ({"coefficients": np.ones((4, 6))}, "there is no array 'intercepts'"),
        (HEAD | {"coefficients": np.ones((4, 5))}, stating("coefficients", "float64", "(4, 5)")),
        (HEAD | {"coefficients": np.ones((4, 6), dtype=int)}, "coefficients of type int64"),
        (HEAD | {"intercepts": np.ones((4, 1))}, stating("intercepts", "float64", "(4, 1)")),
        (HEAD | {"centre": np.ones(5)}, stating("centre", "float64", "(5,)")),
        (HEAD | {"prototypes": np.ones((4, 6))}, stating("prototypes", "decision")),
    ],
)
def test_arrays_that_do_not_fit_a_linear_head(arrays, fault):
    found = LinearHead().fits(arrays, 4, 6)
    assert found is None if fault is None else re.search(fault, found)


QUADRATIC = HEAD | {"axes": np.ones((6, 3)), "squares": np.ones((4, 3))}
MISSING = "there are no arrays 'axes' of shape .d, p. and 'squares' of shape .C, p."


@pytest.mark.parametrize(
    ("arrays", "fault"),
    [
        (QUADRATIC, None),
        (QUADRATIC | {"centre": np.ones(6)}, None),
        (HEAD, MISSING),
        (HEAD | {"axes": np.ones((6, 3))}, MISSING),
        (HEAD | {"squares": np.ones((4, 3))}, MISSING),
        (QUADRATIC | {"axes": np.ones(6)}, MISSING),
        (QUADRATIC | {"axes": np.ones((5, 3))}, stating("axes", "float64", "(5, 3)", "(6, 3)")),
        (QUADRATIC | {"axes": np.ones((6, 2))}, stating("squares", "float64", "(4, 3)", "(4, 2)")),
        (QUADRATIC | {"squares": np.ones((3, 3))}, stating("squares", "float64", "(3, 3)")),
        (QUADRATIC | {"squares": np.ones(4)}, stating("squares", "float64", "(4,)")),
        (QUADRATIC | {"axes": np.ones((6, 3), dtype=int)}, "axes of type int64"),
        (
            QUADRATIC | {"coefficients": np.ones((4, 5))},
            stating("coefficients", "float64", "(4, 5)"),
        ),
        (QUADRATIC | {"intercepts": np.ones(5)}, stating("intercepts", "float64", "(5,)")),
        (QUADRATIC | {"prototypes": np.ones((4, 6))}, stating("prototypes", "decision")),
    ],
)
def test_arrays_that_do_not_fit_a_quadratic_head(arrays, fault):
    found = QuadraticHead().fits(arrays, 4, 6)
    assert found is None if fault is None else re.search(fault, found)


def test_arrays_that_do_not_fit_the_nearest_prototype():
    arrays = {"prototypes": np.ones((4, 6)), "centre": np.ones(6)}
    assert NearestPrototype().fits(arrays, 4, 6) is None
    assert not lacking(NearestPrototype("euclidean").fits(arrays, 4, 6), "'cosine'", "pooling 1")
    assert "centre of type" in NearestPrototype().fits(arrays | {"centre": np.ones(7)}, 4, 6)
    assert "have no part" in NearestPrototype().fits(arrays | {"intercepts": np.ones(4)}, 4, 6)
