"""Predictions of a release: classes, probabilities, answers on a tree, and rows of no class.

They follow from the document and the arrays of the release alone.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.errors import ReleaseError
from tacit.models.answers import (
    Answers,
    Levels,
    check_distinct,
    checked_share,
    no_label,
    without_answer,
)
from tacit.models.carried import carried, deciding
from tacit.models.decisions import Decision
from tacit.models.familiarity import share_below
from tacit.models.label_sets import stated_label_sets
from tacit.models.prediction_sets import SetRule
from tacit.models.probabilities import Probabilities, stated
from tacit.models.scaling import Scaling
from tacit.releases.code_tree import tree_of
from tacit.releases.columns import TableColumns, columns_of, rows_of
from tacit.releases.estimator import FittedClassifier
from tacit.releases.measured import PredictionSets
from tacit.releases.refusing import (
    WITHOUT_POSTERIOR,
    PosteriorStrangeness,
    ProbabilityStrangeness,
    Strangeness,
    check_unused,
    checked_refusal,
)
from tacit.releases.rows import checked_rows, some_rows
from tacit.releases.schema import Document, has_several_labels, sets_of

if TYPE_CHECKING:
    from tacit.data.trees import Tree


class PredictingClassifier(FittedClassifier):
    """A fitted classifier that predicts from the document and the arrays of a release.

    Attributes
    ----------
    document : Document
    arrays : dict of str to ndarray
    source : str
        Where they are from, for messages.
    """

    document: Document
    arrays: dict[str, NDArray[Any]]
    source: str

    def predict(
        self,
        X: ArrayLike,
        *,
        at_least: float | None = None,
        refuse: float | None = None,
        familiar: ArrayLike | None = None,
        foreign: ArrayLike | None = None,
    ) -> NDArray[Any]:
        """Predict the class of each row.

        Parameters
        ----------
        X : array-like of shape (n, d), or a table
            Embeddings of the encoder that the private rows were encoded with; finite. Those of a
            store or of a sparse matrix are read in blocks. A data frame, an Arrow table or a dict
            of columns is matched by the names of its columns where the release states some
            (`columns`); their order is free, and further columns are left out. A warning counts
            cells that are out of bounds or of no declared level.
        at_least : float, optional
            Answer only where this probability is reached, above 0.5 and at most 1: by the class, or
            else, where the release carries a tree (`tree`), by the deepest node above it that
            reaches it. See `answers`.
        refuse : float, optional
            Give no answer for rows that look like none of the classes: for those whose
            `unfamiliarity` is above 1 - `refuse`, and so for about this share of rows like those
            trained on. With `at_least` the refusal comes first.
        familiar, foreign : array-like, optional
            As in `unfamiliarity`.

        Returns
        -------
        ndarray of shape (n,)
            Labels of the class list; of a release of several labels a row (`several`), 0 and 1 of
            shape (n, K), one column a class. With `at_least` also inner nodes of the tree. "" where
            there is no answer, or -1 beside classes that are whole numbers.

        Raises
        ------
        InputError
            If X does not have that form.
        """
        if at_least is not None:
            check_distinct(self.classes)
            answers = self.answers(
                X, at_least=at_least, refuse=refuse, familiar=familiar, foreign=foreign
            )
            return answers.label

        if refuse is None:
            check_unused(familiar, foreign)
            return self._labels(self._rows(X))

        # class -1 would look like no answer
        check_distinct(self.classes)
        refused = self._refused(X, refuse, familiar, foreign)
        labels = self._labels(self._rows(X))
        return without_answer(labels, refused, no_label(self.classes))

    def answers(
        self,
        X: ArrayLike,
        *,
        at_least: float | None = None,
        refuse: float | None = None,
        familiar: ArrayLike | None = None,
        foreign: ArrayLike | None = None,
    ) -> Answers:
        """Predict the class of each row, or the deepest node of the tree that is likely enough.

        Parameters
        ----------
        X : array-like of shape (n, d), or a table
            As in `predict`.
        at_least : float, optional
            The probability that an answer must reach, above 0.5 and at most 1. The probability of a
            node is the sum of those of the classes below it. Without it the most likely class
            answers.
        refuse : float, optional
            As in `predict`.
        familiar, foreign : array-like, optional
            As in `unfamiliarity`.

        Returns
        -------
        Answers
            Arrays `label`, `level` and `probability`, of shape (n,). The level is 1 for nodes below
            the root, 2 for those below them, and so on; 0 where there is no answer.

        Raises
        ------
        ReleaseError
            If the release is older than probabilities, or a row may have several labels.
        InputError
            If X or `at_least` does not have that form.

        Notes
        -----
        Guarantee: that of the release; post-processing.

        Examples
        --------
        >>> import numpy as np, tacit
        >>> X = np.repeat([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], 50, axis=0)
        >>> y = np.repeat(["cat", "dog", "oak"], 50)
        >>> model = tacit.NoisySumPrototypes("rho=0.5", classes=["cat", "dog", "oak"]).fit(X, y)
        >>> tree = {"cat": "animal", "dog": "animal", "oak": "plant"}
        >>> release = tacit.Release.of(model, name="living", tree=tree)
        >>> release.answers([[1.0, 1.0, -1.0]], at_least=0.8).label
        array(['animal'], dtype='<U6')
        """
        if at_least is not None:
            at_least = checked_share(at_least)
        if self.several:
            raise ReleaseError(
                f"{self.source} gives each row any set of labels, so no class is the answer; use"
                " predict or predict_proba"
            )

        if refuse is None:
            check_unused(familiar, foreign)

        answers, likely = self._answers(self._rows(X), at_least)
        if refuse is None:
            return answers
        refused = self._refused(X, refuse, familiar, foreign)
        return answers.without(refused, likely, no_label(self.classes))

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Predict the probability of each class for each row.

        Parameters
        ----------
        X : array-like of shape (n, d)
            As in `predict`.

        Returns
        -------
        ndarray of shape (n, C)
            Rows add up to 1; the columns are in the order of `classes`. The most likely class is
            that of `predict`. Of a release of several labels a row (`several`), each column is the
            probability of one label, and rows add up to anything.
            The classes are taken to be equally frequent, unless the card says that the method did
            not balance them.

        Raises
        ------
        ReleaseError
            If the release is older than probabilities.
        InputError
            If X does not have that form.

        Notes
        -----
        Guarantee: that of the release; post-processing. docs/probabilities.md says how well they
        are calibrated.
        """
        label_sets = stated_label_sets(self.arrays)
        if label_sets is not None:
            return label_sets.probabilities(self.similarities(X))
        return self.stated_probabilities().of(self.similarities(X))

    def predict_sets(self, X: ArrayLike) -> list[NDArray[Any]]:
        """Predict the set of classes that each row may have.

        Parameters
        ----------
        X : array-like of shape (n, d)
            As in `predict`.

        Returns
        -------
        list of ndarray
            The classes of each row, the likeliest first. The right one is among them with at least
            the probability that the release states (`prediction_sets`), on average over new rows
            like those of calibration.

        Raises
        ------
        ReleaseError
            If the release carries no prediction sets.
        InputError
            If X does not have that form.

        Notes
        -----
        Guarantee: that of the release, and for the calibration records that of the sets;
        post-processing. docs/prediction-sets.md says what the promise means.
        """
        probabilities, members = self.set_members(X)
        order = np.argsort(-probabilities, axis=1, kind="stable")
        classes = self.classes
        return [
            classes[of_row[in_set[of_row]]] for of_row, in_set in zip(order, members, strict=True)
        ]

    def set_members(self, X: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return the probability of each class for each row, (n, C), and whether the class is in
        the set of the row, (n, C).
        """
        sets = self.prediction_sets
        if sets is None:
            raise ReleaseError(
                f"{self.source} carries no prediction sets; make them from calibration records with"
                " tacit.calibrate_sets (tacit evaluate --budget rho=0.05 --sets 0.9)"
            )
        threshold = sets.threshold
        rule = SetRule(sets.score, threshold if isinstance(threshold, float) else None)
        probabilities = self.predict_proba(X)
        return probabilities, rule.of(probabilities)

    @property
    def prediction_sets(self) -> PredictionSets | None:
        """The prediction sets that the release carries, with their promise and their price; None if
        it carries none.
        """
        return sets_of(self.document.contents)

    def predict_log_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the logarithm of `predict_proba`; -inf where a probability is 0."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def stated_probabilities(self) -> Probabilities:
        """Return the rule by which probabilities follow from similarities.

        Raises
        ------
        ReleaseError
            If the release is older than probabilities.
        """
        rule = stated(self.arrays)
        if rule is None:
            fault = (
                "was made before releases had probabilities, so it does not say how they follow"
                " from its scores"
            )
            raise ReleaseError(f"{self.source} {fault}; fit again, or use predict")
        return rule

    def similarities(self, X: ArrayLike) -> NDArray[np.float64]:
        """Compute the similarity of each row to each class, of shape (n, C); larger is nearer."""
        return self.decision.similarities(deciding(self.arrays), self._rows(X))

    def unfamiliarity(
        self, X: ArrayLike, *, familiar: ArrayLike | None = None, foreign: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Return the share of rows like those trained on that look more familiar than each row.

        Near 1 for a row that belongs to none of the classes.

        Parameters
        ----------
        X : array-like of shape (n, d), or a table
            As in `predict`.
        familiar : array-like of shape (m, d), optional
            Rows like those trained on, unlabelled, with which each row is compared; by default they
            are simulated from the posterior of class means that a release of `AutoPrototypes`
            carries. Other releases need them. They must be public, or records that no guarantee
            covers.
        foreign : array-like of shape (m, d), optional
            Public rows that are known to be of no class and like those to be found. They sharpen
            the measure of a release of `AutoPrototypes`.

        Returns
        -------
        ndarray of shape (n,)
            From 0 to 1.

        Raises
        ------
        ReleaseError
            If the release carries no posterior and `familiar` is left out, or a row may have
            several labels.
        InputError
            If the rows do not have that form.

        Notes
        -----
        Guarantee: that of the release; post-processing. docs/none-of-these.md says how the rows are
        simulated and how well their shares hold. With m `familiar` rows that are exchangeable with
        the rows of X, a share r + (1 - r)/(m + 1) of rows at most has unfamiliarity above 1 - r.
        """
        measure = self._strangeness(foreign)
        if familiar is not None:
            familiar_rows = some_rows(self._rows(familiar), "familiar")
            reference = measure.of(familiar_rows)
        elif foreign is None:
            reference = self._strangeness_of_simulated
        else:
            reference = measure.of_simulated()
        return share_below(reference, measure.of(self._rows(X)))

    @property
    def simulates_rows(self) -> bool:
        """Whether the release carries a posterior, from which familiar rows are simulated."""
        return carried(self.arrays) is not None

    def strangeness(self, X: ArrayLike, *, foreign: ArrayLike | None = None) -> NDArray[np.float64]:
        """Return how strange each row is, (n,): what `unfamiliarity` compares with other rows.

        The log likelihood ratio of `tacit.models.familiarity`, or 1 less the largest probability
        for a release that carries no posterior. `X` and `foreign` are as in `unfamiliarity`.
        """
        return self._strangeness(foreign).of(self._rows(X))

    @property
    def classes(self) -> NDArray[Any]:
        """The class list, of shape (C,)."""
        return np.array(self.document.contents.classes)

    @property
    def several(self) -> bool:
        """Whether a row may have several labels, none included."""
        return has_several_labels(self.document.contents)

    @property
    def tree(self) -> Tree | None:
        """The tree of which the classes are the leaves, or None."""
        return tree_of(self.document.contents)

    @property
    def decision(self) -> Decision:
        """The rule by which the arrays classify a row."""
        return self.document.contents.decision

    @property
    def width(self) -> int:
        """Number of columns of the rows to predict."""
        return self.document.contents.width

    @property
    def columns(self) -> TableColumns | None:
        """The columns of the tables to predict: a `TableSchema`, the names of plain features, or
        None if the release takes rows alone.
        """
        return columns_of(self.document.contents)

    def _labels(self, rows: Any) -> NDArray[Any]:
        """Return the class of each checked row, (n,), or which labels it has, (n, K)."""
        # `deciding` selects the arrays that the decision reads
        arrays = deciding(self.arrays)
        label_sets = stated_label_sets(self.arrays)
        if label_sets is not None:
            chosen = self.decision.by_blocks(arrays, rows, label_sets.chosen)
            return chosen.astype(np.int64)

        indices = self.decision.nearest(arrays, rows)
        return np.asarray(self.classes[indices])

    def _answers(self, rows: Any, at_least: float | None) -> tuple[Answers, NDArray[np.float64]]:
        """Return the answers for checked rows, which are read in blocks, and the probabilities of
        their most likely classes.
        """
        rule = self.stated_probabilities()
        levels = Levels.of(self.tree, self.classes)
        none = None if at_least is None else no_label(self.classes)

        def of_block(similarities: NDArray[np.float64]) -> NDArray[Any]:
            """One record for each row."""
            probabilities = rule.of(similarities)
            if at_least is None:
                block = levels.classes(probabilities)
            else:
                block = levels.answers(probabilities, at_least, none)
            records = np.empty(
                len(block),
                [
                    ("label", block.label.dtype),
                    ("level", np.int64),
                    ("probability", np.float64),
                    ("likely", np.float64),
                ],
            )
            records["label"] = block.label
            records["level"] = block.level
            records["probability"] = block.probability
            records["likely"] = probabilities.max(axis=1)
            return records

        records = self.decision.by_blocks(deciding(self.arrays), rows, of_block)
        label = np.ascontiguousarray(records["label"])
        level = np.ascontiguousarray(records["level"])
        probability = np.ascontiguousarray(records["probability"])
        return Answers(label, level, probability), np.ascontiguousarray(records["likely"])

    def _strangeness(self, foreign: ArrayLike | None) -> Strangeness:
        """Return the measure of checked rows."""
        if self.several:
            raise ReleaseError(
                f"{self.source} gives each row any set of labels, and none where no label fits;"
                " use predict without refuse"
            )
        if foreign is not None:
            foreign = some_rows(self._rows(foreign), "foreign")

        by_posterior = PosteriorStrangeness.stated(self.arrays, foreign)
        if by_posterior is not None:
            return by_posterior
        if foreign is not None:
            raise ReleaseError(
                f"{self.source} {WITHOUT_POSTERIOR}, so foreign rows tell it nothing; leave them"
                " out"
            )
        return ProbabilityStrangeness(
            self.decision, deciding(self.arrays), self.stated_probabilities(), self.source
        )

    @cached_property
    def _strangeness_of_simulated(self) -> NDArray[np.float64]:
        """The strangeness of the simulated rows, which follows from the arrays alone."""
        return self._strangeness(None).of_simulated()

    def _refused(
        self, X: ArrayLike, refuse: float, familiar: ArrayLike | None, foreign: ArrayLike | None
    ) -> NDArray[np.bool_]:
        """Return the rows that `refuse` leaves without an answer."""
        share = checked_refusal(refuse)
        return self.unfamiliarity(X, familiar=familiar, foreign=foreign) > 1 - share

    def _rows(self, X: Any) -> Any:
        """Return the rows to decide on: of the columns that the release states, checked, and
        scaled where the release carries a scaling.
        """
        rows = checked_rows(rows_of(self.columns, X, stacklevel=3), self.width)
        scaling = Scaling.stated(self.arrays)
        if scaling is None:
            return rows
        return scaling.scaled(rows)
