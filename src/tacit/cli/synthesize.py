"""`tacit synthesize`: synthetic rows with labels, drawn from a release."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.cli.common import check_apart, check_outside, say
from tacit.cli.options import AnyEncoder, Features, Force, Out, Split
from tacit.cli.public_rows import PUBLIC, check_no_record, check_uncovered
from tacit.cli.table_rows import data_for
from tacit.compute.progress_display import shown_progress
from tacit.errors import InputError, ReleaseError

if TYPE_CHECKING:
    from tacit.data.imports import Data
    from tacit.releases.release import Release
    from tacit.releases.sampling import Sampler, SyntheticRows


def synthesize(
    release: Path,
    /,
    *,
    rows: int,
    out: Out,
    seed: int = 0,
    released_sizes: bool = False,
    nearest: Path | None = None,
    private: Path | None = None,
    ledger: Path | None = None,
    x: Features = None,
    split: Split = None,
    any_encoder: AnyEncoder = False,
    allow_research: bool = False,
    force: Force = False,
) -> None:
    """Draw labelled synthetic embeddings from a release of auto, to try other models on.

    They cost no further privacy, since they follow from the release alone. The card of the store
    repeats the statement of the release. No fit takes the store as private data, since no statement
    about it would hold for the people of the release; as public rows it may be used.

    Parameters
    ----------
    release
        Folder of a release of auto.
    rows
        How many rows to draw.
    out
        Folder of the new store. Its rows have norm 1: divide raw embeddings by their norms before a
        model that was trained on these rows reads them.
    seed
        Decides the rows: the same command gives the same files.
    released_sizes
        Draw rows in proportion to the released estimates of the class sizes. By default all classes
        have equally many.
    nearest
        Public rows of the same encoder: a store's folder, or any file that `tacit import` reads.
        The store then holds, in place of each drawn row, the public row nearest to it, which people
        can look up by its position and name in its source. A public row that is nearest to several
        is there once.
    private
        The private data of the fit, if you have them: public rows that contain any of their records
        are refused.
    ledger
        A ledger to look in, by default the one beside the public rows: rows of an identity that it
        knows are refused.
    x
        Name of the features inside the file of public rows, where it is not a usual one.
    split
        Which split of public rows that have several.
    allow_research
        Draw from a release that is not for release; its stamp is on the card.
    """
    from tacit.compute.atomic import check_writable
    from tacit.data.locations import located
    from tacit.data.manifest import is_store
    from tacit.releases.release import Release
    from tacit.releases.sampling import Sampler

    if nearest is None:
        _refuse_without_nearest(private=private, ledger=ledger, x=x, split=split)
    check_outside(out, release)
    check_writable(out, force=force, ours=is_store)
    if nearest is not None:
        _check_places(out, located(nearest, split), private)

    with shown_progress():
        loaded = Release.load(release).verify()
        _check_stamp(loaded, allow_research)
        sampler = Sampler(loaded.document, loaded.arrays, loaded.source)
        sampler.check_number(rows, "--rows ")
        if not 0 <= seed < 2**63:
            raise InputError(f"--seed {seed} must be from 0 to 2^63 - 1; correct it")

        public = None
        if nearest is not None:
            public = data_for(loaded, nearest, x=x, split=split, any_encoder=any_encoder)
            check_uncovered(ledger, located(nearest, split), public)
            if private is not None:
                check_no_record(private, located(nearest, split), public)

        drawn = sampler.draw(rows, random_state=seed, balanced=not released_sizes)
        facts = {"rows": rows, "seed": seed, "released_sizes": released_sizes}
        n_rows = _write(out, loaded, sampler, drawn, facts, public, force=force)

    if nearest is None:
        say(f"{out}: {n_rows} rows drawn from {release}")
        say(
            "The guarantee is that of the release. Rows have norm 1: divide raw embeddings by their"
            " norms before a model that learned from these rows reads them."
        )
    else:
        say(f"{out}: {n_rows} rows of {nearest}, nearest to {rows} rows drawn from {release}")
        say(
            "The guarantee is that of the release, provided that no private record is among the"
            " public rows."
        )
    if drawn.unlike:
        say(f"The release labels {drawn.unlike} of the drawn rows as other classes.")
    if nearest is not None and private is None:
        say(
            f"{nearest} was not compared with the data of the fit; their owner can do that with"
            " --private DATA."
        )


def _refuse_without_nearest(**options: object) -> None:
    """Refuse options about public rows where there are none."""
    for name, value in options.items():
        if value is not None:
            raise InputError(
                f"--{name} {value} is about public rows; name them with --nearest, or leave it out"
            )


def _check_places(out: Path, place: Path, private: Path | None) -> None:
    """Refuse an output within the public rows, and private data as public rows."""
    from tacit.data.locations import located

    if place.resolve() in (out.resolve(), *out.resolve().parents):
        raise InputError(f"--out {out} is the public rows, or lies in them; name another folder")
    if private is not None:
        check_apart("nearest", place, located(private), PUBLIC)


def _check_stamp(release: "Release", allow_research: bool) -> None:
    """Refuse a release that is stamped."""
    stamp = release.document.stamp
    if stamp and not allow_research:
        fault = f"{release.document.product.name!r} is {stamp}, and so are rows drawn from it"
        raise ReleaseError(f"{fault}; pass --allow-research to keep them for research")


def _write(
    out: Path,
    release: "Release",
    sampler: "Sampler",
    drawn: "SyntheticRows",
    facts: dict[str, Any],
    public: "Data | None",
    *,
    force: bool,
) -> int:
    """Write the drawn rows, or the public rows nearest to them, and return how many."""
    from tacit.data.embeddings import EmbeddingStore
    from tacit.releases.provenance import public_facts, synthetic_card

    rows: Any = drawn.rows
    labels = drawn.labels
    metadata = None
    if public is not None:
        positions, labels = sampler.nearest(drawn, public.x)
        rows = public.x[positions]
        metadata = public.origin.at(positions).columns()
        facts = facts | {"nearest": public_facts(public)}

    card = synthetic_card(release.document, release.sha256, release.guarantee, facts)
    store = EmbeddingStore.write(
        out,
        rows,
        release.classes[labels],
        classes=release.classes.tolist(),
        card=card,
        metadata=metadata,
        force=force,
    )
    return store.rows
