"""`tacit choose`: which of several releases is right most often, on private test rows."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.cli.common import ledger_of, say, tell_of_case, tell_of_no_ledger
from tacit.cli.json_output import guarantee_facts, print_json
from tacit.cli.options import (
    AnyEncoder,
    Features,
    Json,
    LabelMeaning,
    Labels,
    Noise,
    Persons,
    PriceBudget,
    PriceUnit,
    Split,
)
from tacit.cli.paid_evaluation import true_labels
from tacit.cli.table_rows import data_for
from tacit.compute.progress_display import shown_progress
from tacit.errors import InputError

if TYPE_CHECKING:
    from tacit.data.imports import Data
    from tacit.measure.choosing import Choice
    from tacit.privacy.ledger import Ledger
    from tacit.releases.release import Release


def choose(
    *releases: Path,
    on: list[Path],
    budget: PriceBudget = None,
    unit: PriceUnit = None,
    x: Features = None,
    y: Labels = None,
    labels: LabelMeaning = "value",
    persons: Persons = None,
    split: Split = None,
    any_encoder: AnyEncoder = False,
    ledger: Path | None = None,
    noise: Noise = "secure",
    seed: int | None = None,
    json: Json = False,
) -> None:
    """Choose the release that is right most often on private test rows, at a price that the ledger
    of these rows counts.

    Only the choice is released. How often a release is right costs more: tacit evaluate --budget.

    The fits of all candidates count, those that lose too, where they were trained on these rows.

    Parameters
    ----------
    releases
        Folders of two releases or more, of one label a row and the same classes.
    on
        Test rows that none was trained on: a store's folder, or any file that `tacit import` reads.
        Where encoders differ, once for each release in their order, with the same records in the
        same order.
    ledger
        The ledger of the test rows to charge; by default the one beside them, if there is one.
    seed
        Seed of research noise.
    """
    from tacit.measure.choosing import choice_among
    from tacit.releases.release import Release

    if budget is None:
        raise InputError("a choice has a price; state it, such as --budget epsilon=0.4")
    if len(releases) < 2:
        raise InputError(
            f"{len(releases)} release leaves nothing to choose; name two or more before --on"
        )
    stores = _store_of_each(releases, on)
    if noise == "research" and seed is None:
        raise InputError("--noise research needs a seed; add --seed 0")

    with shown_progress():
        loaded = [Release.load(release).verify() for release in releases]
        tables = []
        for release, path, store in zip(loaded, releases, stores, strict=True):
            if release.several:
                raise InputError(
                    f"{path} predicts several labels a row; choose among releases of one label"
                )
            tables.append(
                data_for(
                    release, store, x=x, y=y, persons=persons, split=split, any_encoder=any_encoder
                )
            )
        truth = _common_labels(loaded, tables, stores, labels)
        ids = _common_persons(tables, stores)
        book = _ledger(ledger, tables, stores, split)
        with tables[0].places.in_errors():
            choice = choice_among(
                loaded,
                [data.x for data in tables],
                truth,
                budget=budget,
                persons=ids,
                unit=unit or "add-remove",
                ledger=book,
                noise=noise,
                random_state=seed,
            )

    _show(choice, releases, stores[0], charged=book is not None, json=json)


def _store_of_each(releases: tuple[Path, ...], on: list[Path]) -> list[Path]:
    """Return the test rows of each release."""
    if len(on) == 1:
        return on * len(releases)
    if len(on) != len(releases):
        raise InputError(
            f"--on is given {len(on)} times for {len(releases)} releases; give it once, or once for"
            " each release in their order"
        )
    return on


def _common_labels(
    releases: "list[Release]", tables: "list[Data]", stores: list[Path], label_kind: LabelMeaning
) -> Any:
    """Return the labels of the test rows; an error if the tables do not have the same ones."""
    import numpy as np

    first = true_labels(releases[0], tables[0], stores[0], label_kind)
    for release, data, store in zip(releases[1:], tables[1:], stores[1:], strict=True):
        if store == stores[0]:
            continue
        others = true_labels(release, data, store, label_kind)
        if len(others) != len(first):
            raise InputError(
                f"{stores[0]} has {len(first)} rows and {store} has {len(others)}; give the same"
                " records in the same order"
            )
        if not np.array_equal(np.asarray(first).astype(str), np.asarray(others).astype(str)):
            raise InputError(
                f"{stores[0]} and {store} differ in their labels; give the same records in the"
                " same order"
            )
    return first


def _common_persons(tables: "list[Data]", stores: list[Path]) -> Any:
    """Return the ids of persons, of the first table that has some."""
    for data, store in zip(tables, stores, strict=True):
        if data.persons is not None:
            if store != stores[0] and len(data.persons) != len(tables[0].x):
                raise InputError(f"{store} has another number of rows than {stores[0]}")
            tell_of_case(data.persons)
            return data.persons
    return None


def _ledger(
    path: Path | None, tables: "list[Data]", stores: list[Path], split: str | None
) -> "Ledger | None":
    """Return the ledger of the test rows; an error if their stores have several."""
    from tacit.data.locations import located

    if path is not None:
        return ledger_of(path, located(stores[0], split), tables[0])

    # one for each file, since several stores may share a ledger
    ledgers: dict[Path, Ledger] = {}
    for data, store in zip(tables, stores, strict=True):
        ledger = ledger_of(None, located(store, split), data)
        if ledger is not None:
            ledgers.setdefault(ledger.path, ledger)
    if len(ledgers) > 1:
        names = ", ".join(map(str, ledgers))
        raise InputError(
            f"several ledgers count these records ({names}); name the one to charge with --ledger"
        )
    return next(iter(ledgers.values()), None)


def _show(
    choice: "Choice", releases: tuple[Path, ...], store: Path, *, charged: bool, json: bool
) -> None:
    """Print which release was chosen, and what that cost."""
    from tacit.measure.choosing import ALL_COUNT

    chosen = releases[choice.index]
    if json:
        facts: dict[str, Any] = {
            "chosen": str(chosen),
            "index": choice.index,
            "releases": [str(path) for path in releases],
            "selection": choice.selection,
            "noise": choice.noise,
            "charged": charged,
            "all_count": ALL_COUNT,
        }
        print_json(facts | guarantee_facts(choice.guarantee_))
        return

    say(f"{chosen}: chosen among {len(releases)} releases by {choice.selection}")
    say(choice.guarantee_.statement(opening="This choice hides"))
    say(ALL_COUNT)
    if not charged:
        tell_of_no_ledger(store)
    if choice.noise == "research":
        say("Not for release: research noise is seeded.")
