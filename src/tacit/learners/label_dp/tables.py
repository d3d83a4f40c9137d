"""A table on disk with its label column randomized, row by row."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.atomic import atomic_file, check_writable, remove_parts
from tacit.data.labels import class_list
from tacit.data.tables import Csv, Parquet
from tacit.errors import InputError, quoted
from tacit.learners.label_dp.persons import by_size, event_of_person, share_of
from tacit.learners.label_dp.prior_files import read_prior
from tacit.learners.label_dp.priors import check_rows_of_prior, prior_table
from tacit.learners.label_dp.randomize import (
    OF_BLOCKS,
    OF_CLASSES,
    OF_NUMBERS,
    OF_VECTORS,
    chosen,
    dealt_out,
    guarantee_of,
    labels_of_persons,
    nearest,
    of_classes,
)
from tacit.mechanisms.noise import Integers, NoiseSource, noise_source
from tacit.mechanisms.partitions import order_count
from tacit.privacy.budget import Budget
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.ledger import Ledger
from tacit.privacy.unit import Unit
from tacit.version import __version__

CHUNK = 1 << 17  # labels that are randomized together
PRIORS = 1 << 22  # entries of the priors of labels that are randomized together
FACTS, PARTITIONS = ".tacit.json", ".partitions.npy"  # beside the output: how it was made
ANSWERS = (
    "with g = 1 + the largest block of a row's partition and E = e^epsilon, a row has its label's"
    " block with probability E/(E + g - 1), and each other block with probability 1/(E + g - 1)"
)
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
    prior: Path | None = None,
    k: int | None = None,
    loss: str = "squared",
    unit: Unit | str = "change-label",
    persons: str | None = None,
    ledger: Path | None = None,
    identity: str | None = None,
    noise: str = "secure",
    seed: int | None = None,
    allow_research: bool = False,
    force: bool = False,
) -> tuple[int, Guarantee]:
    """Write a copy of a table in which every label is randomized by itself; the number of labels,
    and the guarantee.

    Beside the copy, OUT.tacit.json says how it was made. Partitions into blocks are in
    OUT.partitions.npy: row i of the table, from 0, has row i of them, modulo their number. All
    labels and priors are checked, and the ledger (by default the ledger beside the table, if there
    is one) is charged, before any label is randomized. Arguments are those of `randomize`; `prior`
    is a file, and `persons` the column of ids (one number a row is kept in memory).
    """
    if not out.name or out.is_dir():
        raise InputError(f"{out} is a folder; name a file")
    facts, partitions = (out.with_name(out.name + ending) for ending in (FACTS, PARTITIONS))
    for path in (out, facts, partitions):
        check_writable(path, force=force)
        if path.is_dir():
            raise InputError(f"{path} is a folder; name a file")
        remove_parts(path)
    _check_options(randomizer, prior, k, noise, allow_research)
    rows = None if prior is None else read_prior(prior)
    each = rows if rows is not None and rows.ndim == 2 else None  # the prior of each label
    if each is not None:
        _check_priors(each, f"--prior {prior}", randomizer, classes)
        rows = each[0]
    choose = partial(
        chosen, classes=classes, values=values, randomizer=randomizer, prior=rows, k=k, loss=loss
    )
    listed, mechanism, _ = choose(budget)
    source = _opened(table, out)
    encode = _places_of_numbers if randomizer in OF_NUMBERS else _places_of_classes
    count = 0
    for labels in source.chunks(column, CHUNK, check_all=True):
        encode(labels, listed, count + 1)
        count += len(labels)
    if count == 0:
        raise InputError(f"{table} has no rows below its header; give a table with labels")
    if each is not None and len(each) != count:
        said = f"--prior {prior} has {len(each)} rows for {count} labels"
        raise InputError(f"{said}; give one for each label, or a single one")
    if persons == column:
        raise InputError(f"--persons {persons} is the column of the labels; name the column of ids")
    ids = None if persons is None or not Unit(unit).per_person else source.column(persons)
    sizes = labels_of_persons(persons if ids is None else ids, Unit(unit), count)

    def make(m: int, of_labels: NDArray[Any], first: int) -> Any:
        """The randomizer of labels with these priors, of persons with m labels."""
        return of_classes(
            randomizer, share_of(allowed, m, randomizer), len(listed), of_labels, k, first=first
        )

    def single(m: int) -> Any:
        """The randomizer of all labels of persons with m labels, where they share a prior."""
        of_all = mechanism if m == 1 else choose(share_of(allowed, m, randomizer))[1]
        if randomizer not in OF_BLOCKS:
            return of_all
        return dealt_out(
            of_all, None if rows is None else prior_table(rows), None, order_count(len(listed))
        )[0]

    allowed = Budget.parse(budget)
    numbers = [1] if sizes is None else np.unique(sizes).tolist()
    # a share that is too small is refused before a charge
    share_of(allowed, numbers[-1], randomizer)
    randomizers = _Randomizers(
        {} if each is not None else {m: single(m) for m in numbers}, make, each, sizes
    )
    event = randomizers.event if sizes is None else event_of_person(allowed, randomizer)
    if not event.bounded and not allow_research:
        raise InputError(
            "an infinite budget protects nothing: not for release; add --allow-research to keep"
            " it so"
        )
    book = Ledger.in_use(ledger, table, identity or table.stem)
    guarantee = guarantee_of(event, book, Unit(unit))
    drawn = noise_source(noise, seed)
    if book is not None:
        book.charge(guarantee, what=f"labels of {table.name} randomized by {randomizer}")

    arguments = {"column": column, "rows": count, "randomizer": randomizer, "k": k, "noise": noise}
    if prior is not None and rows is not None:
        arguments["prior"] = rows.tolist() if each is None else prior.name
    if randomizer in OF_BLOCKS:
        arguments["partitions"] = partitions.name
        arguments["partition_of_row"] = (
            "row i of the table, from 0, has partition i, modulo their number"
        )
        arguments["answers"] = ANSWERS
    if sizes is not None:
        arguments["persons"] = (
            f"column {persons}; each of a person's m labels spends an m-th of the budget"
        )
    alike = each is None and sizes is None and randomizer not in OF_BLOCKS
    stated = _stated(guarantee, mechanism if alike else None, listed, arguments)
    with ExitStack() as written:
        facts_part, part = (
            written.enter_context(atomic_file(path, force=force)) for path in (facts, out)
        )
        saved = None
        if "partitions" in arguments:
            saved = written.enter_context(
                written.enter_context(atomic_file(partitions, force=force)).open("wb")
            )
        names = listed if randomizer in OF_CLASSES else None
        answers = _Answers(randomizers, encode, listed, names, drawn, saved, count)
        source.write_replaced(column, answers, part, randomizers.step, stated)
        facts_part.write_text(stated + "\n", encoding="utf-8")
    if saved is None:
        partitions.unlink(missing_ok=True)  # of an earlier run that --force replaced
    return count, guarantee


@dataclass(frozen=True, eq=False)
class _Randomizers:
    """The randomizers of a table's labels.

    Where all labels share a prior, `made` has one for each number of labels of a person. Else
    `make` makes them for the rows of `priors`, part by part. Under a unit per person `sizes`, of
    shape (n,), has for each label the number of labels of its person.
    """

    made: dict[int, Any]
    make: Callable[[int, NDArray[Any], int], Any]
    priors: NDArray[Any] | None
    sizes: Integers | None

    @property
    def step(self) -> int:
        """Number of labels in a part."""
        return CHUNK if self.priors is None else max(1, min(CHUNK, PRIORS // self.priors.shape[1]))

    @property
    def event(self) -> Any:
        """Privacy cost of a label: that of the fewest answers, which is the highest."""
        if self.priors is None:
            return self.made[1].event
        starts = range(0, len(self.priors), self.step)
        events = (
            self.make(1, self.priors[start : start + self.step], start).event for start in starts
        )
        return min(events, key=lambda event: int(event.n_classes))

    @property
    def shared(self) -> int:
        """Number of partitions that all labels share; 0 if labels have their own."""
        return self.made[1].n_priors if self.priors is None and self.sizes is None else 0

    def of(self, start: int, count: int) -> Iterator[tuple[Integers, Any, Integers]]:
        """Of `count` labels from `start`: positions, their randomizer, and the row of its priors
        for each.
        """
        sizes = (
            np.ones(count, dtype=np.int64)
            if self.sizes is None
            else self.sizes[start : start + count]
        )
        for m, at in by_size(sizes):
            if self.priors is None:
                randomizer = self.made[m]
                yield at, randomizer, (start + at) % getattr(randomizer, "n_priors", 1)
            else:
                yield at, self.make(m, self.priors[start + at], start), np.arange(len(at))


@dataclass(eq=False)
class _Answers:
    """Randomizes the labels of a table from part to part; partitions of the labels go to a `.npy`
    file, if it is open.

    Answers are places in `names`, or stand for themselves.
    """

    randomizers: _Randomizers
    encode: Callable[[list[Any], Any, int], Any]
    listed: NDArray[Any]
    names: NDArray[Any] | None
    noise: NoiseSource
    saved: IO[bytes] | None
    count: int
    position: int = 0

    def __call__(self, labels: list[Any]) -> list[Any]:
        start, count = self.position, len(labels)
        self.position += count
        places = self.encode(labels, self.listed, 1)
        positions, answers, partitions = [], [], []
        for at, randomizer, which in self.randomizers.of(start, count):
            several = getattr(randomizer, "n_priors", 1) > 1
            answers.append(randomizer.sample(places[at], self.noise, *([which] if several else [])))
            positions.append(at)
            if self.saved is not None:
                shared = self.randomizers.shared
                partitions.append(randomizer.partitions if shared else randomizer.partitions[which])
        in_order = np.argsort(np.concatenate(positions))
        if partitions:
            self._save(partitions, in_order, start)
        of_labels = np.concatenate(answers)[in_order]
        return list((of_labels if self.names is None else self.names[of_labels]).tolist())

    def _save(self, partitions: list[NDArray[Any]], in_order: Integers, start: int) -> None:
        """Write the partitions of a part's labels, or once those that all labels share."""
        assert self.saved is not None
        shared = self.randomizers.shared
        if start == 0:
            kind = {"descr": partitions[0].dtype.str, "fortran_order": False}
            shape = (shared or self.count, len(self.listed))
            np.lib.format.write_array_header_1_0(self.saved, kind | {"shape": shape})
        if shared and start == 0:
            self.saved.write(partitions[0].tobytes())
        elif not shared:
            self.saved.write(np.concatenate(partitions)[in_order].tobytes())


def _check_priors(priors: NDArray[Any], name: str, randomizer: str, classes: Any) -> None:
    """Refuse a prior for each label that a randomizer cannot use, or whose rows are no
    probabilities.
    """
    if randomizer in OF_NUMBERS:
        raise InputError(
            f"{name} has {len(priors)} rows, and {randomizer} takes one for all labels; give one"
            " per line"
        )
    n_classes = priors.shape[1] if classes is None else len(class_list(classes))
    if priors.shape[1] != n_classes:
        raise InputError(
            f"{name} has {priors.shape[1]} columns for {n_classes} classes; give one for each"
        )
    step = max(1, PRIORS // priors.shape[1])
    for start in range(0, len(priors), step):
        rows = np.asarray(priors[start : start + step], dtype=np.float64)
        check_rows_of_prior(rows, f"{name} row", start + 1)


def _check_options(
    randomizer: str, prior: Any, k: int | None, noise: str, allow_research: bool
) -> None:
    """Refuse options that do not fit the randomizer, and noise that is not for release."""
    if randomizer in OF_VECTORS:
        raise InputError(
            f"--randomizer {randomizer} answers with a vector, which no column holds; use it from"
            " Python"
        )
    if randomizer == "rr-top-k" and k is None:
        raise InputError(
            "--randomizer rr-top-k answers with the k likeliest classes; add --k, such as --k 2"
        )
    if randomizer != "rr-top-k" and k is not None:
        raise InputError(f"--k {k} is for rr-top-k, not {randomizer}; leave it out")
    if randomizer == "rr-with-prior" and prior is None:
        raise InputError(
            "--randomizer rr-with-prior without a prior is plain rr; add --prior FILE, or leave"
            " it out"
        )
    if randomizer == "rr-top-k" and prior is None:
        raise InputError(
            "--randomizer rr-top-k takes the k likeliest classes from a prior; add --prior FILE"
        )
    if noise != "secure" and not allow_research:
        raise InputError(
            f"--noise {noise} is seeded, so this is not for release; add --allow-research to keep"
            " it so"
        )


def _opened(table: Path, out: Path) -> Csv | Parquet:
    if table.suffix not in KINDS or out.suffix != table.suffix:
        raise InputError(
            f"{table} and --out {out} must both end in .csv, or both in .parquet; rename one"
        )
    if table.resolve() == out.resolve():
        raise InputError(f"--out {out} is the table itself; name another file")
    return KINDS[table.suffix](table)


def _places_of_classes(labels: list[Any], listed: Any, start: int) -> Any:
    """Class indices of labels, whose rows are counted from `start`."""
    places = {str(label): place for place, label in enumerate(listed.tolist())}
    indices = np.array(
        [-1 if label is None else places.get(str(label), -1) for label in labels], dtype=np.int64
    )
    if (indices < 0).any():
        row = int(np.argmax(indices < 0))
        fault = f"row {start + row} has label {quoted(labels[row])}"
        rule = f"which is not among the {len(listed)} declared classes"
        remedy = "correct the row, or complete --classes from public knowledge, not from the labels"
        raise InputError(f"{fault}, {rule}; {remedy}")
    return indices


def _places_of_numbers(labels: list[Any], values: Any, start: int) -> Any:
    """Places of the values that are nearest to labels, whose rows are counted from `start`."""
    return nearest(
        np.array([_number(label, row) for row, label in enumerate(labels, start)]), values, start
    )


def _number(label: Any, row: int) -> float:
    try:
        return float(label)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"row {row} has a label that is not a number; drop or correct it"
        ) from error


def _stated(guarantee: Guarantee, mechanism: Any, listed: Any, arguments: dict[str, Any]) -> str:
    """How the table was made, as JSON; arguments that are None are left out."""
    facts = {
        "made_by": f"tacit {__version__} privatize-labels",
        **{name: value for name, value in arguments.items() if value is not None},
        "values" if arguments["randomizer"] in OF_NUMBERS else "classes": listed.tolist(),
        "for_release": arguments["noise"] == "secure" and guarantee.bounded,
        "guarantee": guarantee.to_json(),
        "statement": guarantee.statement(),
    }
    if mechanism is None:  # not all labels have the same randomizer
        return json.dumps(facts, indent=1)
    if len(listed) ** 2 <= MOST_STATED:
        facts["matrix"] = mechanism.matrix().tolist()
    if hasattr(mechanism, "outputs"):
        facts["outputs"] = mechanism.outputs.tolist()
    return json.dumps(facts, indent=1)
