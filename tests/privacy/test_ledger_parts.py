"""Ledgers whose allowance declares parts that share no record."""

import json
from decimal import Decimal

import pytest

from messages import stating
from tacit.errors import InputError, LedgerError
from tacit.privacy.account import balance
from tacit.privacy.accounting import epsilon
from tacit.privacy.chain import Chain
from tacit.privacy.events import Exponential, Gaussian, Parallel
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.history import History
from tacit.privacy.ledger import Ledger
from tacit.privacy.unit import Unit

HALF = Guarantee(Unit.ADD_REMOVE, Gaussian(1.0))  # rho = 0.5
SMALL = Guarantee(Unit.ADD_REMOVE, Gaussian(1000.0))
PARTS = ["hospital A", "hospital B"]


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "data.ledger.jsonl", "data")


def entries(ledger):
    return [json.loads(line) for line in ledger.path.read_text().splitlines()]


def left(ledger):
    account = ledger.account()
    return [float(account.left_for(part)) for part in (None, *account.parts)]


def append(ledger, **members):
    """Add a line, as a version that knows no parts does."""
    chain = Chain()
    for line in ledger.path.read_bytes().splitlines(keepends=True):
        chain.read(line)
    entry = {"time": "2026-01-01T00:00:00+00:00", "identity": "data", **members}
    with ledger.path.open("ab") as file:
        file.write(chain.next(entry))


def test_each_part_has_the_whole_allowance_and_a_charge_of_all_records_counts_for_each(ledger):
    ledger.allow("rho=1", parts=PARTS)
    ledger.charge(HALF, "summary", part="hospital A")
    assert left(ledger) == [0.5, 0.5, 1.0]
    ledger.charge(HALF, "fit")
    assert left(ledger) == [0.0, 0.0, 0.5]
    ledger.charge(HALF, "summary", part="hospital B")

    before = ledger.path.read_bytes()
    used = "rho=1 of rho=1 spent on part 'hospital A' in 2 charges"
    with pytest.raises(LedgerError, match=stating("third", used)):
        ledger.charge(SMALL, "third", part="hospital A")
    with pytest.raises(LedgerError, match="at most rho=1 of rho=1 spent on each of 2 declared"):
        ledger.check(SMALL, "third")
    assert ledger.path.read_bytes() == before
    assert ledger.account().spent == 2 * Gaussian(1.0)


def test_a_charge_of_all_records_must_fit_for_every_part(ledger):
    ledger.allow("rho=0.5", parts=PARTS)
    ledger.charge(HALF, "summary", part="hospital B")
    with pytest.raises(LedgerError, match="overdraw"):
        ledger.charge(SMALL, "fit")
    ledger.charge(HALF, "summary", part="hospital A")


def test_lines_name_a_part_and_its_balance_only_where_there_is_one(ledger):
    ledger.allow("rho=1")
    ledger.charge(HALF, "fit")
    plain = ["time", "identity", "kind"]
    allow = [*plain, "budget", "unit", "currency", "left", "hash"]
    charge = [*plain, "what", "guarantee", "left", "hash"]
    assert [list(entry) for entry in entries(ledger)] == [allow, charge]

    ledger.allow("rho=1", parts=PARTS)
    ledger.charge(HALF, "summary", part="HOSPITAL  b")
    first, second = entries(ledger)[2:]
    assert first["left_of_parts"] == {"hospital A": "0.5", "hospital B": "0.5"}
    assert second["part"] == "hospital B"
    assert (second["left"], second["left_of_parts"]["hospital B"]) == ("0.0", "0.0")


def test_without_declared_parts_charges_add_up_whatever_they_name(ledger):
    ledger.allow("rho=1")
    ledger.charge(HALF, "summary", part="hospital A")
    ledger.charge(HALF, "summary", part="hospital B")
    with pytest.raises(LedgerError, match="overdraw"):
        ledger.charge(SMALL, "summary", part="hospital C")
    assert left(ledger) == [0.0]
    assert [charge.part for charge in ledger.account().charges] == PARTS

    # declared later, each has half of it left
    ledger.allow("rho=1", parts=[*PARTS, "hospital C"])
    assert left(ledger) == [0.5, 0.5, 0.5, 1.0]


def test_parts_that_are_not_declared_are_refused(ledger):
    ledger.allow("rho=1", parts=PARTS)
    with pytest.raises(LedgerError, match=stating("hospital C", "hospital A, hospital B")):
        ledger.charge(HALF, "summary", part="hospital C")
    with pytest.raises(InputError, match="spaces at its ends"):
        ledger.charge(HALF, "summary", part="hospital A ")
    with pytest.raises(InputError, match="are one"):
        ledger.allow("rho=1", parts=["A", "a"])
    with pytest.raises(InputError, match="must be a list"):
        ledger.allow("rho=1", parts="hospital A")
    assert len(entries(ledger)) == 1


def test_parts_may_be_added_and_none_that_was_charged_may_be_left_out(ledger):
    ledger.allow("rho=1", parts=PARTS)
    ledger.charge(HALF, "summary", part="hospital A")
    ledger.allow("rho=0.7")
    assert left(ledger) == pytest.approx([0.2, 0.2, 0.7])
    ledger.allow("rho=0.7", parts=["hospital A", "hospital C"])
    assert ledger.account().parts == ("hospital A", "hospital C")
    assert "lowered" in ledger.account().caveat
    with pytest.raises(LedgerError, match=stating("leaves out 'hospital A'")):
        ledger.allow("rho=1", parts=["hospital C"])

    ledger.charge(HALF, "summary", part="hospital C")
    with pytest.raises(LedgerError, match="below what"):
        ledger.allow("rho=0.7", parts=[])
    ledger.allow("rho=1", parts=[])
    assert left(ledger) == [0.0]


def test_the_first_charge_of_each_part_counts_by_its_exact_curve(ledger):
    """An exponential mechanism fits by its curve alone, since its mu is large."""
    first = Guarantee(Unit.ADD_REMOVE, Exponential(0.5))
    ledger.allow("epsilon=1,delta=1e-5", parts=PARTS)
    for part in PARTS:
        ledger.charge(first, "choice", part=part)
    of_all, of_a, of_b = left(ledger)
    assert of_all == of_a == of_b > 0
    rest = Gaussian(of_b**-0.5)
    assert epsilon(first.event + rest, 1e-5) <= 1
    with pytest.raises(LedgerError, match="overdraw"):
        ledger.charge(first, "choice", part="hospital A")
    ledger.charge(SMALL, "fit")
    assert ledger.account().firsts() == [True, True, False]


def test_a_line_of_a_version_that_knows_no_parts_counts_for_all_of_them(ledger):
    ledger.allow("rho=1", parts=PARTS)
    ledger.charge(HALF, "summary", part="hospital A")
    append(ledger, kind="charge", what="fit", guarantee=HALF.to_json(), left="0.1")
    assert left(ledger) == [0.1, 0.1, 0.1]
    append(ledger, kind="allow", budget="rho=1", unit="add-remove", currency="rho", left="0")
    assert ledger.account().parts == ()
    assert left(ledger) == [0.0]


@pytest.mark.parametrize(
    "members",
    [
        {"part": "hospital C", "left_of_parts": {"hospital C": "1"}},
        {"left_of_parts": {"hospital C": "1"}},
        {"left_of_parts": {"hospital A": "-1"}},
        {"left_of_parts": {}},
        {"part": 3},
    ],
)
def test_a_line_of_other_parts_is_refused(ledger, members):
    ledger.allow("rho=1", parts=PARTS)
    line = {"kind": "charge", "what": "fit", "guarantee": HALF.to_json(), "left": "0.5"}
    append(ledger, **line | members)
    with pytest.raises(LedgerError, match="line 2"):
        ledger.account()


def test_the_balance_says_that_parts_are_declared(ledger):
    ledger.allow("rho=1", parts=PARTS)
    ledger.charge(HALF, "summary", part="hospital A")
    account = ledger.account()
    assert balance(account).startswith(
        "at most rho=0.5 of rho=1 spent on each of 2 declared parts in 1 charge under unit"
    )
    assert (
        balance(account, "hospital B") == "rho=0 of rho=1 spent on part 'hospital B' in 0 charges"
    )


def test_what_adds_up_for_a_record_is_the_most_expensive_part(ledger):
    ledger.allow("rho=3", parts=PARTS)
    ledger.charge(HALF, "fit")
    for noise in (1.0, 2.0):
        ledger.charge(Guarantee(Unit.ADD_REMOVE_PERSON, Gaussian(noise)), "summary", part=PARTS[0])
    ledger.charge(HALF, "summary", part="hospital B")

    account = History.read(ledger.path).accounts["data"]
    assert account.left == Decimal("1.875")
    whole, of_parts = account.adding_up(Unit.REPLACE)
    assert whole == HALF
    assert of_parts.event == Parallel(Gaussian(1.0) + Gaussian(2.0), "parts")
    assert of_parts.unit is Unit.ADD_REMOVE

    # a person may have records in both parts
    charges = [charge.guarantee for charge in account.charges]
    assert account.adding_up(Unit.ADD_REMOVE_PERSON) == charges


def test_parts_of_persons_share_no_person(ledger):
    ledger.allow("rho=1", "add-remove-person", most_records=2, parts=PARTS)
    ledger.charge(Guarantee(Unit.ADD_REMOVE, Gaussian(2.0)), "summary", part="hospital A")
    ledger.charge(Guarantee(Unit.ADD_REMOVE_PERSON, Gaussian(1.0)), "summary", part="hospital B")
    assert left(ledger) == [0.5, 0.5, 0.5]
    (of_parts,) = ledger.account().adding_up(Unit.ADD_REMOVE_PERSON)
    assert of_parts.event == Gaussian(1.0)
