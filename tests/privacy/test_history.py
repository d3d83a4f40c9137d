"""A ledger that somebody else hands over: read at once, and refused where its lines do not follow."""

import pytest

from messages import stating
from tacit.errors import LedgerError
from tacit.privacy.events import Gaussian
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.history import History
from tacit.privacy.ledger import Ledger
from tacit.privacy.unit import Unit

FIRST = Guarantee(Unit.ADD_REMOVE, Gaussian(4.0))
SECOND = Guarantee(Unit.ADD_REMOVE, Gaussian(8.0))


@pytest.fixture
def path(tmp_path):
    """A ledger of two data sets: an allowance, two charges of one and one of the other."""
    path = tmp_path / "both.ledger.jsonl"
    survey = Ledger(path, "survey")
    survey.allow("rho=1")
    survey.charge(FIRST, "first")
    visits = Ledger(path, "visits")
    visits.allow("rho=1")
    visits.charge(SECOND, "second")
    survey.charge(FIRST, "third")
    return path


def test_each_identity_has_its_account_and_each_charge_its_line(path):
    history = History.read(path)
    assert history.charges == [(1, "survey", FIRST), (3, "visits", SECOND), (4, "survey", FIRST)]
    assert [len(history.accounts[name].charges) for name in ("survey", "visits")] == [2, 1]
    assert len(history.hashes) == 5
    assert history.hashes[-1] == Ledger(path, "survey").account().head


@pytest.mark.parametrize("number", range(4))
def test_a_line_that_was_removed_before_the_last_is_found(path, number):
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:number] + lines[number + 1 :]))
    with pytest.raises(LedgerError, match=stating(f"line {number + 1}", "does not match")):
        History.read(path)


def test_an_edited_line_is_found(path):
    path.write_bytes(path.read_bytes().replace(b"8.0", b"9.0"))
    with pytest.raises(LedgerError, match=stating("line 4", path)):
        History.read(path)


@pytest.mark.parametrize(
    ("content", "fact"),
    [
        (b"", "0 bytes"),
        (b"{}\n", "line 1"),
        (b"\xff\n", "line 1"),
        (b"[" * 10**5 + b"\n", "line 1"),
    ],
)
def test_what_is_no_ledger_is_refused(tmp_path, content, fact):
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(LedgerError, match=stating(path, fact)):
        History.read(path)
    with pytest.raises(LedgerError, match=stating(tmp_path, "not a file")):
        History.read(tmp_path)
