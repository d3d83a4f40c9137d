"""`tacit encode --encoder table`: records of a table to a store, by a declared schema."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.cli.common import (
    class_values,
    number_of_persons,
    read_classes,
    say,
    tell_of_case,
)
from tacit.compute.progress_display import shown_progress
from tacit.errors import InputError, excerpt

if TYPE_CHECKING:
    from tacit.data.embeddings import EmbeddingStore
    from tacit.models.table_schema import TableSchema

ENCODER = "table"


def encode_table(
    source: Path | None,
    schema: Path | None,
    out: Path,
    *,
    y: str | None,
    persons: str | None,
    classes: str | None,
    identity: str | None,
    public: bool,
    declare_public: bool,
    label_separator: str | None,
    shard_rows: int,
    force: bool,
    others: Mapping[str, Any],
) -> None:
    """Encode a table into a store; `others` are options that only apply to other encoders."""
    from tacit.compute.atomic import check_writable
    from tacit.data.embeddings import EmbeddingStore
    from tacit.data.ids import is_ids_file, places_of_ids, read_ids
    from tacit.data.label_sets import Indicators
    from tacit.data.manifest import is_store
    from tacit.data.persons import stored_ids
    from tacit.encoding.table_encoder import with_encoders
    from tacit.encoding.table_file import read_records
    from tacit.models.table_schema import CodedRows, TableSchema

    for option, value in others.items():
        if value:
            raise InputError(f"--{option} does not apply to --encoder {ENCODER}; leave it out")
    if source is None:
        raise InputError("the table is missing; give tacit encode TABLE --encoder table")
    if schema is None:
        raise InputError(
            f"--schema is missing; give a YAML file, drafted by tacit schema {source} --out"
            " schema.yaml"
        )
    check_writable(out, force=force, ours=is_store)

    declared = with_encoders(TableSchema.read(schema))
    class_list = read_classes(classes)
    # classes on the command line replace those of the schema
    if class_list is None and declared.classes is not None:
        class_list = class_values(list(declared.classes))
    label = None if public else y or declared.label
    if label is None:
        class_list = None
    has_ids_file = persons is not None and is_ids_file(persons)
    person = None if has_ids_file else persons or declared.person

    with shown_progress():
        records = read_records(
            source,
            declared,
            label=label,
            person=person,
            classes=class_list,
            label_separator=label_separator,
        )
        ids = records.persons
        if has_ids_file and persons is not None:
            with places_of_ids(persons).in_errors():
                ids = stored_ids(read_ids(persons), len(records.coded.codes))
        labels: Any = records.labels
        if labels is not None and labels.ndim == 2:
            labels = Indicators(labels, records.label_classes)
        store = EmbeddingStore.write(
            out,
            CodedRows(declared, records.coded.codes),
            labels,
            persons=ids,
            classes=class_list,
            card=_card(declared, label),
            identity=identity,
            declared_public=declare_public,
            # one-hot rows of any schema, and numbers that stay numbers, have the same bits here as
            # where a release encodes them
            dtype="float32",
            shard_rows=shard_rows,
            force=force,
        )

    _say_facts(store, declared, out)
    for line in records.coded.lines():
        say(line)
    left_out = [name for name in records.left_out if name not in (declared.label, declared.person)]
    if left_out:
        listed = excerpt(", ".join(left_out))
        say(f"left out, since {schema} does not declare them: {listed}")
    tell_of_case(store.persons)


def _say_facts(store: "EmbeddingStore", schema: "TableSchema", out: Path) -> None:
    """Say what a store holds: rows, columns of the table, and classes."""
    n_columns = len(schema.columns)
    facts = [
        f"{store.rows} rows{number_of_persons(store.persons)} of width {store.dim}",
        f"{n_columns} columns",
    ]
    if store.labels is None:
        facts.append("no labels")
    elif store.classes_declared and store.classes is not None:
        facts.append(f"{len(store.classes)} classes (declared)")
    else:
        facts.append("classes are not declared (declare public ones with --classes)")
    if store.several:
        facts.append("several labels a record")
    say(f"{out}: {', '.join(facts)}")


def _card(schema: "TableSchema", label: str | None) -> dict[str, Any]:
    """Return the facts of a store: the schema, by which a release encodes new tables, and its
    hash.
    """
    features = schema.of_features().declaration()
    text = json.dumps(features, sort_keys=True, ensure_ascii=False)
    if label is not None:
        features["label"] = label
    return {
        "encoder": {
            "name": ENCODER,
            "weights_sha256": hashlib.sha256(text.encode()).hexdigest(),
        },
        "table": features,
    }
