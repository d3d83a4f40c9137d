"""The policy of a gate: every key, and every value that it refuses."""

from datetime import date

import pytest

from messages import stating
from tacit.errors import InputError
from tacit.privacy.unit import Unit
from tacit.releases.policy import KEYS, Policy

WHOLE = """
unit = "person"
epsilon = 3
delta = 1e-5
ledger_since = 2026-01-31
unprotected = ["number of records"]
least_records = 10
evaluation = "paid or public"
signature = "required"
encoder = ["resnet", "clip@7"]
advantage = 0.5
audit_days = 365
"""


def test_a_file_of_every_key_is_read(tmp_path):
    path = tmp_path / "policy.toml"
    path.write_text(WHOLE)
    policy = Policy.read(path)
    assert policy.keys == KEYS
    assert policy == Policy(
        source=str(path),
        unit=Unit.ADD_REMOVE_PERSON,
        epsilon=3.0,
        delta=1e-5,
        ledger_since=date(2026, 1, 31),
        unprotected=("number of records",),
        least_records=10,
        evaluation="paid or public",
        signature="required",
        encoder=("resnet", "clip@7"),
        advantage=0.5,
        audit_days=365,
    )


def test_short_forms():
    policy = Policy.of(
        {"unit": "record", "ledger_since": "2026-01-31", "unprotected": "x", "encoder": "known"}
    )
    assert policy.unit is Unit.ADD_REMOVE
    assert policy.ledger_since == date(2026, 1, 31)
    assert (policy.unprotected, policy.encoder) == (("x",), "known")
    assert Policy.of({"encoder": "resnet"}).encoder == ("resnet",)
    assert Policy.of({"unit": "change-label"}).unit is Unit.CHANGE_LABEL


@pytest.mark.parametrize(
    ("line", "facts"),
    [
        ('unit = "persn"', ["unit", "'persn'", "'person'"]),
        ("unit = 1", ["unit", "1"]),
        ('epsilon = "3"', ["epsilon", "'3'", "number"]),
        ("epsilon = true", ["epsilon", "True"]),
        ("epsilon = 1" + "0" * 400, ["epsilon", "finite"]),
        ("epsilon = inf", ["epsilon", "inf", "finite"]),
        ("epsilon = nan", ["epsilon", "nan"]),
        ("epsilon = -0.1", ["epsilon", "-0.1", "0 or more"]),
        ("delta = 1", ["delta", "1", "0.1"]),
        ('ledger_since = "31.1.2026"', ["ledger_since", "'31.1.2026'", "2026-01-31"]),
        ("ledger_since = 2026-01-31T00:00:00", ["ledger_since"]),
        ("unprotected = [1]", ["unprotected", "[1]", "texts"]),
        ('unprotected = [" "]', ["unprotected", "empty"]),
        ("least_records = 0", ["least_records", "0", "1 or more"]),
        ("least_records = 2.5", ["least_records", "2.5"]),
        ("least_records = true", ["least_records", "True"]),
        ('evaluation = "private"', ["evaluation", "'private'", '"paid"', '"public"']),
        ('signature = "optional"', ["signature", "'optional'", '"required"']),
        ("signature = true", ["signature", "True"]),
        ("encoder = []", ["encoder", "known"]),
        ("advantage = 1.5", ["advantage", "1.5"]),
        ("audit_days = -1", ["audit_days", "-1"]),
        ("[unit]\nx = 1", ["unit", "{'x': 1}"]),
        ("epsilom = 1", ["'epsilom'", "'epsilon'"]),
        ("unit = 1\nunit = 2", ["TOML"]),
        ("unit", ["TOML"]),
        ("", ["everything", "epsilon"]),
        ("# all is well", ["everything"]),
        ('unit = "person"\nepsilon = 1', ["epsilon", "delta"]),
        ("epsilon = 1\ndelta = 1e-5", ["epsilon", "unit"]),
        ("delta = 1e-5", ["delta", "epsilon"]),
        ("advantage = 0.5", ["advantage", "unit"]),
        ("x" * 70_000, ["TOML", "65536"]),
    ],
)
def test_what_a_policy_cannot_state_is_refused_in_one_line(tmp_path, line, facts):
    path = tmp_path / "policy.toml"
    path.write_text(line)
    with pytest.raises(InputError, match=stating(path, *facts)) as error:
        Policy.read(path)
    assert "\n" not in str(error.value)


def test_a_missing_policy_is_refused(tmp_path):
    with pytest.raises(InputError, match=stating(tmp_path, "not a file")):
        Policy.read(tmp_path)
