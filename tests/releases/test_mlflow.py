"""Releases as models of MLflow; skipped where it is not installed."""

import numpy as np
import pytest

import tacit
from messages import stating
from tacit.errors import InputError, ReleaseError
from tacit.releases.release import Release

ROWS = np.random.default_rng(0).normal(size=(60, 6))
LABELS = np.array(["ant", "bee", "cow"])[np.arange(60) % 3]
LEARNER = tacit.NoisySumPrototypes(classes=["ant", "bee", "cow"]).fit(ROWS, LABELS)
RELEASE = Release.of(LEARNER, name="insects")


@pytest.fixture
def pyfunc():
    return pytest.importorskip("mlflow.pyfunc", reason="mlflow is not installed; it is an extra")


def test_a_saved_model_predicts_as_the_release(pyfunc, tmp_path):
    import pandas as pd

    tacit.mlflow.save_model(RELEASE, tmp_path / "model")
    model = pyfunc.load_model(str(tmp_path / "model"))
    assert np.array_equal(model.predict(ROWS), LEARNER.predict(ROWS))
    assert np.array_equal(model.predict(pd.DataFrame(ROWS)), LEARNER.predict(ROWS))
    assert model.metadata.metadata["release"] == "insects"
    assert model.metadata.metadata["guarantee"].startswith("For any two data sets D and D'")
    files = [file.name for file in (tmp_path / "model").rglob("*") if file.is_file()]
    assert {"CARD.md", "arrays.safetensors", "release.json"} < set(files)
    assert not [name for name in files if name.endswith((".pkl", ".pickle"))]
    for name in ("requirements.txt", "conda.yaml"):
        # on PyPI that is a different project
        assert "tacit" not in (tmp_path / "model" / name).read_text()


def test_metadata_of_the_caller_stand_beside_the_facts_of_the_release(pyfunc, tmp_path):
    metadata = {"team": "field", "sha256": "0" * 64}
    tacit.mlflow.save_model(RELEASE, tmp_path / "model", metadata=metadata)
    saved = pyfunc.load_model(str(tmp_path / "model")).metadata.metadata
    assert saved["team"] == "field"
    assert saved["sha256"] == RELEASE.sha256
    assert saved["guarantee"].startswith("For any two data sets D and D'")


def test_a_logged_model_is_checked_when_it_is_loaded(pyfunc, tmp_path, monkeypatch):
    import mlflow

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # mlflow-skinny has no data base
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    with mlflow.start_run():
        logged = tacit.mlflow.log_model(RELEASE, "insects")
    assert np.array_equal(pyfunc.load_model(logged.model_uri).predict(ROWS), LEARNER.predict(ROWS))
    (card,) = tmp_path.rglob("CARD.md")
    card.write_text(card.read_text().replace("rho: 0.5", "rho: 0.1"))
    with pytest.raises(ReleaseError, match=stating("CARD.md", "release.json")):
        pyfunc.load_model(logged.model_uri)


def test_what_is_not_for_release_is_not_saved(pyfunc, tmp_path):
    research = tacit.NoisySumPrototypes(classes=3, noise="research", random_state=0).fit(
        ROWS, np.arange(60) % 3
    )
    with pytest.raises(ReleaseError, match="NOT FOR RELEASE"):
        tacit.mlflow.save_model(Release.of(research), tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_a_learner_is_no_release():
    with pytest.raises(InputError, match=stating("Release", "tacit.Release.load(folder)")):
        tacit.mlflow.save_model(LEARNER, "model")


def test_the_missing_extra_is_named(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(InputError, match=r"mlflow is not installed.*'\.\[mlflow\]'"):
        tacit.mlflow.save_model(RELEASE, "model")
