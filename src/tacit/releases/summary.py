"""Summary: noisy class sums of one part of the records, or of several, that may be handed out.

A folder of three files: `summary.json` (the document), `sums.safetensors` (integers, and the public
centre) and `CARD.md`. Sums add up exactly, so a combination has the same bits in whatever order and
groups its parts were added.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from tacit.compute.atomic import write_folder
from tacit.compute.wide import Totals
from tacit.errors import InputError, ReleaseError, quoted
from tacit.models.rows import Floats
from tacit.models.summarised import (
    COUNT_SCALE,
    ROW_SCALE,
    UNIT,
    UNIT_OF_MOMENTS,
    Summarised,
    symmetric,
    without_scales,
)
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.unit import Unit
from tacit.releases import fitted, reading
from tacit.releases.adding import Adding, Reference
from tacit.releases.combination import (
    NOTHING,
    Combination,
    Declared,
    PartRow,
    Source,
    combination_of_part,
    guarantee_of,
    noise_of_classes,
    noise_of_moments,
    united_classes,
)
from tacit.releases.fields import Recorded
from tacit.releases.reading import CARD, read_guarantee, read_only
from tacit.releases.schema import Array, Product
from tacit.releases.statement import check_work, stamp, statement_of
from tacit.releases.summary_checks import (
    implausible_sums,
    in_words,
    misfit_of_arrays,
    untrue_statement,
)
from tacit.releases.summary_document import (
    SummaryDocument,
    SummaryRecipe,
    recipe_of,
    summary_card,
)
from tacit.releases.summary_files import (
    AGAIN,
    ARRAYS,
    CENTRE,
    DOCUMENT,
    LIMITS,
    MOMENTS,
    SUMS,
    holds_summary,
    parse_summary,
    read_files,
    read_integers,
    stored_integers,
)

__all__ = ["Summary"]


@dataclass(eq=False, repr=False)
class Summary:
    """Noisy class sums that may be handed out, made by `Summary.of` or read by `Summary.load`.

    Summaries of one recipe add up: `a + b`. `tacit.combine` makes a classifier of them.

    Parameters
    ----------
    document : SummaryDocument
        The content of `summary.json`.
    arrays : dict of str to ndarray
        `sums` of shape (C, d + 1), int64, in units of 2^-32, the last column for counts; or, where
        64 bits do not hold them, their low words with `sums_high`. `moments` in the same way, of
        shape (d (d + 1) / 2,) in units of 2^-36, where all parts have some. `centre` of shape (d,)
        where rows have a public centre.
    sha256 : str
        Hash of the arrays' file.
    card_text : str
        The content of `CARD.md`.
    source : str
        The folder that it was read from, for messages.

    Examples
    --------
    >>> import tempfile, numpy as np, tacit
    >>> X, y = np.repeat(np.eye(2), 500, axis=0), np.repeat(["cat", "dog"], 500)
    >>> def summary_of(part):
    ...     fitted = tacit.ClassSummary("rho=0.5", classes=["cat", "dog"], part=part).fit(X, y)
    ...     return tacit.Summary.of(fitted)
    >>> folder = summary_of("clinic A").save(tempfile.mkdtemp() + "/a")
    >>> both = tacit.Summary.load(folder).verify() + summary_of("clinic B")
    >>> round(both.guarantee.rho, 9), [part.name for part in both.parts]
    (0.5, ['clinic A', 'clinic B'])
    """

    document: SummaryDocument
    arrays: dict[str, NDArray[Any]]
    sha256: str
    card_text: str
    source: str = "summary"

    @classmethod
    def of(
        cls,
        clf: Any,
        *,
        name: str | None = None,
        curator: str | None = None,
        description: str | None = None,
        encoder: Mapping[str, str] | None = None,
        public: Mapping[str, str] | None = None,
        class_list: str | None = None,
        sources: Sequence[Source] = (),
        date: date | str | None = None,
    ) -> Summary:
        """Make a summary from a fitted `ClassSummary`.

        Parameters
        ----------
        clf : ClassSummary
        name, curator, description : str, optional
            One line each for the card.
        encoder, public : dict, optional
            `name`, `revision` and `hash` of the encoder, with its `recipe`, and of the public rows.
        class_list : str, optional
            A name of what the labels mean, such as "ICD-10 chapters". Summaries that name another
            list do not add up.
        sources : sequence of Source, optional
            What of the recipe was computed from earlier releases, and of which parts these were.
        date : date or str, optional
            Day of publication as YYYY-MM-DD; by default today.

        Raises
        ------
        ReleaseError
            If it is not a fitted `ClassSummary`, was changed since, or a fact cannot stand in the
            card.
        """
        fitted.check_publishable(clf)
        summarised = getattr(clf, "summarised_", None)
        if not isinstance(summarised, Summarised):
            fault = f"clf={type(clf).__name__} is no ClassSummary"
            raise ReleaseError(f"{fault}; fit tacit.ClassSummary, or pass it to tacit.Release.of")
        fitted.check_promise(clf)

        guarantee = fitted.with_other_fits(clf)
        classes = tuple(np.asarray(clf.classes_).tolist())
        arrays = stored_integers(summarised.sums, SUMS)
        if summarised.moments is not None:
            arrays |= stored_integers(summarised.moments, MOMENTS)
        if summarised.centre is not None:
            arrays[CENTRE] = read_only(summarised.centre)
        sha256 = hashlib.sha256(reading.arrays_file(arrays)).hexdigest()
        facts = {
            "name": name or f"summary of {summarised.part}",
            "curator": curator,
            "description": description,
        }
        product = fitted.product("ClassSummary", facts | {"intended_use": None}, date)
        try:
            recipe = recipe_of(
                int(clf.n_features_in_),
                classes,
                summarised.centre,
                encoder=encoder,
                public=public,
                class_list=class_list,
                sources=sources,
            )
            combination = combination_of_part(
                summarised.part,
                classes,
                guarantee,
                date=product.date,
                noise_of_sums=summarised.noise,
                noise_of_moments=summarised.noise_of_moments,
                sha256=sha256,
            )
        except ValidationError as error:
            raise reading.refusal("summary", error, "give one line of text") from error
        return assembled(recipe, combination, arrays, product, clf.noise_)

    @classmethod
    def load(cls, folder: Path | str) -> Summary:
        """Read a summary; safe on files from anybody. Call `verify` to check what it says.

        Raises
        ------
        ReleaseError
            If a file is missing, unknown, too large or malformed, or the arrays do not fit the
            document.
        """
        folder = Path(folder)
        return cls.of_files(read_files(folder), folder)

    @classmethod
    def of_files(cls, files: Mapping[str, bytes], folder: Path | str = "summary") -> Summary:
        """Read a summary from the bytes of its files by name; errors are those of `load`."""
        folder = Path(folder)
        missing = [name for name in LIMITS if name not in files]
        if missing:
            raise ReleaseError(f"{folder} holds no {missing[0]}; {AGAIN}")
        reading.check_sizes(files, LIMITS, AGAIN)
        document = parse_summary(str(folder / DOCUMENT), files[DOCUMENT])
        arrays = reading.parse_arrays(str(folder / ARRAYS), files[ARRAYS])
        card_text = reading.text_of(folder / CARD, files[CARD])
        sha256 = hashlib.sha256(files[ARRAYS]).hexdigest()
        summary = cls(document, arrays, sha256, card_text, source=str(folder))
        summary._check_arrays()
        # raises for malformed events
        read_guarantee(document.guarantee, summary.source)
        for cost in document.combination.costs:
            read_guarantee(cost.guarantee, summary.source)
        return summary

    def save(
        self, folder: Path | str, *, force: bool = False, allow_research: bool = False
    ) -> Path:
        """Write the summary to a new folder, whole or not at all.

        Parameters
        ----------
        folder : str or Path
            Returned as a Path.
        force : bool, default=False
            Replace an older summary of that name; no other folder is ever replaced.
        allow_research : bool, default=False
            Write a summary that is stamped "NOT FOR RELEASE".

        Raises
        ------
        ReleaseError
            If it is stamped, or too large to be read again.
        InputError
            If the folder exists or cannot be written.
        """
        files = self.files(allow_research=allow_research)
        return write_folder(folder, files, force=force, ours=holds_summary)

    def files(self, *, allow_research: bool = False) -> dict[str, bytes]:
        """Return the bytes of the three files by name; errors are those of `save`."""
        if self.document.stamp and not allow_research:
            fault = f"{self.document.product.name!r} is {self.document.stamp}"
            raise ReleaseError(
                f"{fault}; fit with noise='secure' and a finite budget, or pass"
                " allow_research=True (--allow-research) to keep it for research"
            )
        files = {
            DOCUMENT: reading.document_file(self.document),
            ARRAYS: reading.arrays_file(self.arrays),
            CARD: self.card().encode("utf-8"),
        }
        reading.check_sizes(files, LIMITS, "combine fewer parts")
        return files

    def verify(self) -> Summary:
        """Check that files, arrays and every stated number agree, and that the sums are within what
        their counts allow; returns this summary.

        Every number about privacy is computed again from the recorded events.

        Raises
        ------
        ReleaseError
            At the first statement that does not agree.
        """
        if self.sha256 != self.document.sha256:
            raise self._error(f"{ARRAYS} has another hash than {DOCUMENT} states")
        self._check_arrays()
        fault = untrue_statement(self.document, self.guarantee)
        fault = fault or implausible_sums(self.document, self.arrays)
        # the hash by which sums that are there already are found
        if fault is None and len(self.parts) == 1 and self.parts[0].sha256 != self.sha256:
            fault = "its part is stated with the hash of other arrays"
        if fault is not None:
            raise self._error(fault)
        if self.card_text != self.card():
            raise self._error(f"{CARD} does not say what {DOCUMENT} says")
        return self

    def __add__(self, other: Summary) -> Summary:
        """Add a summary of the same recipe; `tacit.combine` adds many."""
        return added_up([self, other])

    @property
    def guarantee(self) -> Guarantee:
        """The privacy cost of all parts together."""
        return read_guarantee(self.document.guarantee, self.source)

    @property
    def recipe(self) -> SummaryRecipe:
        """How rows became sums."""
        return self.document.recipe

    @property
    def parts(self) -> tuple[PartRow, ...]:
        """The parts, with the noise and cost of each."""
        return self.document.combination.parts

    @property
    def classes(self) -> tuple[Any, ...]:
        """The classes of all parts."""
        return united_classes(self.document.combination)

    @property
    def weighs_persons(self) -> bool:
        """True if a part was summed under a unit per person, so that persons have weights."""
        costs = self.document.combination.costs
        return any(Unit(cost.guarantee.unit).per_person for cost in costs)

    @property
    def centre(self) -> Floats | None:
        """The public centre of the rows, of shape (d,), if there is one."""
        return self.arrays.get(CENTRE)

    @property
    def totals(self) -> Totals:
        """The noisy sums as integers, of shape (C, d + 1)."""
        return read_integers(self.arrays, SUMS)

    @property
    def moments(self) -> Totals | None:
        """The upper triangle of the noisy second moments as integers, row by row; None if a part
        has none.
        """
        if MOMENTS not in self.arrays:
            return None
        return read_integers(self.arrays, MOMENTS)

    def noisy_sums(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Return what was summed, with its noise.

        Returns
        -------
        sums : ndarray of shape (C, d)
            Noisy sums of the unit rows of each class.
        noise : ndarray of shape (C,)
            Standard deviation of the noise of each entry.
        counts, count_noise : ndarrays of shape (C,)
            Noisy numbers of records, or weights of persons, and their standard deviations.
        """
        noise = noise_of_classes(self.document.combination)
        sums = without_scales(np.asarray(self.totals / UNIT))
        return sums[:, :-1], noise / ROW_SCALE, sums[:, -1], noise / COUNT_SCALE

    def noisy_moments(self) -> tuple[Floats, float] | None:
        """Return the noisy second moments of the unit rows, (d, d), and the standard deviation of
        the noise of each entry; None if a part has none.
        """
        noise = noise_of_moments(self.document.combination)
        if self.moments is None or noise is None:
            return None
        triangle = np.asarray(self.moments / UNIT_OF_MOMENTS)
        return symmetric(triangle, self.recipe.width), noise

    def card(self) -> str:
        """The card as Markdown."""
        return summary_card(self.document)

    def __repr__(self) -> str:
        names = ", ".join(part.name for part in self.parts[:3])
        more = f" and {len(self.parts) - 3} more" if len(self.parts) > 3 else ""
        return f"Summary({names}{more}: {len(self.classes)} classes)"

    def _check_arrays(self) -> None:
        """Refuse arrays of another form than the document states."""
        fault = misfit_of_arrays(self.document, self.arrays)
        if fault is not None:
            raise self._error(fault)

    def _error(self, fault: str) -> ReleaseError:
        return ReleaseError(f"{self.source}: {fault}; {AGAIN}")


def assembled(
    recipe: SummaryRecipe,
    combination: Combination,
    arrays: Mapping[str, NDArray[Any]],
    product: Product,
    noise: str,
) -> Summary:
    """Make a summary of its parts, with all that follows from them."""
    guarantee = guarantee_of(combination)
    check_work(guarantee)
    stored = {name: read_only(array) for name, array in sorted(arrays.items())}
    sha256 = hashlib.sha256(reading.arrays_file(stored)).hexdigest()
    document = SummaryDocument(
        version=1,
        stamp=stamp(guarantee, noise),  # type: ignore[arg-type]  # pydantic checks
        product=product,
        guarantee=Recorded.of(guarantee),
        statement=statement_of(guarantee, noise),
        in_words=in_words(guarantee, noise),
        noise=noise,  # type: ignore[arg-type]  # pydantic checks
        recipe=recipe,
        combination=combination,
        arrays=tuple(
            Array(name=name, dtype=array.dtype.name, shape=array.shape)  # type: ignore[arg-type]  # pydantic checks
            for name, array in stored.items()
        ),
        sha256=sha256,
    )
    return Summary(document, stored, sha256, summary_card(document))


def added_up(
    summaries: Iterable[Summary | Path | str],
    *,
    declared: Declared = NOTHING,
    name: str | None = None,
    date: str | None = None,
    reference: Reference | None = None,
) -> Summary:
    """Add summaries, or folders of them, up; one is in memory at a time.

    All must have the recipe of the `reference`, by default of the first.

    Raises
    ------
    ReleaseError
        If a statement of one does not agree, or its sums are beyond what its counts allow.
    InputError
        If recipes differ, or the same sums are there twice.
    """
    adding = Adding(declared=declared, reference=reference)
    for summary in summaries:
        adding.add(as_summary(summary))
    return assembled(*adding.total(name=name, date=date))


def as_summary(summary: Any) -> Summary:
    """Return a summary, read from its folder if it is a path."""
    if isinstance(summary, str | Path):
        return Summary.load(summary)
    if not isinstance(summary, Summary):
        raise InputError(
            f"summaries hold {quoted(type(summary).__name__)}; pass tacit.Summary objects or their"
            " folders"
        )
    return summary
