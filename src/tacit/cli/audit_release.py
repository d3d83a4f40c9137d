"""`tacit audit RELEASE`: refits of a release's learner on public rows, attacked as a stranger
could.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tacit.cli.common import ledger_of
from tacit.cli.paid_evaluation import check_recordable
from tacit.cli.table_rows import data_for
from tacit.compute.progress_display import shown_progress
from tacit.errors import InputError

if TYPE_CHECKING:
    from tacit.data.imports import Data
    from tacit.measure.auditing.result import Audit
    from tacit.releases.release import Release


class PublicRows(NamedTuple):
    """The options that name public rows and say what may be done with them."""

    path: Path | None
    x: str | None
    y: str | None
    split: str | None
    any_encoder: bool
    declared: bool
    predicted_labels: bool


def audit_release(path: Path, public: PublicRows, *, record: bool, **options: Any) -> "Audit":
    """Audit the release in a folder, and record the result in it if asked to.

    `options` are those of `tacit.measure.auditing.of_release.audit_release`.
    """
    from tacit.measure.auditing.of_release import audit_release as audited
    from tacit.measure.auditing.rebuilding import stated_learner
    from tacit.measure.auditing.recording import item_of
    from tacit.releases.release import Release

    if public.path is None:
        raise InputError(
            f"--public is missing, and the learner of {path} is fitted again to public rows; give"
            " --public STORE"
        )
    with shown_progress():
        loaded = Release.load(path).verify()
        if record:
            check_recordable(path)
        # before rows are read, which may take long
        stated_learner(loaded)
        data = data_for(
            loaded,
            public.path,
            x=public.x,
            y=public.y,
            split=public.split,
            any_encoder=public.any_encoder,
        )
        _check_public(public.path, public.split, data, declared=public.declared)
        labels = None if public.predicted_labels else _own_labels(loaded, data)
        audit = audited(loaded, data.x, labels, **options)
    if record:
        loaded.with_audit(item_of(audit)).save(path, force=True, allow_research=True)
    return audit


def _own_labels(release: "Release", data: "Data") -> Any:
    """Return the labels of public rows, if all are classes of the release, one a row or several as
    it predicts; None otherwise.
    """
    if data.labels is None or data.several != release.several:
        return None
    classes = set(release.classes.tolist())
    if release.several:
        stated = release.classes.tolist()
        return data.labels if data.classes == stated else None
    labels = data.labels
    return labels if set(labels.tolist()) <= classes else None


def _check_public(path: Path, split: str | None, data: "Data", *, declared: bool) -> None:
    """Refuse rows that a ledger covers, or that nobody declared public; synthetic rows are not
    private.
    """
    from tacit.data.locations import located
    from tacit.data.manifest import NAME
    from tacit.data.synthetic import is_synthetic

    place = located(path, split)
    ledger = ledger_of(None, place, data)
    if ledger is not None:
        fault = f"{path} holds private rows: {ledger.path} counts their uses"
        raise InputError(f"{fault}; give --public rows that are public")
    if data.declared_public or is_synthetic(data.card):
        return

    fault = f"{path} is not declared public, and an audit takes public rows alone"
    if (place / NAME).is_file():
        raise InputError(
            f"{fault}; if all its rows and labels are public, copy it with tacit import {path}"
            " --out COPY --declare-public"
        )
    if not declared:
        raise InputError(f"{fault}; if all its rows and labels are public, add --public-rows")
