import numpy as np
import pytest
import scipy.sparse

import tacit
from learners.blobs import PUBLIC, X, Y, unit
from messages import lacking, stating
from tacit.errors import InputError

NAMES = np.array([X[c == Y].mean(axis=0) for c in range(4)])


@pytest.mark.parametrize("public", [None, PUBLIC])
def test_the_nearest_name_by_cosine_about_the_public_centre(public):
    centre = 0 if public is None else unit(public).mean(axis=0)
    rows, names = unit(unit(X) - centre), unit(unit(NAMES) - centre)
    model = tacit.NamePrototypes(classes=4, names=NAMES, public=public).fit(X[:3], Y[:3])
    assert np.allclose(model.prototypes_, names, rtol=0, atol=1e-15)
    assert np.array_equal(model.predict(X), np.argmax(rows @ names.T, axis=1))
    assert model.score(X, Y) > 0.8


def test_several_names_of_a_class_are_averaged_as_unit_rows():
    model = tacit.NamePrototypes(classes=2, names=[[[9.0, 0.0], [0.0, 1.0]], [0.0, 5.0]]).fit(
        2 * np.eye(2), [0, 1]
    )
    assert np.allclose(
        model.prototypes_, [[np.sqrt(0.5), np.sqrt(0.5)], [0.0, 1.0]], rtol=0, atol=1e-15
    )


def test_the_release_says_that_no_record_was_used(tmp_path):
    model = tacit.NamePrototypes("epsilon=inf", classes=4, names=NAMES, public=PUBLIC).fit(X, Y)
    release = tacit.Release.of(model, name="floor")
    release.save(tmp_path / "release")
    read = tacit.Release.load(tmp_path / "release")
    read.verify()
    assert np.array_equal(read.predict(X), model.predict(X))
    card = (tmp_path / "release" / "CARD.md").read_text()
    assert "none; no record is used" in card
    assert release.guarantee.epsilon(0) == 0
    assert "NOT FOR RELEASE" not in card


def test_names_must_be_passed():
    with pytest.raises(InputError, match=stating("names=None", "names=rows")):
        tacit.NamePrototypes(classes=4).fit(X, Y)


def test_names_adapt_to_public_rows_by_expectation_maximisation():
    """The rounds written out; what is private changes nothing, and nothing is spent."""
    model = tacit.NamePrototypes(classes=4, names=NAMES, public=PUBLIC, adapt=True).fit(
        X[:3], Y[:3]
    )
    centre = unit(PUBLIC).mean(axis=0)
    rows, names = unit(unit(PUBLIC) - centre), unit(unit(NAMES) - centre)
    directions = names
    for _ in range(10):
        shares = np.exp(15 * rows @ directions.T)
        directions = unit((shares / shares.sum(axis=1, keepdims=True)).T @ rows + 10 * names)
    assert np.allclose(model.prototypes_, directions, rtol=0, atol=1e-12)
    assert model.guarantee_.epsilon(0) == 0
    card = tacit.Release.of(model, name="floor").card()
    assert not lacking(card, "names", f"{len(PUBLIC)} public rows", "private")


def test_adapting_needs_public_rows():
    with pytest.raises(InputError, match=stating("adapt=True", "public=rows")):
        tacit.NamePrototypes(classes=4, names=NAMES, adapt=True).fit(X, Y)
    with pytest.raises(InputError, match=stating("adapt=1", "False", "True")):
        tacit.NamePrototypes(classes=4, names=NAMES, public=PUBLIC, adapt=1).fit(X, Y)


@pytest.mark.parametrize(
    "kind", [np.asarray, list, scipy.sparse.csr_array], ids=["array", "list", "sparse"]
)
def test_rows_need_no_labels_and_decide_nothing(kind):
    labelled = tacit.NamePrototypes(classes=4, names=NAMES, public=PUBLIC, adapt=True).fit(X, Y)
    model = tacit.NamePrototypes(classes=4, names=NAMES, public=PUBLIC, adapt=True).fit(kind(X[:5]))
    np.testing.assert_array_equal(model.prototypes_, labelled.prototypes_)
    assert model.guarantee_ == labelled.guarantee_
    assert model.guarantee_.epsilon(0) == 0


@pytest.mark.parametrize(
    "x",
    [3.0, np.array(3.0), None, "ab", [[1.0], [2.0, 3.0]], np.ones((0, 4)), np.full((2, 4), np.nan)],
)
def test_unlabelled_rows_that_are_none_are_refused_in_one_line(x):
    with pytest.raises(InputError) as raised:
        tacit.NamePrototypes(classes=4, names=NAMES).fit(x)
    assert "\n" not in str(raised.value)


def test_unlabelled_rows_need_a_class_list():
    with pytest.raises(InputError, match=stating("y", "declared")):
        tacit.NamePrototypes(names=NAMES).fit(X)
