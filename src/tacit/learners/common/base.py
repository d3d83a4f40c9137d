"""The base of all learners, and their promise.

A learner is a scikit-learn classifier that states its guarantee from its parameters alone
(`promise()`), before it sees data; after `fit`, `guarantee_` is that promise. A new learner is a
dataclass of its parameters that fills in two methods: `_event` (the privacy cost of a fit) and
`_fit` (the work). A third, `_prepare`, checks and decides what follows from public facts, before
anything is charged.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Mapping
from copy import copy
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from typing import Any, ClassVar, Protocol, Self, cast
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from tacit.compute.texts import composed_texts
from tacit.data.labels import MOST_CLASSES, class_indices, listed_classes
from tacit.data.name_rows import rows_by_class
from tacit.data.persons import Persons, persons_under
from tacit.data.rows import as_rows, refuse_sparse
from tacit.data.trees import Tree
from tacit.errors import BudgetError, InputError, PrivacyLeakWarning
from tacit.learners.common.lineage import Lineage
from tacit.learners.common.nodes import Nodes
from tacit.learners.common.notebook import promise_html
from tacit.learners.common.overlap import OVERLAP, check_overlap
from tacit.learners.common.parameters import flag, whole
from tacit.learners.common.stated import stated_parameters
from tacit.learners.common.validation import (
    check_columns,
    has_label_sets,
    has_single_labels,
    label_sets_of,
    plain_labels,
    refuse_arguments,
    validated_matrix,
    validated_records,
    validated_rows,
)
from tacit.learners.methods import name_of
from tacit.mechanisms.noise import SAMPLERS, Integers, NoiseSource, noise_source
from tacit.mechanisms.rounding import check_width
from tacit.models.probabilities import Probabilities
from tacit.models.reference_scale import reference_scale
from tacit.models.released import LearnerFacts, Publishable, Released
from tacit.models.rows import Floats
from tacit.privacy.budget import Budget
from tacit.privacy.events import Event
from tacit.privacy.guarantee import Guarantee, guarantee_under
from tacit.privacy.ledger import Ledger, check_ledger, scope_of
from tacit.privacy.unit import Unit, checked_unit

DEFAULT_BUDGET = "rho=0.5"

# types of X that stay; anything else becomes float64
FLOATS = [np.float64, np.float32, np.float16]


@dataclass(frozen=True, eq=False)
class Prepared:
    """The private records of a fit: X of shape (n, d), and class indices of shape (n,).

    Where a record may have several labels, `labels` are truth values of shape (n, K) instead.
    `persons` says whose each record is; it is None under a unit per record. `sums` are exact sums
    of the records, where these are elsewhere: see `exact_sums.py`. Learners add the decisions that
    follow from public facts.
    """

    X: NDArray[Any]
    labels: Integers
    persons: Persons | None = field(default=None, kw_only=True)
    sums: Any = field(default=None, kw_only=True)


class Predictor(Protocol):
    """A fitted model: `Released`, or a model that no release can hold."""

    def similarities(self, rows: NDArray[Any]) -> Floats:
        """Compute the similarity of each row to each class, of shape (n, C); larger is nearer."""

    def nearest(self, rows: NDArray[Any]) -> Integers:
        """Return the index of the nearest class of each row, of shape (n,)."""

    def probabilities_of(self, rows: NDArray[Any]) -> Floats:
        """Return the probability of each class for each row, of shape (n, C).

        The probability of the nearest class is the largest.
        """


@dataclass(eq=False, repr=False)
class PrivateClassifier(ClassifierMixin, BaseEstimator, Publishable):  # type: ignore[misc]  # scikit-learn has no types
    """Base of all learners; the module's docstring says what a new learner fills in.

    Parameters
    ----------
    budget, classes, noise, random_state, unit, ledger
        As in `tacit.NoisySumPrototypes`.
    """

    budget: Budget | str = DEFAULT_BUDGET
    _: KW_ONLY
    classes: Any = None
    noise: str = "secure"
    random_state: Any = None
    unit: Unit | str = "add-remove"
    ledger: Ledger | None = None

    # the values of parameters that some learners lack; not annotated, so they are no parameters
    public = None
    names = None
    allow_overlap = False
    most_labels = cast("int | None", None)
    tree = cast(Any, None)

    # Facts of the method, for checks and the documentation's tables.
    # kinds of finite budgets that it takes
    budget_kinds: ClassVar[tuple[str, ...]] = ("zcdp", "approx", "gdp")
    # neighbouring relations of its guarantees
    units: ClassVar[tuple[Unit, ...]] = tuple(Unit)
    # what is released, in a phrase
    summary: ClassVar[str] = ""
    # what public rows are for
    public_use: ClassVar[str] = "optional, for centring"
    # whether `public` must be passed
    needs_public: ClassVar[bool] = False
    # whether a fit scores public rows: it checks them, and resumes in `folder`
    scores_public: ClassVar[bool] = False
    # whether a record may have several labels, of which `most_labels` is then a parameter
    takes_several_labels: ClassVar[bool] = False
    # why not, and the remedy
    one_label: ClassVar[str] = (
        "learns one label a record; learn from several with GradientDescent, LeastSquares,"
        " NoisySumPrototypes or AutoPrototypes"
    )
    # whether X may be a sparse matrix, which is read in blocks
    takes_sparse: ClassVar[bool] = False
    # whether `names`, and so `classes`, must be passed
    needs_names: ClassVar[bool] = False
    # whether the records decide anything; if not, a fit costs nothing
    uses_records: ClassVar[bool] = True
    # whether a fit holds a voting, and has `answers_`
    has_votes: ClassVar[bool] = False
    # whether `_event` is the privacy cost under `unit`, and not under `units[0]`
    event_under_unit: ClassVar[bool] = False
    # whether a fit ends at a budget, so that it may spend less than it promised
    stops_early: ClassVar[bool] = False
    # whether a fit may leave names out where the records contradict them, and has `names_used_`
    tests_names: ClassVar[bool] = False
    # what `prototypes_` are in the space of rows: means, unit means, directions or rows; empty if
    # the learner has none
    estimates: ClassVar[str] = ""
    person_bound: ClassVar[str] = (
        "what a person's records add up to is scaled down to the norm of one record"
    )
    # whether similarities are logits of a softmax that was trained
    trains_logits: ClassVar[bool] = False
    # the command line's names: n_teachers for teachers__number
    flat_names: ClassVar[Mapping[str, str]] = {}
    _dtypes: ClassVar[list[Any]] = FLOATS

    @abstractmethod
    def _event(self) -> Event:
        """Return the privacy cost of one fit, and check the parameters, from which it follows.

        It is stated under `units[0]`, or, where `event_under_unit`, under `unit`. Under a unit per
        person, it is that of one person in place of one record
        (`tacit.privacy.guarantee.guarantee_under`).
        """

    @abstractmethod
    def _fit(self, prepared: Any, noise: NoiseSource) -> Predictor:
        """Learn from what `_prepare` returned, and return the model that predicts.

        Learned attributes are set here. A `Released` may be published. Its arrays have the names of
        learned attributes without the final underscore.
        """

    def _prepare(self, X: NDArray[Any], labels: Integers) -> Prepared:
        """Check the parameters against the records, and decide what needs only public facts.

        These are the parameters, the classes, public rows, the width of X, and its number of rows
        only under neighbouring relations that make this number public.

        `classes_` is set, and nothing is charged yet. `labels` is empty if only the shape of X is
        known (`check`). Further arguments of `fit` are passed by name.
        """
        return Prepared(X, labels)

    def _spent(self, promise: Guarantee) -> Guarantee:
        """Return the privacy cost of the fit: the promise, unless the learner stops early."""
        return promise

    def _unprotected(self) -> tuple[str, ...]:
        """Return the quantities about private data that the promise does not cover.

        The class list is not among them.
        """
        return ()

    def _budget_text(self) -> str:
        """Return the budget as a notebook shows it."""
        return str(self.budget)

    def _uses_public(self) -> bool:
        """Return whether a fit uses public rows or class names, as far as the parameters tell."""
        if self.needs_public or self.needs_names:
            return True
        return self.public is not None or self.names is not None

    def _releases_public(self) -> bool:
        """Return whether a fit releases public rows, or which of them it chose."""
        return False

    def _flat_public(self, public: Any) -> Any:
        """Return the public rows as an array of shape (m, d)."""
        return as_rows(public, "public")

    def _check_public(self, X: Any, public: Any) -> None:
        """Refuse or warn of public rows, and rows of class names, that are private records.

        `_learn` calls this; `stacklevel` counts the frames up to the caller of `fit`.
        """
        allowed = flag("allow_overlap", self.allow_overlap)
        if allowed or Unit(self.unit).rows_public:
            return

        if public is not None:
            rows = self._flat_public(public)
            check_overlap("public", rows, X, released=self._releases_public(), stacklevel=4)

        names: Any = self.names
        if names is not None:
            rows = np.concatenate(rows_by_class(names, len(names), X.shape[1]))
            check_overlap("names", rows, X, released=False, stacklevel=4)

    def _check_budget(self) -> None:
        """Refuse a budget in Gaussian DP where the events have no mu."""
        budget = Budget.parse(self.budget)
        if budget.mu is None or budget.infinite or budget.kind in self.budget_kinds:
            return
        weaker = "weaker guarantees, which Gaussian noise of this mu satisfies"
        remedy = f"pass {budget.hint('zcdp')} or {budget.hint('approx')} ({weaker})"
        raise BudgetError(
            f"budget {budget} is in Gaussian DP, which {type(self).__name__} cannot satisfy;"
            f" {remedy}"
        )

    def _charge(self, promise: Guarantee, ledger: Ledger) -> None:
        """Charge the promise, before any noise is drawn."""
        ledger.charge(promise, what=f"{type(self).__name__} fit")

    def _guarantee(self) -> Guarantee:
        """Return the promise of one fit, from the parameters alone."""
        if self.event_under_unit:
            return Guarantee(Unit(self.unit), self._event(), self._unprotected())
        if self.units[0] is Unit.ADD_REMOVE:
            return guarantee_under(self._event(), Unit(self.unit), self._unprotected())
        return Guarantee(self.units[0], self._event(), self._unprotected())

    @classmethod
    def of_flat(cls, **parameters: Any) -> Self:
        """Return the learner with these parameters.

        Fields of grouped parameters have their names of `flat_names`.
        """
        grouped = {cls.flat_names.get(name, name): value for name, value in parameters.items()}
        learner: Self = cls().set_params(**grouped)
        return learner

    @classmethod
    def flat_parameters(cls) -> list[str]:
        """Return the names that `of_flat` takes."""
        groups = {target.partition("__")[0] for target in cls.flat_names.values()}
        ungrouped = [field.name for field in fields(cls) if field.name not in groups]
        return ungrouped + list(cls.flat_names)

    @classmethod
    def documented(cls, name: str) -> tuple[type, str]:
        """Return where a parameter of `of_flat` is described: a class, and its name there."""
        return cls, name

    def checkpoint_folder(self) -> Any:
        """Return the private folder in which a fit keeps what it resumes from, or None."""
        return None

    def has_present_samplers(self) -> bool:
        # a learner that was pickled by an earlier version may lack the attribute
        return bool(vars(self).get("samplers_") == SAMPLERS[self.noise_])

    def learner_facts(self) -> LearnerFacts:
        by_name = self.get_params()
        values = {}
        for name in self.flat_parameters():
            grouped = self.flat_names.get(name, name)
            # a group has the fields of its kind alone
            if grouped in by_name:
                values[name] = by_name[grouped]
        parameters, left_out = stated_parameters(values)
        inputs = tuple(name for name in ("public", "names") if by_name.get(name) is not None)
        return LearnerFacts(name_of(type(self)), parameters, left_out, inputs)

    def name_rows(self) -> Any:
        return self.names

    def releasable(self) -> bool:
        """Tell whether a release can hold what a fit learns, as far as the parameters tell."""
        return True

    def promise(self) -> Guarantee:
        """Return the guarantee of `fit`, from public facts alone; `guarantee_` will equal it."""
        self._check_ledger_and_unit()
        self._check_budget()
        promise = self._guarantee()

        unprotected = promise.unprotected
        if self.classes is None:
            unprotected = ("class list (read off the private labels)", *unprotected)
        compares_public_rows = self._uses_public() and not Unit(self.unit).rows_public
        if compares_public_rows:
            unprotected = (*unprotected, OVERLAP)

        scope = scope_of(self.ledger)
        delta = promise.delta or Budget.parse(self.budget).delta
        return replace(promise, unprotected=unprotected, scope=scope, delta=delta).to(self.unit)

    def _check_ledger_and_unit(self) -> None:
        """Refuse what is no ledger, and a neighbouring relation that the method does not offer."""
        check_ledger(self.ledger)
        if checked_unit(self.unit) not in self.units:
            rule = f"unit={self.units[0]} does not imply it"
            if Unit(self.unit).per_person:
                rule = "it is not offered"
            offered = " or ".join(self.units)
            raise InputError(f"unit={self.unit} of {type(self).__name__}: {rule}; pass {offered}")

    def check(self, n: int, width: int, **arguments: Any) -> None:
        """Raise the errors that `fit` would raise for any n records of `width` columns.

        No data are needed. The classes must be declared.
        """
        for name, value in (("n", n), ("width", width)):
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
                raise InputError(f"{name}={value!r} must be a whole number, 1 or more; correct it")
        self.promise()

        worker = copy(self)
        worker.classes_ = worker._leaves(listed_classes(self.classes))
        check_width(width)
        # records of that shape, which take no memory
        rows = np.broadcast_to(np.ones(1), (n, width))
        no_labels = np.zeros(0, dtype=np.int64)
        worker._prepare(rows, no_labels, **arguments)

    def fit(self, X: Any, y: Any, persons: Any = None, **others: Any) -> Self:
        """Learn from private records.

        Parameters
        ----------
        X : array-like of shape (n, d)
            One embedding per record; finite. A row of zeros contributes nothing. Data frames,
            columns of vectors (`df["embedding"]`) and torch tensors are taken too, and sparse
            matrices by learners of sums, which read them in blocks.
        y : array-like of shape (n,)
            Labels, each in `classes`. Texts are compared in Unicode NFC, in which `classes_` has
            them. With `most_labels`, an array of 0 and 1 of shape (n, K), one column a class, or
            a list of the labels of each record; columns of a data frame are matched by name.
        persons : array-like of shape (n,), optional
            Whose each record is: an id, text or a whole number. Needed under a unit per person, and
            unused, with a warning, under a unit per record. Ids are compared as texts, without
            white space at the ends, in Unicode NFC, and 17.0 as 17; "007" and "7", and "P1" and
            "p1", are two persons. They are private and never released.
        others
            Refused: a `sample_weight` would multiply what one record can change.

        Returns
        -------
        self

        Raises
        ------
        InputError
            If a label is not in `classes`, a parameter does not fit the data, or ids are missing.
        LedgerError
            If the promise would overdraw the ledger; nothing is learned then.
        """
        return self._learn(X, y, persons, others)

    def _learn(
        self, X: Any, y: Any, persons: Any, others: Mapping[str, Any], **arguments: Any
    ) -> Self:
        """Take the steps of every `fit`: check, prepare, charge, learn.

        `others` are arguments that no learner takes; `arguments` go to `_prepare`. A copy of this
        object learns. Its learned attributes move here once they are complete, since no guarantee
        covers what a failed fit has learned.
        """
        self._forget_fit()
        refuse_arguments(others)
        worker = copy(self)
        promise = worker.promise()

        # the records, their classes and their persons; what is wrong is refused before a charge
        X, labels = worker._checked_records(X, y, arguments)
        check_width(X.shape[1])
        persons = persons_under(Unit(self.unit), persons, len(X), offered=self.units, stacklevel=3)
        if persons is not None:
            worker._check_persons(persons)

        noise = noise_source(self.noise, self.random_state)
        prepared = replace(worker._prepare(X, labels, **arguments), persons=persons)
        public = arguments.get("public")
        worker._check_public(X, self.public if public is None else public)

        return self._learn_prepared(worker, prepared, promise, noise)

    def _learn_prepared(
        self, worker: Self, prepared: Prepared, promise: Guarantee, noise: NoiseSource
    ) -> Self:
        """Charge the promise, let the worker learn, and take over its learned attributes."""
        if self.ledger is not None:
            worker._charge(promise, self.ledger)
        self._count_fit()
        model = worker._fit(prepared, noise)

        worker.noise_ = self.noise
        worker.samplers_ = SAMPLERS[self.noise]
        worker.released_ = None
        worker.predictor_ = model
        if isinstance(model, Released):
            worker.released_ = worker._completed(model, prepared)
            worker.predictor_ = worker.released_
        worker.guarantee_ = promise
        worker.spent_ = worker._spent(promise)

        learned = {name: value for name, value in vars(worker).items() if name.endswith("_")}
        self.__dict__.update(learned)
        return self

    def _forget_fit(self) -> None:
        """Delete the learned attributes of an earlier fit."""
        learned = [name for name in vars(self) if name.endswith("_")]
        for name in learned:
            delattr(self, name)

    def _check_tables(self, arguments: Mapping[str, Any]) -> None:
        """Refuse public rows and rows of names that are sparse or have other columns than X.

        They are parameters of the learner, or arguments of `fit`.
        """
        parameters = {"public": self.public, "names": self.names}
        for name, parameter in parameters.items():
            argument = arguments.get(name)
            rows = parameter if argument is None else argument
            refuse_sparse(rows, name)
            # scikit-learn sets it only if the columns of X have names
            check_columns(name, rows, getattr(self, "feature_names_in_", None))

    def _completed(self, released: Released, prepared: Prepared) -> Released:
        """Return a copy of what a fit released, with its probabilities and the bound of a person.

        It is a copy so that later changes of the learned attributes do not change the release.
        """
        if released.label_sets is None and released.probabilities is None:
            probabilities = self._probabilities(released, prepared.X.shape[1])
            released = replace(released, probabilities=probabilities)
        if self.tree is not None:
            tree = Tree.of(self.tree).over(self.classes_.tolist())
            released = replace(released, tree=tree.as_texts())
        if prepared.persons is not None:
            mechanism = released.mechanism | {"bound of a person": self.person_bound}
            released = replace(released, mechanism=mechanism)
        return released.copy()

    def other_fits(self) -> int:
        """Return an upper bound of the other uncharged fits by this learner and its clones.

        These are all but the last fit of this learner. It counts each fit in this process, and one
        fit for each clone that was not seen to fit, which may have been fitted in another process.
        A learner that costs nothing has none.
        """
        check_is_fitted(self)
        if not self.uses_records:
            return 0
        lineage, member = self._lineage_and_member()
        return lineage.others(member)

    def _count_fit(self) -> None:
        """Add a fit that is about to draw noise to the lineage, if it depends on records."""
        if self.uses_records:
            lineage, member = self._lineage_and_member()
            lineage.add_fit(member, charged=self.ledger is not None)

    def _lineage_and_member(self) -> tuple[Lineage, str]:
        """Return the lineage of this learner and its key there.

        Both are set on first use, since a constructor of scikit-learn sets parameters alone.
        """
        if not hasattr(self, "_lineage"):
            self._lineage = Lineage.start()
            self._member = uuid4().hex
        return self._lineage, self._member

    def __sklearn_clone__(self) -> Self:
        """Clone as scikit-learn does; the clone shares the lineage."""
        cloned: Self = super().__sklearn_clone__()
        cloned._lineage, _ = self._lineage_and_member()
        cloned._member = uuid4().hex
        cloned._lineage.add_clone(cloned._member, charged=self.ledger is not None)
        return cloned

    def decision_function(self, X: Any) -> Floats:
        """Return the nearness of each row to each class, of shape (n, C).

        For two classes it has shape (n,), as scikit-learn has it: above 0 for the second class.
        With `most_labels` it always has shape (n, C).
        """
        rows = self._rows(X)
        scores = self.predictor_.similarities(rows)
        if scores.shape[1] == 2 and self.most_labels is None:
            scores = scores[:, 1] - scores[:, 0]
        return np.asarray(scores)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of each row of X (n, d), of shape (n,).

        With `most_labels`, return 0 and 1 of shape (n, K): which labels each row has.
        """
        rows = self._rows(X)
        if isinstance(self.predictor_, Released) and self.predictor_.label_sets is not None:
            return np.asarray(self.predictor_.sets_of(rows).astype(np.int64))
        return np.asarray(self.classes_[self.predictor_.nearest(rows)])

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class for each row of X (n, d), of shape (n, C).

        Columns are in the order of `classes_`. Rows add up to 1, and the most likely class is that
        of `predict`. The classes are taken to be equally frequent, unless `balanced=False` or the
        like says otherwise. No private record is used for this, beyond what was released anyway.
        docs/probabilities.md says how each method's follow, and how well they are calibrated.
        With `most_labels`, each column is the probability of one label, and rows add up to
        anything.

        Raises
        ------
        InputError
            If X does not have that form, or the model has no scores.
        """
        rows = self._rows(X)
        return np.asarray(self.predictor_.probabilities_of(rows))

    def predict_log_proba(self, X: Any) -> Floats:
        """Return the logarithm of `predict_proba`; -inf where a probability is 0."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of rows whose class is predicted.

        Texts are compared in Unicode NFC, as in `fit`. With `most_labels`, it is the share of rows
        whose whole set of labels is predicted, as scikit-learn has it.
        """
        if self.most_labels is not None:
            check_is_fitted(self)
            sets = label_sets_of(y, self.classes_)
            return float(super().score(X, sets.astype(np.int64), sample_weight))
        labels = np.asarray(plain_labels(y))
        return float(super().score(X, composed_texts(labels), sample_weight))

    def _probabilities(self, released: Released, width: int) -> Probabilities:
        """Return the rule from similarities of what is released to probabilities.

        Its scale follows from public rows or from the released arrays.
        """
        if self.trains_logits:
            return Probabilities(1.0)
        return reference_scale(released, width, self.public)

    def _rows(self, X: Any) -> Any:
        """Return rows to predict, checked."""
        check_is_fitted(self)
        return validated_rows(self, X, self._dtypes)

    def _check_persons(self, persons: Persons) -> None:
        """Refuse what is out of range for these persons, before anything is charged.

        Ids show in no error.
        """

    def _checked_records(
        self, X: Any, y: Any, arguments: Mapping[str, Any]
    ) -> tuple[Any, NDArray[Any]]:
        """Return the rows and labels of a fit, and learn the class list.

        Labels are class indices of shape (n,); with `most_labels`, truth values of shape (n, K).
        """
        if self.most_labels is not None:
            return self._checked_label_sets(X, y, arguments)

        self._refuse_label_sets(y)
        X, y = validated_records(self, X, y, self._dtypes)
        self._check_tables(arguments)
        self.classes_ = self._leaves(self._class_list(y))
        return X, class_indices(y, self._labels_of_records())

    def _checked_label_sets(
        self, X: Any, y: Any, arguments: Mapping[str, Any]
    ) -> tuple[Any, NDArray[np.bool_]]:
        """Return the rows and labels of records that may have several."""
        X = validated_matrix(self, X, self._dtypes)
        self._check_tables(arguments)
        self.classes_ = self._declared_labels()
        self._refuse_single_labels(y)
        return X, label_sets_of(y, self.classes_, n_records=len(X))

    def _refuse_label_sets(self, y: Any) -> None:
        """Refuse several labels a record, where `most_labels` does not declare them."""
        if not has_label_sets(y):
            return
        fault = "y has sets of labels"
        if self.takes_several_labels:
            raise InputError(
                f"{fault}, which must be declared; pass most_labels=m, the most labels that a"
                " record has, and classes=[...]"
            )
        raise InputError(f"{fault}, and {type(self).__name__} {self.one_label}")

    def _refuse_single_labels(self, y: Any) -> None:
        """Refuse one label a record, where `most_labels` declares several."""
        if has_single_labels(y):
            raise InputError(
                f"y has one label a record, and most_labels={self.most_labels} declares sets of"
                " labels; pass a list of labels for each record, or leave most_labels out"
            )

    def _leaves(self, classes: NDArray[Any]) -> NDArray[Any]:
        """Return the classes of a list that may also hold inner nodes of the tree, if there is
        one.
        """
        if self.tree is None:
            return classes
        tree = Tree.of(self.tree)
        leaves, _ = tree.divided(classes.tolist())
        tree.over(leaves)  # raises if the tree is of other classes
        return listed_classes(leaves)

    def _nodes(self) -> Nodes | None:
        """Return the labels that a record may have, if it may be labelled with an inner node."""
        if self.tree is None:
            return None
        return Nodes.of(Tree.of(self.tree), self.classes_)

    def _labels_of_records(self) -> NDArray[Any]:
        """Return the labels that a record may have: the classes, then inner nodes of the tree."""
        nodes = self._nodes()
        return self.classes_ if nodes is None else nodes.labels

    def _declared_labels(self) -> NDArray[Any]:
        """Return the class list of records that may have several labels."""
        if not self.takes_several_labels:
            raise InputError(f"{type(self).__name__} {self.one_label}")
        whole("most_labels", self.most_labels, 1, MOST_CLASSES)
        if self.tree is not None:
            raise InputError(
                "tree is of exclusive classes, and most_labels declares several a record; leave one"
                " of them out"
            )
        if self.classes is None:
            raise InputError(
                "classes=None must list the labels that a record may have; pass classes=[...]"
            )
        return listed_classes(self.classes)

    def _class_list(self, y: NDArray[Any]) -> NDArray[Any]:
        if self.classes is not None:
            return listed_classes(self.classes)
        warnings.warn(
            "the class list is read off the private labels, which reveals which labels occur; pass"
            " classes=[...]",
            PrivacyLeakWarning,
            stacklevel=5,  # where `fit` was called
        )
        return np.unique(y)

    def _repr_html_inner(self) -> str:
        return promise_html(self, self._budget_text()) + str(super()._repr_html_inner())

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] = self._repr_html_inner()
        return bundle

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "guarantee_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # at the default budget, on the few records of the checks
        tags.classifier_tags.poor_score = True
        tags.classifier_tags.multi_label = self.most_labels is not None
        tags.input_tags.sparse = self.takes_sparse
        tags.non_deterministic = self.noise != "research"
        return tags
