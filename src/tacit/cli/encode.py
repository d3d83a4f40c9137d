"""`tacit encode`: pictures, texts or class names to a store."""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from tacit.cli.common import number_of_persons, read_classes, say, tell_of_case
from tacit.cli.encode_names import (
    PublicClasses,
    check_alone,
    class_texts,
    names_to_carry,
    write_through,
)
from tacit.cli.encode_table import ENCODER, encode_table
from tacit.cli.options import LabelSeparator, Out
from tacit.compute.progress_display import shown_progress
from tacit.errors import InputError

if TYPE_CHECKING:
    from tacit.encoding.encoders.base import Features
    from tacit.encoding.encoders.store import Options, Outcome
    from tacit.encoding.sources.base import Source

# the value of --labels that is no file
INDEX = Path("index")


def encode(
    source: Path | None = None,
    /,
    *,
    encoder: str,
    out: Out,
    schema: Path | None = None,
    weights: Path | None = None,
    sidecar: Path | None = None,
    split: str | None = None,
    labels: Path | None = None,
    label_separator: LabelSeparator = None,
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
    long: Literal["mean"] | None = None,
    projection: Path | None = None,
    precision: Literal["float32", "bfloat16", "auto"] = "auto",
    device: str = "auto",
    dtype: Literal["float16", "float32"] | None = None,
    batch: int | None = None,
    workers: Annotated[int | None, Parameter(show_default=False)] = None,
    shard_rows: int = 4096,
    engine: str | None = None,
    jobs: int = 1,
    minutes: int | None = None,
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
        weights. For the columns of a table: table, with --schema.
    out
        Folder of the store.
    schema
        For --encoder table: a YAML file that declares what the columns may hold, from public
        knowledge; tacit schema drafts one.
    weights
        A local folder of weights; by default they are looked for in the local cache. Nothing is
        downloaded.
    sidecar
        For onnx: and torch:, a JSON file that states the input; by default the model's name with
        .json.
    split
        Which split of a source that has several.
    labels
        For a flat folder, the table that names its pictures; for .npy, an array of labels. Or
        `index`: whole numbers as labels beside a list of class names are positions in the list,
        from 0.
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
        The class list as a public fact: a number N for 0..N-1, a file with one class a line, or
        classes with commas between them.
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
        Leave out records that cannot be decoded, or have no label or id where others have one; they
        are listed in OUT.bad.csv, which is private:
        only its owner may read it.
    mirror
        Average the features of each picture and of its mirror image.
    long
        mean: a text longer than the encoder reads gets the mean of the features of its windows, of
        length 1 if the encoder's rows are; by default the encoder reads the beginning. How many
        such texts there are is printed.
    projection
        An .npy file of a public matrix that features are multiplied by.
    precision
        auto is bfloat16 where the machine multiplies it natively, else float32.
    device
        cpu, cuda, or auto: a GPU where there is one, and the processor with --engine.
    dtype
        How rows are stored: by default float16 if the encoder gives rows of length 1 and they are
        not projected, else float32.
    batch
        Records at a time.
    workers
        Processes that decode pictures; by default one for each core but one, from 1 to 8.
    shard_rows
        Records in one file, and what an interrupt loses at most.
    engine
        Where shards are encoded: joblib, ray, ray:ADDRESS, slurm or slurm:PARTITION, whose workers
        must see the source, the encoder and the folder of OUT; by default in this process, or by
        joblib if --jobs is more than 1.
    jobs
        Shards that an engine encodes at the same time, each with one thread.
    minutes
        For slurm: the limit of a task, for all its shards together.
    force
        Overwrite the output.
    """
    engine_options = {"engine": engine, "jobs": jobs, "minutes": minutes}
    passed_to_engine = engine_options | {"jobs": None if jobs == 1 else jobs}
    if encoder == ENCODER:
        encode_table(
            source,
            schema,
            out,
            y=y,
            persons=persons,
            classes=classes,
            identity=identity,
            public=public,
            declare_public=declare_public,
            label_separator=label_separator,
            shard_rows=shard_rows,
            force=force,
            others={
                "weights": weights,
                "sidecar": sidecar,
                "split": split,
                "labels": labels,
                "x": x,
                "persons-folder": persons_folder,
                "texts": texts,
                "template": template,
                "through": through,
                "through-texts": through_texts,
                "skip-bad": skip_bad,
                "mirror": mirror,
                "long": long,
                "projection": projection,
                "batch": batch,
                "workers": workers,
                **passed_to_engine,
            },
        )
        return
    if schema is not None:
        raise InputError(f"--schema {schema} is for --encoder table; leave it out")

    from tacit.compute.atomic import check_writable
    from tacit.data.manifest import holds_stores, is_store
    from tacit.encoding.encoders import load_encoder
    from tacit.encoding.encoders.store import Options
    from tacit.encoding.names import TEMPLATE, load_text_side, names_source
    from tacit.encoding.sources import splits

    if source is None:
        record_options = {
            "split": split,
            "labels": labels,
            "label-separator": label_separator,
            "x": x,
            "y": y,
            "persons": persons,
            "persons-folder": persons_folder,
            "public": public,
            "declare-public": declare_public,
            "skip-bad": skip_bad,
            "mirror": mirror,
            "long": long,
            **passed_to_engine,
        }
        check_alone(texts, record_options)
    _check_through(through, through_texts, source)

    # Several parts are several splits; a source without splits has none, or one None.
    parts: Sequence[str | None] = [split]
    if source is not None and split is None:
        parts = splits(source)
    check_writable(out, force=force, ours=holds_stores if len(parts) > 1 else is_store)

    if engine is not None or jobs != 1:
        _check_workers(workers)
        # a task has one core, and the devices of this machine are not those of the workers
        device = "cpu" if device == "auto" else device
    options = Options(
        labels="index" if labels == INDEX else "value",
        classes=read_classes(classes),
        public=public,
        skip_bad=skip_bad,
        dtype=dtype,
        batch=batch,
        workers=_default_workers() if workers is None else workers,
        shard_rows=shard_rows,
        declared_public=declare_public,
    )
    templates = template or [TEMPLATE]
    encoder_options: dict[str, Any] = {
        "weights": weights,
        "sidecar": sidecar,
        "device": device,
        "precision": precision,
        "projection": projection,
    }

    if source is None:
        listed, descriptions = class_texts(texts, options.classes)
        sources = {"": names_source(listed, templates, descriptions)}
        if through is not None:
            # read before the encoder, which takes long to load
            public_classes = PublicClasses.read(through, through_texts)
            features = load_text_side(encoder, **encoder_options)
            store_options = {"dtype": dtype, "identity": identity, "force": force}
            with shown_progress():
                write_through(
                    out, public_classes, listed, descriptions, templates, features, **store_options
                )
            return
        features = load_text_side(encoder, **encoder_options)
        # the labels of this store are the class list
        options = replace(options, classes=None)
    else:
        _check_persons(persons, parts)
        sources = _open_sources(
            source,
            parts,
            labels=None if labels == INDEX else labels,
            x=x,
            y=y,
            persons=persons,
            persons_folder=persons_folder,
            public=public,
            skip_bad=skip_bad,
            label_separator=label_separator,
        )
        kind = next(iter(sources.values())).kind
        features = load_encoder(encoder, kind=kind, mirror=mirror, long=long, **encoder_options)
        if texts is not None or template is not None:
            text_side = features
            if kind != "text":
                text_side = load_text_side(encoder, **encoder_options)
            names = names_to_carry(sources.values(), options.classes, texts, templates, text_side)
            options = replace(options, names=names)

    outcomes = _encode(
        sources, features, out, options, identity=identity, force=force, **engine_options
    )
    for name, outcome in outcomes.items():
        files_left_out = [sources[name].shown(file) for file in sources[name].left_out]
        _print_outcome(out / name, outcome, files_left_out, long)


def _check_through(through: Path | None, through_texts: Path | None, source: Path | None) -> None:
    """Refuse `--through` for records, and texts for `--through` without it."""
    if through is not None and source is not None:
        raise InputError(
            f"--through {through} makes a store of class names alone; leave the source {source} out"
        )
    if through is None and through_texts is not None:
        raise InputError(
            f"--through-texts {through_texts} is for the classes of --through STORE; leave it out"
        )


def _check_workers(workers: int | None) -> None:
    """Refuse processes that decode beside an engine."""
    if workers:
        raise InputError(
            f"--workers {workers} decodes beside an encoder in this process, and each task of"
            " --engine or --jobs decodes by itself; leave one of them out"
        )


def _check_persons(persons: str | None, parts: Sequence[str | None]) -> None:
    """Refuse one file of person ids for several splits."""
    from tacit.data.ids import is_ids_file

    if persons is not None and len(parts) > 1 and is_ids_file(persons):
        raise InputError(f"--persons {persons} has the ids of one split; encode each with --split")


def _default_workers() -> int:
    """Return one process for each core but one, from 1 to 8."""
    spare_cores = (os.cpu_count() or 1) - 1
    return max(1, min(spare_cores, 8))


def _open_sources(
    path: Path, parts: Sequence[str | None], *, public: bool, **options: Any
) -> dict[str, "Source"]:
    """Open a source's splits, by the names of their stores in the output; "" is the output."""
    from tacit.encoding.sources import open_source

    part_by_store: dict[str, str | None] = {}
    if len(parts) > 1:
        part_by_store = {str(part): part for part in parts}
    else:
        part_by_store[""] = parts[0] if parts else None

    sources = {}
    for store, part in part_by_store.items():
        sources[store] = open_source(path, part, public=public, **options)

    for store, source in sources.items():
        if source.labels is None and not public:
            advice = (
                "no labels are found; where there are some, stop this and name their column with"
                " --y or --labels"
            )
            print(f"tacit: {path / store}: {advice}", file=sys.stderr)
    return sources


def _encode(
    sources: dict[str, "Source"], features: "Features", out: Path, options: "Options", **facts: Any
) -> Mapping[str, "Outcome"]:
    """Encode with progress shown; after Ctrl-C, say that the same command resumes."""
    from tacit.encoding.encoders.store import encode_to_stores

    try:
        with shown_progress():
            return encode_to_stores(sources, features, out, options, **facts)
    except KeyboardInterrupt as stop:
        message = (
            "interrupted; run the same command again, and it goes on from the shards that are done"
        )
        raise KeyboardInterrupt(message) from stop


def _print_outcome(
    path: Path, outcome: "Outcome", files_left_out: Sequence[str], long: str | None
) -> None:
    """Print one line about a store."""
    store = outcome.store
    facts = [f"{store.rows} rows{number_of_persons(store.persons)} of width {store.dim}"]
    if store.names is not None:
        facts.append(f"{sum(map(len, store.names))} rows of class names")

    if store.classes is not None and store.classes_declared:
        facts.append(f"{len(store.classes)} classes (declared)")
    elif store.classes is not None:
        facts.append(
            f"{len(store.classes)} classes (read off the labels; declare public ones with"
            " --classes)"
        )
    elif store.labels is None:
        facts.append("no labels")
    else:
        facts.append("labels are whole numbers; declare their classes with --classes")

    if store.several:
        facts.append("several labels a record")
    if outcome.skipped:
        facts.append(
            f"{outcome.skipped} records left out (listed beside it in .bad.csv, which is private)"
        )
    if outcome.longer and long is None:
        facts.append(
            f"{outcome.longer} texts are longer than the encoder reads, which cut their ends off"
            " (--long mean reads all)"
        )
    elif outcome.longer:
        facts.append(f"{outcome.longer} texts are longer than the encoder reads at once")
    if outcome.reused:
        facts.append(f"{outcome.reused} records were encoded before")
    if files_left_out:
        facts.append(
            f"{len(files_left_out)} files left out that are no pictures or are not in the table"
            f" (first: {files_left_out[0]})"
        )

    say(f"{path}: {', '.join(facts)}")
    tell_of_case(store.persons)
