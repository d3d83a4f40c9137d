import fcntl
import json
import subprocess
import sys

import pytest

from tacit.errors import LedgerError
from tacit.privacy.budget import Budget
from tacit.privacy.events import ZCDP, Exponential, Gaussian, Parallel, compose
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.ledger import Ledger, balance
from tacit.privacy.unit import Unit

HALF = Guarantee(Unit.ADD_REMOVE, Gaussian(1.0))  # rho = 0.5

CHARGE_OFTEN = """
import sys
import time
from pathlib import Path
from tacit.errors import LedgerError
from tacit.privacy.events import ZCDP
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.ledger import Ledger
from tacit.privacy.unit import Unit
path, go = Path(sys.argv[1]), Path(sys.argv[2])
ledger, done = Ledger(path, "data"), 0
append = ledger._append
ledger._append = lambda *entry: (time.sleep(0.004), append(*entry))  # a wide gap between reading and writing
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
    with pytest.raises(LedgerError, match=r"third at rho=5e-07 would overdraw .* rho=1 of rho=1 spent in 2 charges"):
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
    for _ in range(3):
        ledger.charge(HALF, "fit")
    assert ledger.account().spent.rho == 1.5
    assert balance(ledger.account()) == "3 charges, no allowance stated"


def test_an_allowance_must_cover_what_was_spent_and_the_last_one_counts(ledger):
    ledger.charge(HALF, "fit")
    with pytest.raises(LedgerError, match="below what .* records as spent: epsilon = .*rho = 0.5 "):
        ledger.allow("rho=0.4")
    ledger.allow("rho=0.6")
    ledger.allow("rho=0.5")
    assert ledger.account().allowance == Budget.zcdp(0.5)


def test_charges_are_converted_to_the_unit_of_the_allowance(ledger):
    ledger.allow("rho=2", unit="replace")
    ledger.charge(HALF, "fit")  # rho = 2 under replace
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
    with pytest.raises(LedgerError, match="allows data and nothing for 'copy'"):
        Ledger(ledger.path, "copy").charge(HALF, "fit")


def test_personal_budgets_are_charged_at_the_dearest_group(ledger):
    ledger.allow("rho=0.5", "replace")
    groups = (("a", ZCDP(0.1)), ("b", ZCDP(0.4)))
    ledger.charge(Guarantee(Unit.REPLACE, compose([]), groups=groups), "votes")
    assert ledger.account().spent.rho == pytest.approx(0.4)
    with pytest.raises(LedgerError, match="would overdraw"):
        ledger.charge(Guarantee(Unit.REPLACE, ZCDP(0.05), groups=(("a", ZCDP(0.01)), ("b", ZCDP(0.1)))), "more votes")


def test_a_charge_reads_and_writes_under_an_exclusive_lock(ledger, monkeypatch):
    def locked():
        with ledger.path.open() as other:
            try:
                fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            return False

    seen = []
    for name in ("_read", "_append"):
        own = getattr(Ledger, name)
        monkeypatch.setattr(Ledger, name, lambda *given, own=own: (seen.append(locked()), own(*given))[1])
    ledger.charge(HALF, "fit")
    assert seen == [True, True]


def test_float_rounding_does_not_refuse_the_tenth_tenth(ledger):
    ledger.allow("rho=1")
    for _ in range(10):
        ledger.charge(Guarantee(Unit.ADD_REMOVE, Gaussian(Budget.zcdp(0.1).gaussian())), "tenth")
    with pytest.raises(LedgerError):
        ledger.charge(Guarantee(Unit.ADD_REMOVE, Gaussian(Budget.zcdp(1e-6).gaussian())), "a bit more")


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


def test_what_is_no_ledger_is_refused(tmp_path):
    (tmp_path / "ledger").write_bytes(b"\xff\xfe\n")
    for path, message in ((tmp_path / "ledger", "is not a complete entry"), ("/dev/full", "not a plain file")):
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
    assert ledger.account().allowance == Budget.zcdp(0.9999999)


def test_an_unwritable_ledger_is_refused(tmp_path):
    with pytest.raises(LedgerError, match="cannot be written"):
        Ledger(tmp_path / "no folder" / "x.jsonl", "data").charge(HALF, "fit")


def test_two_processes_never_overdraw_and_lose_no_entry(ledger, tmp_path):
    ledger.allow("rho=1")
    go = tmp_path / "go"
    command = [sys.executable, "-c", CHARGE_OFTEN, str(ledger.path), str(go)]
    workers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for worker in workers:
        assert worker.stdout.readline() == "ready\n"
    go.touch()
    done = [int(worker.communicate(timeout=60)[0]) for worker in workers]
    assert sum(done) == 100
    assert len(ledger.account().charges) == 100
    assert ledger.account().spent.rho == pytest.approx(1.0)
