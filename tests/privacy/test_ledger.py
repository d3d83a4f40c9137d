import contextlib
import errno
import fcntl
import json
import re
import subprocess
import sys
import threading
import time
from decimal import (
    ROUND_UP,
    Context,
    Decimal,
    FloatOperation,
    Inexact,
    InvalidOperation,
    Rounded,
    Subnormal,
    localcontext,
)

import pytest

from messages import lacking, stating
from privacy.ledger_lines import record
from tacit.errors import InputError, LedgerError
from tacit.privacy.account import balance, figure
from tacit.privacy.allowance import Allowance
from tacit.privacy.budget import Budget
from tacit.privacy.chain import Chain
from tacit.privacy.decimals import exceeds, subtract
from tacit.privacy.events import (
    ZCDP,
    Exponential,
    Gaussian,
    Laplace,
    Parallel,
    PureDP,
    RandomizedResponse,
    compose,
)
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.ledger import Ledger
from tacit.privacy.unit import Unit

HALF = Guarantee(Unit.ADD_REMOVE, Gaussian(1.0))  # rho = 0.5

CHARGE_OFTEN = """
import sys
import time
from pathlib import Path
from tacit.errors import LedgerError
from tacit.privacy.chain import Chain
from tacit.privacy.events import ZCDP
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.ledger import Ledger
from tacit.privacy.unit import Unit
path, go = Path(sys.argv[1]), Path(sys.argv[2])
ledger, done = Ledger(path, "data"), 0
next_line = Chain.next
# a wide gap between reading and writing
Chain.next = lambda *given: (time.sleep(0.004), next_line(*given))[1]
print("ready", flush=True)
while not go.exists():
    pass
for _ in range(60):
    try:
        ledger.charge(Guarantee(Unit.ADD_REMOVE, ZCDP(0.01)), "one of many")
        done += 1
    except LedgerError:
        pass
print(done)
"""


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "data.ledger.jsonl", "data")


def test_charges_add_up_and_overdrawing_is_refused(ledger):
    ledger.allow("rho=1")
    ledger.charge(HALF, "first")
    ledger.charge(HALF, "second")
    before = ledger.path.read_bytes()
    with pytest.raises(
        LedgerError, match=stating("third", "rho=5e-07", "rho=1 of rho=1", "2 charges")
    ):
        ledger.charge(Guarantee(Unit.ADD_REMOVE, Gaussian(1000.0)), "third")
    assert ledger.path.read_bytes() == before
    assert ledger.account().spent.rho == 1.0


def test_the_file_only_grows(ledger):
    ledger.allow("rho=1")
    first = ledger.path.read_bytes()
    ledger.charge(HALF, "fit")
    assert ledger.path.read_bytes().startswith(first)
    assert json.loads(ledger.path.read_text().splitlines()[1])["what"] == "fit"


def test_without_an_allowance_charges_are_only_recorded(ledger):
    record(ledger, HALF, "fit")
    for _ in range(2):
        ledger.charge(HALF, "fit")
    assert ledger.account().spent.rho == 1.5
    before = "uses before [0-9]{4}-[0-9]{2}-[0-9]{2} are not recorded"
    assert re.fullmatch(f"3 charges, no allowance stated; {before}", balance(ledger.account()))


def test_an_allowance_must_cover_what_was_spent_and_the_last_one_counts(ledger):
    record(ledger, HALF, "fit")
    with pytest.raises(LedgerError, match=stating("epsilon", "rho = 0.5", "spent")):
        ledger.allow("rho=0.4")
    ledger.allow("rho=0.6")
    ledger.allow("rho=0.5")
    assert ledger.account().allowance.budget == Budget.zcdp(0.5)


def test_charges_are_converted_to_the_unit_of_the_allowance(ledger):
    ledger.allow("rho=2", unit="replace")
    ledger.charge(HALF, "fit")  # rho = 2 under replace
    assert ledger.account().spent.rho == 2
    with pytest.raises(LedgerError, match="under unit replace"):
        ledger.charge(Guarantee(Unit.REPLACE, Gaussian(100.0)), "more")


def test_pure_allowances_refuse_gaussian_noise_and_count_epsilon(ledger):
    ledger.allow("epsilon=1")
    ledger.charge(Guarantee(Unit.ADD_REMOVE, Parallel(Exponential(0.6), "classes")), "select")
    with pytest.raises(LedgerError, match=r"epsilon=0.6 of epsilon=1 spent"):
        ledger.charge(HALF, "sum")
    with pytest.raises(LedgerError):
        ledger.charge(Guarantee(Unit.ADD_REMOVE, Exponential(0.5)), "select again")


def test_identities_do_not_share_an_allowance(ledger):
    ledger.allow("rho=0.5")
    ledger.charge(HALF, "fit")
    other = Ledger(ledger.path, "other data")
    other.allow("rho=0.5")
    other.charge(HALF, "fit")
    assert other.account().spent.rho == ledger.account().spent.rho == 0.5


def test_an_identity_without_an_allowance_may_not_use_a_ledger_that_allows_others(ledger):
    ledger.allow("rho=0.5")
    with pytest.raises(LedgerError, match=stating("data", "'copy'")):
        Ledger(ledger.path, "copy").charge(HALF, "fit")


def test_personal_budgets_are_charged_at_the_most_expensive_group(ledger):
    ledger.allow("rho=0.5", "replace")
    groups = (("a", ZCDP(0.1)), ("b", ZCDP(0.4)))
    ledger.charge(Guarantee(Unit.REPLACE, compose([]), groups=groups), "votes")
    assert ledger.account().spent.rho == pytest.approx(0.4)
    with pytest.raises(LedgerError, match="would overdraw"):
        ledger.charge(
            Guarantee(Unit.REPLACE, ZCDP(0.05), groups=(("a", ZCDP(0.01)), ("b", ZCDP(0.1)))),
            "more votes",
        )


def test_a_charge_reads_and_writes_under_an_exclusive_lock(ledger, monkeypatch):
    def locked():
        with ledger.path.open() as other:
            try:
                fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            return False

    seen = []
    line_of = Chain.next
    read_line = Chain.read

    def written(*given):
        seen.append(("write", locked()))
        return line_of(*given)

    def read(*given, **named):
        seen.append(("read", locked()))
        return read_line(*given, **named)

    monkeypatch.setattr(Chain, "next", written)
    monkeypatch.setattr(Chain, "read", read)
    ledger.allow("rho=1")
    ledger.charge(HALF, "fit")
    assert set(seen) == {("write", True), ("read", True)}
    assert seen.count(("write", True)) == 2
    assert seen[-3:-1] == [("read", True), ("write", True)]  # the line before, then the charge


def test_float_rounding_does_not_refuse_the_tenth_tenth(ledger):
    ledger.allow("rho=1")
    for _ in range(10):
        ledger.charge(Guarantee(Unit.ADD_REMOVE, Gaussian(Budget.zcdp(0.1).gaussian())), "tenth")
    with pytest.raises(LedgerError):
        ledger.charge(
            Guarantee(Unit.ADD_REMOVE, Gaussian(Budget.zcdp(1e-6).gaussian())), "a bit more"
        )


def test_amounts_add_up_as_the_decimals_they_are_written_as(ledger):
    ledger.allow("rho=0.3")
    ledger.charge(Guarantee(Unit.ADD_REMOVE, ZCDP(0.1)), "first")
    ledger.charge(Guarantee(Unit.ADD_REMOVE, ZCDP(0.2)), "second")
    assert ledger.account().left == 0
    with pytest.raises(LedgerError, match="would overdraw"):
        ledger.charge(Guarantee(Unit.ADD_REMOVE, ZCDP(1e-9)), "a bit more")


def test_groups_are_converted_in_the_currency_of_the_ledger(ledger):
    """By rho the first group costs most, in pure epsilon the second."""
    groups = (("a", RandomizedResponse(0.8, 2)), ("b", Exponential(1.2)))
    assert groups[0][1].rho > groups[1][1].rho
    guarantee = Guarantee(Unit.ADD_REMOVE, compose([]), groups=groups)
    ledger.allow("epsilon=1.5")
    ledger.charge(guarantee, "votes")
    assert ledger.account().spent.pure == 1.2
    other = Ledger(ledger.path.with_name("other.jsonl"), "data")
    other.allow("rho=1")
    other.charge(guarantee, "votes")
    assert other.account().spent.rho == groups[0][1].rho


def test_an_allowance_raised_after_a_charge_is_stated_as_no_guarantee(ledger):
    ledger.allow("rho=0.6")
    ledger.allow("rho=1")  # nothing is charged yet
    ledger.charge(HALF, "fit")
    assert (
        balance(ledger.account()).partition("; uses before ")[0].endswith("under unit add-remove")
    )
    ledger.allow("rho=2")
    assert not lacking(balance(ledger.account()), "raised", "rho=1", "no guarantee")
    with pytest.raises(LedgerError, match=stating("raised", "rho=1")):
        ledger.charge(Guarantee(Unit.ADD_REMOVE, ZCDP(5)), "more")
    ledger.allow("rho=0.5")
    assert not lacking(balance(ledger.account()), "lowered", "rho=1")
    ledger.allow("rho=1")
    assert ledger.account().caveat == ""


def test_a_smaller_mu_that_leaves_more_than_the_first_allowance_is_no_lowering(ledger):
    """What a first charge leaves depends on epsilon and delta, not on the mu of both alone."""
    ledger.allow("epsilon=1,delta=1e-5")
    ledger.charge(Guarantee(Unit.ADD_REMOVE, PureDP(1.0)), "by its exact curve")
    assert ledger.account().left < Decimal("1e-6")
    ledger.allow("epsilon=2,delta=1e-30")
    assert ledger.account().allowance.total < ledger.account().first.total
    assert ledger.account().left > Decimal("1e-3")
    assert not lacking(ledger.account().caveat, "no guarantee")


def test_a_first_charge_that_is_too_large_is_refused_with_its_epsilon(ledger):
    ledger.allow("epsilon=1,delta=1e-5")
    with pytest.raises(LedgerError, match=r"PATE at epsilon=1.3\d* at delta=1e-05 would overdraw"):
        ledger.charge(Guarantee(Unit.ADD_REMOVE, ZCDP(0.05)), "PATE")


@pytest.mark.parametrize(
    ("what", "event"),
    [
        ("with currency renyi --unit replace", ZCDP(0.05)),
        ("epsilon=...,delta=... --unit replace", Gaussian(9.0)),
    ],
)
def test_what_to_allow_is_told_with_its_unit(ledger, what, event):
    ledger.allow("epsilon=1", Unit.REPLACE)
    with pytest.raises(LedgerError) as caught:
        ledger.charge(Guarantee(Unit.REPLACE, event), "PATE")
    assert str(caught.value).endswith(what)


def test_an_allowance_stated_after_a_charge_is_stated_as_no_guarantee(ledger):
    record(ledger, HALF, "fit")
    ledger.allow("rho=1")
    assert not lacking(balance(ledger.account()), "after the first charge", "no guarantee")


def test_a_charge_without_privacy_cost_is_no_first_charge(ledger):
    record(ledger, Guarantee(Unit.ADD_REMOVE, compose([])), "names")
    ledger.allow("epsilon=1,delta=1e-5")
    assert ledger.account().caveat == ""
    ledger.charge(Guarantee(Unit.ADD_REMOVE, PureDP(1.0)), "by its exact curve")
    assert ledger.account().caveat == ""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (("rho=1",), ("epsilon=9,delta=1e-6",)),
        (("epsilon=9",), ("rho=9",)),
        (("rho=9",), ("rho=99", "replace")),
        (("epsilon=9,delta=1e-6",), ("epsilon=9,delta=1e-6", "add-remove", "renyi")),
        (
            ("epsilon=9,delta=1e-6", "add-remove", "renyi"),
            ("epsilon=10,delta=1e-6", "add-remove", "renyi"),
        ),
    ],
)
def test_another_currency_after_a_charge_is_refused(ledger, before, after):
    ledger.allow(*before)
    Ledger(ledger.path, "other").allow(*after)
    ledger.charge(Guarantee(Unit.ADD_REMOVE, Exponential(0.1)), "fit")
    content = ledger.path.read_bytes()
    with pytest.raises(LedgerError, match=stating("same kind")):
        ledger.allow(*after)
    assert ledger.path.read_bytes() == content


@pytest.mark.parametrize(
    "change", [("fit", "fat"), ("rho=1", "rho=9"), ('"left": "0.5"', '"left": "0.9"')]
)
def test_an_edited_line_is_found(ledger, change):
    ledger.allow("rho=1")
    ledger.charge(HALF, "fit")
    ledger.charge(Guarantee(Unit.ADD_REMOVE, ZCDP(0.1)), "fit again")
    text = ledger.path.read_text()
    assert change[0] in text
    ledger.path.write_text(text.replace(*change, 1))
    with pytest.raises(LedgerError, match="does not match its hash"):
        ledger.account()


def test_a_line_that_is_missing_exchanged_or_added_is_found(ledger):
    ledger.allow("rho=1")
    for _ in range(3):
        ledger.charge(Guarantee(Unit.ADD_REMOVE, ZCDP(0.1)), "fit")
    first, second, third, fourth = ledger.path.read_text().splitlines(keepends=True)
    bare = second.rpartition(', "hash"')[0] + "}\n"
    for lines in (
        (first, third, fourth),
        (first, third, second, fourth),
        (first, second, second),
        (first, bare),
    ):
        ledger.path.write_text("".join(lines))
        with pytest.raises(LedgerError, match=r"does not match its hash|has no hash"):
            ledger.charge(HALF, "fit")
    ledger.path.write_text(first + second)  # what the hash cannot find: lines missing at the end
    assert len(ledger.account().charges) == 1


def test_the_hash_is_shown_nowhere(ledger):
    ledger.allow("rho=1")
    ledger.charge(HALF, "fit")
    hashes = re.findall(r'"hash": "(\w{64})"', ledger.path.read_text())
    assert len(hashes) == 2
    with pytest.raises(LedgerError) as caught:
        ledger.charge(Guarantee(Unit.ADD_REMOVE, ZCDP(9)), "more")
    ledger.path.write_text(ledger.path.read_text().replace("fit", "fat"))
    with pytest.raises(LedgerError) as damaged:
        ledger.account()
    shown = [str(caught.value), str(damaged.value)]
    assert not any(found in text for found in hashes for text in shown)


ALLOWED = {
    "time": "2026-01-01T00:00:00+00:00",
    "identity": "data",
    "kind": "allow",
    "budget": "rho=1",
    "unit": "add-remove",
    "currency": None,
    "left": "1",
}


def test_a_line_without_a_hash_is_refused(ledger):
    ledger.path.write_text(json.dumps(ALLOWED) + "\n")
    with pytest.raises(LedgerError, match=r"line 1 .*no hash.*earlier tacit"):
        ledger.account()


@pytest.mark.parametrize("kind", ["allow", "charge"])
def test_an_entry_that_does_not_state_what_is_left_is_refused(ledger, kind):
    ledger.allow("rho=1")
    chain = Chain()
    chain.read(ledger.path.read_bytes())
    entry = ALLOWED | {"kind": kind, "what": "fit", "guarantee": HALF.to_json()}
    del entry["left"]
    ledger.path.write_bytes(ledger.path.read_bytes() + chain.next(entry))
    with pytest.raises(LedgerError, match=r"line 2 .*does not state what is left"):
        ledger.account()


def test_every_entry_that_is_written_can_be_read_again(ledger):
    ledger.allow("rho=9")
    ledger.charge(HALF, "a table named t\udcff.csv\nand more \x1b[2J" + "x" * 1000)
    (charge,) = ledger.account().charges
    assert charge.what.isprintable()
    assert len(charge.what) <= 200
    deep = Gaussian(1e9)
    for _ in range(120):
        deep = Parallel(deep, "splits")
    for event in (deep, 2**63 * Gaussian(1e12)):
        with pytest.raises(LedgerError, match=stating("recorded", "nothing is charged")):
            ledger.charge(Guarantee(Unit.ADD_REMOVE, event), "odd")
    assert len(ledger.account().charges) == 1
    with pytest.raises(LedgerError, match="must be printable text"):
        Ledger(ledger.path, "data\udcff")


def test_only_a_line_that_was_cut_off_may_be_deleted(ledger):
    ledger.allow("rho=1")
    whole = ledger.path.read_bytes()
    ledger.path.write_bytes(whole + b'{"kind": "cha')
    with pytest.raises(LedgerError, match=stating("line 2", "remove")):
        ledger.account()
    ledger.path.write_bytes(whole + b"garbage\n")
    with pytest.raises(LedgerError, match=stating("line 2", "restore")):
        ledger.account()


@pytest.mark.parametrize(
    "event",
    [
        10**18 * PureDP(1e-16),
        10**8 * PureDP(1e-6),
        compose([Laplace(50.0 + i) for i in range(300)]),
    ],
    ids=["many uses", "fewer uses", "many kinds"],
)
@pytest.mark.parametrize("currency", ["mu", "renyi"])
def test_no_charge_takes_long_to_account(ledger, event, currency):
    ledger.allow("epsilon=1,delta=1e-5", currency=currency)
    start = time.process_time()
    with contextlib.suppress(LedgerError):
        ledger.charge(Guarantee(Unit.ADD_REMOVE, event), "much")
    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    "text", ["epsilon=1e9,delta=0.9", "epsilon=1e9,delta=0.1", "epsilon=1e-9,delta=1e-30"]
)
def test_extreme_allowances_are_stated_quickly(ledger, text):
    start = time.process_time()
    ledger.allow(text)
    assert time.process_time() - start < 2


def test_almost_no_noise_is_refused(ledger, recwarn):
    ledger.allow("epsilon=1,delta=1e-5", currency="renyi")
    for event in (Laplace(1e-320), ZCDP(1e308), PureDP(1e300)):
        with pytest.raises(LedgerError, match=r"would overdraw"):
            ledger.charge(Guarantee(Unit.ADD_REMOVE, event), "loud")
    assert not recwarn


def test_charges_without_an_allowance_are_shown_in_their_own_unit(ledger):
    record(ledger, Guarantee(Unit.CHANGE_LABEL, PureDP(1.0)), "labels")
    assert figure(ledger.account(), ledger.account().charges[0].guarantee).startswith("rho=")
    assert ledger.account().spent == PureDP(1.0)
    other = Ledger(ledger.path, "other")
    other.allow("rho=2")
    with pytest.raises(LedgerError, match=stating("labels", "change-label", "add-remove")):
        other.charge(Guarantee(Unit.CHANGE_LABEL, PureDP(1.0)), "labels")


def test_an_emptied_ledger_is_refused(ledger, monkeypatch):
    monkeypatch.setattr("tacit.privacy.ledger_file._PATIENCE", 0.05)
    ledger.allow("rho=1")
    ledger.path.write_text("")
    for use in (ledger.account, lambda: ledger.charge(HALF, "fit"), lambda: ledger.allow("rho=1")):
        with pytest.raises(LedgerError, match=stating("empty", "restore")):
            use()
    assert ledger.path.read_text() == ""


def test_a_file_that_another_process_is_creating_is_waited_for(ledger):
    ledger.allow("rho=1")
    content = ledger.path.read_bytes()
    ledger.path.write_bytes(b"")
    later = threading.Timer(0.2, lambda: ledger.path.write_bytes(content))
    later.start()
    assert ledger.account().allowance.budget.rho == 1
    later.join()


def test_a_refused_first_entry_leaves_no_file(ledger, monkeypatch):
    def refused(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tacit.privacy.ledger_file.os.fsync", refused)
    with pytest.raises(LedgerError, match=stating("No space left on device", "nothing is charged")):
        ledger.allow("rho=1")
    assert not ledger.path.exists()


def test_a_full_disk_leaves_the_ledger_as_it_was(ledger, monkeypatch):
    ledger.allow("rho=1")
    before = ledger.path.read_bytes()

    def refused(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tacit.privacy.ledger_file.os.fsync", refused)
    with pytest.raises(LedgerError, match="nothing is charged"):
        ledger.charge(HALF, "fit")
    assert ledger.path.read_bytes() == before


def test_a_file_system_without_locks_is_refused(ledger, monkeypatch):
    def refused(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refused)
    with pytest.raises(LedgerError, match=stating("No locks available", "file system")):
        ledger.allow("rho=1")
    assert not ledger.path.exists()


@pytest.mark.parametrize(
    "damage",
    [
        lambda s: s[:-10],
        lambda s: s + "garbage\n",
        lambda s: s + "{}\n",
        lambda s: s + '{"kind": "charge", "identity": "data"}\n',
    ],
)
def test_a_damaged_ledger_is_refused(ledger, damage):
    ledger.allow("rho=1")
    ledger.path.write_text(damage(ledger.path.read_text()))
    with pytest.raises(LedgerError, match="is not a complete entry"):
        ledger.charge(HALF, "fit")


def test_a_file_that_is_no_ledger_is_refused(tmp_path):
    (tmp_path / "ledger").write_bytes(b"\xff\xfe\n")
    for path, message in (
        (tmp_path / "ledger", "is not a complete entry"),
        ("/dev/full", "not a plain file"),
    ):
        for use in (lambda ledger: ledger.account(), lambda ledger: ledger.charge(HALF, "fit")):
            with pytest.raises(LedgerError, match=message):
                use(Ledger(path, "data"))
    (tmp_path / "deep").write_text('{"kind":"charge","guarantee":' + "[" * 100_000 + "\n")
    with pytest.raises(LedgerError, match="is not a complete entry"):
        Ledger(tmp_path / "deep", "data").account()
    with pytest.raises(LedgerError, match="must name the private data"):
        Ledger(tmp_path / "new", " ")


def test_an_allowance_is_recorded_to_the_last_digit(ledger):
    ledger.allow("rho=0.9999999")
    assert ledger.account().allowance.budget == Budget.zcdp(0.9999999)


def test_an_unwritable_ledger_is_refused(tmp_path):
    with pytest.raises(LedgerError, match="cannot be written"):
        Ledger(tmp_path / "no folder" / "x.jsonl", "data").allow("rho=1")


def test_two_processes_never_overdraw_and_lose_no_entry(ledger, tmp_path):
    ledger.allow("rho=1")
    go = tmp_path / "go"
    command = [sys.executable, "-c", CHARGE_OFTEN, str(ledger.path), str(go)]
    workers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for worker in workers:
        assert worker.stdout.readline() == "ready\n"
    go.touch()
    done = [int(worker.communicate(timeout=600)[0]) for worker in workers]
    assert sum(done) == 100
    assert len(ledger.account().charges) == 100
    assert ledger.account().spent.rho == pytest.approx(1.0)


def test_a_ledger_is_kept_per_person(ledger):
    person = Guarantee(Unit.ADD_REMOVE_PERSON, Gaussian(2.0))  # rho = 1/8
    ledger.allow("rho=1", "add-remove-person")
    with pytest.raises(LedgerError, match=stating("add-remove-person", "most records")):
        ledger.charge(HALF, "a fit per record")
    ledger.charge(person, "a fit")
    assert ledger.account().left == Decimal("0.875")
    ledger.allow("rho=2", "add-remove-person")
    assert ledger.account().unit is Unit.ADD_REMOVE_PERSON


def test_charges_per_record_count_for_the_most_records_of_a_person(ledger):
    ledger.allow("rho=20", "add-remove-person", most_records=5)
    ledger.charge(HALF, "a fit per record")
    account = Ledger(ledger.path, ledger.identity).account()
    assert account.allowance.most_records == 5
    assert account.left == Decimal("7.5")
    assert account.spent == Gaussian(0.2)
    assert "12.5 of rho=20 spent" in balance(account)
    with pytest.raises(LedgerError, match="overdraw"):
        ledger.charge(HALF, "another")
    with pytest.raises(LedgerError, match="at most 5 records a person"):
        ledger.allow("rho=20", "add-remove-person", most_records=4)
    with pytest.raises(LedgerError, match="does not convert"):
        ledger.charge(Guarantee(Unit.REPLACE, Gaussian(100.0)), "a fit under replace")


@pytest.mark.parametrize(
    ("unit", "m"), [("add-remove", 5), ("add-remove-person", 0), ("add-remove-person", 2.5)]
)
def test_the_most_records_are_declared_for_a_unit_per_person(ledger, unit, m):
    with pytest.raises(InputError, match="most_records"):
        ledger.allow("rho=1", unit, most_records=m)
    assert not ledger.path.exists()


def test_an_allowance_per_person_says_which_charge_per_record_does_not_convert(ledger):
    record(ledger, HALF, "a fit per record")
    with pytest.raises(LedgerError, match=stating("--most-records", "add-remove")):
        ledger.allow("rho=100", "add-remove-person")
    ledger.allow("rho=100", "add-remove-person", most_records=3)
    assert ledger.account().left == Decimal("95.5")


PROCESS_SETTINGS = {
    "two digits": {"prec": 2},
    "rounding up": {"prec": 3, "rounding": ROUND_UP},
    "no traps": {"prec": 1, "traps": []},
    "all traps": {
        "prec": 2,
        "traps": [Inexact, Rounded, FloatOperation, InvalidOperation, Subnormal],
    },
    "small exponents": {"prec": 5, "Emin": -1, "Emax": 1},
}


@pytest.mark.parametrize("settings", PROCESS_SETTINGS.values(), ids=PROCESS_SETTINGS)
def test_an_allowance_does_not_depend_on_the_decimal_settings_of_the_process(settings):
    allowance = Allowance.of("rho=1")
    charge = Guarantee(Unit.ADD_REMOVE, ZCDP(0.004))
    with localcontext(Context(**settings)):
        assert allowance.after([charge] * 250) == 0
        assert allowance.after([charge] * 251) is None


@pytest.mark.parametrize("settings", PROCESS_SETTINGS.values(), ids=PROCESS_SETTINGS)
def test_a_ledger_does_not_depend_on_the_decimal_settings_of_the_process(
    ledger, settings, monkeypatch
):
    monkeypatch.setattr("os.fsync", lambda _: None)
    charge = Guarantee(Unit.ADD_REMOVE, ZCDP(0.04))
    with localcontext(Context(**settings)):
        ledger.allow("rho=1")
        for _ in range(25):
            ledger.charge(charge, "fit")
        with pytest.raises(LedgerError, match=stating("rho=1 of rho=1", "25 charges")):
            ledger.charge(charge, "fit")
        said = balance(ledger.account())
    assert balance(ledger.account()) == said
    assert [json.loads(line)["left"] for line in ledger.path.read_text().splitlines()][-2:] == [
        "0.04",
        "0.00",
    ]


def test_what_is_left_is_rounded_down():
    left = subtract(Decimal(1), Decimal("1e-70"))
    assert left == Decimal("0." + "9" * 60)
    assert not exceeds(left, Decimal(1))


@pytest.mark.parametrize("use", ["charge", "check"])
def test_a_ledger_that_does_not_exist_is_not_created_by_a_use(ledger, use):
    with pytest.raises(LedgerError, match=stating("exist", "tacit ledger DATA --new")):
        getattr(ledger, use)(HALF, "fit")
    assert not ledger.path.exists()
    with pytest.raises(LedgerError, match="does not exist"):
        Ledger(ledger.path.parent / "none" / "x.jsonl", "data").charge(HALF, "fit")


def test_a_ledger_without_an_allowance_is_of_the_identities_that_it_has_entries_of(ledger):
    record(ledger, HALF, "fit")
    content = ledger.path.read_bytes()
    with pytest.raises(LedgerError, match=stating("data", "'copy'")):
        Ledger(ledger.path, "copy").charge(HALF, "fit")
    assert ledger.path.read_bytes() == content


def test_a_balance_says_since_when_uses_are_recorded(ledger):
    ledger.path.write_bytes(Chain().next(ALLOWED))
    Ledger(ledger.path, "other").allow("rho=1")
    ledger.charge(Guarantee(Unit.ADD_REMOVE, Gaussian(1e4)), "fit")
    assert balance(ledger.account()).endswith("; uses before 2026-01-01 are not recorded")
    assert "2026-01-01" not in balance(Ledger(ledger.path, "other").account())
    assert "uses before" not in balance(Ledger(ledger.path, "third").account())


def test_the_ledger_of_renamed_data_is_found_by_their_identity(tmp_path):
    assert Ledger.in_use(None, tmp_path / "data", "data") is None
    beside = Ledger.beside(tmp_path / "data", "data")
    beside.allow("rho=1")
    for name in ("data", "renamed"):
        assert Ledger.in_use(None, tmp_path / name, "data").path == beside.path
    assert Ledger.in_use(None, tmp_path / "renamed", "other") is None
    Ledger(tmp_path / "second.ledger.jsonl", "data").allow("rho=1")
    assert Ledger.in_use(None, tmp_path / "data", "data").path == beside.path
    with pytest.raises(
        LedgerError, match=stating("data.ledger.jsonl", "second.ledger.jsonl", "--ledger")
    ):
        Ledger.in_use(None, tmp_path / "renamed", "data")
    with pytest.raises(LedgerError, match=r"typo.jsonl does not exist"):
        Ledger.in_use(tmp_path / "typo.jsonl", tmp_path / "data", "data")
