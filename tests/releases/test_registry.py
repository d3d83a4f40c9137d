from pathlib import Path

import numpy as np
import pytest
import yaml
from jsonschema import Draft202012Validator, FormatChecker

import tacit
from contracts.learners import CLASSES, X, Y, budget_of, make
from messages import stating
from tacit.errors import ReleaseError
from tacit.releases.registry import registry_yaml
from tacit.releases.release import Release, Utility

SCHEMA = (
    Path(__file__).resolve().parents[3] / "shared" / "data" / "schemas" / "deployments-schema.yaml"
)
ROWS, LABELS = np.ones((60, 4)), np.arange(60) % 2


def test_an_entry_has_the_fields_of_the_registry():
    release = Release.of(
        tacit.NoisySumPrototypes(classes=2).fit(ROWS, LABELS),
        name="My Model, v2",
        curator="Clinic",
        date="2026-01-02",
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
        "accounting",
        "implementation",
        "administrative",
    ]
    assert deployment["basic"]["data_curators"] == ["Clinic"]
    assert deployment["basic"]["data_product_type"] == "Machine learning model"
    assert deployment["basic"]["publication_date"] == "2026-01-02"
    assert deployment["basic"]["intended_use"] == "not stated"
    assert deployment["dp_variant"]["variant_name"] == "Zero-concentrated DP"
    parameters = deployment["privacy_loss"]["privacy_parameters"]
    assert parameters == {"epsilon": release.guarantee.epsilon(1e-6), "delta": 1e-6, "rho": 0.5}
    assert deployment["deployment_model"]["model_name"] == "Central"
    assert "on each class separately" in deployment["accounting"]["composition"]
    assert (entry["status"], entry["tier"]) == ("Draft", 3)
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
    deployment = yaml.safe_load(registry_yaml(Release.of(model).with_utility(utility).document))[
        "deployment"
    ]
    assert deployment["dp_variant"]["variant_name"] == "Pure DP"
    assert deployment["privacy_loss"]["privacy_parameters"] == {
        "epsilon": 1.0,
        "delta": 0.0,
        "rho": 0.125,
    }
    assert "digits (10 rows" in deployment["administrative"]["notes"]
    assert "training class sizes" in deployment["dp_variant"]["unprotected_quantities"]


def test_a_stamped_release_is_not_registered():
    model = tacit.NoisySumPrototypes(classes=2, noise="research").fit(ROWS, LABELS)
    with pytest.raises(ReleaseError, match=stating("NOT FOR RELEASE", "secure noise")):
        registry_yaml(Release.of(model).document)


@pytest.mark.parametrize(
    ("method", "unit"),
    [
        (method, unit)
        for method, kind in CLASSES.items()
        for unit in kind.units
        if kind.uses_records
    ],
)
def test_entries_of_every_method_and_unit_fit_the_schema_of_the_registry(method, unit):
    if not SCHEMA.exists():
        pytest.skip(f"{SCHEMA} is absent: a copy of the registry's schema")
    model = make(method, unit=unit, budget=budget_of(method))
    ids = {"persons": np.arange(120)} if unit.per_person else {}
    text = registry_yaml(Release.of(model.fit(X, Y, **ids)).document)
    validator = Draft202012Validator(
        yaml.safe_load(SCHEMA.read_text()), format_checker=FormatChecker()
    )
    assert [error.message for error in validator.iter_errors(yaml.safe_load(text))] == []
    assert yaml.safe_load(text)["deployment"]["privacy_loss"]["privacy_unit"] == unit.entity
