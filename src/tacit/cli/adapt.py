"""`tacit adapt`: a release adapted to unlabelled rows of its task."""

from pathlib import Path

from tacit.cli.common import check_apart, check_encoder, say
from tacit.cli.options import AnyEncoder, Features, Force, Out, Split
from tacit.cli.public_rows import PUBLIC, check_no_record, check_uncovered
from tacit.compute.progress_display import shown_progress
from tacit.errors import NothingDoneError


def adapt(
    release: Path,
    rows: Path,
    /,
    *,
    out: Out,
    private: Path | None = None,
    ledger: Path | None = None,
    x: Features = None,
    split: Split = None,
    any_encoder: AnyEncoder = False,
    force: Force = False,
) -> None:
    """Adapt an `auto` release to unlabelled data from the same task, if the data fit.

    The rows must be public, or of records that no guarantee covers. The new card names them and
    this premise.

    Parameters
    ----------
    release
        Folder of a release of auto, not adapted yet.
    rows
        Unlabelled rows of the same encoder: a store's folder, or any file that `tacit import`
        reads, its labels unused. They must be public, or of records that no guarantee covers. If a
        private record that a guarantee covers is among them, no statement of the new release holds,
        and neither the release, nor its predictions, nor whether it was adapted may be shown to
        others.
    out
        Folder of the new release, whose guarantee is unchanged. If the rows do not suit the
        release, it is not written, one line says why, and the exit status is 1.
    private
        The private data of the fit, if you have them: rows that contain any of their records are
        refused.
    ledger
        A ledger to look in, by default the one beside the rows: rows of an identity that it knows
        are refused.
    """
    from tacit.compute.atomic import check_writable
    from tacit.data.imports import read_data
    from tacit.data.locations import located
    from tacit.releases.adapting import adapt as adapted_to
    from tacit.releases.provenance import public_facts
    from tacit.releases.reading import is_release
    from tacit.releases.release import Release

    check_writable(out, force=force, ours=is_release)
    place = located(rows, split)
    if private is not None:
        check_apart("private", located(private), place, PUBLIC)
    with shown_progress():
        loaded = Release.load(release).verify()
        data = read_data(rows, x=x, split=split, width=loaded.width)
        check_encoder(loaded, data, rows, any_encoder=any_encoder)
        check_uncovered(ledger, place, data)
        if private is not None:
            check_no_record(private, place, data)
        facts = public_facts(data)
        adapted = adapted_to(loaded, data.x, name=facts["name"], hash=facts["hash"])
        if adapted.release is None:
            raise NothingDoneError(
                f"nothing adapted: {rows}: {adapted.why}; keep {release}, {out} was not written"
            )
        adapted.release.save(out, force=force, allow_research=True)
    say(f"{out}: {release} {adapted.why}")
    if loaded.prediction_sets is not None:
        say(
            "Its prediction sets are left out, since their threshold was paid for with other"
            " probabilities; make new ones with tacit evaluate --budget --sets."
        )
    say(
        "The guarantee is unchanged, provided that no private record that a guarantee covers is"
        " among the rows."
    )
    if private is None:
        say(
            "The rows were not compared with the data of the fit; their owner can do that with"
            " --private DATA."
        )
