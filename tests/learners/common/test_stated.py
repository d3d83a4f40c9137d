"""Parameters of a learner as the document of its release states them."""

import hashlib
import json

import numpy as np
import pytest

import tacit
from tacit.learners.common.stated import stated_parameters
from tacit.privacy.budget import Budget
from tacit.privacy.unit import Unit

X = np.repeat([[1.0, 0.0], [0.0, 1.0]], 30, axis=0)
Y = np.repeat(["cat", "dog"], 30)


def test_values_are_written_as_json_has_them():
    values = {
        "budget": Budget.zcdp(0.5),
        "unit": Unit.ADD_REMOVE,
        "counts": np.int64(6),
        "clip": np.inf,
        "prior": [0.5, 0.5],
        "ridge": None,
    }
    stated, left_out = stated_parameters(values)
    assert left_out == ()
    assert json.loads(json.dumps(stated)) == {
        "budget": "rho=0.5",
        "unit": "add-remove",
        "counts": 6,
        "clip": "inf",
        "prior": [0.5, 0.5],
        "ridge": None,
    }


@pytest.mark.parametrize(
    "value", [np.eye(2), {"a": 1}, [[1.0]], float("nan"), "a\nb", "x" * 300, object()]
)
def test_other_values_are_named_alone(value):
    assert stated_parameters({"prior": value}) == ({}, ("prior",))


def test_what_is_private_or_a_seed_is_never_stated():
    private = {"folder": "/home/ann/records", "random_state": 3, "seed": 3, "names": X, "jobs": 2}
    assert stated_parameters(private) == ({}, ())


def test_a_release_states_its_learner():
    model = tacit.LeastSquares("rho=0.5", classes=["cat", "dog"], alpha=2.0).fit(X, Y)
    learner = tacit.Release.of(model).document.mechanisms.learner
    assert (learner.method, learner.left_out) == ("least-squares", ())
    assert learner.parameters["budget"] == "rho=0.5"
    assert learner.parameters["alpha"] == 2.0


def test_a_release_states_fields_of_grouped_parameters_by_their_names_on_the_command_line():
    facts = tacit.PATE(budget="epsilon=8,delta=1e-5", voting={"kind": "gnmax", "sigma": 3.0})
    parameters = facts.learner_facts().parameters
    assert (parameters["aggregator"], parameters["sigma"]) == ("gnmax", 3.0)
    assert "sigma1" not in parameters


def test_a_release_states_the_head_of_its_ledger(tmp_path):
    ledger = tacit.Ledger(tmp_path / "survey.ledger.jsonl", identity="survey")
    ledger.allow(Budget.zcdp(1))
    model = tacit.NoisySumPrototypes("rho=0.5", classes=["cat", "dog"], ledger=ledger).fit(X, Y)
    pattern = tacit.Release.of(model).document.pattern

    lines = ledger.path.read_bytes().splitlines(keepends=True)
    last = json.loads(lines[-1])
    assert pattern.ledger_head == last["hash"]
    assert pattern.ledger_since == json.loads(lines[0])["time"][:10]

    # the hash is of the line before it, and of what the line says
    before = json.loads(lines[-2])["hash"]
    said, _, _ = lines[-1].partition(b', "hash": "')
    assert hashlib.sha256(before.encode() + said + b"}").hexdigest() == last["hash"]


def test_a_release_without_a_ledger_states_none():
    model = tacit.NoisySumPrototypes("rho=0.5", classes=["cat", "dog"]).fit(X, Y)
    pattern = tacit.Release.of(model).document.pattern
    assert (pattern.ledger_since, pattern.ledger_head) == ("not stated", "not stated")
