"""`tacit encode`: pictures or texts to a store."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from tacit.cli.common import read_classes, shown_progress

if TYPE_CHECKING:
    from tacit.encoding.encoders.store import Outcome


def encode(
    source: Path,
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
    classes: str | None = None,
    identity: str | None = None,
    public: bool = False,
    skip_bad: bool = False,
    mirror: bool = False,
    projection: Path | None = None,
    precision: str = "auto",
    device: str = "auto",
    dtype: str = "float16",
    batch: int | None = None,
    workers: Annotated[int | None, Parameter(show_default=False)] = None,
    shard_rows: int = 4096,
    force: bool = False,
) -> None:
    """Encode pictures or texts into a store. Run it again after an interrupt, and it goes on.

    Parameters
    ----------
    source
        A folder or archive of pictures with a subfolder for each class, or flat beside a table of labels; a table of
        texts or pictures (.csv, .jsonl, .parquet, or saved by Hugging Face datasets); .npy or .npz of pixels; or what
        the owners of MNIST, CIFAR, STL-10 or Food-101 ship. A source with several splits becomes a folder of stores.
    encoder
        timm:NAME, torchvision:MODEL/WEIGHTS, open_clip:MODEL/TAG, transformers:NAME, sentence-transformers:NAME,
        onnx:FILE or torch:module.path.
    out
        Folder of the store.
    weights
        A local folder of weights; by default they are looked for in the local cache. Nothing is downloaded.
    sidecar
        For onnx: and torch:, a JSON file that states the input; by default the model's name with .json.
    split
        Which split of a source that has several.
    labels
        For a flat folder, the table that names its pictures; for .npy, an array of labels.
    x
        Name of the column, or array, of pictures, texts or files, where it is not a usual one.
    y
        Name of the column, or array, of labels, where it is not a usual one.
    classes
        The class list as a public fact: a number N for 0..N-1, or a file with one class a line.
    identity
        Declared name of the private data, under which a ledger knows it; by default the store's name.
    public
        Keep no labels.
    skip_bad
        Leave out records that cannot be decoded; they are listed in OUT.bad.csv.
    mirror
        Average the features of each picture and of its mirror image.
    projection
        An .npy file of a public matrix that features are multiplied by.
    precision
        float32, bfloat16, or auto for bfloat16 where the machine multiplies it natively.
    device
        cpu, cuda, or auto.
    dtype
        How rows are stored: float16 or float32.
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
    from tacit.data.manifest import holds_stores, is_store
    from tacit.encoding.encoders import load_encoder
    from tacit.encoding.encoders.store import Options, encode_to_stores
    from tacit.encoding.sources import open_source, splits

    chosen = splits(source) if split is None else [split]
    several = len(chosen) > 1
    check_writable(out, force=force, ours=holds_stores if several else is_store)
    if workers is None:
        workers = max(1, min((os.cpu_count() or 1) - 1, 8))
    options = Options(read_classes(classes), public, skip_bad, dtype, batch, workers, shard_rows)
    names = {name: name for name in chosen} if several else {"": chosen[0] if chosen else None}
    sources = {
        out_name: open_source(source, name, labels=labels, x=x, y=y, public=public) for out_name, name in names.items()
    }
    for name, opened in sources.items():
        if opened.labels is None and not public:
            said = "no labels are found; where there are some, stop this and name their column with --y or --labels"
            print(f"tacit: {source / name}: {said}", file=sys.stderr)
    features = load_encoder(
        encoder, kind=next(iter(sources.values())).kind, weights=weights, sidecar=sidecar, device=device,
        precision=precision, mirror=mirror, projection=projection,
    )  # fmt: skip
    try:
        with shown_progress():
            outcomes = encode_to_stores(sources, features, out, options, identity=identity, force=force)
    except KeyboardInterrupt as stop:
        said = "interrupted; run the same command again, and it goes on from the shards that are done"
        raise KeyboardInterrupt(said) from stop
    for name, outcome in outcomes.items():
        _say(out / name, outcome, sources[name].left_out)


def _say(path: Path, outcome: "Outcome", left_out: Sequence[str]) -> None:
    """One line about a store."""
    store = outcome.store
    facts = [f"{store.rows} rows of width {store.dim}"]
    if store.classes is not None:
        how = "declared" if store.classes_declared else "read off the labels; declare public ones with --classes"
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
    print(f"{path}: {', '.join(facts)}")
