"""`tacit privatize-labels`: a table with its label column randomized, row by row."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.cli.common import read_classes, shown_progress
from tacit.errors import InputError, excerpt, quoted

if TYPE_CHECKING:
    from tacit.privacy.ledger import Ledger

CHUNK = 1 << 17
FACTS = ".tacit.json"  # beside the output: how it was made


def privatize_labels(
    table: Path,
    /,
    *,
    column: str,
    out: Path,
    budget: str,
    classes: str | None = None,
    values: str | None = None,
    randomizer: str = "rr",
    prior: Path | None = None,
    k: int | None = None,
    loss: str = "squared",
    ledger: Path | None = None,
    identity: str | None = None,
    noise: str = "secure",
    seed: int | None = None,
    allow_research: bool = False,
    force: bool = False,
) -> None:
    """Randomize the labels of a table. All other columns stay as they are, and are not protected.

    Rows keep their order, which is public too: shuffle a table that is sorted or grouped by label first.

    Parameters
    ----------
    table
        A .csv or .parquet file; it may be larger than the memory.
    column
        The label column, of text or whole numbers, or of numbers with --values.
    out
        The new table, of the same kind; beside it OUT.tacit.json says how it was made.
    budget
        epsilon=1, rho=0.5 or epsilon=1,delta=1e-6, for one label.
    classes
        The public class list: a number N for 0..N-1, or a file with one class a line.
    values
        Instead, for rr-on-bins and unbiased: a file with the values that a label may have, rising, one a line.
    randomizer
        rr, rr-top-k, rr-with-prior, rr-on-bins or unbiased.
    prior
        A file with the public probability of each class or value, one a line, in their order.
    k
        For rr-top-k: how many of the likeliest classes it answers with.
    loss
        For rr-on-bins: squared or absolute.
    ledger
        The ledger to charge; asking the same labels again costs again. By default the one beside the table, if there
        is one.
    identity
        Name of the labels in the ledger; by default the table's.
    noise
        secure, or research, which is seeded and not for release.
    seed
        Seed of research noise.
    allow_research
        Write a table that is not for release, stamped so.
    force
        Overwrite the output.
    """
    from tacit.compute.atomic import atomic_file, check_writable, remove_parts
    from tacit.learners.label_dp.randomize import OF_NUMBERS, OF_VECTORS, chosen, guarantee_of
    from tacit.mechanisms.noise import noise_source

    facts = out.with_name(out.name + FACTS)
    for path in (out, facts):
        check_writable(path, force=force)
        if path.is_dir():
            raise InputError(f"{path} is a folder; name a file")
        remove_parts(path)
    if randomizer in OF_VECTORS:
        raise InputError(f"--randomizer {randomizer} answers with a vector, which no column holds; use it from Python")
    _check_given(randomizer, prior, k)
    if noise != "secure" and not allow_research:
        raise InputError(f"--noise {noise} is seeded, so this is not for release; add --allow-research to keep it so")
    public = {"prior": _numbers("prior", prior), "k": k}
    listed, own, rows = chosen(
        budget, classes=read_classes(classes), values=_numbers("values", values), randomizer=randomizer, loss=loss,
        **public,
    )  # fmt: skip
    if rows is not None and len(rows) > 1:
        raise InputError(f"--prior {prior} has several rows; give one probability a line")
    if not own.event.bounded and not allow_research:
        raise InputError(
            "an infinite budget protects nothing, so this is not for release; add --allow-research to keep it so"
        )
    kind = _kind(table, out)
    encode = _encoder(listed, randomizer in OF_NUMBERS, column)
    with shown_progress():
        count = sum(len(encode(labels, start)) for start, labels in kind.labels(table, column))
        own_ledger = _ledger(ledger, table, identity)
        guarantee = guarantee_of(own.event, own_ledger)
        source = noise_source(noise, seed)
        if own_ledger is not None:
            own_ledger.charge(guarantee, what=f"labels of {table.name} randomized by {randomizer}")

        def answers(labels: list[Any], start: int) -> list[Any]:
            outputs = own.sample(encode(labels, start), source)
            return list((outputs if randomizer in OF_NUMBERS else listed[outputs]).tolist())

        stated = _stated(guarantee, column, randomizer, listed, own, noise, count, public)
        with atomic_file(facts, force=force) as facts_part, atomic_file(out, force=force) as part:
            kind.write(table, part, column, answers, stated)
            facts_part.write_text(stated + "\n", encoding="utf-8")
    print(f"{out}: {count} labels of column {column!r} randomized by {randomizer}")
    print(guarantee.statement())


def _check_given(randomizer: str, prior: Path | None, k: int | None) -> None:
    """Refuse a randomizer without the option that it is for."""
    if randomizer == "rr-top-k" and k is None:
        raise InputError("--randomizer rr-top-k answers with the k likeliest classes; add --k, such as --k 2")
    if randomizer != "rr-top-k" and k is not None:
        raise InputError(f"--k {k} is for rr-top-k, not {randomizer}; leave it out")
    if randomizer == "rr-with-prior" and prior is None:
        raise InputError("--randomizer rr-with-prior without a prior is plain rr; add --prior FILE, or leave it out")
    if randomizer == "rr-top-k" and prior is None:
        raise InputError("--randomizer rr-top-k takes the k likeliest classes from a prior; add --prior FILE")


class _Csv:
    """Tables of text; every row has as many cells as the header."""

    @staticmethod
    def rows(path: Path) -> Iterator[tuple[int, list[str]]]:
        import csv

        try:
            with path.open(encoding="utf-8", newline="") as file:
                header: list[str] | None = None
                for number, row in enumerate(csv.reader(file, strict=True)):
                    header = header or row
                    if len(row) != len(header):
                        raise InputError(
                            f"{path} row {number} has {len(row)} cells where the header has {len(header)}; correct it"
                        )
                    yield number, row
        except FileNotFoundError as error:
            raise InputError(f"{path} does not exist; check its name") from error
        except (UnicodeDecodeError, csv.Error) as error:
            raise InputError(f"{path} is no CSV in UTF-8 ({error}); save it as one") from error

    @classmethod
    def labels(cls, path: Path, column: str) -> Iterator[tuple[int, list[Any]]]:
        place, chunk, start = None, [], 1
        for number, row in cls.rows(path):
            if place is None:
                place = _place(row, column, path)
                continue
            chunk.append(row[place])
            if len(chunk) == CHUNK:
                yield start, chunk
                chunk, start = [], number + 1
        if place is None or (start == 1 and not chunk):
            raise InputError(f"{path} has no rows below its header; give a table with labels")
        if chunk:
            yield start, chunk

    @classmethod
    def write(cls, path: Path, part: Path, column: str, answers: Any, stated: str) -> None:
        with part.open("w", encoding="utf-8", newline="") as file:
            writer = _writer(file)
            place, chunk, start = None, [], 1
            for number, row in cls.rows(path):
                if place is None:
                    place = _place(row, column, path)
                    writer(row)
                    continue
                chunk.append(row)
                if len(chunk) == CHUNK:
                    cls._flush(writer, chunk, place, answers, start)
                    chunk, start = [], number + 1
            if chunk and place is not None:
                cls._flush(writer, chunk, place, answers, start)

    @staticmethod
    def _flush(writer: Any, chunk: list[list[str]], place: int, answers: Any, start: int) -> None:
        for row, label in zip(chunk, answers([row[place] for row in chunk], start), strict=True):
            row[place] = str(label)
            writer(row)


class _Parquet:
    """Parquet; the statement is in the metadata of the schema too."""

    @classmethod
    def batches(cls, path: Path, column: str) -> Iterator[tuple[int, Any, int]]:
        """First row, batch and place of the column of each batch; all columns are read, so that damage shows."""
        from tacit.data.formats.table import open_parquet, parquet_faults

        with parquet_faults(path), open_parquet(path) as file:
            place = _place(file.schema_arrow.names, column, path)
            if file.metadata.num_rows == 0:
                raise InputError(f"{path} has no rows; give a table with labels")
            start = 1
            for batch in file.iter_batches(CHUNK):
                yield start, batch, place
                start += len(batch)

    @classmethod
    def labels(cls, path: Path, column: str) -> Iterator[tuple[int, list[Any]]]:
        for start, batch, place in cls.batches(path, column):
            yield start, cls._values(batch, place, path)

    @staticmethod
    def _values(batch: Any, place: int, path: Path) -> list[Any]:
        from tacit.data.formats.table import parquet_faults

        with parquet_faults(path):  # texts need not be UTF-8
            return list(batch.column(place).to_pylist())

    @classmethod
    def write(cls, path: Path, part: Path, column: str, answers: Any, stated: str) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        writer = None
        for start, batch, place in cls.batches(path, column):
            labels = pa.array(answers(cls._values(batch, place, path), start))
            names = batch.schema.names
            new = pa.table([*batch.columns[:place], labels, *batch.columns[place + 1 :]], names=names)
            # other metadata may tell of the true labels, as pandas' does of categories
            new = new.replace_schema_metadata({b"tacit": stated.encode()})
            writer = writer or pq.ParquetWriter(part, new.schema)
            writer.write_table(new)
        if writer is not None:
            writer.close()


def _kind(table: Path, out: Path) -> Any:
    kinds = {".csv": _Csv, ".parquet": _Parquet}
    if table.suffix not in kinds or out.suffix != table.suffix:
        raise InputError(f"{table} and --out {out} must both end in .csv, or both in .parquet; rename one")
    if table.resolve() == out.resolve():
        raise InputError(f"--out {out} is the table itself; name another file")
    return kinds[table.suffix]


def _place(header: list[str], column: str, path: Path) -> int:
    if header.count(column) != 1:
        found = "twice" if column in header else "not"
        listed = excerpt(", ".join(header))
        raise InputError(f"column {column!r} is {found} in {path}, which has {listed}; choose one of them")
    return header.index(column)


def _encoder(listed: Any, numbers: bool, column: str) -> Any:
    """From labels of a chunk, and the row that it starts at, to class indices or places of values."""
    import numpy as np

    from tacit.learners.label_dp.randomize import nearest

    places = {str(label): place for place, label in enumerate(listed.tolist())}

    def encode(labels: list[Any], start: int) -> Any:
        if numbers:
            given = np.array([_number(label, start + i) for i, label in enumerate(labels)])
            return nearest(given, listed, start)
        found = np.array([-1 if label is None else places.get(str(label), -1) for label in labels], dtype=np.int64)
        if (found < 0).any():
            row = int(np.argmax(found < 0))
            raise InputError(
                f"row {start + row} has label {quoted(labels[row])}, which is not among the {len(listed)} declared "
                "classes; add it to --classes, or drop the row"
            )
        return found

    return encode


def _number(label: Any, row: int) -> float:
    try:
        return float(label)
    except (TypeError, ValueError) as error:
        raise InputError(f"row {row} has a label that is no number; drop or correct it") from error


def _writer(file: Any) -> Any:
    """A function that writes a row; a cell with a carriage return alone is quoted as well."""
    import csv

    plain, careful = (csv.writer(file, lineterminator="\n", quoting=how) for how in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL))

    def write(row: list[str]) -> None:
        (careful if any("\r" in cell for cell in row) else plain).writerow(row)

    return write


def _numbers(name: str, path: Any) -> Any:
    """Numbers from a file, one a line."""
    if path is None:
        return None
    try:
        return [float(line) for line in Path(path).read_text(encoding="utf-8").split()]
    except (OSError, ValueError) as error:
        raise InputError(f"--{name} {path} is no readable file of numbers; give one a line") from error


def _ledger(path: Path | None, table: Path, identity: str | None) -> "Ledger | None":
    from tacit.privacy.ledger import Ledger

    known_as = identity or table.stem
    if path is not None:
        return Ledger(path, known_as)
    beside = Ledger.beside(table, known_as)
    return beside if beside.path.exists() else None


def _stated(
    guarantee: Any,
    column: str,
    randomizer: str,
    listed: Any,
    own: Any,
    noise: str,
    count: int,
    public: Mapping[str, Any],
) -> str:
    """How the table was made, as JSON; `public` are further arguments, which are left out where they are None."""
    import json

    from tacit.version import __version__

    facts = {
        "made_by": f"tacit {__version__} privatize-labels",
        "column": column,
        "rows": count,
        "randomizer": randomizer,
        "classes" if randomizer.startswith("rr") and randomizer != "rr-on-bins" else "values": listed.tolist(),
        **{name: value for name, value in public.items() if value is not None},
        "noise": noise,
        "for_release": noise == "secure" and guarantee.bounded,
        "guarantee": guarantee.to_json(),
        "statement": guarantee.statement(),
    }
    if len(listed) ** 2 <= 10_000:
        facts["matrix"] = own.matrix().tolist()
    if hasattr(own, "outputs"):
        facts["outputs"] = own.outputs.tolist()
    return json.dumps(facts, indent=1)
