"""PublicPrototypes: each class is represented by public records (DPPL-Public, DPPL-Public
Top-K).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.engines import Engine, engine_from
from tacit.compute.progress import progress
from tacit.compute.timing import SELECTION, phase
from tacit.data.rows import check_rows
from tacit.errors import BudgetError, InputError
from tacit.learners.common.base import Prepared, PrivateClassifier
from tacit.learners.common.parameters import flag, whole
from tacit.learners.prototypes.scores import IN_MEMORY, WORK, work_folder
from tacit.learners.prototypes.scores.arithmetic import AUTO, Scoring, check_name, scoring
from tacit.learners.prototypes.scores.window import PUBLIC, window, window_needs_public
from tacit.learners.prototypes.selection import candidates, class_scores, select_one
from tacit.mechanisms import exponential, top_k
from tacit.mechanisms.noise import Integers, NoiseSource
from tacit.models.decisions import NearestPrototype
from tacit.models.name_directions import name_directions
from tacit.models.public_rows import public_centre
from tacit.models.released import Released
from tacit.models.rows import Floats, centre_array
from tacit.privacy.budget import Budget
from tacit.privacy.decimals import rounded_up
from tacit.privacy.events import Event
from tacit.privacy.unit import Unit

SELECTIONS = ("exponential", "permute-and-flip")
LARGEST_SCORE = 2**63 - 1  # that an int64 holds


@dataclass(frozen=True, eq=False)
class ScoredRecords(Prepared):
    """Private records, the public rows and names (C, d) that they score, and the rule and the place
    of scoring.
    """

    public: Any
    window: tuple[float, float]
    scoring: Scoring
    folder: Path | None
    engine: Engine | None
    names: Floats | None


@dataclass(kw_only=True, eq=False, repr=False)
class PublicPrototypes(PrivateClassifier):
    """Classify by the nearest public records, k of them chosen privately for each class.

    The score of a public record is the sum of its cosine similarities to the records of the class,
    clipped to a window. With k = 1 one record is selected; with k > 1 a set is selected jointly, by
    its worst member. The release holds public records, so it reveals nothing but the choice.

    Parameters
    ----------
    budget : Budget or str, default="rho=0.5"
        Pure ("epsilon=1"), zCDP, or approximate, whose delta has no use here; "epsilon=inf" takes
        the k best, the lowest index first on ties.
    classes, noise, random_state, unit, ledger
        As in `NoisySumPrototypes`.
    public : array of shape (m, d)
        Public rows, finite and not zero, m >= k.
    allow_overlap : bool, default=False
        Whether public rows may be private records, which are then released if they are chosen;
        without it such a row is refused, and a warning states how many rows of names are private
        records. Rows are compared entry by entry at the lower of both precisions, except under
        units that protect labels alone, where rows are public.
    names : array of shape (C, d), or sequence of C arrays of shape (k, d) or (d,), optional
        Public rows of the class names, one or several per class, in the order of the declared
        classes. The name of every class, which is the direction of its rows about the centre, is a
        further candidate of each class, so names in a wrong order do little harm; names of other
        classes count by 7/8 of their scores. A class's own name is as likely as all other
        candidates together if all score alike, so names decide where noise dominates the records.
        Names need k = 1: joint selection depends on the worst of k rows, and was less accurate with
        names.
    k : int, default=1
        Public records per class.
    d_min, d_max : float or "public", default="public"
        Window to which 1 + cosine is clipped. "public" computes it only from the public rows: 1
        plus the .9 quantile, and 1 plus the .999 quantile, of the similarities between pairs of at
        most 2048 of them; 0 and 2 if the quantiles are equal. 0 and 2 leave similarities unclipped,
        which is far cheaper to score.
    centre : bool, optional
        Subtract the mean of the unit public rows from every unit row, including public rows, and
        normalise it again: similarities then spread more widely. On by default if a bound is
        "public"; False is then refused.
    selection : {"exponential", "permute-and-flip"}, default="exponential"
        Permute-and-flip, for k = 1 under a pure budget, is never worse at the same epsilon.
    arithmetic : {"auto", "float32", "float64", "int8", "int8-cuda"}, default="auto"
        Integers in which clipped scores are computed; "auto" decides by the public rows, the
        window, and, for large public sets, a short measurement of this machine. See
        `tacit.learners.prototypes.scores`.
    folder : path, optional
        For finished shards of clipped scores, from which an interrupted fit resumes. They are
        private, and are removed at the end of a fit.
    engine : {"joblib", "ray", "slurm"}, str or Engine, optional
        Where shards of clipped scores are computed; "ray:ADDRESS" and "slurm:PARTITION" say on
        which cluster.
        By default in threads of this process. Workers must see `folder` and the files of the public
        rows.
    jobs : int, default=1
        Shards that an engine computes at the same time, at most 1024.

    Attributes
    ----------
    prototypes_ : ndarray of shape (C, d), or (C, k, d) for k > 1
        The chosen rows, as passed (whole numbers as floats), in the order of `public`; for a name,
        the unit row of its direction.
    indices_ : ndarray of shape (C,) or (C, k)
        Their positions in `public`; position m + c is the name of class c.
    centre_ : ndarray of shape (d,), or None
        Mean of the unit public rows, if rows are centred.
    window_ : tuple of float
        The window used, a function of the public rows.
    utilities_ : ndarray of shape (C, m), or (C, m + C) with names
        Scores in units of the sensitivity, including the bonus for a class's own name. Private:
        only with noise="research" or an infinite budget, never in a release, and only if they take
        no more than 256 MiB.
    classes_, guarantee_, spent_
        As in `NoisySumPrototypes`.

    Notes
    -----
    Guarantee: one exponential mechanism per class at epsilon; scores have sensitivity 1 and are
    monotone under add/remove, classes are disjoint: epsilon-DP and epsilon^2/8-zCDP for the whole
    table. A public centre changes nothing in this: centred rows are unit rows again. Nor do names:
    they are public candidates, and the bonus on the score of a name is public too. Under a unit per
    person a record's scores are divided by its person's number of records, so a person contributes
    as much as a record otherwise does, to all classes together: one exponential mechanism at
    epsilon in all. See `tacit.mechanisms.exponential`, `tacit.mechanisms.top_k` and
    `tacit.learners.prototypes.scores`.
    Source: Wahdany et al. 2024, sections 4 and 5, with the corrections listed in
    `tacit.mechanisms.top_k`.

    Examples
    --------
    >>> import numpy as np, tacit
    >>> X = np.repeat([[1.0, 0.1], [0.1, 1.0]], 50, axis=0)
    >>> y = np.repeat([0, 1], 50)
    >>> public = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = tacit.PublicPrototypes("epsilon=2", public=public, classes=2).fit(X, y)
    >>> model.predict([[1.0, 0.0], [0.0, 1.0]]), model.guarantee_.epsilon(0)
    (array([0, 1]), 2.0)
    """

    # facts of the method, as `PrivateClassifier` describes them
    estimates = "rows"
    person_bound = "each score is divided by the number of records of its person"
    budget_kinds = ("pure", "zcdp", "approx", "gdp")
    needs_public = True
    scores_public = True
    summary = (
        "one public record per class (DPPL-Public); with --k 5 a set of five (DPPL-Public Top-K)"
    )
    public_use = "needed, to choose from"

    public: Any = None
    allow_overlap: bool = False
    names: Any = None
    k: int = 1
    d_min: float | str = PUBLIC
    d_max: float | str = PUBLIC
    centre: bool | None = None
    selection: str = "exponential"
    arithmetic: str = AUTO
    folder: Any = None
    engine: Any = None
    jobs: int = 1

    def _epsilon(self) -> float:
        """Check the parameters, and return epsilon of each exponential mechanism."""
        budget = Budget.parse(self.budget)
        whole("k", self.k, 1, 2**31)
        self._centred()  # checks `centre`, `d_min` and `d_max`
        if self.names is not None and self.k > 1:
            raise InputError(f"names need k=1, not k={self.k}; pass k=1, or leave names out")
        whole("jobs", self.jobs, 1, 1024)
        check_name(self.arithmetic)
        if self.selection not in SELECTIONS:
            raise InputError(
                f"selection={self.selection!r} must be one of {', '.join(SELECTIONS)}; leave it out"
            )
        if self.selection == "permute-and-flip" and (budget.kind != "pure" or self.k != 1):
            rule = f"needs k=1 and a pure budget, not k={self.k} and {budget}"
            remedy = f"pass k=1 and {budget.hint('pure')} (pure), or selection='exponential'"
            raise BudgetError(f"selection={self.selection!r} {rule}; {remedy}")
        return budget.exponential(Unit(self.unit))

    def _centred(self) -> bool:
        """Tell whether rows are centred, which a window from public rows implies."""
        window_from_public = window_needs_public(self.d_min, self.d_max)
        if self.centre is None:
            return window_from_public

        centred = flag("centre", self.centre)
        if window_from_public and not centred:
            raise InputError(
                "centre=False does not go with a window from public rows; leave it out, or pass"
                " numbers"
            )
        return centred

    def _releases_public(self) -> bool:
        return True

    def _event(self) -> Event:
        epsilon = self._epsilon()
        if self.k == 1:
            return exponential.event(epsilon, self.selection)
        return top_k.event(epsilon)

    def _prepare(self, X: NDArray[Any], labels: Integers) -> ScoredRecords:
        public = candidates(self.public, X.shape[1])
        if self.k > len(public):
            raise InputError(
                f"k={self.k} must be at most the {len(public)} public rows; lower k or add public"
                " rows"
            )
        folder = self._folder()
        engine_folder = None
        if folder is not None:
            # the tasks of the engine are private, so they lie where scores lie
            engine_folder = folder / WORK
        engine = engine_from(self.engine, self.jobs, engine_folder)

        check_rows(public, name="public")
        centre = None
        if self._centred():
            centre = public_centre(public, X.shape[1])
        bounds = window(self.d_min, self.d_max, public, centre)

        # Scores are divided by the records of a person where persons are protected; at an infinite
        # epsilon nothing is.
        epsilon = self._epsilon()
        classes = None
        if Unit(self.unit).per_person and math.isfinite(epsilon):
            classes = len(self.classes_)
        rule = scoring(public, *bounds, centre=centre, name=self.arithmetic, classes=classes)
        if self.k > 1 and math.isfinite(epsilon):
            # refuses, before noise is drawn, a set that cannot be selected
            top_k.rank_scale(len(public), self.k, **self._set_facts(rule), epsilon=epsilon)

        names = None
        directions = name_directions(self.names, self.classes, X.shape[1], centre)
        if directions is not None:
            names = rows_in_directions(directions, centre)
        return ScoredRecords(X, labels, public, bounds, rule, folder, engine, names)

    def checkpoint_folder(self) -> Any:
        return self.folder

    def _folder(self) -> Path | None:
        """The folder for scores, checked by making it."""
        if not isinstance(self.folder, str | Path | None) or self.folder == "":
            raise InputError(
                f"folder={self.folder!r} must be a path; pass a folder for the scores, or leave"
                " it out"
            )
        if self.folder is None:
            return None

        folder = Path(self.folder)
        with work_folder(folder):
            pass
        return folder

    def _fit(self, prepared: ScoredRecords, noise: NoiseSource) -> Released:
        rule = prepared.scoring
        self.centre_ = rule.centre
        self.window_ = prepared.window
        self._select(prepared, noise)
        self.prototypes_ = self._selected_rows(prepared)

        arrays = {"prototypes": self.prototypes_, "indices": self.indices_}
        return Released(
            f"{self.k} public record(s) per class, in the public set's order",
            arrays | centre_array(self.centre_),
            NearestPrototype("cosine", centred="rows and prototypes"),
            self._facts(prepared),
        )

    def _facts(self, prepared: ScoredRecords) -> dict[str, Any]:
        """Facts for the card."""
        arithmetic = prepared.scoring.arithmetic
        integers = f"integers held by {arithmetic.name}, unit rows of norm {arithmetic.scale:.6g}"
        if arithmetic.rotated:
            integers += ", rotated and corrected along the public mean"

        rows = "cosine similarity of unit vectors, rounded to integers"
        if self.centre_ is not None:
            rows += "; unit vectors less their public mean, made unit again"

        epsilon = rounded_up(self._epsilon())
        facts: dict[str, Any] = {
            "selection": f"{self.selection}, epsilon {epsilon} per class, k = {self.k}",
            "clip window of 1 + cosine": list(self.window_),
            "sampling": "none; every record is used once",
            "arithmetic": integers,
            "normalisation": rows,
        }
        if prepared.names is not None:
            facts["names"] = "candidates of every class, its own favoured by a public amount"
        return facts

    def _select(self, prepared: ScoredRecords, noise: NoiseSource) -> None:
        """Select candidates for each class: `indices_` and `utilities_` if they may be shown."""
        epsilon = self._epsilon()
        n_classes = len(self.classes_)
        public = prepared.public
        rule = prepared.scoring

        with class_scores(
            rule, public, prepared, n_classes, folder=prepared.folder, engine=prepared.engine
        ) as totals:
            # scores (C, m) of public rows and (C, C or 0) of names
            name_scores = self._name_scores(prepared, n_classes, epsilon)

            # one row of scores at a time, the two side by side: all together may not fit the memory
            joined_rows = map(np.append, totals, name_scores)
            rows = progress(joined_rows, "selection", n_classes)
            self.indices_ = np.array([self._choose(row, rule, epsilon, noise) for row in rows])

            may_be_shown = self.noise == "research" or math.isinf(epsilon)
            bytes_of_scores = 8 * n_classes * len(public)
            if may_be_shown and bytes_of_scores <= IN_MEMORY:
                self.utilities_ = np.hstack([np.asarray(totals), name_scores]) / rule.sensitivity

    def _name_scores(self, prepared: ScoredRecords, n_classes: int, epsilon: float) -> Integers:
        """Scores of the names, (C, C), in which the name of the class itself is favoured; (C, 0)
        without names.
        """
        names = prepared.names
        rule = prepared.scoring
        if names is None:
            return np.zeros((n_classes, 0), dtype=np.int64)

        with class_scores(rule, names, prepared, n_classes) as totals:
            full_scores: Integers = np.asarray(totals)

        # Names of other classes count by 7/8 of their scores. A score and its eighth, rounded down,
        # move in the same direction, so sensitivity and monotonicity stay.
        scores: Integers = full_scores - full_scores // 8
        n_candidates = len(prepared.public) + n_classes
        bonus = name_bonus(n_candidates, rule.sensitivity, epsilon)
        for c in range(n_classes):
            # an int of Python's, which cannot overflow, before the bonus is added
            scores[c, c] = min(int(full_scores[c, c]) + bonus, LARGEST_SCORE)
        return scores

    @phase(SELECTION)
    def _choose(
        self, row: NDArray[np.int64], rule: Scoring, epsilon: float, noise: NoiseSource
    ) -> Any:
        """Select one position, or a set of k in ascending order, by the scores of a class."""
        if self.k == 1:
            return select_one(
                row,
                sensitivity=rule.sensitivity,
                epsilon=epsilon,
                noise=noise,
                selection=self.selection,
            )
        if math.isinf(epsilon):
            return np.sort(top_k.best_first(row)[: self.k])
        return top_k.select_set(row, self.k, **self._set_facts(rule), epsilon=epsilon, noise=noise)

    def _set_facts(self, rule: Scoring) -> dict[str, int]:
        """Sensitivity of the scores, and the number of classes in which a change moves scores.

        A record moves the scores of its own class alone.
        """
        return {"sensitivity": rule.sensitivity, "classes": rule.classes or 1}

    def _selected_rows(self, prepared: ScoredRecords) -> Floats:
        """Public rows and names at `indices_`, of shape (C, d) or (C, k, d)."""
        positions = self.indices_.ravel()
        n_public = len(prepared.public)
        is_public = positions < n_public

        # row 0 is read at the position of a name, and name 0 at that of a public row: neither stays
        rows = np.asarray(prepared.public[np.where(is_public, positions, 0)])
        if rows.dtype.kind != "f":
            rows = rows.astype(np.float64)
        if prepared.names is not None:
            names = prepared.names[np.maximum(positions - n_public, 0)]
            rows = np.where(is_public[:, None], rows, names)
        return rows.reshape(*self.indices_.shape, -1)


def name_bonus(m: int, sensitivity: int, epsilon: float) -> int:
    """Return the bonus that makes a candidate as likely as m others of the same score together.

    The exponential mechanism selects with odds exp(epsilon score/sensitivity), so the bonus is
    log(m) sensitivity/epsilon, as a whole number; 0 at an infinite epsilon.
    """
    # No test of names (`tacit.models.name_length`) can stand here: it would need a release of its
    # own, since the only release of this method is the selection. The bonus is a public prior on
    # the candidates, whose price falls with the budget.
    if math.isinf(epsilon):
        return 0

    # fractions, since the result may be larger than any float
    return round(Fraction(sensitivity) / Fraction(epsilon) * Fraction(math.log(m)))


def rows_in_directions(directions: Floats, centre: Floats | None) -> Floats:
    """Return unit rows that have these directions about the centre.

    A row is centre + t direction with t > 0 and norm 1: t solves t^2 + 2 t <direction, centre> +
    |centre|^2 = 1.
    """
    if centre is None:
        return directions
    along = directions @ centre

    # the centre, a mean of unit rows, has norm 1 at most: below 0 there is only rounding
    t = np.sqrt(np.maximum(along**2 + 1 - centre @ centre, 0.0)) - along
    return np.asarray(centre + t[:, None] * directions)
