"""`tacit inspect --require` and `tacit fit --least-records`, as commands."""

import json
from pathlib import Path

import numpy as np
import pytest

from messages import lacking, stating
from tacit.cli.least_records import check_least_records
from tacit.data.embeddings import EmbeddingStore
from tacit.data.trees import Tree
from tacit.errors import InputError

MET = 'unit = "record"\nepsilon = 5\ndelta = 1e-5\nunprotected = []\nleast_records = 30\n'


@pytest.fixture
def released(stores, run):
    assert run("ledger private --allow rho=1")[0] == 0
    assert run("fit noisy-sum private --budget rho=0.5 --least-records 30 --out R")[0] == 0
    Path("policy.toml").write_text(MET)
    return stores


def test_a_policy_that_is_met_ends_with_0_and_a_line_for_each_rule(released, run):
    status, out, _ = run("inspect R --require policy.toml --ledger private.ledger.jsonl")
    assert status == 0
    lines = out.splitlines()
    rules = ["verified", "stamp", "unit", "epsilon", "unprotected", "least_records"]
    assert [line.split()[:2] for line in lines[: len(rules)]] == [["met", rule] for rule in rules]
    assert lacking(out, "yes", "R", "policy.toml", "SHA-256") == []
    assert lacking(out, "Not checked", "ledger_since", "audit_days") == []


def test_a_policy_that_is_not_met_ends_with_1_and_says_which_rules(released, run):
    Path("policy.toml").write_text(MET + 'signature = "required"\nledger_since = 2020-01-01\n')
    status, out, err = run("inspect R --require policy.toml --ledger private.ledger.jsonl")
    assert status == 1
    assert lacking(out, "not met", "ledger_since", "2020-01-01") == []
    assert lacking(err, "R", "policy.toml", "2 rules", "ledger_since", "signature") == []
    assert "yes" not in out

    status, out, _ = run("inspect R --require policy.toml --json")
    facts = json.loads(out)
    assert (status, facts["met"]) == (1, False)
    met = {rule["rule"]: rule["met"] for rule in facts["rules"]}
    assert met["epsilon"]
    assert not met["ledger_since"]
    assert not met["signature"]
    assert "audit_days" in facts["unchecked"]


def test_what_cannot_be_decided_ends_with_2(released, run):
    assert run("inspect R --require nothing.toml")[0] == 2
    assert run("inspect R --ledger private.ledger.jsonl")[0] == 2
    assert run("inspect R --require policy.toml --registry entry.yaml")[0] == 2
    assert run("inspect private --require policy.toml")[0] == 2
    Path("policy.toml").write_text("epsilom = 1\n")
    status, _, err = run("inspect R --require policy.toml")
    assert status == 2
    assert lacking(err, "epsilom", "epsilon") == []


def test_a_tampered_card_ends_with_1(released, run):
    card = Path("R/CARD.md")
    card.write_text(card.read_text().replace("0.5", "0.05"))
    status, out, err = run("inspect R --require policy.toml")
    assert status == 1
    assert lacking(out, "not met", "verified", "CARD.md") == []
    assert lacking(err, "verified") == []


def test_a_class_with_fewer_records_is_refused_before_the_ledger_is_charged(released, run):
    before = Path("private.ledger.jsonl").read_bytes()
    for number in (31, 0):
        line = f"fit noisy-sum private --budget rho=0.5 --least-records {number} --out R2"
        status, _, err = run(line)
        assert status == 2
        assert lacking(err, "--least-records", number) == []
        # neither the class nor its number of records
        assert "30" not in err
        assert "ant" not in err.split()
    assert Path("private.ledger.jsonl").read_bytes() == before
    assert not Path("R2").exists()


def test_records_of_several_labels_count_for_each(stores, run):
    labels = np.zeros((12, 3), int)
    labels[:, 0] = 1
    labels[:5, 1:] = 1
    EmbeddingStore.write("several", np.eye(12, 5) + 1, labels, classes=["a", "b", "c"])
    line = "fit noisy-sum several --budget rho=9 --most-labels 3 --least-records"
    assert run(f"{line} 5 --out five")[0] == 0
    assert run(f"{line} 6 --out six")[0] == 2


def test_records_of_an_inner_node_count_for_no_class():
    tree = Tree.of({"cat": "animal", "dog": "animal"})
    labels = np.array(["cat", "dog", "animal", "animal"])
    check_least_records(1, labels, ["cat", "dog", "animal"], tree)
    with pytest.raises(InputError, match=stating("--least-records", 2)):
        check_least_records(2, labels, ["cat", "dog", "animal"], tree)


def test_data_without_labels_have_no_least_records():
    with pytest.raises(InputError, match=stating("--least-records", "labels")):
        check_least_records(1, None, ["cat"], None)


def test_a_class_without_records_has_fewer_than_one(stores, run):
    line = "fit noisy-sum private --budget rho=9 --classes ant,bee,cow,dog --least-records 1"
    status, _, err = run(f"{line} --out R")
    assert status == 2
    assert lacking(err, "--least-records", 1) == []
