"""The section of a dossier on how well a release works, and how that was measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tacit.privacy.decimals import noise_rounded_down, rounded_up
from tacit.releases.measured import HIDDEN, CombinedUtility, PaidUtility
from tacit.releases.opening import (
    utility_words,
)
from tacit.releases.schema import (
    Document,
    LabelSetUtility,
    Utility,
    sets_of,
)
from tacit.report.dossier_parts import (
    MOST_CLASSES,
    Fact,
    Section,
    Table,
    value_text,
    words_of_name,
)

# fields of item 15 that a table shows, or that other sections do
_IN_TABLES = {"per_class", "per_label", "per_class_intervals", "groups", "guarantee", "combination"}


def utility_section(document: Document) -> Section:
    """How well it works, and how that was measured."""
    utility = document.utility
    title = "How well it works, and how that was measured"
    answer = utility_words(document)
    if isinstance(utility, str):
        return Section(title, answer, ())

    shares: Mapping[str, float] = {}
    if isinstance(utility, Utility):
        shares = utility.per_class
    elif isinstance(utility, LabelSetUtility):
        shares = utility.per_label
    tables = []
    if shares:
        tables.append(_per_class(shares, isinstance(utility, LabelSetUtility)))
    stated = utility.model_dump(exclude=_IN_TABLES)
    if isinstance(utility, PaidUtility):
        tables = [_per_paid_class(utility)]
        if utility.groups:
            tables.append(_by_group(utility))
    if isinstance(utility, CombinedUtility):
        tables.append(_by_part(utility))
    facts = tuple(
        Fact(words_of_name(name).capitalize(), value_text(value, name), "item 15")
        for name, value in stated.items()
    )
    return Section(title, answer, facts, tuple(tables))


def with_sets(section: Section, document: Document) -> Section:
    """Add the prediction sets that a release carries, and what they cost."""
    sets = sets_of(document.contents)
    if sets is None:
        return section
    rule = f"{sets.rule}, for level {sets.level:g}; {sets.promise}"
    facts = (
        Fact("Prediction sets", rule, "item 8"),
        Fact("Price of the sets", f"{sets.statement} {sets.about}", "item 8"),
    )
    return replace(section, facts=section.facts + facts)


def _per_paid_class(utility: PaidUtility) -> Table:
    """The accuracy of each class with its interval, the lowest first, then those that noise
    hides.
    """
    intervals = utility.per_class_intervals
    ordered = sorted(intervals, key=lambda name: utility.per_class.get(name, 2.0))
    rows = []
    for name in ordered[:MOST_CLASSES]:
        low, high = intervals[name]
        share = utility.per_class.get(name)
        shown = HIDDEN if share is None else f"{100 * share:.1f}"
        rows.append((name, shown, f"{100 * low:.1f} to {100 * high:.1f}"))
    header = ("class", "right, of 100", "95% interval")
    return Table(_caption_of_classes(len(ordered)), header, tuple(rows))


def _per_class(shares: Mapping[str, float], several: bool) -> Table:
    """The figure of each class, the lowest first."""
    ordered = sorted(shares.items(), key=lambda pair: pair[1])
    rows = [(name, f"{100 * share:.1f}") for name, share in ordered[:MOST_CLASSES]]
    figure = "average precision, of 100" if several else "right, of 100"
    return Table(_caption_of_classes(len(ordered)), ("class", figure), tuple(rows))


def _caption_of_classes(n_classes: int) -> str:
    """Return the caption of a table of classes, of which the first are shown."""
    caption = "Each class of the test set, the lowest first (item 15)"
    if n_classes > MOST_CLASSES:
        caption += f"; {MOST_CLASSES} of {n_classes}"
    return caption


def _by_group(utility: PaidUtility) -> Table:
    """The accuracy of each declared group, with its interval."""
    rows = []
    for group in utility.groups:
        figure = group.accuracy
        shown = figure if isinstance(figure, str) else f"{100 * figure:.1f}"
        low, high = group.accuracy_interval
        rows.append((group.name, shown, f"{100 * low:.1f} to {100 * high:.1f}"))
    caption = f"Groups by {utility.grouped_by} (item 15)"
    return Table(caption, ("group", "right, of 100", "95% interval"), tuple(rows))


def _by_part(utility: CombinedUtility) -> Table:
    """The parts of the test records: the noise of each cell and the price of each."""
    parts = utility.combination.parts
    rows = []
    for row in parts[:MOST_CLASSES]:
        cost = utility.combination.costs[row.cost]
        noise = noise_rounded_down(row.noise_of_sums)
        price = rounded_up(float(cost.epsilon))
        rows.append((row.name, noise, f"{price} at delta {cost.delta:g}", row.date))
    caption = "Parts of the test records (item 15)"
    if len(parts) > MOST_CLASSES:
        caption += f"; {MOST_CLASSES} of {len(parts)}"
    return Table(caption, ("part", "noise of a count", "epsilon", "released"), tuple(rows))
