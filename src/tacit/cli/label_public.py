"""`tacit label-public`: public rows with the labels that a release gives them."""

from dataclasses import asdict
from pathlib import Path

from tacit.cli.common import check_apart, check_outside, say
from tacit.cli.options import AnyEncoder, CardFacts, Features, Force, Out, Split
from tacit.cli.public_rows import check_no_record, check_uncovered
from tacit.cli.table_rows import data_for
from tacit.compute.progress_display import shown_progress

PUBLIC = "give public rows"


def label_public(
    release: Path,
    pool: Path,
    /,
    *,
    out: Out,
    at_least: float | None = None,
    refuse: float | None = None,
    private: Path | None = None,
    ledger: Path | None = None,
    x: Features = None,
    split: Split = None,
    any_encoder: AnyEncoder = False,
    card: CardFacts | None = None,
    date: str | None = None,
    allow_research: bool = False,
    force: Force = False,
) -> None:
    """Label public rows by a release, in a folder that may be handed out in place of the release.

    The labels cost no further privacy, since they follow from the release and from public rows. The
    card names the release and the pool, repeats the guarantee and counts the labels of each class.
    tacit inspect checks the folder.

    Parameters
    ----------
    release
        Folder of a release.
    pool
        Public rows of the same encoder: a store's folder, or any file that `tacit import` reads.
        Labels of the pool are not used. If a private record is among the rows, the labels show it,
        and no statement about privacy holds.
    out
        Folder for labels.csv, labels.json, release.json (the document of the release, without its
        arrays) and CARD.md. A row of labels.csv is the position in the pool, from 0; source_row and
        name are the position and the name in the source of the pool, if it states them.
    at_least
        Leave out rows whose label has a smaller probability, such as .8; by default none. If the
        release carries a tree, the label is the deepest node that reaches this probability, which
        is then above .5, and the column level has its level.
    refuse
        Leave out rows that look like none of the classes: about this share of rows like those
        trained on, such as .05. Needs a release of auto.
    private
        The private data of the fit, if you have them: a pool that contains any of their records is
        refused.
    ledger
        A ledger to look in, by default the one beside the pool: a pool of an identity that it knows
        is refused.
    date
        Day of publication as YYYY-MM-DD; by default today.
    allow_research
        Write labels by a release that is not for release; its stamp is on the card.
    """
    from tacit.compute.atomic import check_writable
    from tacit.data.locations import located
    from tacit.releases import labelling
    from tacit.releases.labels_files import holds_public_labels
    from tacit.releases.release import Release

    check_outside(out, release)
    check_writable(out, force=force, ours=holds_public_labels)
    place = located(pool, split)
    if private is not None:
        check_apart("private", located(private), place, PUBLIC)
    with shown_progress():
        loaded = Release.load(release).verify()
        data = data_for(loaded, pool, x=x, split=split, any_encoder=any_encoder)
        labelling.check_uncovered(place, data.identity)
        check_uncovered(ledger, place, data)
        if private is not None:
            check_no_record(private, place, data)
        labels = labelling.label_public(
            loaded,
            data,
            at_least=at_least,
            refuse=refuse,
            date=date,
            **asdict(card or CardFacts()),
        )
        labels.save(out, force=force, allow_research=allow_research)

    selection = labels.document.selection
    left_out = ""
    if at_least is not None:
        left_out = (
            f", {selection.left_out} ({selection.share_left_out:.1%}) left out below probability"
            f" {at_least:g}"
        )
    if refuse is not None:
        left_out += (
            f", {selection.refused} ({selection.share_refused:.1%}) refused as rows of no class"
        )
    stamp = f", stamped {labels.release.stamp}" if labels.release.stamp else ""
    say(f"{out}: {selection.labelled} of {len(data.x)} rows labelled{left_out}{stamp}")
    say(
        "The guarantee is that of the release, provided that no private record is among the rows of"
        " the pool."
    )
    if private is None:
        say(
            "The pool was not compared with the data of the fit; their owner can do that with"
            " --private DATA."
        )
