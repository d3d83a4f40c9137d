"""`tacit evaluate`: how well a release does on a test set."""

from pathlib import Path
from typing import TYPE_CHECKING

from tacit.cli.common import (
    check_encoder,
    labels_of,
    ledger_of,
    number_of_persons,
    present_classes,
    say,
    shown_progress,
    utility_of,
)
from tacit.cli.options import AnyEncoder, Features, Labels, Persons, Split
from tacit.errors import InputError

if TYPE_CHECKING:
    from tacit.data.imports import Data


def evaluate(
    release: Path,
    store: Path,
    /,
    *,
    class_sizes: Path | None = None,
    record: bool = False,
    public_test: bool = False,
    x: Features = None,
    y: Labels = None,
    persons: Persons = None,
    split: Split = None,
    any_encoder: AnyEncoder = False,
    json: bool = False,
) -> None:
    """Measure accuracy on labelled rows that were not trained on.

    Figures are exact, so those on private rows are outside the guarantee and for their owner alone.
    Only figures on public rows are recorded: rows of a store that was declared public when it was
    made, or of a plain file that --public-test declares public. Rows that a ledger covers are
    private whatever was declared.

    Where the test set has ids of persons, intervals are over persons: rows of one person are alike,
    and an interval that takes them for independent is too short.

    Parameters
    ----------
    release
        Folder of a release.
    store
        The test set: a store's folder, or any file that `tacit import` reads.
    class_sizes
        The private training data, whose class sizes decide which classes are small. The minority
        accuracy then shown depends on them; recorded in the card, they are listed as unprotected.
    record
        Write the figures into the release's card; the rows must be public.
    public_test
        Declare that all rows and labels of a plain file are public.
    json
        Print one JSON object instead of lines.
    """
    import json as text
    from dataclasses import asdict

    import numpy as np

    from tacit.data.imports import read_data
    from tacit.models import metrics
    from tacit.releases.reading import is_release
    from tacit.releases.release import Release

    if public_test and not record:
        raise InputError(
            "--public-test is needed only to record figures; add --record, or leave it out"
        )
    with shown_progress():
        loaded = Release.load(release).verify()
        if record and not is_release(release):
            fault = f"{release} was published, or is in git, so nothing is recorded in it"
            raise InputError(
                f"{fault}; record in the release that it was made from, then publish that"
            )
        data = read_data(store, x=x, y=y, persons=persons, split=split, width=loaded.width)
        check_encoder(loaded, data, store, any_encoder=any_encoder)
        if record:
            _check_public(store, split, data, public_test=public_test)
        labels = labels_of(data, store)
        sizes = None
        if class_sizes is not None:
            trained = labels_of(read_data(class_sizes), class_sizes)
            sizes = np.array([(trained == c).sum() for c in loaded.classes])
        scores = metrics.evaluate(
            labels, loaded.predict(data.x), loaded.classes, sizes, data.persons
        )
    by_person = scores.persons is not None
    over = "persons" if by_person else "rows"
    present = present_classes(scores)
    if record:
        utility = utility_of(scores, data.identity, len(labels))
        loaded.with_utility(utility).save(release, force=True, allow_research=True)
    if json:
        shares = {str(c): present.get(str(c)) for c in scores.per_class}
        values = asdict(scores) | {"per_class": shares}
        print(text.dumps({key: value for key, value in values.items() if value is not None}))
        return
    shown = (
        f"{len(labels)} rows{number_of_persons(data.persons)}, {len(present)} of"
        f" {len(loaded.classes)} classes"
    )
    say(f"{release} on {store}: {shown}")
    for name, value, (low, high) in (
        ("accuracy", scores.accuracy, scores.accuracy_interval),
        ("balanced accuracy", scores.balanced, scores.interval),
    ):
        say(f"{name} {value:.4f} (95 % interval over test {over} {low:.4f} to {high:.4f})")
    if by_person:
        say(f"intervals over persons are {metrics.BY_PERSON}")
    lowest, middle, highest = np.quantile(list(present.values()), [0, 0.5, 1])
    say(f"per class: lowest {lowest:.4f}, median {middle:.4f}, highest {highest:.4f}")
    if scores.minority is not None:
        say(
            f"minority accuracy {scores.minority:.4f} (25 % smallest training classes; depends on"
            " private counts)"
        )


def _check_public(store: Path, split: str | None, data: "Data", *, public_test: bool) -> None:
    """Refuse to record figures on rows that a ledger covers, or that nobody declared public."""
    from tacit.data.imports import located
    from tacit.data.manifest import NAME

    place = located(store, split)
    ledger = ledger_of(None, place, data)
    if ledger is not None:
        fault = (
            f"{store} holds private rows: {ledger.path} counts their uses, so no figure on them is"
            " recorded"
        )
        raise InputError(f"{fault}; leave --record out, or evaluate public rows")
    if data.declared_public:
        return
    fault = (
        f"{store} is not declared public, and figures on private rows would reveal facts about them"
    )
    if (place / NAME).is_file():
        raise InputError(
            f"{fault}; leave --record out, or, only if all its rows and labels are public, "
            f"copy it with tacit import {store} --out COPY --declare-public"
        )
    if not public_test:
        remedy = (
            "leave --record out, or, only if all its rows and labels are public, add --public-test"
        )
        raise InputError(f"{fault}; {remedy}")
