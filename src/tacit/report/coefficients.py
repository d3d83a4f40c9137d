"""What each level of a table's columns adds to the scores of a release, as bars in HTML."""

from __future__ import annotations

from html import escape

import numpy as np

from tacit.models.rows import Floats
from tacit.models.table_columns import Embedded
from tacit.models.table_schema import TableSchema
from tacit.releases.coefficients import unreadable
from tacit.releases.release import Release
from tacit.report.page import scrolled

MOST_CLASSES = 6  # columns of bars
MOST_LEVELS = 60  # of a column; of more, those with the largest bars are shown

# length of the longest bar, in units of the SVG
LONGEST = 100


def section(release: Release) -> str | None:
    """Return the bars of each column, or a line that says why there are none.

    None if the release takes no tables.
    """
    columns = release.columns
    if not isinstance(columns, TableSchema):
        return None
    reason = unreadable(columns, release.decision, release.arrays)
    if reason is not None:
        return f"<p>This release {reason}, so no level has a coefficient of its own.</p>"

    titles, effects = _effects(release)
    longest = max((np.abs(values).max() for values in effects.values()), default=0.0) or 1.0
    html = f"<p>{escape(_words(release, len(titles)))}</p>"
    hidden = [name for name, part in columns.columns.items() if isinstance(part, Embedded)]
    if hidden:
        html += f"<p>Features of an encoder, without bars: {escape(', '.join(hidden))}.</p>"

    levels = release.coefficients()
    figures = ""
    for name, values in effects.items():
        figures += _figure(name, list(levels[name]), titles, values, longest)
    return f'{html}<div class="columns">{figures}</div>'


def _effects(release: Release) -> tuple[list[str], dict[str, Floats]]:
    """Return titles of bars, and the bars of each column's levels, (levels, titles)."""
    classes = [str(label) for label in release.classes]
    matrices = {name: np.array([*of.values()]) for name, of in release.coefficients().items()}
    if release.several:
        # each label is decided by itself, so nothing is taken off
        shown = {name: values[:, :MOST_CLASSES] for name, values in matrices.items()}
        return [f"log odds of {label}" for label in classes[:MOST_CLASSES]], shown
    if len(classes) == 2:
        differences = {name: values[:, 1:] - values[:, :1] for name, values in matrices.items()}
        return [f"log odds of {classes[1]}"], differences
    centred = {
        name: (values - values.mean(axis=1, keepdims=True))[:, :MOST_CLASSES]
        for name, values in matrices.items()
    }
    return classes[:MOST_CLASSES], centred


def _words(release: Release, n_shown: int) -> str:
    """Say what the bars are, and what they cost."""
    classes = [str(label) for label in release.classes]
    if release.several:
        words = "Each bar is what a value adds to the log odds of a label against not having it; to"
        words += " the right, the label becomes more likely."
        if n_shown < len(classes):
            words += f" The first {n_shown} of {len(classes)} labels are shown."
    elif len(classes) == 2:
        words = f"Each bar is what a value adds to the log odds of {classes[1]} against"
        words += f" {classes[0]}; to the right, {classes[1]} becomes more likely."
    else:
        words = "Each bar is what a value adds to the logit of a class, less the mean of all"
        words += " classes; to the right, the class becomes more likely."
        if n_shown < len(classes):
            words += f" The first {n_shown} of {len(classes)} classes are shown."
    if "centre" in release.arrays:
        words += " Rows are centred and scaled again, so bars add up to a factor that differs by"
        words += " row."
    return (
        f"{words} All columns have one scale. The bars follow from the arrays of this release alone"
        " (post-processing), so they cost no privacy. They hold its noise: the bar of a value that"
        " few records have is mostly noise."
    )


def _figure(name: str, levels: list[str], titles: list[str], values: Floats, longest: float) -> str:
    """Return the bars of a column as a table."""
    # in the order of the schema
    shown = np.sort(np.argsort(-np.abs(values).max(axis=1), kind="stable")[:MOST_LEVELS])
    caption = name
    if len(shown) < len(levels):
        caption += f": {len(shown)} of {len(levels)} values, those with the longest bars"

    head = "".join(f'<th scope="col" colspan="2">{escape(title)}</th>' for title in titles)
    body = ""
    for place in shown:
        cells = "".join(_bar(value, longest) for value in values[place])
        body += f'<tr><th scope="row">{escape(levels[place])}</th>{cells}</tr>'
    html = f"<table><caption>{escape(caption)}</caption><thead><tr><td></td>{head}</tr></thead>"
    return scrolled(f"{html}<tbody>{body}</tbody></table>", name, "tall dense")


def _bar(value: float, longest: float) -> str:
    """Return a bar from the middle to the right or the left, and its number."""
    length = LONGEST * abs(value) / longest
    start = LONGEST if value >= 0 else LONGEST - length
    kind = "more" if value >= 0 else "less"
    bar = f'<rect class="{kind}" x="{start:.1f}" width="{length:.1f}" y="2" height="10"/>'
    axis = f'<line x1="{LONGEST}" x2="{LONGEST}" y1="0" y2="14"/>'
    box = f'viewBox="0 0 {2 * LONGEST} 14" aria-hidden="true"'
    return f'<td><svg class="bar" {box}>{bar}{axis}</svg></td><td>{value:+.2f}</td>'
