"""`tacit ledger`: what may be spent on a data set, and what was."""

from pathlib import Path
from typing import Literal

from tacit.cli.common import say
from tacit.cli.options import Split
from tacit.errors import InputError, excerpt
from tacit.privacy.unit import Unit


def ledger(
    store: Path,
    /,
    *,
    allow: str | None = None,
    unit: Unit = Unit.ADD_REMOVE,
    currency: Literal["rho", "epsilon", "mu", "renyi"] | None = None,
    most_records: int | None = None,
    file: Path | None = None,
    split: Split = None,
) -> None:
    """Show the ledger of a data set, or state its allowance.

    Parameters
    ----------
    store
        The private data: a store's folder, or any file that `tacit import` reads.
    allow
        The allowance: epsilon=1, rho=0.5 or epsilon=1,delta=1e-6. State it before the first fit: one that is raised
        later is a record of what was spent and guarantees nothing. It must cover what was spent.
    unit
        The unit of the allowance.
    currency
        For epsilon=...,delta=...: in what charges are added up, mu (Gaussian differential privacy, the default) or
        renyi, which covers searches and zCDP too.
    most_records
        Under a unit per person: the most records that a person has. Charges per record then count as so many; without
        it they are refused.
    file
        The ledger's file; by default STORE.ledger.jsonl beside the data.
    """
    from tacit.data.imports import identity_of, located
    from tacit.privacy.account import balance, figure
    from tacit.privacy.allowance import free
    from tacit.privacy.ledger import Ledger

    name = identity_of(store, split)
    book = Ledger(file, name) if file is not None else Ledger.beside(located(store, split), name)
    if allow is not None:
        book.allow(allow, unit, currency, most_records)
    elif currency is not None or most_records is not None:
        part = f"most_records={most_records}" if currency is None else f"currency={currency!r}"
        raise InputError(f"{part} is part of an allowance; pass --allow too, or leave it out")
    elif not book.path.exists():
        raise InputError(f"{book.path} does not exist; start a ledger with --allow rho=1 (--unit replace for pate)")
    account = book.account()
    say(f"{book.path}, identity {name!r}: {balance(account)}")
    if account.allowance is not None:
        say(f"Rule: {account.allowance.rule}.")
    exact = account.allowance is not None and account.allowance.budget.kind == "approx"
    for charge in account.charges:
        paid = "; ".join(total.describe() for total in charge.guarantee.totals())
        cost = figure(account, charge.guarantee, exact=exact)
        say(f"  {excerpt(charge.time)}  {excerpt(charge.what)}: {cost}; {paid}")
        exact = exact and free(charge.guarantee)
