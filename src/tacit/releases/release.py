"""Release: a classifier that may be published, with what it costs in privacy.

A folder of three files: `release.json` (the document), `arrays.safetensors` and `CARD.md` (the
document for people). Reading one, checking it and predicting from it need neither the learners nor
the mechanisms.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.atomic import atomic_file, check_writable, write_folder
from tacit.errors import InputError, ReleaseError
from tacit.models.carried import deciding
from tacit.models.carried import misfit as posterior_misfit
from tacit.models.label_sets import label_sets_misfit, stated_label_sets
from tacit.models.prediction_sets import edges
from tacit.models.probabilities import misfit as probabilities_misfit
from tacit.models.released import Publishable
from tacit.models.scaling import scaling_misfit
from tacit.models.table_schema import TableSchema
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.ledger import Ledger
from tacit.releases import coefficients, fitted, reading
from tacit.releases.audited import AuditResult, audit_fault
from tacit.releases.card import render_card
from tacit.releases.code_tree import tree_misfit
from tacit.releases.columns import TableColumns, columns_misfit
from tacit.releases.measured import (
    PAID_SINCE,
    CombinedUtility,
    PaidUtility,
    PredictionSets,
)
from tacit.releases.onnx_graph import Head, head_model
from tacit.releases.predicting import PredictingClassifier
from tacit.releases.reading import (
    AGAIN,
    ARRAYS,
    CARD,
    DOCUMENT,
    LIMITS,
    arrays_file,
    check_sizes,
    document_file,
    is_release,
    read_guarantee,
)
from tacit.releases.sampling import Sampler
from tacit.releases.schema import (
    CLASS_SIZES,
    COMBINED_VERSION,
    FOREIGN_UTILITY,
    LABEL_COUNTS,
    VERSION,
    CompleteContents,
    Document,
    LabelSetUtility,
    Utility,
    has_several_labels,
    sets_of,
    states_parts,
)
from tacit.releases.statement import check_statements, check_work, privacy_items, stamp_of

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

    from tacit.data.trees import Tree

# the kinds of utility are arguments of `Release.with_utility`
__all__ = ["CombinedUtility", "LabelSetUtility", "PaidUtility", "Release", "Utility"]


@dataclass(eq=False, repr=False)
class Release(PredictingClassifier):
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
        least_records: int | None = None,
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
        least_records : int, optional
            How many records each class has at least. The owner declares it, and the release lists
            it as unprotected. Nothing here can check it: `tacit fit --least-records` compares it
            with the records, before anything is charged.

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
            least_records=least_records,
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
        return cls.of_files(reading.read_files(folder), folder)

    @classmethod
    def of_files(cls, files: Mapping[str, bytes], folder: Path) -> Release:
        """Read a release from the bytes of its files by name; errors are those of `load`."""
        document = reading.parse_document(str(folder / DOCUMENT), files[DOCUMENT])
        arrays = reading.parse_arrays(str(folder / ARRAYS), files[ARRAYS])
        card_text = reading.text_of(folder / CARD, files[CARD])

        sha256 = hashlib.sha256(files[ARRAYS]).hexdigest()
        release = cls(document, arrays, sha256, card_text, source=str(folder))
        release._check_arrays()
        read_guarantee(document.guarantee, release.source)  # raises for malformed events
        sets = sets_of(document.contents)
        if sets is not None:
            read_guarantee(sets.guarantee, release.source)
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
        files = self.files(allow_research=allow_research)
        return write_folder(folder, files, force=force, ours=is_release)

    def files(self, *, allow_research: bool = False) -> dict[str, bytes]:
        """Return the bytes of the three files by name; errors are those of `save`."""
        self._check_stamp(allow_research)
        files = {
            DOCUMENT: document_file(self.document),
            ARRAYS: self._arrays_file(),
            CARD: self.card().encode("utf-8"),
        }
        check_sizes(files, LIMITS, "use fewer classes")
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

        fault = self._fault_of_classes() or check_statements(self.document, self.guarantee)
        if fault:
            raise self._error(fault)
        if self.card_text != self.card():
            raise self._error(f"{CARD} does not say what {DOCUMENT} says")
        return self

    def _fault_of_classes(self) -> str | None:
        """Describe the first figure or threshold that does not go with the class list."""
        utility = self.document.utility
        if isinstance(utility, PaidUtility):
            names = {str(label) for label in self.classes.tolist()}
            if set(utility.per_class_intervals) != names:
                return "utility states figures of other classes than those of the release"
        lists = (self.document.contents.classes,)
        if isinstance(utility, CombinedUtility) and utility.combination.class_lists != lists:
            return "utility states parts of other classes than those of the release"

        sets = self.prediction_sets
        if sets is not None and isinstance(sets.threshold, float):
            possible = edges(sets.score, len(self.classes))
            if not np.isclose(possible, sets.threshold, rtol=0, atol=1e-9).any():
                return f"contents.sets.threshold {sets.threshold:g} is none of its score"
        return None

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

    def with_utility(self, utility: Utility | LabelSetUtility | PaidUtility) -> Release:
        """Add figures that were measured on a public test set, or paid for (item 15).

        Exact figures on private rows would reveal facts about them; those that were paid for are a
        `PaidUtility`, which states the guarantee of these rows. Nothing here can check where the
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
        if isinstance(utility, PaidUtility) and self.document.version < PAID_SINCE:
            raise ReleaseError(
                f"{self.source} is of version {self.document.version}, and figures that were paid"
                f" for are stated from version {PAID_SINCE} on; fit the release again"
            )

        guarantee = self.document.guarantee
        told = _told_by(utility)
        if told is not None and told not in guarantee.unprotected:
            unprotected = (*guarantee.unprotected, told)
            guarantee = guarantee.model_copy(update={"unprotected": unprotected})

        # the items about privacy (2, and 4 to 7) also list what is unprotected
        version = self.document.version
        if version >= VERSION:
            has_parts = states_parts(self.document.pattern, utility)
            version = COMBINED_VERSION if has_parts else VERSION
        items = privacy_items(read_guarantee(guarantee, self.source), version)
        changes = {"version": version, "guarantee": guarantee, "utility": utility, **items}
        document = self.document.model_copy(update=changes)
        return Release(document, self.arrays, self.sha256, render_card(document), self.source)

    def with_audit(self, audit: AuditResult) -> Release:
        """Add the result of an audit (item 17), as `tacit.audit` returns it by its `item`.

        Raises
        ------
        ReleaseError
            If the release is older than version 9, or the audit is of another promise.
        """
        if self.document.version < VERSION:
            version = f"is of version {self.document.version}"
            raise ReleaseError(
                f"{self.source} {version}, which states no bounds of an audit; fit again"
            )
        fault = audit_fault(audit, self.guarantee)
        if fault is not None:
            raise ReleaseError(f"{self.source}: {fault}; audit this release")

        document = self.document.model_copy(update={"audit": audit})
        return Release(document, self.arrays, self.sha256, render_card(document), self.source)

    def with_sets(self, sets: PredictionSets | None) -> Release:
        """Add prediction sets (item 8), which `tacit.calibrate_sets` makes; None takes them away.

        Raises
        ------
        ReleaseError
            If the release is older than prediction sets, or gives a row several labels.
        """
        contents = self.document.contents
        check_takes_sets(self.document, self.source)
        contents = contents.model_copy(update={"sets": "none" if sets is None else sets})
        document = self.document.model_copy(update={"contents": contents})
        stamp = stamp_of(document, self.guarantee)
        document = document.model_copy(update={"stamp": stamp})
        return Release(document, self.arrays, self.sha256, render_card(document), self.source)

    @property
    def guarantee(self) -> Guarantee:
        """The privacy cost of the release, read from the recorded events."""
        return read_guarantee(self.document.guarantee, self.source)

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

    def _check_stamp(self, allow_research: bool) -> None:
        """Refuse a release that is stamped."""
        if not self.document.stamp or allow_research:
            return

        reason = "no privacy bound holds"
        remedy = "fit with a finite budget, and pay for any search over parameters"
        sets = sets_of(self.document.contents)
        if sets is not None and sets.noise == "research":
            reason = "the noise of its prediction sets is seeded"
            remedy = "calibrate them with noise='secure'"
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
            or tree_misfit(contents)
        )
        if first_fault is not None:
            raise self._error(first_fault)


def check_takes_sets(document: Document, source: str) -> None:
    """Refuse prediction sets for a document that cannot state them."""
    if not isinstance(document.contents, CompleteContents):
        fault = f"{source} is of version {document.version}, and sets are stated from version 9 on"
        raise ReleaseError(f"{fault}; fit again with this tacit")
    if has_several_labels(document.contents):
        fault = f"{source} gives each row any set of labels by a threshold for each label"
        raise ReleaseError(f"{fault}, and prediction sets are of one label a row; use predict")


def _told_by(utility: Utility | LabelSetUtility | PaidUtility) -> str | None:
    """Name the private counts on which a figure depends; None if there is no such figure."""
    if isinstance(utility, LabelSetUtility):
        return LABEL_COUNTS if utility.tells_training_counts else None
    if isinstance(utility, PaidUtility):
        return None
    return CLASS_SIZES if utility.minority_accuracy is not None else None
