"""`tacit audit METHOD`: what it prints, and its status."""

import json

import pytest

from tacit.cli.main import main
from tacit.mechanisms.noise import ResearchNoise


def test_a_kept_promise_has_status_0(capsys):
    assert main(["audit", "noisy-sum", "--budget", "rho=0.5", "--runs", "100", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert 3 < facts["epsilon_lower"] < facts["promise"]
    assert facts["exceeded"] is False
    assert {"attack", "epsilon", "at_alarm", "assumption", "decides"} <= set(facts["bounds"][0])


def test_a_broken_promise_has_status_1(capsys, monkeypatch):
    whole = ResearchNoise.gaussian
    monkeypatch.setattr(
        ResearchNoise, "gaussian", lambda self, values, scale: whole(self, values, scale / 2)
    )
    assert main(["audit", "noisy-sum", "--runs", "100"]) == 1
    printed = capsys.readouterr()
    assert "BROKEN" in printed.out
    assert "exceeds the promise" in printed.err


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        (["no-such"], ["no-such is no folder of a release and no method", "noisy-sum"]),
        (["noisy-sums"], ["did you mean 'noisy-sum'?"]),
        (["noisy-sum", "--runs", "5"], ["runs=5", "100"]),
        (["noisy-sum", "--budget", "rho=-1"], ["rho"]),
        (["label-private", "--unit", "add-remove"], ["add-remove", "change-label"]),
    ],
)
def test_wrong_input_is_one_line_with_status_2(options, facts, capsys):
    assert main(["audit", *options]) == 2
    message = capsys.readouterr().err
    assert all(fact in message for fact in facts)
    assert message.count("\n") == 1
