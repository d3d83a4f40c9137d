"""Every public name says what it is; learners say it in full."""

import inspect

import pytest

import tacit
from contracts.learners import learner_class
from tacit.learners.methods import METHODS

SECTIONS = ("Parameters", "Attributes", "Notes", "Examples")


@pytest.mark.parametrize("name", tacit.__all__)
def test_public_names_and_their_methods_are_documented(name):
    kind = getattr(tacit, name)
    assert inspect.getdoc(kind)
    for attribute, value in inspect.getmembers(kind):
        own = getattr(value, "__module__", None) or getattr(
            getattr(value, "fget", None), "__module__", ""
        )
        if not attribute.startswith("_") and str(own).startswith("tacit"):
            assert inspect.getdoc(value), f"{name}.{attribute}"


@pytest.mark.parametrize("method", METHODS)
def test_learners_follow_numpydoc_order_and_state_guarantee_and_source(method):
    kind = learner_class(method)
    lines = inspect.getdoc(kind).splitlines()
    assert [line for line in lines if line in SECTIONS] == list(SECTIONS)
    text = "\n".join(lines)
    assert "Guarantee:" in text
    assert "Source:" in text
    for parameter in inspect.signature(kind).parameters:
        assert parameter in text
