"""Combine summaries to a release that predicts: post-processing of noisy sums and public rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tacit.errors import InputError, quoted
from tacit.models.by_summary import by_directions, by_moments, by_public_rows, check_centre
from tacit.models.public_rows import public_rows
from tacit.models.released import LearnerFacts, Publishable, Released
from tacit.privacy.budget import Budget
from tacit.privacy.guarantee import Guarantee
from tacit.releases.adding_tree import added_anywhere
from tacit.releases.card import render_card
from tacit.releases.combination import Declared
from tacit.releases.noisy import noisy_sentence, without_noisy
from tacit.releases.release import Release
from tacit.releases.schema import COMBINED_VERSION, CombinedPattern, Trust
from tacit.releases.sources import Leaving
from tacit.releases.summary import Summary

METHODS = ("auto", "noisy-sum", "least-squares")

PATTERN = (
    "made of released summaries, which can be combined again at no further cost; each owner's"
    " ledger counts what their summary cost"
)

WHO_SEES_WHAT = (
    "each owner sees the records of its part and draws their noise; all others see only summaries"
    " and this release"
)


class Facts(NamedTuple):
    """What the card says of the release, one line each."""

    name: str
    curator: str | None
    description: str | None
    intended_use: str | None


@dataclass(eq=False)
class CombinedFit(Publishable):
    """What `Release.of` reads of a learner, of a decision that follows from a summary."""

    summary: Summary
    released_: Released | None
    guarantee_: Guarantee
    name_rows_: Any = None

    ledger = None
    no_release = "has nothing to release"

    @property
    def classes_(self) -> Any:  # type: ignore[override]
        return np.asarray(self.summary.classes)

    @property
    def n_features_in_(self) -> int:  # type: ignore[override]
        return self.summary.recipe.width

    @property
    def noise_(self) -> str:  # type: ignore[override]
        return self.summary.document.noise

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def promise(self) -> Guarantee:
        return self.guarantee_

    def other_fits(self) -> int:
        return 0

    def has_present_samplers(self) -> bool:
        # the noise was drawn where the summaries were made, and is stated by them
        return True

    def learner_facts(self) -> LearnerFacts:
        return LearnerFacts("", {}, (), ())

    def name_rows(self) -> Any:
        return self.name_rows_


def combine(
    summaries: Iterable[Summary | Path | str],
    *,
    public: Any = None,
    names: Any = None,
    method: str | None = None,
    overlapping: bool = False,
    moving: bool = False,
    allowances: Mapping[str, Budget | str] | None = None,
    keep_noisy: bool = False,
    without: Sequence[str] = (),
    name: str | None = None,
    curator: str | None = None,
    description: str | None = None,
    intended_use: str | None = None,
    facts_of_public: Mapping[str, str] | None = None,
    facts_of_names: Mapping[str, Any] | None = None,
    date: date | str | None = None,
    engine: Any = None,
    jobs: int = 1,
    folder: Path | str | None = None,
) -> Release:
    """Make a classifier of the summaries of one or many owners; it costs nothing more.

    Sums add up, and so do the variances of their noise. With public rows the decision is that of
    `AutoPrototypes` without gradient steps; without them, that of `NoisySumPrototypes`. Where all
    summaries hold second moments, `method="least-squares"` decides as `LeastSquares` does.

    Parameters
    ----------
    summaries : iterable of Summary, str or Path
        Summaries of one recipe, or their folders. One is in memory at a time.
    public : array of shape (m, d), optional
        Public rows of the same encoder. Where rows have a public centre, it must be the mean of
        these.
    names : array of shape (C, d), or sequence of C arrays of shape (k, d) or (d,), optional
        Rows of the class names, in the order of the classes of all summaries (`Summary.classes`);
        they need `public`.
    method : {"auto", "noisy-sum", "least-squares"}, optional
        The decision. By default "auto" with public rows and "noisy-sum" without them.
        "least-squares" needs summaries that were made with `moments=True`, and no public rows; it
        is the more accurate one where classes have many records for their noise, and the less
        accurate one for many small classes.
    overlapping : bool, default=False
        Whether a record, or a person under a unit per person, may be in several parts, whose costs
        then add up. Otherwise parts of different names are declared to share none, and the release
        states this. Summaries of one part always add up.
    moving : bool, default=False
        Whether a replaced record may belong to another part than before. Summaries under add-remove
        or add-remove-person cover that, and those under other units are refused.
    allowances : mapping of str to Budget or str, optional
        What may be spent on a part in all (rho, epsilon or mu), fixed before its first release and
        kept by its ledger. The part counts at that, so its budgets may have been chosen by what was
        released. Without it, they are declared as fixed beforehand.
    keep_noisy : bool, default=False
        Whether summaries are kept whose noise is so large that their sums lower the expected
        quality. Otherwise they are left out, with a warning, by their noise multipliers and class
        lists alone.
    without : sequence of str, optional
        Parts whose summaries are left out. It recalls nothing that was released of them. A warning
        names what of the others' recipes was computed from a release that holds such a part; see
        `tacit.holders_of`.
    name, curator, description, intended_use : str, optional
        One line each for the card.
    facts_of_public, facts_of_names : dict, optional
        What the card says of the public rows and of the class names, as `public` and `names` of
        `Release.of`.
    date : date or str, optional
        Day of publication as YYYY-MM-DD; by default today.
    engine : {"joblib", "ray", "slurm"}, str or Engine, optional
        Where groups of summaries are added up, with the same bits: "ray:ADDRESS" and
        "slurm:PARTITION" are understood. Summaries are then folders, which all workers must see. By
        default in this process, or by joblib if `jobs` is more than 1 or `folder` is passed.
    jobs : int, default=1
        Groups that an engine adds up at the same time.
    folder : str or Path, optional
        For sums of groups, from which a run that was killed goes on; all workers must see it.

    Returns
    -------
    Release
        Its item 12 has a row for each part.

    Raises
    ------
    InputError
        If recipes differ, the same sums are there twice, public rows do not fit, or a part to be
        left out is within a combined summary, or not there.
    ReleaseError
        If a statement of a summary does not agree, or its sums are beyond what its counts allow.

    Notes
    -----
    Guarantee: the maximum over the parts where they are declared disjoint, the sum where they
    overlap, by the rules of `tacit.privacy.parts`; all else is post-processing.
    Source: tacit; docs/summaries.md.

    Examples
    --------
    >>> import numpy as np, tacit
    >>> X, y = np.repeat(np.eye(2), 500, axis=0), np.repeat(["cat", "dog"], 500)
    >>> def summary_of(part):
    ...     fitted = tacit.ClassSummary("rho=0.5", classes=["cat", "dog"], part=part).fit(X, y)
    ...     return tacit.Summary.of(fitted)
    >>> release = tacit.combine([summary_of("clinic A"), summary_of("clinic B")])
    >>> release.predict([[2.0, 0.1]]), round(release.guarantee.rho, 9)
    (array(['cat'], dtype='<U3'), 0.5)
    """
    leaving = Leaving(without)
    remaining = leaving.remaining(summaries) if leaving.names else summaries
    noisy: list[str] = []
    if not keep_noisy:
        remaining, noisy = without_noisy(remaining)
        if noisy:
            warnings.warn(noisy_sentence(noisy, "keep_noisy=True"), stacklevel=2)
    summary = added_anywhere(
        remaining,
        engine=engine,
        jobs=jobs,
        folder=folder,
        declared=Declared.of(overlapping, moving, allowances).besides(noisy),
    )
    for part, holding in leaving.holdings:
        warnings.warn(holding.sentence(part), stacklevel=2)
    return release_of(
        summary,
        public=public,
        names=names,
        method=method,
        facts=Facts(name or "combined release", curator, description, intended_use),
        facts_of_public=facts_of_public,
        facts_of_names=facts_of_names,
        day=date,
    )


def release_of(
    summary: Summary,
    *,
    public: Any,
    names: Any,
    method: str | None,
    facts: Facts,
    facts_of_public: Mapping[str, str] | None,
    facts_of_names: Mapping[str, Any] | None,
    day: date | str | None,
) -> Release:
    """Make the release of a summary, with its parts in item 12."""
    released = decision_of(summary, public=public, names=names, method=method)
    guarantee = summary.guarantee
    fit = CombinedFit(summary, released, guarantee, names)
    release = Release.of(
        fit,
        public=facts_of_public,
        names=facts_of_names,
        encoder=summary.recipe.encoder.model_dump(),
        date=day,
        name=facts.name,
        curator=facts.curator,
        description=facts.description,
        intended_use=facts.intended_use,
    )

    document = release.document
    pattern = CombinedPattern(
        pattern=PATTERN,
        ledger="none of this release: the ledgers are those of the owners",
        ledger_since="not stated",
        ledger_head="not stated",
        combination=summary.document.combination,
        sources=summary.recipe.sources,
    )
    document = document.model_copy(
        update={
            "version": COMBINED_VERSION,
            "pattern": pattern,
            "trust": Trust(setting="central", who_sees_what=WHO_SEES_WHAT),
        }
    )
    return Release(document, release.arrays, release.sha256, render_card(document), release.source)


def decision_of(summary: Summary, *, public: Any, names: Any, method: str | None) -> Released:
    """Decide by the sums of a summary, public rows and names of the classes."""
    check_method(method)
    if method is None:
        method = "noisy-sum" if public is None else "auto"
    if method == "auto":
        if public is None:
            raise InputError("method='auto' needs public rows; pass public=X_public (--public)")
        return by_public_rows(summary, public, names).released

    if names is not None:
        raise InputError(
            "names=... need public rows beside them, and method='auto'; pass public=X_public, or"
            " leave the names out"
        )
    if method == "least-squares":
        return by_moments(summary, public)
    if public is not None:
        check_centre(summary.centre, public_rows(public, summary.recipe.width))
    return by_directions(summary)


def check_method(method: str | None) -> None:
    """Refuse a decision that does not follow from summaries."""
    if method is not None and method not in METHODS:
        raise InputError(
            f"method={quoted(method)} is none of {', '.join(METHODS)}; pass one of them"
        )
