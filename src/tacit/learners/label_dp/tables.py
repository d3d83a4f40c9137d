"""A table on disk with its label column randomized, row by row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from tacit.compute.atomic import atomic_file, check_writable, remove_parts
from tacit.data.tables import Csv, Parquet
from tacit.errors import InputError, quoted
from tacit.learners.label_dp.randomize import OF_CLASSES, OF_NUMBERS, OF_VECTORS, chosen, guarantee_of, nearest
from tacit.mechanisms.noise import noise_source
from tacit.privacy.budget import Budget
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.ledger import Ledger
from tacit.version import __version__

CHUNK = 1 << 17  # labels that are randomized together
FACTS = ".tacit.json"  # beside the output: how it was made
KINDS: dict[str, type[Csv] | type[Parquet]] = {".csv": Csv, ".parquet": Parquet}
MOST_STATED = 10_000  # entries of a matrix


def randomize_table(
    table: Path,
    out: Path,
    *,
    column: str,
    budget: Budget | str,
    classes: Any = None,
    values: Any = None,
    randomizer: str = "rr",
    prior: Any = None,
    k: int | None = None,
    loss: str = "squared",
    ledger: Path | None = None,
    identity: str | None = None,
    noise: str = "secure",
    seed: int | None = None,
    allow_research: bool = False,
    force: bool = False,
) -> tuple[int, Guarantee]:
    """Write a copy of a table in which every label is randomized by itself; the number of labels, and the guarantee.

    Beside the copy, OUT.tacit.json says how it was made. All labels are checked, and the ledger (by default the ledger
    beside the table, if there is one) is charged, before any label is randomized. Arguments are those of `randomize`.
    """
    facts = out.with_name(out.name + FACTS)
    for path in (out, facts):
        check_writable(path, force=force)
        if path.is_dir():
            raise InputError(f"{path} is a folder; name a file")
        remove_parts(path)
    _check_options(randomizer, prior, k, noise, allow_research)
    listed, mechanism, rows = chosen(
        budget, classes=classes, values=values, randomizer=randomizer, prior=prior, k=k, loss=loss
    )
    if rows is not None and len(rows) > 1:
        raise InputError("--prior has several rows; give one probability a line")
    if not mechanism.event.bounded and not allow_research:
        raise InputError("an infinite budget protects nothing: not for release; add --allow-research to keep it so")
    source = _opened(table, out)
    encode = _places_of_numbers if randomizer in OF_NUMBERS else _places_of_classes
    count = 0
    for labels in source.chunks(column, CHUNK, check_all=True):
        encode(labels, listed, count + 1)
        count += len(labels)
    if count == 0:
        raise InputError(f"{table} has no rows below its header; give a table with labels")
    book = Ledger.in_use(ledger, table, identity or table.stem)
    guarantee = guarantee_of(mechanism.event, book)
    drawn = noise_source(noise, seed)
    if book is not None:
        book.charge(guarantee, what=f"labels of {table.name} randomized by {randomizer}")

    def answers(labels: list[Any]) -> list[Any]:
        outputs = mechanism.sample(encode(labels, listed, 1), drawn)
        return list((outputs if randomizer in OF_NUMBERS else listed[outputs]).tolist())

    arguments = {"column": column, "rows": count, "randomizer": randomizer, "prior": prior, "k": k, "noise": noise}
    stated = _stated(guarantee, mechanism, listed, arguments)
    with atomic_file(facts, force=force) as facts_part, atomic_file(out, force=force) as part:
        source.write_replaced(column, answers, part, CHUNK, stated)
        facts_part.write_text(stated + "\n", encoding="utf-8")
    return count, guarantee


def _check_options(randomizer: str, prior: Any, k: int | None, noise: str, allow_research: bool) -> None:
    """Refuse options that do not fit the randomizer, and noise that is not for release."""
    if randomizer in OF_VECTORS:
        raise InputError(f"--randomizer {randomizer} answers with a vector, which no column holds; use it from Python")
    if randomizer == "rr-top-k" and k is None:
        raise InputError("--randomizer rr-top-k answers with the k likeliest classes; add --k, such as --k 2")
    if randomizer != "rr-top-k" and k is not None:
        raise InputError(f"--k {k} is for rr-top-k, not {randomizer}; leave it out")
    if randomizer == "rr-with-prior" and prior is None:
        raise InputError("--randomizer rr-with-prior without a prior is plain rr; add --prior FILE, or leave it out")
    if randomizer == "rr-top-k" and prior is None:
        raise InputError("--randomizer rr-top-k takes the k likeliest classes from a prior; add --prior FILE")
    if noise != "secure" and not allow_research:
        raise InputError(f"--noise {noise} is seeded, so this is not for release; add --allow-research to keep it so")


def _opened(table: Path, out: Path) -> Csv | Parquet:
    if table.suffix not in KINDS or out.suffix != table.suffix:
        raise InputError(f"{table} and --out {out} must both end in .csv, or both in .parquet; rename one")
    if table.resolve() == out.resolve():
        raise InputError(f"--out {out} is the table itself; name another file")
    return KINDS[table.suffix](table)


def _places_of_classes(labels: list[Any], listed: Any, start: int) -> Any:
    """Class indices of labels, whose rows are counted from `start`."""
    places = {str(label): place for place, label in enumerate(listed.tolist())}
    indices = np.array([-1 if label is None else places.get(str(label), -1) for label in labels], dtype=np.int64)
    if (indices < 0).any():
        row = int(np.argmax(indices < 0))
        fault = f"row {start + row} has label {quoted(labels[row])}"
        rule = f"which is not among the {len(listed)} declared classes"
        raise InputError(f"{fault}, {rule}; add it to --classes, or drop the row")
    return indices


def _places_of_numbers(labels: list[Any], values: Any, start: int) -> Any:
    """Places of the values that are nearest to labels, whose rows are counted from `start`."""
    return nearest(np.array([_number(label, row) for row, label in enumerate(labels, start)]), values, start)


def _number(label: Any, row: int) -> float:
    try:
        return float(label)
    except (TypeError, ValueError) as error:
        raise InputError(f"row {row} has a label that is no number; drop or correct it") from error


def _stated(guarantee: Guarantee, mechanism: Any, listed: Any, arguments: dict[str, Any]) -> str:
    """How the table was made, as JSON; arguments that are None are left out."""
    facts = {
        "made_by": f"tacit {__version__} privatize-labels",
        **{name: value for name, value in arguments.items() if value is not None},
        "classes" if arguments["randomizer"] in OF_CLASSES else "values": listed.tolist(),
        "for_release": arguments["noise"] == "secure" and guarantee.bounded,
        "guarantee": guarantee.to_json(),
        "statement": guarantee.statement(),
    }
    if len(listed) ** 2 <= MOST_STATED:
        facts["matrix"] = mechanism.matrix().tolist()
    if hasattr(mechanism, "outputs"):
        facts["outputs"] = mechanism.outputs.tolist()
    return json.dumps(facts, indent=1)
