"""`tacit encode`: pictures, texts or class names to a store."""

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from tacit.cli.common import number_of_persons, read_classes, say, shown_progress, tell_of_case
from tacit.cli.encode_names import (
    PublicClasses,
    check_alone,
    class_texts,
    names_to_carry,
    write_through,
)
from tacit.errors import InputError

if TYPE_CHECKING:
    from tacit.encoding.encoders.store import Outcome
    from tacit.encoding.sources.base import Source


def encode(
    source: Path | None = None,
    /,
    *,
    encoder: str,
    out: Path,
    weights: Path | None = None,
    sidecar: Path | None = None,
    split: str | None = None,
    labels: Path | None = None,
    x: str | None = None,
    y: str | None = None,
    persons: str | None = None,
    persons_folder: int | None = None,
    classes: str | None = None,
    texts: Path | None = None,
    template: list[str] | None = None,
    through: Path | None = None,
    through_texts: Path | None = None,
    identity: str | None = None,
    public: bool = False,
    declare_public: bool = False,
    skip_bad: bool = False,
    mirror: bool = False,
    projection: Path | None = None,
    precision: Literal["float32", "bfloat16", "auto"] = "auto",
    device: str = "auto",
    dtype: Literal["float16", "float32"] = "float16",
    batch: int | None = None,
    workers: Annotated[int | None, Parameter(show_default=False)] = None,
    shard_rows: int = 4096,
    force: bool = False,
) -> None:
    """Encode pictures, texts or class names into a store. Run it again after an interrupt, and it
    goes on.

    Parameters
    ----------
    source
        A folder or archive of pictures with a subfolder for each class, or flat beside a table of
        labels; a table of texts or pictures (.csv, .jsonl, .parquet, or saved by Hugging Face
        datasets); .npy or .npz of pixels; or what the owners of MNIST, CIFAR, STL-10 or Food-101
        ship. A source with several splits becomes a folder of stores. Left out, the store has rows
        of the class names in --texts.
    encoder
        timm:NAME, torchvision:MODEL/WEIGHTS, open_clip:MODEL/TAG, transformers:NAME,
        sentence-transformers:NAME, onnx:FILE, torch:module.path, or edges:SIDE, which needs no
        weights.
    out
        Folder of the store.
    weights
        A local folder of weights; by default they are looked for in the local cache. Nothing is
        downloaded.
    sidecar
        For onnx: and torch:, a JSON file that states the input; by default the model's name with
        .json.
    split
        Which split of a source that has several.
    labels
        For a flat folder, the table that names its pictures; for .npy, an array of labels.
    x
        Name of the column, or array, of pictures, texts or files, where it is not a usual one.
    y
        Name of the column, or array, of labels, where it is not a usual one.
    persons
        Person of each record: a file with one id per line, an .npy array, or a table with
        FILE#COLUMN; otherwise the name of a column of the source's table, or of an array. Ids are
        private, and shown nowhere.
    persons_folder
        Which folder of a picture's path is named after the person: 1 for PERSON/CLASS/x.png, 2 for
        CLASS/PERSON/x.png.
    classes
        The class list as a public fact: a number N for 0..N-1, or a file with one class a line.
    texts
        A file with one class name per line, or, where --classes or the source lists the classes,
        with one text for each class in their order. With a source, the store carries the rows of
        the class names.
    template
        What is encoded for each class: "a photo of a {}", with the name in place of {}; may be
        given several times. By default the name alone. With a source whose classes are declared,
        the store carries their rows.
    through
        For encoders without a text side: a store of public labelled rows of that encoder. The class
        names of both are encoded by --encoder, and each class gets a row in the direction of the
        public classes whose names are like its own.
    through_texts
        A file with one text for each public class in their order, where the class list has no names
        but numbers or codes; by default `class_words` of the card.
    identity
        Declared name of the private data, under which a ledger knows it; by default the store's
        name.
    public
        Keep no labels.
    declare_public
        State in the store that all its rows and labels are public, so that figures on them may be
        published.
    skip_bad
        Leave out records that cannot be decoded; they are listed in OUT.bad.csv.
    mirror
        Average the features of each picture and of its mirror image.
    projection
        An .npy file of a public matrix that features are multiplied by.
    precision
        auto is bfloat16 where the machine multiplies it natively, else float32.
    device
        cpu, cuda, or auto.
    dtype
        How rows are stored.
    batch
        Records at a time.
    workers
        Processes that decode pictures; by default one for each core but one, from 1 to 8.
    shard_rows
        Records in one file, and what an interrupt loses at most.
    force
        Overwrite the output.
    """
    from tacit.compute.atomic import check_writable
    from tacit.data.ids import is_ids_file
    from tacit.data.manifest import holds_stores, is_store
    from tacit.encoding.encoders import load_encoder
    from tacit.encoding.encoders.store import Options, encode_to_stores
    from tacit.encoding.names import TEMPLATE, load_text_side, names_source
    from tacit.encoding.sources import splits

    of_records = {
        "split": split,
        "labels": labels,
        "x": x,
        "y": y,
        "persons": persons,
        "persons-folder": persons_folder,
        "public": public,
        "declare-public": declare_public,
        "skip-bad": skip_bad,
    }
    if source is None:
        check_alone(texts, of_records | {"mirror": mirror})
    elif through is not None:
        raise InputError(
            f"--through {through} makes a store of class names alone; leave the source {source} out"
        )
    if through is None and through_texts is not None:
        raise InputError(
            f"--through-texts {through_texts} is for the classes of --through STORE; leave it out"
        )
    chosen = [split] if split is not None or source is None else splits(source)
    check_writable(out, force=force, ours=holds_stores if len(chosen) > 1 else is_store)
    if workers is None:
        workers = max(1, min((os.cpu_count() or 1) - 1, 8))
    options = Options(
        read_classes(classes),
        public,
        skip_bad,
        dtype,
        batch,
        workers,
        shard_rows,
        declared_public=declare_public,
    )
    templates = template or [TEMPLATE]
    loading: dict[str, Any] = {
        "weights": weights,
        "sidecar": sidecar,
        "device": device,
        "precision": precision,
        "projection": projection,
    }
    if source is None:
        listed, descriptions = class_texts(texts, options.classes)
        sources = {"": names_source(listed, templates, descriptions)}
        public_classes = None if through is None else PublicClasses.read(through, through_texts)
        features = load_text_side(encoder, **loading)
        if public_classes is not None:
            with shown_progress():
                write_through(
                    out,
                    public_classes,
                    listed,
                    descriptions,
                    templates,
                    features,
                    dtype=dtype,
                    identity=identity,
                    force=force,
                )
            return
        options = replace(options, classes=None)  # the names are the class list
    else:
        if persons is not None and len(chosen) > 1 and is_ids_file(persons):
            raise InputError(
                f"--persons {persons} has the ids of one split; encode each with --split"
            )
        sources = _opened(
            source,
            chosen,
            labels=labels,
            x=x,
            y=y,
            persons=persons,
            persons_folder=persons_folder,
            public=public,
        )
        kind = next(iter(sources.values())).kind
        features = load_encoder(encoder, kind=kind, mirror=mirror, **loading)
        if texts is not None or template is not None:
            side = features if kind == "text" else load_text_side(encoder, **loading)
            carried = names_to_carry(sources.values(), options.classes, texts, templates, side)
            options = replace(options, names=carried)
    try:
        with shown_progress():
            outcomes = encode_to_stores(
                sources, features, out, options, identity=identity, force=force
            )
    except KeyboardInterrupt as stop:
        said = (
            "interrupted; run the same command again, and it goes on from the shards that are done"
        )
        raise KeyboardInterrupt(said) from stop
    for name, outcome in outcomes.items():
        _say(out / name, outcome, [sources[name].shown(file) for file in sources[name].left_out])


def _opened(
    path: Path, splits: Sequence[str | None], *, public: bool, **options: Any
) -> dict[str, "Source"]:
    """The sources by the names of their stores in the output; "" is the output itself."""
    from tacit.encoding.sources import open_source

    names = (
        {str(name): name for name in splits}
        if len(splits) > 1
        else {"": splits[0] if splits else None}
    )
    sources = {
        store: open_source(path, split, public=public, **options) for store, split in names.items()
    }
    for name, opened in sources.items():
        if opened.labels is None and not public:
            said = (
                "no labels are found; where there are some, stop this and name their column with"
                " --y or --labels"
            )
            print(f"tacit: {path / name}: {said}", file=sys.stderr)
    return sources


def _say(path: Path, outcome: "Outcome", left_out: Sequence[str]) -> None:
    """One line about a store."""
    store = outcome.store
    facts = [f"{store.rows} rows{number_of_persons(store.persons)} of width {store.dim}"]
    if store.names is not None:
        facts.append(f"{sum(map(len, store.names))} rows of class names")
    if store.classes is not None:
        how = (
            "declared"
            if store.classes_declared
            else "read off the labels; declare public ones with --classes"
        )
        facts.append(f"{len(store.classes)} classes ({how})")
    elif store.labels is None:
        facts.append("no labels")
    else:
        facts.append("labels are whole numbers; declare their classes with --classes")
    if outcome.skipped:
        facts.append(f"{outcome.skipped} records left out (listed beside it in .bad.csv)")
    if outcome.reused:
        facts.append(f"{outcome.reused} records were encoded before")
    if left_out:
        said = f"{len(left_out)} files left out that are no pictures or are not in the table"
        facts.append(f"{said} (first: {left_out[0]})")
    say(f"{path}: {', '.join(facts)}")
    tell_of_case(store.persons)
