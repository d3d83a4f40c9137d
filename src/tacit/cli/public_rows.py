"""Checks that rows are public: no ledger knows them, and no private record is among them."""

from pathlib import Path
from typing import TYPE_CHECKING

from tacit.cli.common import ledger_of
from tacit.errors import InputError

if TYPE_CHECKING:
    from tacit.data.imports import Data

PUBLIC = "give rows that are public, or of records that no guarantee covers"
SAME = 0.9999  # cosine from which on two rows are taken for one record


def check_uncovered(ledger: Path | None, place: Path, data: "Data") -> None:
    """Refuse rows that a ledger knows: what was fitted on them has a guarantee."""
    known = ledger_of(ledger, place, data)
    if known is None:
        return
    account = known.account()
    if account.charges or account.allowance is not None:
        fault = f"{known.path} counts what is spent on {data.identity!r}"
        raise InputError(f"{place}: {fault}, so a guarantee covers these records; {PUBLIC}")


def check_no_record(private: Path, rows: Path, data: "Data") -> None:
    """Refuse rows that hold private records, by content or direction, and stores by their
    identity.
    """
    from tacit.data.embeddings import EmbeddingStore
    from tacit.data.imports import read_data
    from tacit.data.overlap import overlap

    records = read_data(private, width=data.x.shape[1])
    stores = isinstance(records, EmbeddingStore) and isinstance(data, EmbeddingStore)
    if stores and records.identity == data.identity:
        raise InputError(
            f"{rows} has the identity {data.identity!r} of --private {private}; {PUBLIC}"
        )
    found = overlap(records, data, SAME)
    shared = len({*found.same[:, 0].tolist(), *found.near[:, 0].tolist()})
    if shared:
        fault = (
            f"{rows} has the same or nearly the same rows as {shared} records of --private"
            f" {private}"
        )
        raise InputError(
            f"{fault}; leave them out (tacit overlap lists them, with --cosine {SAME} --out PAIRS)"
        )
