"""PATE: teachers on disjoint parts of the private records vote on public ones, and a student learns from the labels."""

from __future__ import annotations

import math
import secrets
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from tacit.data.labels import class_indices
from tacit.errors import BudgetError, InputError
from tacit.learners.base import DEFAULT_BUDGET, Prepared
from tacit.learners.common.models import (
    Model,
    ModelClassifier,
    View,
    as_flat,
    check_kind,
    finite_rows,
    record_shape,
    shape_of,
)
from tacit.learners.common.parameters import public_centre, real, value_of, whole
from tacit.learners.common.training import Training
from tacit.learners.pate.aggregators import Aggregator, GNMax, Interactive, Plurality, voting_of
from tacit.learners.pate.allocation import Allocation, allocate
from tacit.learners.pate.collectors import COLLECTORS, PlainCollector
from tacit.learners.pate.filter import allowances, promised
from tacit.learners.pate.scheme import ALL, OF_GROUPS, UNPROTECTED, Scheme, checked_budgets, scheme
from tacit.learners.pate.stages import Kept, Stages, hash_of, run_hash
from tacit.learners.pate.student import Student, fit_student
from tacit.learners.pate.teachers import Ensemble, Teachers
from tacit.learners.pate.voting import Voting, check_stopping
from tacit.mechanisms.noise import Integers, NoiseSource
from tacit.models.released import Released
from tacit.privacy.budget import Budget
from tacit.privacy.events import ZCDP, Event, compose
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.ledger import Ledger
from tacit.privacy.unit import Unit

GROUPED = {"teachers": Teachers, "voting": Aggregator, "student": Student}
"""Parameters that are values of several fields."""


@dataclass(frozen=True, eq=False)
class Election(Prepared):
    """Private records, the public ones they vote on, and everything about the voting that is public."""

    public: Any
    test: tuple[Any, Integers] | None
    allocation: Allocation
    scheme: Scheme
    folder: Stages
    of_teachers: View
    of_student: View

    @property
    def queries(self) -> NDArray[Any]:
        """Public records that are queried, in order."""
        return np.asarray(self.public[: self.scheme.n_queries])


@dataclass(kw_only=True, eq=False, repr=False)
class PATE(ModelClassifier):
    """Classify by a student that learns from the noisy votes of teachers on public records.

    The private records are dealt out to teachers, each a classifier of its own. Public records are asked in order; the
    noisy votes answer some of them, until a limit or a budget is reached. The student learns from these labels alone.

    Parameters
    ----------
    budget : Budget or str, default="rho=0.5"
        Of every record: zCDP or approximate; a pure budget is refused. "rho=inf" is plurality without noise.
    classes : sequence or int, optional
        The public class list; N stands for 0..N-1. If omitted it is read off y, with a warning.
    public : array of shape (m, d) or (m, channels, height, width), optional
        The records to ask about, alike to the private ones. They may be passed to `fit` instead.
    budgets : dict of str to float, optional
        Instead of `budget`: epsilon of each budget group at `delta`. `fit` then takes `groups`.
    delta : float, default=1e-5
        Where budgets are read that name no delta.
    teachers : Teachers or dict, optional
        Who votes: number, model, training, expected_accuracy, n_jobs. See `tacit.pate.Teachers`.
    voting : {"confident", "gnmax"}, aggregator or dict, default="confident"
        By a name, noise is calibrated on simulated votes. Else `tacit.pate.GNMax(sigma)`, `Confident(sigma, sigma1,
        threshold)`, `Interactive(sigma, sigma1, threshold, confidence, bootstrap)` or `LaplaceMax(gamma)`, all in
        votes; or a dict of these with the name as `kind`.
    student : Student or dict, optional
        What learns from the labels: model, training, semi_supervised, validation. See `tacit.pate.Student`.
    shape : tuple of int, optional
        Of one record, such as (1, 28, 28), where rows hold pictures.
    collector : {"weighting", "vanishing", "upsampling", "gnmax"}
        How budget groups vote together; see `tacit.learners.pate.collectors`. Without groups it makes no difference.
    n_queries, n_labels : int, optional
        Limits: ask the first `n_queries` public records only, and stop after `n_labels` bought labels. Without groups
        the promise counts on `n_queries`.
    stopping : {"filter", "data-dependent"}
        See `tacit.pate.aggregate`.
    seed : int, default=0
        Public: of dealing out records and of training. Voting has noise of its own.
    folder : path, optional
        Keeps teachers, votes, labels and tables (teachers.csv, votings.csv, students.csv), so that an interrupted fit
        can go on. All of it is private; only its owner can read it. A fit from labels that are kept here is not charged
        again to a ledger that has paid for them.
    noise, random_state, ledger
        As in `NoisySumPrototypes`.
    unit : {"replace", "change-label"}
        The unit in which the guarantee is stated; budgets are always read under "replace".

    Attributes
    ----------
    answers_ : Answers
        Labels of the public records, which may be published, and what is known of their price.
    student_ : Model
    validation_accuracy_ : float or None
        Share of the labels that were kept aside that the student predicts.
    votes_ : Votes
        Private, as are `answers_.internal_` and everything in the folder.
    aggregator_ : Aggregator
        As used, in votes of plain PATE.
    shape_ : tuple of int
        Of one record.
    classes_ : ndarray of shape (C,)
    guarantee_ : Guarantee
        Equal to `promise()`: the budget of each group, or, without groups, what the limits allow at worst where noise
        and limits are given and that is less.
    spent_ : Guarantee
        What was asked and answered cost. A report, not a guarantee.

    Notes
    -----
    Guarantee: under replacement of one record of a group, the group's budget. A record reaches one teacher only (d_g
    under upsampling), by its position, its group and public facts; see `tacit.mechanisms.votes` for the price of a
    query and `tacit.learners.pate.filter` for why stopping is private. The number of records, groups and budgets are
    not protected.
    Source: Papernot et al. 2017 and 2018; Boenisch et al. 2022.

    Examples
    --------
    >>> import numpy as np, tacit
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 2000)
    >>> X = rng.normal(size=(2000, 3)) + 3 * y[:, None]
    >>> public = rng.normal(size=(200, 3)) + 3 * rng.integers(0, 2, (200, 1))
    >>> model = tacit.PATE("epsilon=2,delta=1e-5", classes=2, public=public).fit(X, y)
    >>> model.predict([[3.0, 3.0, 3.0]]), round(model.guarantee_.epsilon(1e-5), 4)
    (array([1]), 2.0)
    """

    units = (Unit.REPLACE, Unit.CHANGE_LABEL)
    needs_public = True
    summary = "labels of public records by noisy votes, and a student (PATE, personalized PATE)"
    public_use = "needed, of the private kind"
    stops_early = True
    no_release = (
        "decides by a model that a release cannot hold; choose student={'model': 'linear'}, a LogisticRegression or a "
        "network by name, or publish answers_.labels alone"
    )
    flat_names: ClassVar[Mapping[str, str]] = {
        "n_teachers": "teachers__number",
        "teacher": "teachers__model",
        "teacher_training": "teachers__training",
        "expected_accuracy": "teachers__expected_accuracy",
        "n_jobs": "teachers__n_jobs",
        "aggregator": "voting__kind",
        **{name: f"voting__{name}" for name in ("sigma", "sigma1", "threshold", "gamma", "confidence", "bootstrap")},
        "student": "student__model",
        "student_training": "student__training",
        "semi_supervised": "student__semi_supervised",
        "validation": "student__validation",
    }

    public: Any = None
    budgets: Mapping[str, float] | None = None
    delta: float = 1e-5
    teachers: Teachers | Mapping[str, Any] | None = None
    voting: Aggregator | str | Mapping[str, Any] = "confident"
    student: Student | Mapping[str, Any] | None = None
    collector: str = "weighting"
    n_queries: int | None = None
    n_labels: int | None = None
    stopping: str = "filter"
    shape: tuple[int, ...] | None = None
    seed: int = 0
    folder: Any = None
    unit: Unit | str = "replace"

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name; `deep` adds the fields of grouped ones, such as `voting__sigma`."""
        parameters: dict[str, Any] = super().get_params(deep=False)
        for group in GROUPED if deep else ():
            with suppress(InputError):  # `promise` and `fit` refuse a value that is none of the group's
                fields = _settings(group, parameters[group])
                parameters |= {f"{group}__{name}": value for name, value in fields.items()}
        return parameters

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters; `voting__sigma=40` replaces the value of `voting` by one with that field."""
        changes: dict[str, dict[str, Any]] = {}
        for name in list(parameters):
            group, _, field = name.partition("__")
            if field and group in GROUPED:
                changes.setdefault(group, {})[field] = parameters.pop(name)
        super().set_params(**parameters)
        for group, fields in changes.items():
            settings = _settings(group, getattr(self, group))
            if fields.get("kind", settings.get("kind")) != settings.get("kind"):
                settings = {}  # another aggregator has parameters of its own
            setattr(self, group, _value(group, settings | fields))
        return self

    def _teachers(self) -> Teachers:
        return value_of("teachers", self.teachers, Teachers)

    def _student(self) -> Student:
        return value_of("student", self.student, Student)

    def _event(self) -> Event:
        if Budget.parse(self.budget).infinite:  # plurality without noise, whatever noise is given
            return ZCDP(math.inf)
        rho = self._allowances()[ALL] if self.stopping == "filter" else math.inf
        noise, limits = voting_of(self.voting)[1], self._limits()
        if noise is None or limits is None:
            return ZCDP(rho)
        members = PlainCollector({ALL: math.inf}, np.ones((1, 1), dtype=bool))
        return promised(members, noise, {ALL: rho}, *limits)[ALL]

    def _unprotected(self) -> tuple[str, ...]:
        return UNPROTECTED if self.budgets is None else UNPROTECTED + OF_GROUPS

    def _guarantee(self) -> Guarantee:
        check_stopping(self.stopping, self.noise)
        if self.budgets is None:
            return super()._guarantee()
        filtered = self.stopping == "filter"
        groups = tuple((group, ZCDP(rho if filtered else math.inf)) for group, rho in self._allowances().items())
        return Guarantee(self.units[0], compose([]), self._unprotected(), groups)

    def _allowances(self) -> dict[str, float]:
        """The largest rho of each group within its budget."""
        if self.budgets is not None:
            if self.budget != DEFAULT_BUDGET:
                raise BudgetError(f"budget={self.budget} and budgets={self.budgets} are both given; pass one of them")
            return allowances(checked_budgets(self.budgets), real("delta", self.delta, 1e-30, 1 - 1e-9))
        budget = Budget.parse(self.budget)
        if budget.infinite:
            return {ALL: math.inf}
        if budget.kind == "pure":
            raise BudgetError(
                f"budget {budget} is pure and noisy votes have no pure epsilon; "
                f"pass rho=... or epsilon={budget.epsilon:g},delta=1e-5"
            )
        return {ALL: budget.rho} if budget.rho else allowances({ALL: budget.epsilon or 0.0}, budget.delta or 0.0)

    def _limits(self) -> tuple[int, int] | None:
        """The most queries and labels, where the parameters tell."""
        if self.n_queries is None:
            return None
        queries = self._queries(2**53)
        return queries, queries if self.n_labels is None else min(queries, whole("n_labels", self.n_labels, 1, 2**53))

    def _queries(self, public: int) -> int:
        """How many of so many public records are queried."""
        return public if self.n_queries is None else min(public, whole("n_queries", self.n_queries, 1, 2**53))

    def fit(self, X: Any, y: Any, groups: Any = None, public: Any = None, test: Any = None) -> Self:
        """Learn from private records and public ones.

        Parameters
        ----------
        X : array-like of shape (n, d) or (n, channels, height, width)
            Private records; finite. Pictures may be uint8.
        y : array-like of shape (n,)
            Labels, each in `classes`.
        groups : sequence of str of length n, optional
            Budget group of each record; public.
        public : array-like of shape (m, ...), optional
            Public records to ask about, in this order; by default the parameter of that name.
        test : (array-like of shape (t, ...), array-like of shape (t,)), optional
            Records and labels to measure teachers and student by.

        Returns
        -------
        self

        Raises
        ------
        InputError, BudgetError
            If something is out of range, or not even one query fits a budget; nothing is charged or learned then.
        LedgerError
            If the promise would overdraw the ledger; nothing is learned then.
        """
        return self._learn(as_flat(X), y, shape=shape_of(X, self.shape), groups=groups, public=public, test=test)

    def _prepare(
        self,
        X: NDArray[Any],
        labels: Integers,
        *,
        shape: Any = None,
        groups: Any = None,
        public: Any = None,
        test: Any = None,
    ) -> Election:
        n, width = X.shape
        public = self.public if public is None else public
        if public is None:
            raise InputError("PATE needs public records to ask about; pass public=... of shape (m, d)")
        rows = finite_rows(as_flat(public), "public", width)
        sides = record_shape(self.shape if shape is None else shape, width)
        teacher, student = _model_of(self._teachers()), _model_of(self._student())
        for role, kind in (("teacher", teacher), ("student", student)):
            check_kind(role, kind, sides, len(self.classes_))
        whole("seed", self.seed, 0, 2**63 - 1)
        real("delta", self.delta, 1e-30, 1 - 1e-9)
        if self.collector not in COLLECTORS:
            raise InputError(f"collector={self.collector!r} must be one of {', '.join(COLLECTORS)}; leave it out")
        interactive = voting_of(self.voting)[0] == "interactive"
        if interactive and hasattr(student, "fit") and not hasattr(student, "predict_proba"):
            raise InputError(
                f"student={student!r:.60} has no predict_proba, which interactive voting needs; choose another"
            )
        allocation = self._allocation(n, groups)
        public_scheme = self._scheme(allocation, self._queries(len(rows)))
        if self.stopping == "filter":
            public_scheme.check_affordable()
        linear = _is_linear(student)
        return Election(
            X,
            labels,
            public=rows,
            test=None if test is None else self._test(test, width),
            allocation=allocation,
            scheme=public_scheme,
            folder=Stages(self.folder),
            of_teachers=View(sides),
            of_student=View(
                sides,
                unit=linear,
                centre=public_centre(rows, width) if linear else None,
                scale=255.0 if X.dtype == np.uint8 and isinstance(student, str) else 1.0,
            ),
        )

    def _test(self, test: Any, width: int) -> tuple[Any, Integers]:
        """Test rows and their class indices."""
        if not isinstance(test, tuple | list) or len(test) != 2:
            raise InputError(f"test is a {type(test).__name__} and not a pair; pass test=(records, labels)")
        rows, labels = finite_rows(as_flat(test[0]), "test", width), _array(test[1], "labels of test")
        if labels.shape != (len(rows),):
            raise InputError(f"test has {len(rows)} records and labels {labels.shape}; pass one for each")
        return rows, class_indices(labels, self.classes_)

    def _allocation(self, n: int, groups: Any) -> Allocation:
        if (self.budgets is None) != (groups is None):
            raise InputError("budget groups need budgets= of each and, at fit, groups= of each record; pass both")
        n_teachers = self._teachers().number_for(n)
        if groups is None:
            return allocate(np.full(n, ALL), {ALL: math.inf}, n_teachers, "gnmax", self.seed)
        of_records = _array(groups, "groups")
        if of_records.shape != (n,):
            raise InputError(f"groups has shape {of_records.shape}; pass one group for each of {n} records")
        return allocate(of_records.astype(str), checked_budgets(self.budgets), n_teachers, self.collector, self.seed)

    def _scheme(self, allocation: Allocation, n_queries: int) -> Scheme:
        """Everything about the voting that is public."""
        name, noise = voting_of(self.voting)
        if self.budgets is None:
            labels = n_queries if self.n_labels is None else whole("n_labels", self.n_labels, 1, n_queries)
            budget = Budget.parse(self.budget)
            if self.stopping != "filter" and budget.kind == "zcdp":
                raise BudgetError(f"stopping={self.stopping!r} needs a budget epsilon=...,delta=..., not {budget}")
            epsilons = {ALL: math.inf if budget.epsilon is None else budget.epsilon}
            aggregator: Aggregator = Plurality() if budget.infinite else noise or GNMax(1.0)
            members = PlainCollector(epsilons, np.ones((1, len(allocation.parts)), dtype=bool))
            delta = budget.delta or self.delta
            whole_scheme = Scheme(members, aggregator, epsilons, delta, self._allowances(), n_queries, labels)
        else:
            whole_scheme = scheme(
                n_queries,
                len(allocation.parts),
                collector=self.collector,
                budgets=self.budgets,
                shares=None if allocation.teacher_groups else allocation.shares,
                teacher_groups=allocation.teacher_groups,
                copies=allocation.copies,
                delta=self.delta,
                n_labels=self.n_labels,
                **({"aggregator": "gnmax", "sigma": 1.0} if noise is None else {"aggregator": name, **vars(noise)}),
            )
        if noise is not None or isinstance(whole_scheme.aggregator, Plurality):
            return whole_scheme
        return whole_scheme.calibrated(name, len(self.classes_), self._teachers().expected_accuracy)

    def _charge(self, promise: Guarantee, ledger: Ledger) -> None:
        """Nothing yet: voting is charged when teachers are trained, right before its noise."""

    def _fit(self, election: Election, noise: NoiseSource) -> Released | Model:
        folder, public_scheme, test = election.folder, election.scheme, election.test
        self.aggregator_, self.shape_ = public_scheme.aggregator, election.of_teachers.shape
        self.centre_ = election.of_student.centre
        ensemble = self._ensemble(election)
        run = run_hash(public_scheme, ensemble.hashes, self._settings())
        kept = folder.read_answers(run, len(self.classes_))
        paid = self._paid(kept)
        if self.ledger is not None and not paid:
            self.ledger.check(self.promise(), what="PATE fit")
        self.votes_ = ensemble.votes(self._teachers().n_jobs)
        voting = Voting(public_scheme, np.arange(len(self.classes_)), self.stopping)
        if kept is not None:
            folder.resume(kept, voting, self.votes_.votes)
        charge = None if paid else self._pay()
        if kept is None:
            self._vote(election, voting, noise)
        if kept is None or charge is not None:
            folder.keep_answers(run, voting, self.votes_.votes, charge, self.promise())
        self.answers_ = replace(voting.answers(), guarantee_=self.promise())
        self.student_, self.validation_accuracy_ = self._fitted_student(election, voting)
        accuracy = None if test is None else float(np.mean(self.student_.nearest(test[0]) == test[1]))
        folder.keep_tables(
            election.allocation, self.votes_, public_scheme, self.answers_, self.validation_accuracy_, accuracy
        )
        facts = {
            "teachers": self.votes_.votes.shape[1],
            "aggregator": str(self.aggregator_),
            "public records asked about": self.answers_.asked,
            "answered": self.answers_.answered,
        }
        released = self.student_.released(self._student().model, "noisy votes", facts)
        if isinstance(released, Released) and "coefficients" in released.arrays:
            self.coefficients_, self.intercepts_ = released.arrays["coefficients"], released.arrays["intercepts"]
        return released

    def _ensemble(self, election: Election) -> Ensemble:
        teachers, view, test = self._teachers(), election.of_teachers, election.test
        return Ensemble(
            _model_of(teachers),
            election.allocation.parts,
            view(election.X),
            election.labels,
            view(election.queries),
            n_classes=len(self.classes_),
            training=Training.of(teachers.training),
            seed=self.seed,
            test=None if test is None else (view(test[0]), test[1]),
            folder=self.folder,
        )

    def _settings(self) -> list[object]:
        """What decides the answers beside the scheme, the records and the votes."""
        settings = [self.noise, self.random_state, self.stopping, self.classes_.tolist()]
        if not isinstance(self.aggregator_, Interactive):
            return settings
        student = self._student()
        model = _model_of(student)
        return [*settings, getattr(model, "__qualname__", repr(model)), replace(student, model=None)]

    def _paid(self, kept: Kept | None) -> bool:
        """Whether a charge of this promise has paid for the labels that are kept; always without a ledger."""
        if self.ledger is None:
            return True
        if kept is None or kept.charge is None or kept.promise != hash_of(self.promise()):
            return False
        return any(charge.what == _charged_as(kept.charge) for charge in self.ledger.account().charges)

    def _pay(self) -> str:
        """Charge the promise to the ledger; the name of the charge."""
        name = secrets.token_hex(8)
        if self.ledger is not None:
            self.ledger.charge(self.promise(), what=_charged_as(name))
        return name

    def _vote(self, election: Election, voting: Voting, noise: NoiseSource) -> None:
        aggregator, votes = voting.plan.aggregator, self.votes_.votes
        if not isinstance(aggregator, Interactive):
            voting.ask(votes, noise)
            return
        first = math.ceil(aggregator.bootstrap * len(votes))
        voting.ask(votes[:first], noise, aggregator=aggregator.without_student())
        if first == len(votes):
            return
        student, _ = self._fitted_student(election, voting)
        voting.ask(votes[first:], noise, np.exp(student.log_probabilities(election.queries[first:])))

    def _spent(self, promise: Guarantee) -> Guarantee:
        return self.answers_.spent_

    def _fitted_student(self, election: Election, voting: Voting) -> tuple[Model, float | None]:
        """The student of the labels so far."""
        student, view = self._student(), election.of_student
        labels = voting.labels[: voting.asked]
        known = np.flatnonzero(labels >= 0)
        others = np.delete(election.public, known, axis=0) if student.semi_supervised else election.public[:0]
        if len(known) == 0:
            warnings.warn(
                "no query was answered, so the student knows no class but the first; pass a lower threshold, or a "
                "larger budget",
                stacklevel=5,  # where `fit` was called
            )
            known, labels = np.array([0]), np.zeros(len(labels), dtype=np.int64)
        model, accuracy = fit_student(
            _model_of(student),
            view(election.queries[known]),
            labels[known],
            n_classes=len(self.classes_),
            training=Training.of(student.training),
            validation=student.validation,
            unlabelled=view(others) if len(others) else None,
            seed=self.seed,
        )
        return replace(model, view=view), accuracy


def _value(group: str, settings: dict[str, Any]) -> Any:
    """The value of a grouped parameter with these fields."""
    if group == "voting":
        name, aggregator = voting_of(settings)
        return aggregator or name
    return value_of(group, settings, GROUPED[group])


def _settings(group: str, value: Any) -> dict[str, Any]:
    """The fields of a grouped parameter."""
    if group == "voting":
        name, aggregator = voting_of(value)
        return {"kind": name} | ({} if aggregator is None else asdict(aggregator))
    return dict(vars(value_of(group, value, GROUPED[group])))


def _model_of(role: Teachers | Student) -> Any:
    """The model of teachers or the student, or the default."""
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=30.0, max_iter=300) if role.model is None else role.model


def _is_linear(student: Any) -> bool:
    from sklearn.linear_model import LogisticRegression

    return isinstance(student, LogisticRegression) or (isinstance(student, str) and student == "linear")


def _charged_as(name: str) -> str:
    """What the ledger says of a charge; the name tells it from charges for other labels."""
    return f"PATE fit {name}"


def _array(values: Any, name: str) -> NDArray[Any]:
    try:
        return np.asarray(values)
    except ValueError as error:
        raise InputError(f"{name} has entries of different lengths; pass one for each record") from error
