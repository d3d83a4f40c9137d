"""A table on disk with its label column randomized, row by row."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.atomic import atomic_file, check_writable, remove_parts
from tacit.data.label_sets import holds_sets
from tacit.data.labels import class_list
from tacit.data.tables import Csv, Parquet
from tacit.errors import InputError, RowError, quoted
from tacit.learners.label_dp.persons import by_size, event_of_person, share_of
from tacit.learners.label_dp.prior_files import places_of_prior, read_prior
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
# endings of the files beside the output, which say how it was made
FACTS = ".tacit.json"
PARTITIONS = ".partitions.npy"
ANSWERS = (
    "with g = 1 + the largest block of a row's partition and E = e^epsilon, a row has its label's"
    " block with probability E/(E + g - 1), and each other block with probability 1/(E + g - 1)"
)
KINDS: dict[str, type[Csv] | type[Parquet]] = {".csv": Csv, ".parquet": Parquet}
MAX_ENTRIES = 10_000  # of a matrix that is stated
PARTITION_OF_ROW = "row i of the table, from 0, has partition i, modulo their number"


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
    """Write a copy of a table in which every label is randomized by itself.

    Beside the copy, OUT.tacit.json says how it was made. Partitions into blocks are in
    OUT.partitions.npy: row i of the table, from 0, has row i of them, modulo their number. All
    labels and priors are checked, and the ledger (by default the ledger beside the table, if there
    is one) is charged, before any label is randomized. Arguments are those of `randomize`; `prior`
    is a file, and `persons` the column of ids (one number a row is kept in memory).

    Returns
    -------
    int
        The number of labels.
    Guarantee
        The guarantee of the copy.
    """
    # 1. check everything that the ledger does not depend on
    outputs = _Outputs.of(out)
    outputs.check(force)
    _check_options(randomizer, prior, k, noise, allow_research)
    shared_prior, label_priors = _priors(prior, randomizer, classes)
    choice = _Choice(randomizer, classes, values, shared_prior, k, loss)
    listed, mechanism = choice.mechanism(budget)

    source = _opened(table, out)
    encode = _places_of_numbers if randomizer in OF_NUMBERS else _places_of_classes
    count = _count_labels(source, table, column, partial(encode, listed=listed))
    if label_priors is not None and len(label_priors) != count:
        fault = f"--prior {prior} has {len(label_priors)} rows for {count} labels"
        raise InputError(f"{fault}; give one for each label, or a single one")
    sizes = _labels_of_persons(source, column, persons, Unit(unit), count)

    # 2. the randomizers, the guarantee and the charge
    allowed = Budget.parse(budget)
    answer_counts = [1] if sizes is None else np.unique(sizes).tolist()
    # a share that is too small is refused before a charge
    share_of(allowed, answer_counts[-1], randomizer)
    randomizers = _Randomizers(choice, allowed, listed, label_priors, sizes)
    if label_priors is None:
        randomizers.prepare(answer_counts, mechanism)
    event = randomizers.event if sizes is None else event_of_person(allowed, randomizer)
    if not event.bounded and not allow_research:
        fault = "an infinite budget protects nothing: not for release"
        raise InputError(f"{fault}; add --allow-research to keep it so")
    book = Ledger.in_use(ledger, table, identity or table.stem)
    guarantee = guarantee_of(event, book, Unit(unit))
    source_of_noise = noise_source(noise, seed)
    if book is not None:
        book.charge(guarantee, what=f"labels of {table.name} randomized by {randomizer}")

    # 3. the facts and the copy
    arguments = {"column": column, "rows": count, "randomizer": randomizer, "k": k, "noise": noise}
    if label_priors is not None and prior is not None:
        arguments["prior"] = prior.name
    elif shared_prior is not None:
        arguments["prior"] = shared_prior.tolist()
    if randomizer in OF_BLOCKS:
        arguments["partitions"] = outputs.partitions.name
        arguments["partition_of_row"] = PARTITION_OF_ROW
        arguments["answers"] = ANSWERS
    if sizes is not None:
        share = "each of a person's m labels spends an m-th of the budget"
        arguments["persons"] = f"column {persons}; {share}"
    all_alike = label_priors is None and sizes is None and randomizer not in OF_BLOCKS
    facts = _facts(guarantee, mechanism if all_alike else None, listed, arguments)
    names = listed if randomizer in OF_CLASSES else None
    answers = _Answers(
        randomizers, partial(encode, listed=listed), names, len(listed), source_of_noise, count
    )
    outputs.write(source, column, answers, facts, force=force)
    return count, guarantee


@dataclass(frozen=True)
class _Outputs:
    """The copy of a table, and the two files beside it."""

    table: Path
    facts: Path
    partitions: Path

    @classmethod
    def of(cls, out: Path) -> _Outputs:
        if not out.name or out.is_dir():
            raise InputError(f"{out} is a folder; name a file")
        return cls(out, out.with_name(out.name + FACTS), out.with_name(out.name + PARTITIONS))

    def check(self, force: bool) -> None:
        """Refuse files that exist or cannot be written, and remove what a killed run left."""
        for path in (self.table, self.facts, self.partitions):
            check_writable(path, force=force)
            if path.is_dir():
                raise InputError(f"{path} is a folder; name a file")
            remove_parts(path)

    def write(
        self, source: Csv | Parquet, column: str, answers: _Answers, facts: str, *, force: bool
    ) -> None:
        """Write all files, or none of them."""
        has_partitions = answers.randomizers.choice.randomizer in OF_BLOCKS
        with ExitStack() as files:
            facts_part = files.enter_context(atomic_file(self.facts, force=force))
            table_part = files.enter_context(atomic_file(self.table, force=force))
            if has_partitions:
                partitions_part = files.enter_context(atomic_file(self.partitions, force=force))
                answers.partitions_file = files.enter_context(partitions_part.open("wb"))
            step = answers.randomizers.step
            source.write_replaced(column, answers, table_part, step, facts)
            facts_part.write_text(facts + "\n", encoding="utf-8")
        if not has_partitions:
            self.partitions.unlink(missing_ok=True)  # of an earlier run that --force replaced


@dataclass(frozen=True, eq=False)
class _Choice:
    """The randomizer that was asked for, without its budget; `prior` is that of all labels."""

    randomizer: str
    classes: Any
    values: Any
    prior: NDArray[Any] | None
    k: int | None
    loss: str

    def mechanism(self, budget: Budget | str) -> tuple[NDArray[Any], Any]:
        """Return the classes or values, and the randomizer of a label with this budget."""
        listed, mechanism, _ = chosen(
            budget,
            classes=self.classes,
            values=self.values,
            randomizer=self.randomizer,
            prior=self.prior,
            k=self.k,
            loss=self.loss,
        )
        return listed, mechanism


def _priors(
    path: Path | None, randomizer: str, classes: Any
) -> tuple[NDArray[Any] | None, NDArray[Any] | None]:
    """Read the prior of all labels, of shape (C,), or the priors of each label, (n, C).

    With priors of labels, the first of them stands for the prior of all: it decides how many
    classes there are.
    """
    if path is None:
        return None, None
    rows = read_prior(path)
    if rows.ndim == 1:
        return rows, None
    with places_of_prior(path).in_errors():
        _check_priors(rows, f"--prior {path}", randomizer, classes)
    return rows[0], rows


def _count_labels(
    source: Csv | Parquet, table: Path, column: str, encode: Callable[..., Any]
) -> int:
    """Check every label of a table, and count them."""
    count = 0
    with source.places.in_errors():
        for labels in source.chunks(column, CHUNK, check_all=True):
            if holds_sets(labels):
                raise InputError(
                    f"{table} has several labels a record in column {column!r}, and one label of"
                    " each is randomized; learn from several with tacit fit --most-labels"
                )
            encode(labels, start=count)
            count += len(labels)
    if count == 0:
        raise InputError(f"{table} has no rows below its header; give a table with labels")
    return count


def _labels_of_persons(
    source: Csv | Parquet, column: str, persons: str | None, unit: Unit, count: int
) -> Integers | None:
    """For each label, count the labels of its person; None under a unit per label."""
    if persons == column:
        raise InputError(f"--persons {persons} is the column of the labels; name the column of ids")
    ids: Any = persons
    if persons is not None and unit.per_person:
        ids = source.column(persons)
    return labels_of_persons(ids, unit, count)


@dataclass(eq=False)
class _Randomizers:
    """The randomizers of a table's labels.

    Labels of persons with equally many labels have equal shares of the budget. Where all labels
    share a prior, `prepare` makes one randomizer for each such number. Else randomizers are made
    for the rows of `priors`, (n, C), part by part.

    Parameters
    ----------
    sizes : ndarray of shape (n,), optional
        Under a unit per person, for each label the number of labels of its person.
    """

    choice: _Choice
    budget: Budget
    listed: NDArray[Any]
    priors: NDArray[Any] | None
    sizes: Integers | None
    prepared: dict[int, Any] = field(default_factory=dict)

    def prepare(self, answer_counts: list[int], mechanism: Any) -> None:
        """Make the randomizers of labels that share a prior; `mechanism` has the whole budget."""
        for m in answer_counts:
            of_share = mechanism
            if m != 1:
                _, of_share = self.choice.mechanism(self._share(m))
            if self.choice.randomizer in OF_BLOCKS:
                prior = None if self.choice.prior is None else prior_table(self.choice.prior)
                of_share, _ = dealt_out(of_share, prior, None, order_count(len(self.listed)))
            self.prepared[m] = of_share

    def _share(self, m: int) -> Budget:
        return share_of(self.budget, m, self.choice.randomizer)

    def _with_priors(self, m: int, priors: NDArray[Any], first: int) -> Any:
        """Make the randomizer of labels with these priors, of persons with m labels."""
        choice = self.choice
        n_classes = len(self.listed)
        return of_classes(
            choice.randomizer, self._share(m), n_classes, priors, choice.k, first=first
        )

    @property
    def step(self) -> int:
        """Number of labels in a part."""
        if self.priors is None:
            return CHUNK
        return max(1, min(CHUNK, int(PRIORS // self.priors.shape[1])))

    @property
    def event(self) -> Any:
        """Privacy cost of a label: that of the fewest answers, which is the highest."""
        if self.priors is None:
            return self.prepared[1].event
        starts = range(0, len(self.priors), self.step)
        parts = [(self.priors[start : start + self.step], start) for start in starts]
        events = (self._with_priors(1, priors, start).event for priors, start in parts)
        return min(events, key=lambda event: int(event.n_classes))

    @property
    def shared(self) -> int:
        """Number of partitions that all labels share; 0 if labels have their own."""
        if self.priors is None and self.sizes is None:
            n_priors: int = self.prepared[1].n_priors
            return n_priors
        return 0

    def of(self, start: int, count: int) -> Iterator[tuple[Integers, Any, Integers]]:
        """Yield the randomizers of `count` labels from `start`.

        Each comes with the positions of its labels, and the row of its priors for each of them.
        """
        sizes = np.ones(count, dtype=np.int64)
        if self.sizes is not None:
            sizes = self.sizes[start : start + count]
        for m, positions in by_size(sizes):
            if self.priors is None:
                randomizer = self.prepared[m]
                rows = (start + positions) % randomizer.n_priors
            else:
                randomizer = self._with_priors(m, self.priors[start + positions], start)
                rows = np.arange(len(positions))
            yield positions, randomizer, rows


@dataclass(eq=False)
class _Answers:
    """Randomize the labels of a table part by part.

    Answers are places in `names`, or stand for themselves. Partitions of the labels go to a `.npy`
    file, if it is open.
    """

    randomizers: _Randomizers
    encode: Callable[..., Any]
    names: NDArray[Any] | None
    n_classes: int
    noise: NoiseSource
    count: int
    partitions_file: IO[bytes] | None = None
    position: int = 0

    def __call__(self, labels: list[Any]) -> list[Any]:
        start = self.position
        self.position += len(labels)
        places = self.encode(labels, start=start)

        positions = []
        answers = []
        partitions = []
        for part, randomizer, rows in self.randomizers.of(start, len(labels)):
            # a randomizer with several priors takes the row of each label's prior
            extra = [rows] if randomizer.n_priors > 1 else []
            answers.append(randomizer.sample(places[part], self.noise, *extra))
            positions.append(part)
            if self.partitions_file is not None:
                shared = self.randomizers.shared
                partitions.append(randomizer.partitions if shared else randomizer.partitions[rows])

        order = np.argsort(np.concatenate(positions))
        if self.partitions_file is not None:
            self._save(self.partitions_file, partitions, order, start)
        values = np.concatenate(answers)[order]
        if self.names is not None:
            values = self.names[values]
        return list(values.tolist())

    def _save(
        self, file: IO[bytes], partitions: list[NDArray[Any]], order: Integers, start: int
    ) -> None:
        """Write the partitions of a part's labels, or once those that all labels share."""
        shared = self.randomizers.shared
        if start == 0:
            header = {
                "descr": partitions[0].dtype.str,
                "fortran_order": False,
                "shape": (shared or self.count, self.n_classes),
            }
            np.lib.format.write_array_header_1_0(file, header)
        if not shared:
            file.write(np.concatenate(partitions)[order].tobytes())
        elif start == 0:
            file.write(partitions[0].tobytes())


def _check_priors(priors: NDArray[Any], name: str, randomizer: str, classes: Any) -> None:
    """Refuse priors of labels that a randomizer cannot use, or that are not probabilities."""
    if randomizer in OF_NUMBERS:
        fault = f"{name} has {len(priors)} rows, and {randomizer} takes one for all labels"
        raise InputError(f"{fault}; give one per line")

    width = priors.shape[1]
    n_classes = width if classes is None else len(class_list(classes))
    if width != n_classes:
        fault = f"{name} has {width} columns for {n_classes} classes"
        raise InputError(f"{fault}; give one for each")
    step = max(1, PRIORS // width)
    for start in range(0, len(priors), step):
        rows = np.asarray(priors[start : start + step], dtype=np.float64)
        check_rows_of_prior(rows, name, start)


def _check_options(
    randomizer: str, prior: Any, k: int | None, noise: str, allow_research: bool
) -> None:
    """Refuse options that do not fit the randomizer, and noise that is not for release."""
    if randomizer in OF_VECTORS:
        fault = f"--randomizer {randomizer} answers with a vector, which no column holds"
        raise InputError(f"{fault}; use it from Python")
    if randomizer == "rr-top-k" and k is None:
        fault = "--randomizer rr-top-k answers with the k likeliest classes"
        raise InputError(f"{fault}; add --k, such as --k 2")
    if randomizer != "rr-top-k" and k is not None:
        raise InputError(f"--k {k} is for rr-top-k, not {randomizer}; leave it out")
    if randomizer == "rr-with-prior" and prior is None:
        fault = "--randomizer rr-with-prior without a prior is plain rr"
        raise InputError(f"{fault}; add --prior FILE, or leave it out")
    if randomizer == "rr-top-k" and prior is None:
        fault = "--randomizer rr-top-k takes the k likeliest classes from a prior"
        raise InputError(f"{fault}; add --prior FILE")
    if noise == "research" and not allow_research:
        fault = f"--noise {noise} is seeded, so this is not for release"
        raise InputError(f"{fault}; add --allow-research to keep it so")


def _opened(table: Path, out: Path) -> Csv | Parquet:
    if table.suffix not in KINDS or out.suffix != table.suffix:
        raise InputError(
            f"{table} and --out {out} must both end in .csv, or both in .parquet; rename one"
        )
    if table.resolve() == out.resolve():
        raise InputError(f"--out {out} is the table itself; name another file")
    return KINDS[table.suffix](table)


def _places_of_classes(labels: list[Any], listed: Any, start: int) -> Any:
    """Return the class indices of labels, whose rows are counted from `start`."""
    places: dict[str | None, int] = {
        str(label): place for place, label in enumerate(listed.tolist())
    }
    # an empty cell is no label, even where a class is called "None"
    texts = [None if label is None else str(label) for label in labels]
    indices = np.array([places.get(text, -1) for text in texts], dtype=np.int64)
    if (indices < 0).any():
        row = int(np.argmax(indices < 0))
        fault = f" has label {quoted(labels[row])}"
        rule = f"which is not among the {len(listed)} declared classes"
        remedy = "correct the row, or complete --classes from public knowledge, not from the labels"
        raise RowError("", start + row, f"{fault}, {rule}; {remedy}")
    return indices


def _places_of_numbers(labels: list[Any], listed: Any, start: int) -> Any:
    """Return the places of the values nearest to labels, whose rows are counted from `start`."""
    numbers = np.array([_number(label, row) for row, label in enumerate(labels, start)])
    return nearest(numbers, listed, start)


def _number(label: Any, row: int) -> float:
    try:
        return float(label)
    except (TypeError, ValueError) as error:
        raise RowError("", row, " has a label that is not a number; drop or correct it") from error


def _facts(guarantee: Guarantee, mechanism: Any, listed: Any, arguments: dict[str, Any]) -> str:
    """Write how the table was made, as JSON; arguments that are None are left out.

    `mechanism` is None where not all labels have the same randomizer.
    """
    facts: dict[str, Any] = {"made_by": f"tacit {__version__} privatize-labels"}
    facts |= {name: value for name, value in arguments.items() if value is not None}
    facts["values" if arguments["randomizer"] in OF_NUMBERS else "classes"] = listed.tolist()
    facts["for_release"] = arguments["noise"] != "research" and guarantee.bounded
    facts["guarantee"] = guarantee.to_json()
    facts["statement"] = guarantee.statement()
    if mechanism is not None:
        if len(listed) ** 2 <= MAX_ENTRIES:
            facts["matrix"] = mechanism.matrix().tolist()
        if mechanism.outputs is not None:
            facts["outputs"] = mechanism.outputs.tolist()
    return json.dumps(facts, indent=1)
