"""Releases of several labels a record: what they predict, say and refuse."""

import json
import re

import numpy as np
import onnxruntime
import pytest
import yaml
from safetensors.numpy import load_file, save_file
from scipy.special import expit
from sklearn.metrics import accuracy_score
from sklearn.utils import get_tags

import tacit
from label_sets import CLASSES, SCALE, THRESHOLDS, WIDTH, example_rows, label_set_release
from tacit.errors import InputError, ReleaseError
from tacit.models.decisions import NearestPrototype, QuadraticHead
from tacit.releases.publishing import readme
from tacit.releases.registry import registry_yaml
from tacit.releases.release import LabelSetUtility, Release, Utility
from tacit.report.release_page import release_page

RELEASE = label_set_release()
ROWS = example_rows()
PROTOTYPES = np.random.default_rng(2).normal(size=(4, WIDTH))
PROTOTYPES[2] = 0
FIGURES = {
    "test_set": "t",
    "rows": 9,
    "mean_average_precision": 0.5,
    "interval": (0.4, 0.6),
    "interval_of": "mean average precision",
    "micro_f1": 0.4,
    "macro_f1": 0.3,
    "exact_match": 0.2,
    "calibration_error": 0.1,
    "rare_third": 0.25,
    "per_label": {"ant": 0.5},
}
UTILITY = LabelSetUtility(**FIGURES, rare_by="counts in the test set")


@pytest.fixture
def folder(tmp_path):
    return RELEASE.save(tmp_path / "out")


def test_predictions_are_indicators_as_scikit_learn_has_them(folder):
    release = Release.load(folder).verify()
    probabilities = expit(SCALE * release.similarities(ROWS))
    np.testing.assert_allclose(release.predict_proba(ROWS), probabilities)
    predicted = release.predict(ROWS)
    assert predicted.dtype == np.int64
    np.testing.assert_array_equal(predicted, probabilities >= THRESHOLDS)
    # rows of none, one and several labels
    assert {0, 1, 2} <= set(predicted.sum(axis=1))

    truth = predicted.copy()
    truth[:50, 0] = 1 - truth[:50, 0]
    assert release.score(ROWS, truth) == accuracy_score(truth, predicted) == 0.75
    lists = [np.array(CLASSES)[row == 1].tolist() for row in truth]
    assert release.score(ROWS, lists) == 0.75
    assert get_tags(release).classifier_tags.multi_label
    with pytest.raises(InputError, match="y has 199 rows beside 200 of X"):
        release.score(ROWS, truth[:-1])


@pytest.mark.parametrize(
    ("decision", "arrays"),
    [
        (None, None),
        (NearestPrototype(), {"prototypes": PROTOTYPES}),
        (
            QuadraticHead(),
            {
                "coefficients": PROTOTYPES,
                "intercepts": np.zeros(4),
                "axes": PROTOTYPES.T[:, :3],
                "squares": PROTOTYPES[:, :3],
            },
        ),
    ],
)
def test_onnx_and_the_lines_of_the_card_give_the_same_labels(
    decision, arrays, tmp_path, monkeypatch
):
    release = label_set_release(decision, arrays)
    path = release.to_onnx(tmp_path / "head.onnx")
    session = onnxruntime.InferenceSession(path)
    labels, probabilities = session.run(["labels", "probabilities"], {"embeddings": ROWS})
    assert labels.dtype == np.int64
    np.testing.assert_array_equal(labels, release.predict(ROWS))
    np.testing.assert_allclose(probabilities, release.predict_proba(ROWS), atol=1e-6)

    (block,) = re.findall(r"^```python\n(.*?)^```$", release.card(), re.MULTILINE | re.DOTALL)
    assert len(block.splitlines()) <= 10
    monkeypatch.chdir(release.save(tmp_path / "out"))
    variables = {"X": ROWS}
    exec(block, variables)
    np.testing.assert_array_equal(variables["labels"], release.predict(ROWS))
    assert variables["classes"] == CLASSES


def test_the_card_says_what_the_labels_and_thresholds_are():
    card = RELEASE.card()
    assert "a record may have any set of the classes, none included" in card
    assert "a label is predicted where its probability reaches its threshold" in card
    assert "cost no privacy" in card
    assert "The result has a column for each of the `classes`" in card


@pytest.mark.parametrize(
    ("task", "arrays", "fault"),
    [
        ({"labels": "one", "tree": {}}, {}, "thresholds are there if a record may have several"),
        ({"labels": "all", "tree": {}}, {}, "contents.task.labels = 'all'"),
        ({"labels": "several"}, {}, "contents.task.tree = .*Field required"),
        (None, {"thresholds": None}, "thresholds are there if a record may have several"),
        (None, {"thresholds": np.full(4, 1.5)}, "thresholds must be from 0 to 1"),
        (None, {"thresholds": np.full(4, np.nan)}, "thresholds must be from 0 to 1"),
        (None, {"thresholds": np.ones(3)}, r"must be float64 of shape \(4,\)"),
        (None, {"probabilities": np.zeros(2)}, "must be above 0"),
        (None, {"probabilities": None}, "thresholds need the array probabilities"),
    ],
)
def test_documents_and_arrays_that_do_not_agree_are_refused(folder, task, arrays, fault):
    # a careful forger: names, types and shapes in the document are those of the arrays
    document = json.loads((folder / "release.json").read_text(encoding="utf-8"))
    if task is not None:
        document["contents"]["task"] = task
    kept = load_file(folder / "arrays.safetensors") | arrays
    kept = {name: array for name, array in kept.items() if array is not None}
    save_file(kept, folder / "arrays.safetensors")
    document["contents"]["arrays"] = [
        {"name": name, "dtype": array.dtype.name, "shape": list(array.shape)}
        for name, array in sorted(kept.items())
    ]
    (folder / "release.json").write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(ReleaseError, match=fault) as error:
        Release.load(folder)
    assert "\n" not in str(error.value)


def test_figures_are_those_of_label_sets_and_name_what_they_tell(tmp_path):
    measured = RELEASE.with_utility(UTILITY)
    loaded = Release.load(measured.save(tmp_path / "measured")).verify()
    assert loaded.document.utility == UTILITY
    assert "mean average precision: 0.5" in loaded.card()
    assert "mean average precision 0.5, micro F1 0.4" in registry_yaml(loaded.document)
    header = yaml.safe_load(readme(loaded.document).split("---")[1])
    metrics = header["model-index"][0]["results"][0]["metrics"]
    assert {"type": "micro_f1", "value": 0.4} in metrics

    # exact training counts tell which labels are rare; those of the release do not
    by_training = RELEASE.with_utility(LabelSetUtility(**FIGURES, rare_by="training counts"))
    told = "training counts of labels (through the rare third)"
    assert told in by_training.guarantee.unprotected
    Release.load(by_training.save(tmp_path / "told")).verify()
    by_release = LabelSetUtility(**FIGURES, rare_by="counts that the release holds")
    assert RELEASE.with_utility(by_release).guarantee.unprotected == RELEASE.guarantee.unprotected


def test_hidden_training_counts_and_figures_of_another_task_are_refused(tmp_path):
    folder = RELEASE.with_utility(UTILITY).save(tmp_path / "out")
    document = json.loads((folder / "release.json").read_text(encoding="utf-8"))
    document["utility"]["rare_by"] = "training counts"
    (folder / "release.json").write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(ReleaseError, match="not listed as unprotected"):
        Release.load(folder).verify()

    single = Utility(
        test_set="t",
        rows=1,
        accuracy=1.0,
        balanced_accuracy=1.0,
        per_class={},
        interval=(0.1, 1.0),
        interval_of="accuracy",
    )
    with pytest.raises(ReleaseError, match="several labels has a mean average precision"):
        RELEASE.with_utility(single)
    document["utility"] = single.model_dump(mode="json")
    (folder / "release.json").write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(ReleaseError, match="several labels has a mean average precision"):
        Release.load(folder)


def test_adapting_is_refused_with_the_reason():
    with pytest.raises(ReleaseError, match="predicts several labels a row, and adapting supposes"):
        tacit.adapt(RELEASE, ROWS)


def test_coefficients_are_the_log_odds_of_each_label():
    # six features: four levels, other values and missing ones
    schema = {"columns": {"plan": {"kind": "category", "levels": ["a", "b", "c", "d"]}}}
    arrays = {"coefficients": PROTOTYPES, "intercepts": np.zeros(4)}
    release = label_set_release(RELEASE.decision, arrays, schema=schema)
    table = {"plan": ["a", "b"]}
    effects = release.coefficients()["plan"]
    odds = release.predict_proba(table)
    odds = odds / (1 - odds)
    np.testing.assert_allclose(effects["b"] - effects["a"], np.log(odds[1] / odds[0]))
    assert "log odds of a label against not having it" in release_page(release)
