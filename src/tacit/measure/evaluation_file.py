"""The file of a paid evaluation of one part of the records, or of several: noisy counts in whole
units of 2^-32, and what they cost. It is read as if an attacker had written it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, ValidationError

from tacit.compute.documents import MOST_BYTES, read_text
from tacit.compute.wide import Wide
from tacit.errors import InputError, ReleaseError
from tacit.measure.part_tables import (
    check_size_of_file,
    check_units,
    misfit,
    noise_of_cost,
    noise_of_parts,
    sha256_of,
    shape_of,
)
from tacit.privacy.guarantee import Guarantee
from tacit.releases.combination import ClassList, Combination, Sha256, untrue_combination
from tacit.releases.fields import Model, Recorded, Text
from tacit.releases.reading import (
    document_file,
    not_json,
    parse_model,
    read_guarantee,
    refusal,
)
from tacit.releases.statement import check_work, stamp, statement_of_figures

FORMAT = "tacit-evaluation"
VERSION = 1
AGAIN = "get the table again from its owner"

# as `Wide` holds them
Count = Annotated[int, Field(ge=-(2**84), lt=2**84)]


class CountTable(Model):
    """Noisy counts in units of 2^-32, by group, class and outcome, the last one fastest."""

    kind: Literal["right", "predicted", "confidence"]
    counts: tuple[Count, ...]


class EvaluationDocument(Model):
    """All of the file.

    `release` is the hash of the arrays of the release that was measured. `groups` are the declared
    ones, and last that of all others; one without groups.
    """

    format: Literal["tacit-evaluation"] = "tacit-evaluation"
    version: Literal[1] = 1
    stamp: Literal["NOT FOR RELEASE"] | None
    release: Sha256
    classes: ClassList
    groups: Annotated[tuple[Text, ...], Field(min_length=1)]
    tables: Annotated[tuple[CountTable, ...], Field(min_length=1)]
    noise: Literal["secure", "opendp", "research"]
    combination: Combination
    guarantee: Recorded
    statement: Text

    @property
    def counts(self) -> dict[str, Wide]:
        """The noisy tables, by kind."""
        counts: dict[str, Wide] = {}
        for table in self.tables:
            high = np.array([count >> 32 for count in table.counts], dtype=np.int64)
            low = np.array([count & (2**32 - 1) for count in table.counts], dtype=np.int64)
            shape = shape_of(table.kind, len(self.groups), len(self.classes))
            counts[table.kind] = Wide(high.reshape(shape), low.reshape(shape))
        return counts


def document_of(
    counts: Mapping[str, Wide],
    *,
    release: str,
    classes: tuple[Any, ...],
    groups: tuple[str, ...],
    noise: str,
    combination: Combination,
    guarantee: Guarantee,
) -> EvaluationDocument:
    """Describe tables; a ReleaseError names what no document may hold."""
    tables = []
    for kind, table in counts.items():
        # Python's integers, since 64 bits may not hold them
        words = zip(table.high.ravel().tolist(), table.low.ravel().tolist(), strict=True)
        integers = tuple((high << 32) + low for high, low in words)
        tables.append(CountTable(kind=kind, counts=integers))  # type: ignore[arg-type]
    check_size_of_file(sum(len(table.counts) for table in tables))
    try:
        return EvaluationDocument(
            stamp=stamp(guarantee, noise),  # type: ignore[arg-type]
            release=release,
            classes=classes,
            groups=groups,
            tables=tuple(tables),
            noise=noise,  # type: ignore[arg-type]
            combination=combination,
            guarantee=Recorded.of(guarantee),
            statement=statement_of_figures(guarantee, noise),
        )
    except ValidationError as error:
        remedy = "give classes and groups that are one line of text"
        raise refusal("the evaluation", error, remedy) from error


def file_of(document: EvaluationDocument) -> bytes:
    """Return the bytes of the file; a ReleaseError if it would be too large to be read again."""
    data = document_file(document)
    if len(data) > MOST_BYTES:
        fault = f"the file of the tables has {len(data)} bytes, at most {MOST_BYTES} are read"
        raise ReleaseError(f"{fault}; declare fewer groups")
    return data


def read_evaluation(path: Path) -> EvaluationDocument:
    """Read a file, and check that its counts, its price and its statement go together.

    Raises
    ------
    ReleaseError
        If it is no such file, or says what cannot be.
    """
    document = _parsed(path)
    try:
        fault = _fault(document, str(path))
    except InputError as error:
        fault = str(error)
    if fault is not None:
        raise ReleaseError(f"{path}: {fault}; {AGAIN}")
    return document


def _parsed(path: Path) -> EvaluationDocument:
    """Parse the file by its schema."""
    remedy = "give a table that tacit evaluate --out wrote"
    if not path.is_file():
        raise ReleaseError(f"{path} is not a file; {remedy}")
    try:
        text = read_text(path, MOST_BYTES)
    except OSError as error:
        raise ReleaseError(f"{path} cannot be read ({error.strerror}); {AGAIN}") from error
    except ValueError as error:
        raise not_json(str(path), error, AGAIN) from error
    return parse_model(
        EvaluationDocument,
        str(path),
        text.encode(),
        format=FORMAT,
        versions=(VERSION,),
        remedy=remedy,
        again=AGAIN,
    )


def _fault(document: EvaluationDocument, source: str) -> str | None:
    """Describe the first statement of a document that does not go with the others."""
    fault = _fault_of_size(document)
    if fault is not None:
        return fault

    # the prices before the counts, whose noise follows from them
    fault = _fault_of_price(document, source)
    if fault is not None:
        return fault

    counts = document.counts
    fault = misfit(counts, noise_of_parts(document.combination, len(counts)))
    if fault is not None:
        return fault
    rows = document.combination.parts
    if len(rows) == 1 and rows[0].sha256 != sha256_of(counts):
        return "the counts have another hash than is stated"
    return None


def _fault_of_size(document: EvaluationDocument) -> str | None:
    """Describe lists that do not go together."""
    kinds = [table.kind for table in document.tables]
    if len(set(kinds)) < len(kinds):
        return "a kind of table is there twice"
    if len(set(document.groups)) < len(document.groups):
        return "a group is named twice"

    cells = {
        kind: math.prod(shape_of(kind, len(document.groups), len(document.classes)))
        for kind in kinds
    }
    check_size_of_file(sum(cells.values()))
    for table in document.tables:
        expected = cells[table.kind]
        if len(table.counts) != expected:
            return (
                f"table {table.kind!r} has {len(table.counts)} counts, and its groups and classes"
                f" make {expected} cells"
            )
    return None


def _fault_of_price(document: EvaluationDocument, source: str) -> str | None:
    """Describe the first price, or statement of it, that does not go with the others."""
    combination = document.combination
    if combination.class_lists != (document.classes,):
        return "a part has another class list than the tables"
    for cost in combination.costs:
        check_work(read_guarantee(cost.guarantee, source))
    for row in combination.parts:
        noise = noise_of_cost(combination.costs[row.cost].recorded(), len(document.tables))
        if not math.isclose(row.noise_of_sums, math.sqrt(noise.variance), rel_tol=1e-9):
            return f"the price of part {row.name!r} gives other noise than is stated"
    fault = untrue_combination(combination, document.guarantee)
    if fault is not None:
        return fault
    check_units(combination)

    guarantee = read_guarantee(document.guarantee, source)
    check_work(guarantee)
    if document.stamp != stamp(guarantee, document.noise):
        return f"stamp {document.stamp!r} does not agree with {document.noise} noise"
    if document.statement != statement_of_figures(guarantee, document.noise):
        return "the statement is not what the recorded events give"
    return None
