"""Sources of recipes, and what still holds a part.

A recipe may have been computed from earlier releases: a centre from synthetic rows, a class list or
a budget from a release, the choice of parts from figures. Sums that were made by it have then seen
the parts of that release, which a combination without one of these parts must say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tacit.data.synthetic import KEY, RELEASE, is_synthetic
from tacit.errors import InputError, excerpt, nearest, quoted
from tacit.privacy.parts import part_key, part_name
from tacit.releases.combination import Combination, Source
from tacit.releases.measured import CombinedUtility
from tacit.releases.provenance import one_line
from tacit.releases.reading import SUMMARY_DOCUMENT
from tacit.releases.release import Release
from tacit.releases.schema import CombinedPattern, Document
from tacit.releases.summary import Summary
from tacit.releases.summary_document import SummaryDocument
from tacit.releases.summary_files import read_document

CENTRE = "centre"
KINDS = (CENTRE, "classes", "budget", "parts")
"""What of a recipe may have been computed: its centre, the class list, the budget, the choice of
parts.
"""

# sums and figures of the records of a part, and public rows that were drawn from a release
SUMS = "sums"
FIGURES = "figures"
ROWS = "rows"


class Holding(NamedTuple):
    """One way in which something released holds a part, or may hold it.

    Attributes
    ----------
    where : str
        The summary or release.
    what : str
        "sums" or "figures" if it was made of records of the part; otherwise what of its recipe was
        computed from the release `source`: "centre", "classes", "budget" or "parts"; or "rows" for
        public rows that were drawn from it.
    source : str
        Name of that release; empty for sums and figures.
    certain : bool
        False if `source` states no parts, so that nothing shows whether it holds this one.
    """

    where: str
    what: str
    source: str
    certain: bool

    def sentence(self, part: str) -> str:
        """Say it in one sentence."""
        if not self.source:
            return f"{self.where}: its {self.what} are of records of {part!r}"
        of_recipe = {
            CENTRE: "its centre was",
            "classes": "its class list was",
            "budget": "its budget was",
            "parts": "the choice of its parts was",
            ROWS: "its rows were",
        }[self.what]
        held = f"which holds {part!r}"
        if not self.certain:
            held = f"which states no parts, so nothing shows that it does not hold {part!r}"
        return f"{self.where}: {of_recipe} computed from {self.source!r}, {held}"


def sources_of(what: str, released: Summary | Release | Path | str) -> tuple[Source, ...]:
    """State that `what` of a recipe was computed from a released summary or release.

    Parameters
    ----------
    what : {"centre", "classes", "budget", "parts"}
    released : Summary, Release, str or Path
        Or the folder of one, which is verified.

    Returns
    -------
    tuple of Source
        For `Summary.of(sources=...)`: the release with its parts, and what it was computed from
        itself. A release of a fit states no parts.

    Examples
    --------
    >>> import numpy as np, tacit
    >>> X, y = np.repeat(np.eye(2), 500, axis=0), np.repeat([0, 1], 500)
    >>> first = tacit.Summary.of(tacit.ClassSummary(classes=2, part="clinic A").fit(X, y))
    >>> [source.parts for source in sources_of("budget", first)]
    [('clinic A',)]
    """
    if what not in KINDS:
        raise InputError(f"what={quoted(what)} is no part of a recipe; {nearest(str(what), KINDS)}")
    loaded = _loaded(released).verify()
    parts = sorted({part for _, part in _parts_of(loaded.document)})
    first = Source(what=what, release=loaded.document.product.name, parts=tuple(parts))  # type: ignore[arg-type]  # checked above
    earlier = [source.model_copy(update={"what": what}) for source in _sources_of(loaded.document)]
    return tuple(dict.fromkeys([first, *earlier]))


def sources_of_centre(card: Mapping[str, Any]) -> tuple[Source, ...]:
    """State that the centre is that of synthetic rows, if the card of the public rows says so."""
    if not is_synthetic(card):
        return ()
    return (Source(what="centre", release=one_line(card[KEY][RELEASE]), parts=()),)


def holders_of(part: str, released: Iterable[Summary | Release | Path | str]) -> list[Holding]:
    """List what still holds a part: its sums, and what was computed from releases that hold it.

    Parameters
    ----------
    part : str
        The declared name.
    released : iterable of Summary, Release, str or Path
        Or their folders.

    Returns
    -------
    list of Holding
        In the order of `released`; empty if nothing states that it holds the part.

    Examples
    --------
    >>> import numpy as np, tacit
    >>> X, y = np.repeat(np.eye(2), 500, axis=0), np.repeat([0, 1], 500)
    >>> first = tacit.Summary.of(tacit.ClassSummary(classes=2, part="clinic A").fit(X, y))
    >>> [holding.what for holding in tacit.holders_of("clinic A", [first, tacit.combine([first])])]
    ['sums', 'sums']
    """
    key = part_key(part_name(part))
    holdings = []
    for one in released:
        document, where = _document_of(one)
        kinds = {kind: None for kind, name in _parts_of(document) if part_key(name) == key}
        holdings += [Holding(where, kind, "", True) for kind in kinds]
        holdings += _seen(key, document, where)
    return holdings


class Leaving:
    """The parts that a combination leaves out, and what of the summaries that remain still holds
    them.

    Parameters
    ----------
    without : sequence of str
        Names of the parts.

    Attributes
    ----------
    left_out : list of (str, str)
        Summary and part of each that was left out.
    holdings : list of (str, Holding)
        Part, and what holds it.
    """

    def __init__(self, without: Sequence[str]) -> None:
        if isinstance(without, str):
            raise InputError(
                f"without={quoted(without)} must be a list of names; pass [{without!r}]"
            )
        self.names = {part_key(part_name(name)): name for name in without}
        self.left_out: list[tuple[str, str]] = []
        self.holdings: list[tuple[str, Holding]] = []

    def remaining(
        self, summaries: Iterable[Summary | Path | str]
    ) -> Iterator[Summary | Path | str]:
        """Yield the summaries of other parts.

        Raises
        ------
        InputError
            If a part is within a combined summary, nothing has a part, or nothing remains.
        """
        others: set[str] = set()
        for summary in summaries:
            document, where = _document_of(summary)
            rows = document.combination.parts  # type: ignore[union-attr]  # of a summary
            parts = {part_key(row.name): row.name for row in rows}
            leaving = [name for key, name in parts.items() if key in self.names]
            if len(leaving) == len(parts):
                self.left_out += [(where, name) for name in leaving]
                self._note_centre(document, where)
                continue
            if leaving:
                raise InputError(
                    f"part {quoted(leaving[0])} cannot be taken out of {where}, which adds up"
                    f" {len(rows)} summaries; combine those of the other parts instead"
                )
            others |= set(parts.values())
            for key, name in self.names.items():
                self.holdings += [(name, holding) for holding in _seen(key, document, where)]
            yield summary
        self._check(others)

    def note_public(self, where: str, card: Mapping[str, Any]) -> None:
        """Count public rows that were drawn from a release, as their card says."""
        for source in sources_of_centre(card):
            holding = Holding(where, ROWS, source.release, False)
            self.holdings += [(name, holding) for name in self.names.values()]

    def _note_centre(self, document: Any, where: str) -> None:
        """Note what the centre of a summary that leaves was computed from: those that remain have
        the same centre, whether or not they state where it is from.
        """
        for key, name in self.names.items():
            for holding in _seen(key, document, f"{where}, of which the others have the centre"):
                if holding.what == CENTRE:
                    self.holdings.append((name, holding))

    def _check(self, others: set[str]) -> None:
        """Refuse a name that nothing has, since it may be misspelt, and an empty combination."""
        if self.left_out and not others:
            raise InputError("no summary remains without these parts; leave fewer out")
        held = {part_key(name) for _, name in self.left_out}
        held |= {part_key(name) for name, holding in self.holdings if holding.certain}
        for key, name in self.names.items():
            if key not in held:
                raise InputError(
                    f"without={quoted(name)} is no part of the summaries, nor of what their recipes"
                    f" were computed from; {excerpt(nearest(name, sorted(others)))}"
                )


def _seen(key: str, document: Any, where: str) -> list[Holding]:
    """List what of a recipe was computed from releases that hold a part, or may."""
    holdings = []
    for source in _sources_of(document):
        is_held = any(part_key(name) == key for name in source.parts)
        if is_held or not source.parts:
            holdings.append(Holding(where, source.what, source.release, is_held))
    return holdings


def _parts_of(document: SummaryDocument | Document) -> list[tuple[str, str]]:
    """The parts whose records were used, each with what was made of them."""
    combinations: list[tuple[str, Combination]] = []
    if isinstance(document, SummaryDocument):
        combinations.append((SUMS, document.combination))
    else:
        if isinstance(document.pattern, CombinedPattern):
            combinations.append((SUMS, document.pattern.combination))
        if isinstance(document.utility, CombinedUtility):
            combinations.append((FIGURES, document.utility.combination))
    return [(kind, row.name) for kind, combination in combinations for row in combination.parts]


def _sources_of(document: SummaryDocument | Document) -> tuple[Source, ...]:
    """What was computed from earlier releases."""
    if isinstance(document, SummaryDocument):
        return document.recipe.sources
    if isinstance(document.pattern, CombinedPattern):
        return document.pattern.sources
    return ()


def _loaded(released: Any) -> Summary | Release:
    """A summary or release, read from its folder if it is a path."""
    if isinstance(released, Summary | Release):
        return released
    if not isinstance(released, str | Path):
        raise InputError(
            f"{quoted(type(released).__name__)} is no summary or release; pass one, or its folder"
        )
    if (Path(released) / SUMMARY_DOCUMENT).exists():
        return Summary.load(released)
    return Release.load(released)


def _document_of(released: Any) -> tuple[SummaryDocument | Document, str]:
    """The document of a summary or release, and what to call it; sums of folders are not read."""
    is_path = isinstance(released, str | Path)
    if is_path and (Path(released) / SUMMARY_DOCUMENT).exists():
        return read_document(Path(released)), str(released)
    loaded = _loaded(released)
    name = loaded.document.product.name if loaded.source in ("summary", "release") else ""
    return loaded.document, name or loaded.source
