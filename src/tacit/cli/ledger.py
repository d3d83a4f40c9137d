"""`tacit ledger`: what may be spent on a data set, and what was."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tacit.cli.common import say
from tacit.cli.json_output import guarantee_facts, print_json
from tacit.cli.options import Json, Split
from tacit.errors import InputError, LedgerError, excerpt
from tacit.privacy.unit import Unit

if TYPE_CHECKING:
    from tacit.privacy.account import Account
    from tacit.privacy.ledger import Ledger


def ledger(
    store: Path,
    /,
    *,
    allow: str | None = None,
    unit: Unit = Unit.ADD_REMOVE,
    currency: Literal["rho", "epsilon", "mu", "renyi"] | None = None,
    most_records: int | None = None,
    parts: str | None = None,
    file: Path | None = None,
    new: bool = False,
    split: Split = None,
    json: Json = False,
) -> None:
    """Show the ledger of a data set, or state its allowance.

    Parameters
    ----------
    store
        The private data: a store's folder, or any file that `tacit import` reads.
    allow
        The allowance: epsilon=1, rho=0.5 or epsilon=1,delta=1e-6. State it before the first fit:
        one that is raised later is a record of what was spent and guarantees nothing. It must cover
        what was spent.
    unit
        The unit of the allowance.
    currency
        For epsilon=...,delta=...: in what charges are added up, mu (Gaussian differential privacy,
        the default) or renyi, which covers searches and zCDP too.
    most_records
        Under a unit per person: the most records that a person has. Charges per record then count
        as so many; without it they are refused.
    parts
        Names of parts of the data that share no record, or nobody's records under a unit per
        person: "hospital A, hospital B". Each has the whole allowance. Nothing checks this. Later,
        state the allowance again to name more.
    file
        The ledger's file, which must have entries of these data; by default STORE.ledger.jsonl
        beside the data, which --allow creates.
    new
        Start a ledger of these data: in a new --file, in one that has entries of other data only,
        or, for a store whose ledger is lost, beside the store.
    """
    from tacit.data.imports import identity_of
    from tacit.data.locations import located
    from tacit.privacy.account import balance, figure
    from tacit.privacy.parts import declaration

    name = identity_of(store, split)
    place = located(store, split)
    _check_records(place)
    if new and allow is None:
        raise InputError(
            "--new starts a ledger; pass --allow too, the total that may be spent on the data"
        )
    before = _known(place, name) if new else None
    book = _new(file, place, name) if new else _existing(file, place, name)
    if allow is not None:
        book.allow(allow, unit, currency, most_records, _part_names(parts))
        book.note_in(place)
        if before is not None:
            say(f"{before.path} counts uses of {name!r} too; what both ledgers allow adds up")
    elif currency is not None or most_records is not None or parts is not None:
        terms = {"currency": currency, "most_records": most_records, "parts": parts}
        term = next(f"{name}={value!r}" for name, value in terms.items() if value is not None)
        raise InputError(f"{term} is part of an allowance; pass --allow too, or leave it out")
    elif not book.path.exists():
        remedy = (
            "to start a ledger, state what may be spent with --allow, and --unit if it is not"
            " add-remove"
        )
        raise InputError(f"{book.path} does not exist; {remedy}")
    account = book.account()
    if json:
        print_json(_facts(book, name, account))
        return
    say(f"{book.path}, identity {name!r}: {balance(account)}")
    if account.allowance is not None:
        say(f"Rule: {account.allowance.rule}.")
    if len(account.parts) > 1:
        say(f"Taken on trust: {declaration(account.parts, account.unit)}.")
    for part in account.parts:
        say(f"  {balance(account, part)}")
    counts_first_exactly = (
        account.allowance is not None and account.allowance.budget.kind == "approx"
    )
    for charge, is_first in zip(account.charges, account.firsts(), strict=True):
        paid = "; ".join(total.describe() for total in charge.guarantee.totals())
        cost = figure(account, charge.guarantee, exact=counts_first_exactly and is_first)
        use = excerpt(charge.what)
        if charge.part is not None:
            use += f" (part {charge.part!r})"
        say(f"  {excerpt(charge.time)}  {use}: {cost}; {paid}")


def _check_records(place: Path) -> None:
    """Refuse a store of synthetic rows, which are no records."""
    from tacit.data.embeddings import EmbeddingStore
    from tacit.data.manifest import NAME
    from tacit.data.synthetic import check_not_synthetic

    if (place / NAME).is_file():
        check_not_synthetic(EmbeddingStore.open(place).card, place)


def _part_names(text: str | None) -> list[str] | None:
    """The names of parts, between commas."""
    if text is None:
        return None
    return [name.strip() for name in text.split(",")]


def _facts(book: "Ledger", identity: str, account: "Account") -> dict[str, Any]:
    """The ledger as numbers: amounts are decimals as text, in the currency of the allowance."""
    from tacit.privacy.account import balance

    allowance = account.allowance
    charges = []
    for charge in account.charges:
        facts = {"time": charge.time, "what": charge.what, **guarantee_facts(charge.guarantee)}
        if charge.part is not None:
            facts["part"] = charge.part
        charges.append(facts)
    document: dict[str, Any] = {
        "ledger": str(book.path),
        "identity": identity,
        "allowance": None if allowance is None else str(allowance),
        "unit": account.unit.value,
        "left": None if account.left is None else str(account.left),
        "balance": balance(account),
        "charges": charges,
    }
    if account.parts:
        document["parts"] = {
            part: {"left": str(account.left_for(part)), "balance": balance(account, part)}
            for part in account.parts
        }
    return document


def _known(place: Path, identity: str) -> "Ledger | None":
    """The ledger that counts these data already; None if there is none, or it is lost."""
    from tacit.privacy.ledger import Ledger

    try:
        return Ledger.in_use(None, place, identity)
    except LedgerError:
        return None


def _new(file: Path | None, place: Path, identity: str) -> "Ledger":
    """A ledger without an entry of these data."""
    from tacit.privacy.ledger import Ledger

    book = Ledger.beside(place, identity) if file is None else Ledger(file, identity)
    if not book.account().empty:
        raise InputError(f"{book.path} has entries of {identity!r}; leave --new out")
    return book


def _existing(file: Path | None, place: Path, identity: str) -> "Ledger":
    """The ledger of these data; without a file, the one beside them, which need not exist yet."""
    from tacit.privacy.ledger import Ledger

    book = Ledger.in_use(file, place, identity)
    if book is None:
        return Ledger.beside(place, identity)
    account = book.account()
    if account.empty and account.others:
        others = excerpt(", ".join(account.others))
        fault = f"{book.path} has entries of {others} and none of {identity!r}"
        raise InputError(
            f"{fault}; name the ledger of these data, or add --new to count them in this file"
        )
    return book
