"""Releases that carry a tree: stated, read again, refused if untrue, and answered from."""

import json

import numpy as np
import onnx
import pytest

import tacit
from messages import lacking
from tacit.data.trees import Tree
from tacit.errors import InputError, ReleaseError
from tacit.releases.release import Release
from tacit.report.release_page import release_page

CLASSES = ["cat", "dog", "oak"]
TREE = {"cat": "animal", "dog": "animal", "oak": "plant"}
X = np.repeat(np.eye(3), 50, axis=0)

# between cat and dog, clearly dog, and between dog and oak
ROWS = [[1.0, 1.0, -1.0], [-0.5, 1.0, -0.5], [-1.0, 1.0, 1.0]]


def learner(classes=CLASSES):
    clf = tacit.NoisySumPrototypes("rho=inf", classes=classes)
    return clf.fit(X, np.repeat(classes, 50))


@pytest.fixture(scope="module")
def release():
    return Release.of(learner(), name="living", tree=TREE)


def test_answers_fall_back_to_the_node_above(release):
    shares = release.predict_proba(ROWS)
    assert shares[0].max() < 0.6 < shares[0, :2].sum()
    assert shares[2].max() < 0.6
    found = release.answers(ROWS, at_least=0.6)
    assert found.label.tolist() == ["animal", "dog", ""]
    assert found.level.tolist() == [1, 2, 0]
    assert np.allclose(found.probability, [shares[0, :2].sum(), shares[1, 1], shares[2].max()])
    assert release.predict(ROWS, at_least=0.6).tolist() == found.label.tolist()


def test_without_a_probability_the_most_likely_class_answers(release):
    found = release.answers(ROWS)
    assert found.label.tolist() == release.predict(ROWS).tolist()
    assert found.level.tolist() == [2, 2, 2]
    assert np.array_equal(found.probability, release.predict_proba(ROWS).max(axis=1))


def test_a_release_without_a_tree_answers_with_a_class_or_nothing():
    found = Release.of(learner(), name="flat").answers(ROWS, at_least=0.6)
    assert found.label.tolist() == ["", "dog", ""]
    assert found.level.tolist() == [0, 1, 0]


def test_the_tree_is_stated_and_read_again(release, tmp_path):
    saved = release.save(tmp_path / "release", allow_research=True)
    loaded = Release.load(saved).verify()
    assert loaded.document.version == 9
    assert loaded.tree == Tree(TREE)
    assert 'tree = 3 nodes below others; parents are 2, namely "animal", "plant"' in loaded.card()
    assert loaded.predict(ROWS, at_least=0.6).tolist() == ["animal", "dog", ""]

    flat = Release.of(learner(), name="flat")
    assert flat.tree is None


def test_exports_say_that_they_give_classes_alone(release, tmp_path):
    model = onnx.load(release.to_onnx(tmp_path / "head.onnx", allow_research=True))
    facts = {entry.key: entry.value for entry in model.metadata_props}
    assert json.loads(facts["tree"]) == TREE
    page = release_page(release)
    for text in (facts["answers"], page):
        assert not lacking(text, "--at-least", "--refuse", "tacit predict")

    # nothing is said where there is no tree
    without = Release.of(learner(), name="living")
    model = onnx.load(without.to_onnx(tmp_path / "without.onnx", allow_research=True))
    assert not {"tree", "answers"} & {entry.key for entry in model.metadata_props}
    assert "--at-least" not in release_page(without)


def test_whole_numbers_stay_whole_numbers(tmp_path):
    tree = {0: 10, 1: 10, 2: 11}
    saved = Release.of(learner([0, 1, 2]), tree=tree).save(tmp_path / "r", allow_research=True)
    loaded = Release.load(saved).verify()
    assert loaded.tree == Tree(tree)
    labels = loaded.predict(ROWS, at_least=0.6)
    assert labels.dtype == np.int64
    assert labels.tolist() == [10, 1, -1]


@pytest.mark.parametrize(
    ("tree", "fault"),
    [
        ({"cat": "oak"}, "class 'oak' is the parent of others"),
        ({"cow": "animal"}, "has 'cow', which is no parent and not among the 3 classes"),
        ({"cat": "animal", "animal": "cat"}, "circle"),
        ({1: 2}, "has '1', which is no parent"),
    ],
)
def test_a_tree_of_other_classes_is_refused(tree, fault):
    with pytest.raises(InputError, match=fault):
        Release.of(learner(), tree=tree)


@pytest.mark.parametrize(
    "tree", [{"cow": "animal"}, {"cat": "oak"}, {"cat": "cat"}, {"cat": "a", "a": "cat"}]
)
def test_a_forged_tree_is_refused_when_it_is_read(release, tmp_path, tree):
    saved = release.save(tmp_path / "release", allow_research=True)
    path = saved / "release.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    document["contents"]["task"]["tree"] = tree
    path.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(ReleaseError, match="release: "):
        Release.load(saved)


def test_what_no_answer_can_be_is_refused(release):
    with pytest.raises(InputError, match=r"at_least=0\.5 must be above 0\.5"):
        release.predict(ROWS, at_least=0.5)
    signs = Release.of(learner([-1, 0, 1]))
    with pytest.raises(InputError, match="class -1 would look like no answer"):
        signs.predict(ROWS, at_least=0.9)
    assert signs.answers(ROWS, at_least=0.9).level.tolist() == [0, 0, 0]
