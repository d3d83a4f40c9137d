"""Release: a classifier that may be published, with what it costs in privacy.

A folder of three files: `release.json` (the document), `arrays.safetensors` and `CARD.md` (the
document for people). Reading one, checking it and predicting from it need neither the learners nor
the mechanisms.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.compute.atomic import atomic_file, atomic_folder, check_writable
from tacit.compute.features import array_of, refuse_one_dimension
from tacit.compute.foreign import SparseRows
from tacit.errors import InputError, ReleaseError, excerpt
from tacit.models.answers import (
    Answers,
    Levels,
    check_distinct,
    checked_share,
    no_label,
    without_answer,
)
from tacit.models.carried import carried, deciding
from tacit.models.carried import misfit as posterior_misfit
from tacit.models.decisions import Decision
from tacit.models.familiarity import share_below
from tacit.models.label_sets import label_sets_misfit, stated_label_sets
from tacit.models.probabilities import Probabilities, stated
from tacit.models.probabilities import misfit as probabilities_misfit
from tacit.models.released import Publishable
from tacit.models.rows import check_finite
from tacit.models.scaling import Scaling, scaling_misfit
from tacit.models.table_schema import TableSchema
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.ledger import Ledger
from tacit.releases import coefficients, fitted, reading, refusing
from tacit.releases.card import render_card
from tacit.releases.columns import TableColumns, columns_misfit, columns_of, rows_of
from tacit.releases.estimator import FittedClassifier
from tacit.releases.onnx_graph import Head, head_model
from tacit.releases.reading import (
    AGAIN,
    ARRAYS,
    CARD,
    DOCUMENT,
    LIMITS,
    arrays_file,
    is_release,
    read_guarantee,
)
from tacit.releases.sampling import Sampler
from tacit.releases.schema import (
    CLASS_SIZES,
    FOREIGN_UTILITY,
    LABEL_COUNTS,
    Document,
    LabelSetUtility,
    TaskContents,
    Utility,
    has_several_labels,
)
from tacit.releases.statement import check_statements, check_work, privacy_items

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

    from tacit.data.trees import Tree

# with the arguments of `Release.with_utility`
# why some releases do not know what rows of their classes look like
WITHOUT_POSTERIOR = "carries no posterior of class means, which only releases of auto do"

__all__ = ["LabelSetUtility", "Release", "Utility"]


@dataclass(eq=False, repr=False)
class Release(FittedClassifier):
    """A classifier that may be published, made by `Release.of` or read by `Release.load`.

    It is a fitted classifier of scikit-learn, which pipelines and metrics take as it is; `fit` is
    refused.

    Parameters
    ----------
    document : Document
        The content of `release.json`.
    arrays : dict of str to ndarray
        By the decision: `prototypes` of shape (C, d) or (C, k, d), and `indices` of shape (C,) or
        (C, k) where they are public rows; or `coefficients` of shape (C, d) and `intercepts` of
        shape (C,). Either with a `centre` of shape (d,) or without. `probabilities` of shape (2,),
        which older releases lack: see `tacit.models.probabilities`. Releases of `AutoPrototypes`
        also carry a posterior; see `tacit.models.carried`.
    sha256 : str
        Hash of the arrays' file.
    card_text : str
        The content of `CARD.md`.
    source : str
        The folder that it was read from, for messages.

    Examples
    --------
    >>> import tempfile, numpy as np, tacit
    >>> X = np.repeat([[1.0, 0.0], [0.0, 1.0]], 50, axis=0)
    >>> y = np.repeat(["cat", "dog"], 50)
    >>> model = tacit.NoisySumPrototypes("rho=0.5", classes=["cat", "dog"]).fit(X, y)
    >>> folder = tacit.Release.of(model, name="pets").save(tempfile.mkdtemp() + "/pets")
    >>> release = tacit.Release.load(folder).verify()
    >>> release.predict([[2.0, 0.1]]), release.guarantee.rho
    (array(['cat'], dtype='<U3'), 0.5)
    """

    document: Document
    arrays: dict[str, NDArray[Any]]
    sha256: str
    card_text: str
    source: str = "release"

    @classmethod
    def of(
        cls,
        clf: Publishable | Pipeline,
        *,
        name: str | None = None,
        curator: str | None = None,
        description: str | None = None,
        intended_use: str | None = None,
        public: Mapping[str, str] | None = None,
        encoder: Mapping[str, str] | None = None,
        names: Mapping[str, Any] | None = None,
        ledger: Ledger | None = None,
        date: date | str | None = None,
        columns: TableColumns | None = None,
        tree: Tree | Mapping[Any, Any] | None = None,
    ) -> Release:
        """Make a release from a fitted learner.

        Parameters
        ----------
        clf : PrivateClassifier or sklearn.pipeline.Pipeline
            The fitted learner, or a pipeline that ends with it. A `TableEncoder` and a
            `PublicScaler` before it are carried by the release, which then takes what the first of
            them takes; other steps must be "passthrough" or None.
        name, curator, description, intended_use : str, optional
            One line each for the card.
        public, encoder : dict, optional
            `name`, `revision` and `hash` of the public rows and of the encoder; for public rows
            also `overlap` with the private ones, as far as known.
        names : dict, optional
            `name` and `hash` of the data that the rows of class names are from, `encoder` (its
            name), `templates` (a tuple); the card counts the rows itself.
        ledger : Ledger, optional
            Whose balance the card states; by default the learner's ledger.
        date : date or str, optional
            Day of publication as YYYY-MM-DD; by default today.
        columns : TableSchema or ColumnNames, optional
            The columns of the table that the rows were made of, by which the release matches new
            tables; by default those of a `TableEncoder` in the pipeline, or the names of the
            columns of the data frame that was fitted. The release states them.
        tree : Tree or dict, optional
            A public tree of which the classes are the leaves, `{class: parent}`; by default that of
            the learner, if it has one. The release states it, and answers with an inner node where
            no class is likely enough (`predict` with `at_least`).

        Raises
        ------
        ReleaseError
            If the learner is not fitted or was changed since, a fact cannot stand in the card, or a
            pipeline has another step before the learner, such as a PCA: it may have been fitted on
            private rows.
        """
        clf, scaling, stated = fitted.steps_of(clf)
        if columns is None:
            columns = stated
        released = fitted.released_of(clf)
        if scaling is not None:
            released = fitted.with_scaling(released, scaling)
        if tree is not None:
            released = fitted.with_tree(released, tree, clf.classes_)
        arrays = fitted.release_arrays(released)
        sha256 = hashlib.sha256(arrays_file(arrays)).hexdigest()
        facts = {
            "name": name,
            "curator": curator,
            "description": description,
            "intended_use": intended_use,
        }
        if ledger is None:
            ledger = clf.ledger
        document = fitted.of_learner(
            clf,
            released,
            arrays,
            sha256,
            facts=facts,
            public=public,
            names=names,
            encoder=encoder,
            ledger=ledger,
            day=date,
            scaled=scaling is not None,
            columns=columns,
        )
        release = cls(document, arrays, sha256, render_card(document))

        # Refuse here what `load` and `verify` would refuse: arrays that no release may hold, and
        # events whose numbers take too long to compute.
        release._check_arrays()
        check_work(release.guarantee)
        return release

    @classmethod
    def load(cls, folder: Path | str) -> Release:
        """Read a release; safe on files from anybody. Call `verify` to check what it says.

        Raises
        ------
        ReleaseError
            If a file is missing, unknown, too large or malformed, or the arrays do not fit the
            document.
        """
        folder = Path(folder)
        files = reading.read_files(folder)
        document = reading.parse_document(str(folder / DOCUMENT), files[DOCUMENT])
        arrays = reading.parse_arrays(str(folder / ARRAYS), files[ARRAYS])
        try:
            card_text = files[CARD].decode("utf-8")
        except UnicodeDecodeError as error:
            fault = f"{folder / CARD} is not UTF-8 text ({excerpt(str(error))})"
            raise ReleaseError(f"{fault}; {AGAIN}") from error

        sha256 = hashlib.sha256(files[ARRAYS]).hexdigest()
        release = cls(document, arrays, sha256, card_text, source=str(folder))
        release._check_arrays()
        read_guarantee(document.guarantee, release.source)  # raises for malformed events
        return release

    def save(
        self, folder: Path | str, *, force: bool = False, allow_research: bool = False
    ) -> Path:
        """Write the release to a new folder, whole or not at all.

        Parameters
        ----------
        folder : str or Path
            Returned as a Path.
        force : bool, default=False
            Replace an older release of that name; no other folder is ever replaced.
        allow_research : bool, default=False
            Write a release that is stamped "NOT FOR RELEASE".

        Raises
        ------
        ReleaseError
            If it is stamped, or too large to be read again.
        InputError
            If the folder exists or cannot be written.
        """
        folder = Path(folder)
        files = self.files(allow_research=allow_research)
        with atomic_folder(folder, force=force, ours=is_release) as part:
            for name, data in files.items():
                (part / name).write_bytes(data)
        return folder

    def files(self, *, allow_research: bool = False) -> dict[str, bytes]:
        """Return the bytes of the three files by name; errors are those of `save`."""
        self._check_stamp(allow_research)
        values = self.document.model_dump(mode="json")
        document = json.dumps(values, indent=1, ensure_ascii=False, allow_nan=False)
        files = {
            DOCUMENT: f"{document}\n".encode(),
            ARRAYS: self._arrays_file(),
            CARD: self.card().encode("utf-8"),
        }

        for name, data in files.items():
            if len(data) > LIMITS[name]:
                fault = f"{name} has {len(data)} bytes, at most {LIMITS[name]} are read"
                raise ReleaseError(f"{fault}; use fewer classes")
        return files

    def verify(self) -> Release:
        """Check that files, arrays and every stated number agree; returns this release.

        Every number about privacy is computed again from the recorded events.

        Raises
        ------
        ReleaseError
            At the first statement that does not agree.
        """
        if self.sha256 != self.document.contents.sha256:
            raise self._error(f"{ARRAYS} has another hash than {DOCUMENT} states")
        self._arrays_file()  # raises if the arrays were changed since
        self._check_arrays()
        for name, array in self.arrays.items():
            if not np.isfinite(array).all():
                raise self._error(f"array {name!r} holds values that are not finite")

        fault = check_statements(self.document, self.guarantee)
        if fault:
            raise self._error(fault)
        if self.card_text != self.card():
            raise self._error(f"{CARD} does not say what {DOCUMENT} says")
        return self

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
            return self.answers(
                X, at_least=at_least, refuse=refuse, familiar=familiar, foreign=foreign
            ).label

        if refuse is not None:
            check_distinct(self.classes)
            refused = self._refused(X, refuse, familiar, foreign)
            return without_answer(self.predict(X), refused, no_label(self.classes))
        self._check_unused(familiar, foreign)

        label_sets = stated_label_sets(self.arrays)
        if label_sets is not None:
            return np.asarray(label_sets.chosen(self.similarities(X)).astype(np.int64))

        # `deciding` selects the arrays that the decision reads
        indices = self.decision.nearest(deciding(self.arrays), self._rows(X))
        return np.asarray(self.classes[indices])

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

        levels = Levels.of(self.tree, self.classes)
        probabilities = self.predict_proba(X)
        if at_least is None:
            answers = levels.classes(probabilities)
        else:
            answers = levels.answers(probabilities, at_least, no_label(self.classes))

        if refuse is None:
            self._check_unused(familiar, foreign)
            return answers
        refused = self._refused(X, refuse, familiar, foreign)
        return answers.without(refused, probabilities, no_label(self.classes))

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
        rule = self._strangeness(foreign)
        if familiar is not None:
            reference = rule(_some(self._rows(familiar), "familiar"))
        else:
            reference = self._simulated_strangeness(foreign)
        return share_below(reference, rule(self._rows(X)))

    @property
    def simulates_rows(self) -> bool:
        """Whether the release carries a posterior, from which familiar rows are simulated."""
        return carried(self.arrays) is not None

    def strangeness(self, X: ArrayLike, *, foreign: ArrayLike | None = None) -> NDArray[np.float64]:
        """Return how strange each row is, (n,): what `unfamiliarity` compares with other rows.

        The log likelihood ratio of `tacit.models.familiarity`, or 1 less the largest probability
        for a release that carries no posterior. `X` and `foreign` are as in `unfamiliarity`.
        """
        return self._strangeness(foreign)(self._rows(X))

    def _strangeness(self, foreign: ArrayLike | None) -> Callable[[Any], NDArray[np.float64]]:
        """Return the measure of checked rows."""
        if self.several:
            raise ReleaseError(
                f"{self.source} gives each row any set of labels, so a row of none has no label"
                " already; use predict without refuse"
            )
        if foreign is not None:
            foreign = _some(self._rows(foreign), "foreign")

        rule = refusing.PosteriorStrangeness.stated(self.arrays, foreign)
        if rule is not None:
            return rule.of
        if foreign is not None:
            raise ReleaseError(
                f"{self.source} {WITHOUT_POSTERIOR}, so foreign rows tell it nothing; leave them"
                " out"
            )

        probabilities = self.stated_probabilities()

        def doubt(rows: Any) -> NDArray[np.float64]:
            """1 less the largest probability."""
            similarities = self.decision.similarities(deciding(self.arrays), rows)
            return np.asarray(1 - probabilities.of(similarities).max(axis=1, initial=0.0))

        return doubt

    def _simulated_strangeness(self, foreign: ArrayLike | None) -> NDArray[np.float64]:
        """Return the strangeness of simulated rows, found once where it follows from the arrays
        alone.
        """
        found: NDArray[np.float64] | None = vars(self).get("_reference")
        if foreign is None and found is not None:
            return found

        foreign_rows = None
        if foreign is not None:
            foreign_rows = self._rows(foreign)
        rule = refusing.PosteriorStrangeness.stated(self.arrays, foreign_rows)
        if rule is None:
            raise ReleaseError(
                f"{self.source} {WITHOUT_POSTERIOR}, so it cannot simulate rows like those trained"
                " on; pass such rows as familiar, or fit with auto (AutoPrototypes)"
            )

        reference = rule.of_simulated()
        if foreign is None:
            vars(self)["_reference"] = reference
        return reference

    def _refused(
        self, X: ArrayLike, refuse: float, familiar: ArrayLike | None, foreign: ArrayLike | None
    ) -> NDArray[np.bool_]:
        """Return the rows that `refuse` leaves without an answer."""
        share = refusing.checked_refusal(refuse)
        return self.unfamiliarity(X, familiar=familiar, foreign=foreign) > 1 - share

    def _check_unused(self, familiar: ArrayLike | None, foreign: ArrayLike | None) -> None:
        """Refuse rows that only `refuse` would read."""
        for name, rows in (("familiar", familiar), ("foreign", foreign)):
            if rows is not None:
                raise InputError(
                    f"{name} rows say which rows to refuse; pass refuse=0.05 too, or leave them out"
                )

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

    def sample(
        self, n: int, *, random_state: int | None = None, balanced: bool = True
    ) -> tuple[NDArray[np.float32], NDArray[Any]]:
        """Draw synthetic rows with labels, from a release of `AutoPrototypes` alone.

        Parameters
        ----------
        n : int
            Number of rows.
        random_state : int or None, default=None
            Seed of numpy; None draws other rows each time. No privacy depends on it.
        balanced : bool, default=True
            Draw equally many rows of each class; if False, in proportion to the released estimates
            of the class sizes.

        Returns
        -------
        X : ndarray of shape (n, d), float32
            Rows of norm 1, in random order. Divide raw embeddings by their norms before a model
            that was trained on these rows reads them.
        y : ndarray of shape (n,)
            Labels of the class list.

        Raises
        ------
        ReleaseError
            If the release carries no posterior of class means, scales its rows, takes the cells of
            a table, or gives a row several labels.
        InputError
            If n or the seed is out of range.

        Notes
        -----
        Guarantee: that of the release; post-processing.
        Source: tacit; see `tacit.models.synthetic`. docs/synthetic-rows.md has what was measured.

        Examples
        --------
        >>> import numpy as np, tacit
        >>> X = np.repeat([[1.0, 0.1], [0.1, 1.0]], 500, axis=0)
        >>> public = np.random.default_rng(0).normal(1, 1, (100, 2))
        >>> y = np.repeat(["cat", "dog"], 500)
        >>> model = tacit.AutoPrototypes("rho=0.5", public=public, classes=["cat", "dog"])
        >>> release = tacit.Release.of(model.fit(X, y))
        >>> rows, labels = release.sample(10, random_state=0)
        >>> rows.shape, labels.tolist().count("cat")
        ((10, 2), 5)
        """
        sampler = Sampler(self.document, self.arrays, self.source)
        drawn = sampler.draw(n, random_state=random_state, balanced=balanced)
        return drawn.rows, self.classes[drawn.labels]

    def head(self) -> Head:
        """Return the parts of which an ONNX graph is made.

        Raises
        ------
        ReleaseError
            If the release is older than probabilities.
        """
        return Head(
            self.document,
            self.arrays,
            self.stated_probabilities(),
            self.sha256,
            stated_label_sets(self.arrays),
        )

    def to_onnx(
        self,
        path: Path | str,
        *,
        encoder: Path | str | None = None,
        force: bool = False,
        allow_research: bool = False,
        **preparation: Any,
    ) -> Path:
        """Write the release as an ONNX file, which predicts without tacit.

        Its input is `embeddings` of shape (n, d), float32; its outputs are `label` of shape (n,)
        and `probabilities` of shape (n, C). Of a release of several labels a row, `labels` of 0
        and 1, of shape (n, K), take the place of `label`; thresholds are in the graph. Guarantee
        and card are in its metadata.

        Parameters
        ----------
        path : str or Path
            The file, which ends in .onnx; returned as a Path.
        encoder : str or Path, optional
            The ONNX file of the encoder: then the input is that of the encoder, and `preparation`
            may have `sidecar`, `mirror`, `projection` and `dtype` as for `tacit encode`.
        force : bool, default=False
            Replace an older file.
        allow_research : bool, default=False
            Write a release that is stamped "NOT FOR RELEASE".

        Raises
        ------
        ReleaseError
            If it is stamped, or older than probabilities.
        InputError
            If onnx is not installed, the file exists or cannot be written, or the encoder does not
            fit.

        Notes
        -----
        Guarantee: that of the release; post-processing. docs/probabilities.md has the size and the
        operators.
        """
        from tacit.releases.onnx_joining import joined_model

        self._check_stamp(allow_research)
        if Path(path).suffix != ".onnx":
            example = f"{Path(path).stem or 'head'}.onnx"
            raise InputError(f"{path} must end in .onnx; give a file name such as {example}")
        path = check_writable(path, force=force)

        if encoder is None:
            model = head_model(self.head())
        else:
            model = joined_model(self.head(), Path(encoder), **preparation)
        with atomic_file(path, force=force) as temporary:
            temporary.write_bytes(model.SerializeToString(deterministic=True))
        return path

    def similarities(self, X: ArrayLike) -> NDArray[np.float64]:
        """Compute the similarity of each row to each class, of shape (n, C); larger is nearer."""
        return self.decision.similarities(deciding(self.arrays), self._rows(X))

    def with_utility(self, utility: Utility | LabelSetUtility) -> Release:
        """Add figures that were measured on a public test set (item 15).

        Figures on private rows would reveal facts about them. Nothing here can check where the
        figures come from; `tacit evaluate --record` checks that the rows were declared public and
        that no ledger covers them.
        A release of several labels a row takes a `LabelSetUtility`. A minority accuracy needs the
        training class sizes, and a rare third by exact training counts needs these; the new release
        lists them as unprotected.

        Raises
        ------
        ReleaseError
            If the figures are of the other kind of task.
        """
        if isinstance(utility, LabelSetUtility) != self.several:
            raise ReleaseError(f"{self.source}: {FOREIGN_UTILITY}; measure by tacit evaluate")

        guarantee = self.document.guarantee
        told = _told_by(utility)
        if told is not None and told not in guarantee.unprotected:
            unprotected = (*guarantee.unprotected, told)
            guarantee = guarantee.model_copy(update={"unprotected": unprotected})

        # the items about privacy (2, and 4 to 7) also list what is unprotected
        items = privacy_items(read_guarantee(guarantee, self.source), self.document.version)
        changes = {"guarantee": guarantee, "utility": utility, **items}
        document = self.document.model_copy(update=changes)
        return Release(document, self.arrays, self.sha256, render_card(document), self.source)

    @property
    def guarantee(self) -> Guarantee:
        """The privacy cost of the release, read from the recorded events."""
        return read_guarantee(self.document.guarantee, self.source)

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
        contents = self.document.contents
        if not isinstance(contents, TaskContents) or not contents.task.tree:
            return None

        # most releases have no tree, and predict without reading classes from data
        from tacit.data.trees import Tree

        return Tree(contents.task.tree).over(contents.classes)

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

    def coefficients(self) -> dict[str, dict[str, NDArray[np.float64]]]:
        """Return what each level of a table's columns adds to the logit of each class.

        Returns
        -------
        dict of str to dict
            By column, then by level, an array of shape (C,) in the order of `classes`; levels are
            named as by `TableEncoder.get_feature_names_out`. Differences between classes are log
            odds; of a release of several labels a row, each entry is the log odds of its label
            against not having it. A column of ordered numbers has some numbers as levels, a date
            the values of its parts. Columns of texts and pictures are left out.

        Raises
        ------
        ReleaseError
            If the release states no schema of a table, or its decision is not linear.

        Notes
        -----
        Guarantee: that of the release; post-processing. The coefficients hold the noise of the
        release: that of a level which few records have is mostly noise. If the arrays have a
        "centre", rows are centred and scaled again, so a score is the sum over columns times a
        factor that differs by row.

        Examples
        --------
        >>> import tacit
        >>> schema = {"columns": {"plan": {"kind": "category", "levels": ["free", "paid"]}}}
        >>> table = {"plan": ["free", "paid"] * 500}
        >>> from sklearn.pipeline import make_pipeline
        >>> learner = tacit.GradientDescent("epsilon=1,delta=1e-5", classes=["stays", "leaves"])
        >>> pipeline = make_pipeline(tacit.TableEncoder(schema), learner)
        >>> release = tacit.Release.of(pipeline.fit(table, ["leaves", "stays"] * 500), name="churn")
        >>> stays, leaves = release.coefficients()["plan"]["free"]
        >>> bool(leaves > stays)
        True
        """
        columns = self.columns
        reason = coefficients.unreadable(columns, self.decision, self.arrays)
        if reason is not None or not isinstance(columns, TableSchema):
            raise ReleaseError(
                f"{self.source} {reason}, so its levels have no coefficients; use predict"
            )
        return coefficients.by_level(columns, self.decision, self.arrays)

    def card(self) -> str:
        """The card as Markdown."""
        return render_card(self.document)

    def __repr__(self) -> str:
        name = self.document.product.name
        return f"Release({name!r}, {len(self.classes)} classes, width {self.width})"

    def _rows(self, X: Any) -> Any:
        """Return the rows to decide on: of the columns that the release states, checked, and
        scaled where the release carries a scaling.
        """
        rows = checked_rows(rows_of(self.columns, X, stacklevel=3), self.width)
        scaling = Scaling.stated(self.arrays)
        if scaling is None:
            return rows
        return scaling.scaled(rows)

    def _check_stamp(self, allow_research: bool) -> None:
        """Refuse a release that is stamped."""
        if not self.document.stamp or allow_research:
            return

        reason = "no privacy bound holds"
        remedy = "fit with a finite budget, and pay for any search over parameters"
        if self.document.mechanisms.noise == "research":
            reason = "its noise is seeded"
            remedy = "fit with noise='secure'"
        fault = f"{self.document.product.name!r} is {self.document.stamp} ({reason})"
        raise ReleaseError(
            f"{fault}; {remedy}, or pass allow_research=True to keep it for research"
        )

    def _error(self, fault: str) -> ReleaseError:
        return ReleaseError(f"{self.source}: {fault}; {AGAIN}")

    def _arrays_file(self) -> bytes:
        content = arrays_file(self.arrays)
        if hashlib.sha256(content).hexdigest() != self.sha256:
            raise self._error("its arrays were changed after it was made or read")
        return content

    def _tree_misfit(self) -> str | None:
        """Describe the fault of the tree that the document states; None if there is none."""
        try:
            tree = self.tree
        except InputError as error:
            return str(error)
        if tree is not None and self.several:
            return "a tree is of exclusive classes, and a row may have several labels"
        return None

    def _check_arrays(self) -> None:
        """Refuse arrays that do not fit the document or each other."""
        contents = self.document.contents
        # sets, since the document may list the arrays in any order
        forms = {(name, array.dtype.name, array.shape) for name, array in self.arrays.items()}
        stated_forms = {(array.name, array.dtype, array.shape) for array in contents.arrays}
        if forms != stated_forms:
            fault = f"arrays in {ARRAYS} do not have the names, types and shapes"
            raise self._error(f"{fault} that {DOCUMENT} states")

        # each returns a fault in words, or None if its arrays fit
        n_classes = len(contents.classes)
        first_fault = (
            self.decision.fits(deciding(self.arrays), n_classes, contents.width)
            or posterior_misfit(self.arrays, n_classes, contents.width)
            or probabilities_misfit(self.arrays)
            or label_sets_misfit(self.arrays, n_classes, several=self.several)
            or scaling_misfit(self.arrays, contents.width)
            or columns_misfit(contents)
            or self._tree_misfit()
        )
        if first_fault is not None:
            raise self._error(first_fault)


def _told_by(utility: Utility | LabelSetUtility) -> str | None:
    """Name the private counts on which a figure depends; None if there is no such figure."""
    if isinstance(utility, LabelSetUtility):
        return LABEL_COUNTS if utility.tells_training_counts else None
    return CLASS_SIZES if utility.minority_accuracy is not None else None


def _some(rows: Any, name: str) -> Any:
    """Return the rows; refuse none."""
    if len(rows) == 0:
        raise InputError(f"{name} holds no rows; leave it out, or pass one row or more")
    return rows


def checked_rows(X: Any, width: int) -> Any:
    """Return X as rows to predict; refuse what is not finite numbers of shape (n, `width`).

    Rows of a store stay in its files, and those of a sparse matrix stay sparse.
    """
    rows: Any
    if hasattr(X, "tocsr"):
        # a sparse matrix of scipy
        rows = SparseRows(X)
    elif hasattr(X, "shards"):
        # rows of a store
        rows = X
    else:
        values = array_of(X, "X")
        try:
            rows = np.asarray(values)
        except ValueError as error:
            raise InputError("X is ragged; pass an array of numbers of shape (n, d)") from error

    # floats, signed and unsigned whole numbers, and bools
    if rows.dtype.kind not in "fiub":
        raise InputError(f"X has dtype {rows.dtype}, not numbers; pass for example X.astype(float)")
    refuse_one_dimension(rows, "X")
    if rows.ndim != 2 or rows.shape[1] != width:
        fault = f"X has shape {rows.shape} and must have shape (n, {width})"
        raise InputError(f"{fault}; encode as the private rows were")
    check_finite(rows)
    return rows
