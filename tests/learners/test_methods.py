"""Published names of methods."""

import pytest

from tacit.learners.methods import (
    ALIASES,
    METHODS,
    SETTINGS,
    load,
    method_called,
    published,
    setting_called,
)
from tacit.learners.pate.aggregators import AGGREGATORS
from tacit.learners.pate.collectors import COLLECTORS

NOISE = {"sigma": 40.0, "sigma1": 40.0, "threshold": 40.0, "confidence": 0.9, "gamma": 0.1}
OF_AGGREGATOR = {
    "laplace": ["gamma"],
    "interactive": ["sigma", "sigma1", "threshold", "confidence"],
}


@pytest.mark.parametrize("name", ALIASES)
def test_an_alias_is_another_name_of_one_method(name):
    assert name not in METHODS
    assert published(name) == name
    assert method_called(name.upper()) == ALIASES[name]
    assert ALIASES[name] in METHODS


@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_is_a_parameter_that_the_method_accepts(name):
    assert name not in METHODS | ALIASES
    assert published(name) == name
    assert method_called(name) == name  # it is no method
    method, parameters = setting_called(name.upper())
    kind = load(METHODS[method])
    assert set(parameters) <= set(kind.flat_parameters())
    own = {"budgets": {"a": 1.0}} if method == "pate" else {"budget": "epsilon=1"}
    noise = {name: NOISE[name] for name in OF_AGGREGATOR.get(parameters.get("aggregator"), ())}
    kind.of_flat(classes=3, **own, **parameters, **noise).promise()
    assert parameters.get("collector", "gnmax") in COLLECTORS
    assert parameters.get("aggregator", "gnmax") in AGGREGATORS


def test_names_of_methods_are_exact_and_others_stay_as_they_are():
    assert [method_called(name) for name in METHODS] == list(METHODS)
    assert method_called("Magic") == "Magic"
    assert setting_called("magic") is None
