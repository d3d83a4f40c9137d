"""`tacit ledger` and the commands that are charged to it."""

import pytest


def test_the_rule_and_each_charge_are_printed_in_the_currency_of_the_allowance(stores, run):
    status, out, _ = run("ledger private --allow epsilon=1,delta=1e-5")
    assert status == 0
    assert "mu^2=0 of mu^2=0.0718514 (epsilon=1,delta=1e-05) spent in 0 charges" in out
    assert "Rule: the mu^2 (Gaussian differential privacy) of each charge is subtracted from mu^2=0.0718514" in out
    assert run("fit public private --public public --budget epsilon=0.5 --out one")[0] == 0
    assert run("fit noisy-sum private --budget rho=0.001 --out two")[0] == 0
    status, out, _ = run("ledger private")
    first, second = (line for line in out.splitlines() if line.startswith("  "))
    assert "PublicPrototypes fit: epsilon=0.5 at delta=1e-05; an exponential mechanism" in first
    assert "NoisySumPrototypes fit: mu^2=0.002; Gaussian noise" in second
    status, _, err = run("fit noisy-sum private --budget rho=0.03 --out three")
    assert status == 2
    assert "would overdraw" in err


def test_another_currency_prices_a_search(stores, run):
    assert run("ledger private --allow epsilon=1,delta=1e-5 --currency renyi")[0] == 0
    _, out, _ = run("ledger private")
    assert "the Renyi divergence at order" in out


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("ledger private --currency mu", "is part of an allowance; pass --allow too"),
        ("ledger private --allow rho=1 --currency mu", "does not count an allowance of rho=1; pass rho"),
        ("ledger private --allow epsilon=1,delta=1e-5 --currency gold", '"mu", "renyi"'),
    ],
)
def test_bad_currencies_are_one_line_and_status_2(stores, run, line, message):
    status, _, err = run(line)
    assert status == 2
    assert message in err
    assert err.count("\n") == 1


def test_a_raised_allowance_is_a_record_in_what_is_printed_and_in_the_card(stores, run):
    run("ledger private --allow rho=0.1")
    assert run("fit noisy-sum private --budget rho=0.1 --out one")[0] == 0
    status, out, _ = run("ledger private --allow rho=1")
    assert status == 0
    assert "raised from rho=0.1 after the first charge, so it is a record and no guarantee" in out
    assert run("fit noisy-sum private --budget rho=0.1 --out two")[0] == 0
    assert "so it is a record and no guarantee" in (stores / "two" / "CARD.md").read_text()
    assert "record and no guarantee" not in (stores / "one" / "CARD.md").read_text()
    assert run("ledger private --allow epsilon=1,delta=1e-5")[0] == 2
