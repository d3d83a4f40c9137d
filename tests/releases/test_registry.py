import numpy as np
import pytest
import yaml

import tacit
from tacit.errors import ReleaseError
from tacit.releases.registry import registry_yaml
from tacit.releases.release import Release, Utility

ROWS, LABELS = np.ones((60, 4)), np.arange(60) % 2


def test_an_entry_has_the_fields_of_the_registry():
    release = Release.of(
        tacit.NoisySumPrototypes(classes=2).fit(ROWS, LABELS), name="My Model, v2", curator="Clinic", date="2026-01-02"
    )
    text = registry_yaml(release.document)
    assert text.startswith("# Entry for the OpenDP deployments registry")
    entry = yaml.safe_load(text)
    assert entry["url_slug"] == "my-model-v2"
    deployment = entry["deployment"]
    assert list(deployment) == [
        "basic",
        "dp_variant",
        "privacy_loss",
        "deployment_model",
        "implementation",
        "administrative",
    ]
    assert deployment["basic"]["data_curators"][0]["data_curator_name"] == "Clinic"
    assert deployment["basic"]["data_product_type"] == "Machine learning model"
    assert deployment["basic"]["publication_date"] == "2026-01-02"
    assert deployment["basic"]["intended_use"] == "not stated"
    assert deployment["dp_variant"]["variant_name"] == "Zero-concentrated DP"
    parameters = deployment["privacy_loss"]["privacy_parameters"]
    assert parameters == {"epsilon": release.guarantee.epsilon(1e-6), "delta": 1e-6, "rho": 0.5}
    assert deployment["deployment_model"]["model_name"] == "Central"
    assert "on each class separately" in deployment["implementation"]["composition"]
    assert deployment["administrative"]["status"] == "Draft"
    assert "number_of_privacy_units" not in deployment["privacy_loss"]


def test_a_pure_release_states_its_pure_epsilon_and_utility():
    model = tacit.PublicPrototypes("epsilon=1", classes=2, public=np.eye(4)).fit(ROWS, LABELS)
    utility = Utility(
        test_set="digits",
        rows=10,
        accuracy=0.9,
        balanced_accuracy=0.8,
        per_class={"0": 1.0},
        interval=(0.7, 0.95),
        interval_of="accuracy",
        minority_accuracy=0.5,
    )
    deployment = yaml.safe_load(registry_yaml(Release.of(model).with_utility(utility).document))["deployment"]
    assert deployment["dp_variant"]["variant_name"] == "Pure DP"
    assert deployment["privacy_loss"]["privacy_parameters"] == {"epsilon": 1.0, "delta": 0.0, "rho": 0.125}
    assert "digits (10 rows" in deployment["implementation"]["utility"]
    assert "training class sizes" in deployment["dp_variant"]["unprotected_quantities"]


def test_a_stamped_release_is_not_registered():
    model = tacit.NoisySumPrototypes(classes=2, noise="research").fit(ROWS, LABELS)
    with pytest.raises(ReleaseError, match="NOT FOR RELEASE; register a release with secure noise"):
        registry_yaml(Release.of(model).document)
