"""`tacit audit`: lower bounds on what a method or a release reveals, beside its promise."""

from pathlib import Path
from typing import TYPE_CHECKING

from tacit.cli.audit_release import PublicRows, audit_release
from tacit.cli.common import say
from tacit.cli.json_output import print_json
from tacit.cli.options import AnyEncoder, AuditBudget, Features, Json, Labels, Split, Unit
from tacit.errors import InputError, NothingDoneError, nearest
from tacit.learners.methods import ALIASES, METHODS, SETTINGS, method_called, setting_called

if TYPE_CHECKING:
    from tacit.measure.auditing.result import Audit


def audit(
    subject: str,
    /,
    *,
    public: Path | None = None,
    budget: AuditBudget = None,
    unit: Unit = None,
    delta: float = 1e-5,
    seed: int = 0,
    runs: int | None = None,
    refits: int | None = None,
    record: bool = False,
    public_rows: bool = False,
    predicted_labels: bool = False,
    x: Features = None,
    y: Labels = None,
    split: Split = None,
    any_encoder: AnyEncoder = False,
    jobs: int = 1,
    folder: Path | None = None,
    json: Json = False,
) -> None:
    """Bound from below what a method or a release reveals, and hold the bound against its promise.

    A method is fitted to synthetic data, and attacked with knowledge of everything but the canary.
    A release is attacked as by a stranger who sees its predictions alone: the learner that it
    states is fitted again to public rows, many times, with and without canaries among them.

    The status is 1 where a bound at confidence 1 - 1e-6, over all audits together, exceeds the
    promise.

    Parameters
    ----------
    subject
        A method, as `tacit methods` lists them, or the folder of a release.
    public
        For a release: public rows of its encoder, a store's folder or any file that `tacit import`
        reads. Their labels are used if all are classes of the release, else what it predicts.
    delta
        Where epsilon is promised and bounded.
    seed
        Of the canaries and the noise, which it repeats.
    runs
        For a method: fits to each of two neighbouring data sets; 2000 by default.
    refits
        For a release: 16 or more; by default as many as take about a minute.
    record
        Write the result into the card of the release.
    public_rows
        Declare that all rows and labels of a plain file are public.
    predicted_labels
        Use the labels that the release predicts in any case.
    jobs
        Refits of a release at the same time.
    folder
        For a release: a folder from which an interrupted audit resumes.
    """
    from tacit.privacy.guarantee import rounded_up

    path = Path(subject)
    if path.is_dir():
        for name, value in (("budget", budget), ("unit", unit), ("runs", runs)):
            if value is not None:
                raise InputError(
                    f"--{name} {value} is for a method, and {subject} is a folder; leave it out"
                )
        rows = PublicRows(public, x, y, split, any_encoder, public_rows, predicted_labels)
        result = audit_release(
            path,
            rows,
            record=record,
            delta=delta,
            refits=refits,
            seed=seed,
            jobs=jobs,
            folder=folder,
        )
    else:
        from tacit.measure.auditing.audit import audit as audit_of
        from tacit.measure.auditing.white_box import RUNS

        _check_method(subject, public, record=record)
        if runs is None:
            runs = RUNS
        result = audit_of(subject, budget, delta=delta, seed=seed, unit=unit, runs=runs)
    _print(result, json=json)
    if record and not json:
        say(f"{subject}: the audit is recorded in item 17 of its card")
    if result.exceeded:
        promise = f"epsilon {rounded_up(result.promise)} at delta {rounded_up(delta)}"
        raise NothingDoneError(
            f"{subject}: a lower bound exceeds the promise of {promise}; do not release what it"
            " learns, and report the fault as SECURITY.md says"
        )


def _check_method(subject: str, public: Path | None, *, record: bool) -> None:
    """Refuse options of releases for a method, and a name that is neither."""
    if setting_called(subject) is None and method_called(subject) not in METHODS:
        raise InputError(
            f"{subject} is no folder of a release and no method;"
            f" {nearest(subject.lower(), METHODS, *ALIASES, *SETTINGS)}"
        )
    if public is not None or record:
        option = "--record" if public is None else f"--public {public}"
        raise InputError(
            f"{option} is for the folder of a release, which {subject} is not; check its name, or"
            " leave it out"
        )


def _print(result: "Audit", *, json: bool) -> None:
    """Print each bound, and the result in one sentence."""
    if json:
        print_json(result.to_json())
        return
    for bound in result.bounds:
        say(f"{bound.attack}: epsilon >= {bound.shown} ({bound.assumption})")
    if result.setup:
        say(f"by {result.setup}")
    say(result.sentence)
